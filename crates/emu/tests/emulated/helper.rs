//! This program as another one: what the tests of `shape` run, since that
//! needs a process of its own and commands to run in it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use lagometer_emu::{Output, Settings, Shape, ShapeError};
use lagometer_link::{Profile, Regime};

const MARK: &str = "--as";

/// A command that runs this program as `what`.
pub(crate) fn command(what: &str) -> Command {
    let mut command = Command::new(path());
    command.args([MARK, what]);
    command
}

/// The same for a shell.
pub(crate) fn for_shell(what: &str) -> String {
    format!("{} {MARK} {what}", path().display())
}

fn path() -> PathBuf {
    std::env::current_exe().expect("this program is somewhere")
}

/// Does what this program was run as, if it was; returns the exit code.
pub(crate) fn asked() -> Option<i32> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != MARK {
        return None;
    }
    let what = arguments.next()?.into_string().ok()?;
    let rest: Vec<OsString> = arguments.collect();
    Some(match what.as_str() {
        "shape" => shape(&rest),
        "server" => serve(),
        "client" => ask(),
        _ => 99,
    })
}

/// Runs the second argument as server command, unless it is empty, and those
/// after it as the client, behind the profile in the first.
fn shape(arguments: &[OsString]) -> i32 {
    let [ways, remote, command @ ..] = arguments else {
        return 99;
    };
    let text = format!("summary = \"a test\"\n{}", ways.to_string_lossy());
    let profile = Profile::from_text("test", &text).expect("the profile is right");
    let shape = Shape {
        profile: &profile,
        seed: 1,
        regime: Regime::Time,
        settings: Settings::default(),
        command,
        clients: 1,
        output: Output::Inherited,
        remote: Some(remote.as_os_str()).filter(|remote| !remote.is_empty()),
        timeout: Duration::from_secs(2),
        stop: None,
    };
    match shape.run() {
        Ok(shaped) => {
            let audit = &shaped.network.audit;
            eprintln!("up: {} packets", audit.lanes[0].up.packets);
            eprintln!("valid: {} {:?}", audit.valid, audit.faults);
            shaped.exit_code
        }
        Err(ShapeError::CannotStart { .. }) => 127,
        Err(error) => {
            eprintln!("{error}");
            3
        }
    }
}

const PORT: u16 = 7777;

fn address(variable: &str) -> IpAddr {
    let value = std::env::var(variable).expect("the address is set");
    value.parse().expect("it is an address")
}

/// Echoes a byte for each of two connections.
fn serve() -> i32 {
    // Late on purpose: the client must not come before.
    std::thread::sleep(Duration::from_millis(100));
    let v4 = TcpListener::bind((address("LAGOMETER_SERVER"), PORT)).expect("v4 is there");
    let v6 = TcpListener::bind((address("LAGOMETER_SERVER_V6"), PORT)).expect("v6 is there");
    for listener in [v4, v6] {
        let (mut stream, _) = listener.accept().expect("a client comes");
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("it says something");
        stream.write_all(&byte).expect("it listens");
    }
    0
}

/// Asks the server over both families; prints how long both took in ms.
fn ask() -> i32 {
    let began = Instant::now();
    for variable in ["LAGOMETER_SERVER", "LAGOMETER_SERVER_V6"] {
        let Ok(mut stream) = TcpStream::connect((address(variable), PORT)) else {
            return 1;
        };
        stream.write_all(&[42]).expect("it listens");
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("it answers");
        assert_eq!(byte, [42]);
    }
    println!("{}", began.elapsed().as_millis());
    0
}
