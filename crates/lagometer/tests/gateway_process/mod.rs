//! A gateway in a process of its own, and where it says that it listens.

use std::fmt::Debug;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

/// Starts one that lets everyone in, its ports for servers and for the web free ones.
/// The process, which is not ended when it is dropped, and the line of its log in which
/// it says where it listens.
pub(crate) fn start(arguments: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(["gateway", "-dev", "-cwm=false", "-sa=127.0.0.1:0"])
        .args(["-cfsm=client_authoratative_fsm.json", "--web=127.0.0.1:0"])
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = loop {
        let line = lines.next().expect("the gateway ends at once").unwrap();
        if line.contains("the gateway runs") {
            break line;
        }
    };
    // The rest of the log is read away.
    std::thread::spawn(move || lines.for_each(drop));
    (child, line)
}

/// The address behind `key` in such a line, without its scheme; nowhere where there is
/// none, as on a node for channels.
pub(crate) fn address<T: FromStr<Err: Debug>>(line: &str, key: &str) -> T {
    let rest = line.split(key).nth(1).unwrap();
    let end = rest.find([',', ' ', '\n']).unwrap_or(rest.len());
    let address = match &rest[..end] {
        "none" => "0.0.0.0:0",
        address => address.rsplit("//").next().unwrap(),
    };
    address.parse().unwrap()
}
