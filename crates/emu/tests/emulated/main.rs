//! The emulated network end to end: real sockets in both hosts.
//!
//! Skipped, with the reason, where the system permits no namespaces; with
//! `LAGOMETER_REQUIRE_NAMESPACES` in the environment that is a failure.

#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod figures;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod shaped;
#[cfg(target_os = "linux")]
mod starved;
#[cfg(target_os = "linux")]
mod traffic;

#[cfg(target_os = "linux")]
fn main() {
    use lagometer_emu::Permission;
    use libtest_mimic::Arguments;

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
            .chain(starved::tests())
            .collect(),
        Err(refusal) if std::env::var_os("LAGOMETER_REQUIRE_NAMESPACES").is_some() => {
            eprintln!("LAGOMETER_REQUIRE_NAMESPACES is set, but {refusal}");
            std::process::exit(101);
        }
        Err(refusal) => {
            eprintln!("skipped: {refusal}");
            Vec::new()
        }
    };
    libtest_mimic::run(&arguments, tests).exit();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("skipped: namespaces are Linux's");
}
