//! The emulated network end to end: real sockets in both hosts.
//!
//! Skipped, with the reason, where the system permits no namespaces.

mod bench;
mod figures;
mod helper;
mod shaped;
mod traffic;

use lagometer_emu::Permission;
use libtest_mimic::Arguments;

fn main() {
    if let Some(code) = helper::asked() {
        std::process::exit(code);
    }
    let mut arguments = Arguments::from_args();
    // What is measured is a machine's timing: one test at a time.
    arguments.test_threads = Some(1);
    let tests = match Permission::acquire() {
        Ok(_) => traffic::tests()
            .into_iter()
            .chain(figures::tests())
            .chain(shaped::tests())
            .collect(),
        Err(refusal) => {
            eprintln!("skipped: {refusal}");
            Vec::new()
        }
    };
    libtest_mimic::run(&arguments, tests).exit();
}
