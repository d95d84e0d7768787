//! What a peer may rely on in a channel gateway, item by item, tried on the
//! built binary, on one in several nodes where there is a NATS server and, where `LAGOMETER_CHANNELD` names the original's
//! `channeld-ue-tps`, on that too.
//!
//! Where the two differ on purpose the case says so: it has to hold for ours
//! and to fail for the original, and `docs/gateway/compatibility.md` has to
//! name it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use libtest_mimic::{Arguments, Failed, Trial};

mod cases;
mod harness;
#[path = "../nats_server/mod.rs"]
mod nats_server;

use harness::Whose;
use harness::gateway::{CHANNELD, Gateway};

/// One thing a peer may rely on.
struct Case {
    name: &'static str,
    run: fn(Whose),
    original: Original,
}

/// How the original does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Original {
    /// The same.
    Same,
    /// Otherwise, always.
    Differs,
    /// Otherwise, at times or at the cost of minutes: not tried.
    Unsteady,
}

fn main() {
    cases::recovery::own_if_asked();
    let arguments = Arguments::from_args();
    let has_nats = nats_server::is_there();
    let has_original = std::env::var_os(CHANNELD).is_some();
    let mut trials = vec![Trial::test("differences_are_documented", || {
        differences_are_documented().map_err(Failed::from)
    })];
    for case in cases::all() {
        let run = case.run;
        trials.push(Trial::test(format!("ours::{}", case.name), move || {
            run(Whose::Ours);
            Ok(())
        }));
        trials.push(
            Trial::test(format!("nodes::{}", case.name), move || {
                run(Whose::OursInNodes);
                Ok(())
            })
            .with_ignored_flag(!has_nats),
        );
        let original = case.original;
        trials.push(
            Trial::test(format!("channeld::{}", case.name), move || {
                on_original(run, original)
            })
            .with_ignored_flag(!has_original || original == Original::Unsteady),
        );
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn on_original(run: fn(Whose), original: Original) -> Result<(), Failed> {
    if original == Original::Same {
        run(Whose::Channeld);
        return Ok(());
    }
    Gateway::has_started();
    match catch_unwind(AssertUnwindSafe(|| run(Whose::Channeld))) {
        Ok(()) => Err("the original does the same: say so".into()),
        // One that does not even come up says nothing of how it does.
        Err(_) if !Gateway::has_started() => Err("the original did not start".into()),
        Err(_) => Ok(()),
    }
}

fn differences_are_documented() -> Result<(), String> {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/gateway/compatibility.md"
    );
    let text = std::fs::read_to_string(page).map_err(|error| format!("{page}: {error}"))?;
    let missing: Vec<&str> = cases::all()
        .iter()
        .filter(|case| case.original != Original::Same)
        .map(|case| case.name)
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("{page} does not speak of {missing:?}"))
    }
}
