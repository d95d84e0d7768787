//! What `check` finds in the output of tests that failed: only what names its tests may
//! be tried once more.

use std::fs;
use std::process::Command;

use crate::root;

/// One test, an abort in the midst of another program's, and a doc-test.
const LOG: &str =
    "     Running tests/emulated/main.rs (target/debug/deps/emulated-0123456789abcdef)

successes:

---- lanes::fine stdout ----
skipped

failures:

---- lanes::late stdout ----
too late

failures:
    lanes::late

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
error: test failed, to rerun pass `-p lagometer --test emulated`
     Running tests/differential.rs (target/debug/deps/differential-0123456789abcdef)

running 1 test
test plays ... error: test failed, to rerun pass `-p lagometer-kcp --test differential`

Caused by:
  process didn't exit successfully: `differential` (signal: 6, SIGABRT: process abort signal)
   Doc-tests lagometer_stats

failures:

---- crates/stats/src/lib.rs - holm (line 12) stdout ----
Test executable failed (exit status: 101).

error: doctest failed, to rerun pass `-p lagometer-stats --doc`
error: 3 targets failed:
    `-p lagometer --test emulated`
    `-p lagometer-kcp --test differential`
    `-p lagometer-stats --doc`
";

#[test]
fn a_program_that_was_aborted_and_doc_tests_are_among_what_failed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("tests.log");
    fs::write(&log, LOG).unwrap();
    let found = Command::new("awk")
        .arg("-f")
        .arg(root().join(".ci/failed.awk"))
        .arg(&log)
        .output()
        .expect("awk starts");
    let found = String::from_utf8(found.stdout).unwrap();
    assert_eq!(
        found.lines().collect::<Vec<_>>(),
        [
            "emulated lanes::late",
            "unnamed -p lagometer-kcp --test differential",
            "doc crates/stats/src/lib.rs - holm (line 12)",
        ]
    );
}
