//! What a peer may rely on in a channel gateway, item by item, tried on the
//! built binary, on one in several nodes where there is a NATS server and, where `LAGOMETER_CHANNELD` names the original's
//! `channeld-ue-tps`, on that too.
//!
//! Where the two differ on purpose the case says so: it has to hold for ours
//! and to fail for the original, and `docs/gateway/compatibility.md` has to
//! name it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{PoisonError, RwLock};

use libtest_mimic::{Arguments, Failed, Trial};

mod cases;
#[path = "../free_addresses/mod.rs"]
mod free_addresses;
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
    /// The same, by its metrics: it has them at one port, so nothing is tried beside it.
    SameAlone,
    /// Otherwise, always: the case fails with these words, and not with others.
    Differs(&'static str),
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
        let is_tried = has_original && case.original != Original::Unsteady;
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
        trials.push(
            Trial::test(format!("channeld::{}", case.name), move || {
                on_original(&case)
            })
            .with_ignored_flag(!is_tried),
        );
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Is held by whoever tries something on the original.
static ORIGINALS: RwLock<()> = RwLock::new(());

fn on_original(case: &Case) -> Result<(), Failed> {
    let (_alone, _beside);
    if case.original == Original::SameAlone {
        _alone = ORIGINALS.write().unwrap_or_else(PoisonError::into_inner);
    } else {
        _beside = ORIGINALS.read().unwrap_or_else(PoisonError::into_inner);
    }
    let Original::Differs(instead) = case.original else {
        (case.run)(Whose::Channeld);
        return Ok(());
    };
    Gateway::has_started();
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| (case.run)(Whose::Channeld))) else {
        return Err("the original does the same: say so".into());
    };
    // One that does not even come up says nothing of how it does.
    if !Gateway::has_started() {
        return Err("the original did not start".into());
    }
    let said = said(&*panic);
    if said.contains(instead) {
        Ok(())
    } else {
        Err(format!("the original differs otherwise than by `{instead}`: {said}").into())
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("nothing")
}

fn differences_are_documented() -> Result<(), String> {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/gateway/compatibility.md"
    );
    let text = std::fs::read_to_string(page).map_err(|error| format!("{page}: {error}"))?;
    let missing: Vec<&str> = cases::all()
        .iter()
        .filter(|case| !matches!(case.original, Original::Same | Original::SameAlone))
        .map(|case| case.name)
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("{page} does not speak of {missing:?}"))
    }
}
