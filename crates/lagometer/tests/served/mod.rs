//! A remote end in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

/// What the remote end and those who use it share.
pub(crate) const SECRET: &str = "a secret for tests alone";

/// A remote end; gone with the value.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Served {
    pub(crate) fn start(bind: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lagometer"))
            .args(["serve", "--bind", bind])
            .env("LAGOMETER_SECRET", SECRET)
            .env("NO_COLOR", "1")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.split("serving at ").nth(1).expect("it says where");
        let address = address.trim().to_owned();
        // Whatever else it says must have somewhere to go.
        thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
