//! The emulated network end to end: real sockets in both hosts.
//!
//! Skipped, with the reason, where the system permits no namespaces.

mod bench;
mod figures;
mod traffic;

use lagometer_emu::Permission;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut arguments = Arguments::from_args();
    // What is measured is a machine's timing: one test at a time.
    arguments.test_threads = Some(1);
    let tests = match Permission::acquire() {
        Ok(_) => [traffic::tests(), figures::tests()].concat_trials(),
        Err(refusal) => {
            eprintln!("skipped: {refusal}");
            Vec::new()
        }
    };
    libtest_mimic::run(&arguments, tests).exit();
}

trait Concat {
    fn concat_trials(self) -> Vec<Trial>;
}

impl<const N: usize> Concat for [Vec<Trial>; N] {
    fn concat_trials(self) -> Vec<Trial> {
        self.into_iter().flatten().collect()
    }
}
