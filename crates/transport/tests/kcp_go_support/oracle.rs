//! kcp-go, as a program of ours plays it.

use std::io::{BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use super::Sent;
use super::script::Script;

/// Builds the program. `None` where that cannot be done and need not.
///
/// Go's own cache keeps the module and what was compiled.
pub(crate) fn build_oracle() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kcp_go_oracle");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kcp_go_oracle");
    let built = Command::new("go")
        .args(["test", "-c", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(&source)
        .output();
    let why = match built {
        Ok(output) if output.status.success() => return Some(program),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let required = std::env::var_os("LAGOMETER_REQUIRE_GO").is_some();
    assert!(
        !required,
        "kcp-go cannot be built: install Go 1.25 or later: {why}"
    );
    eprintln!("skipped, for kcp-go cannot be built: {why}");
    None
}

/// The program at work on some seeds.
#[derive(Debug)]
pub(crate) struct Oracle {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Plays the conversations of these seeds, in order.
    pub(crate) fn start(program: &Path, seeds: Vec<u64>) -> Self {
        let mut child = Command::new(program)
            // One thread, which gives way only where it waits: what the
            // sessions' goroutines do within an instant has one order.
            .env("GOMAXPROCS", "1")
            .env("GODEBUG", "asyncpreemptoff=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program was built");
        let mut input = child.stdin.take().expect("it is piped");
        thread::spawn(move || {
            for seed in seeds {
                // A program that ended says why itself.
                if writeln!(input, "{}", Script::of(seed).line()).is_err() {
                    break;
                }
            }
        });
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, output }
    }

    /// What the sessions of the next conversation sent.
    pub(crate) fn next(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        loop {
            let mut head = [0; 13];
            self.read(&mut head);
            let side = usize::from(head[8]);
            if side == 255 {
                return sent;
            }
            let ns = u64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
            let length = u32::from_le_bytes(head[9..].try_into().expect("four bytes"));
            let mut bytes = vec![0; length as usize];
            self.read(&mut bytes);
            sent.push(Sent { ns, side, bytes });
        }
    }

    fn read(&mut self, room: &mut [u8]) {
        self.output
            .read_exact(room)
            .expect("kcp-go's program ended; its reason stands above");
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
