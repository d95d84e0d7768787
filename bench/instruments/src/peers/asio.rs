//! A small echo over asio, built on the spot.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::command::{Bench, Placement, Server, free_port, on, printed};

/// Echoes a second of 8 bytes; `style` is `sync` or `async`.
pub(crate) fn echo(bench: &Bench, placement: Placement, style: &str) -> Result<f64, String> {
    let program = built()?.display().to_string();
    let port = free_port()?.to_string();
    let [server_cpu, client_cpu] = placement.cpus();
    let mut server = on(server_cpu, &program);
    server.args(["server", style, &port]);
    let _server = Server::start(server)?;
    let mut client = on(client_cpu, &program);
    client.args(["client", &port, &bench.seconds.to_string()]);
    let text = printed(client, Duration::from_secs(u64::from(bench.seconds) + 5))?;
    text.trim()
        .parse()
        .map_err(|_| format!("asio's client said `{}`", text.trim()))
}

/// Compiles the program unless it has been.
fn built() -> Result<PathBuf, String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/asio/echo.cpp");
    let program = std::env::current_exe()
        .map_err(|error| error.to_string())?
        .with_file_name("asio_echo");
    if !program.exists() {
        let status = Command::new("g++")
            .args(["-O2", "-std=c++17", source, "-lpthread", "-o"])
            .arg(&program)
            .status()
            .map_err(|error| format!("g++: {error}"))?;
        if !status.success() {
            return Err("g++ could not build it; is libasio-dev there?".to_owned());
        }
    }
    Ok(program)
}
