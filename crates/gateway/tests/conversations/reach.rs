//! Whether conversations come to every place where the gateway refuses a request:
//! a branch that no attacker of these takes is one that nobody has attacked.

use std::collections::BTreeSet;
use std::path::Path;

use lagometer_gateway::core::Budget;

/// Refusals that conversations do not come to, and why.
const OUT_OF_REACH: [&str; 4] = [
    // It takes tens of thousands of channels.
    "all channel numbers are taken",
    // No state machine lets clients ask for it.
    "only servers disconnect others",
    // GLOBAL, the only one, is created before anybody attacks.
    "the channel has no data: nobody has created it",
    // A client's removal of an entity that a cell's data name is hardly ever drawn; a
    // test of the core's plays it.
    "it may not remove the entity's channel",
];

/// Budgets that no conversation with the core exceeds: the server keeps them, or
/// they take more bytes than a conversation has.
const KEPT_ELSEWHERE: [Budget; 4] = [
    Budget::LoginWork,
    Budget::LoginMemory,
    Budget::Bytes,
    Budget::Recording,
];

/// Compares why requests were refused with why the code may refuse one.
pub(crate) fn check(refusals: &BTreeSet<&str>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core/channels");
    let mut missed = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace("Refusal(", "drop_message(");
            missed.extend(reasons(&text).filter(|why| !refusals.contains(why.as_str())));
        }
    }
    missed.retain(|why| !OUT_OF_REACH.contains(&why.as_str()));
    let budgets = Budget::ALL.into_iter();
    let budgets = budgets.filter(|budget| !KEPT_ELSEWHERE.contains(budget));
    let budgets = budgets.map(|budget| budget.label().to_owned());
    missed.extend(budgets.filter(|label| !refusals.contains(label.as_str())));
    assert!(missed.is_empty(), "nobody came to: {missed:#?}");
}

/// The reasons that a source text gives for dropping messages.
fn reasons(text: &str) -> impl Iterator<Item = String> {
    let calls = text.split("drop_message(").skip(1);
    calls.filter_map(|call| {
        let (before, rest) = call.split_once('"')?;
        let is_call = !before.contains(['{', ';']);
        let (reason, _) = rest.split_once('"')?;
        is_call.then(|| reason.to_owned())
    })
}
