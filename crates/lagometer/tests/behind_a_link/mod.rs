//! Two hosts in namespaces with an emulated link between.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lagometer_emu::Permission;

/// Runs the shell's `command` in one host and a remote end in another, behind a link as
/// `network` describes it, in `folder`; `None` where the system permits no namespaces.
pub(crate) fn behind_a_link(folder: &Path, network: &str, command: &str) -> Option<Output> {
    if let Err(refusal) = Permission::probe() {
        assert!(
            std::env::var_os("LAGOMETER_REQUIRE_NAMESPACES").is_none(),
            "LAGOMETER_REQUIRE_NAMESPACES is set, but {refusal}"
        );
        eprintln!("skipped: {refusal}");
        return None;
    }
    fs::write(folder.join("link.toml"), network).unwrap();
    let binary = env!("CARGO_BIN_EXE_lagometer");
    let output = Command::new(binary)
        .args(["shape", "link.toml", "--server"])
        .arg(format!("{binary} serve --bind 0.0.0.0"))
        .args(["--", "sh", "-c", command])
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("LAGOMETER_SECRET", "a secret for tests alone")
        .output();
    Some(output.expect("the binary starts"))
}
