//! What makes two runs, and two lanes of the same name, unlike each other before any
//! figure is looked at, in words.

use lagometer_results::{Document, Lane};

use crate::about::About;
use crate::trust;

/// What is not alike in the two runs: experiment, network, seeds, testbed, and whether
/// either is to be trusted.
pub(super) fn run_differences(first: &Document, second: &Document) -> Vec<String> {
    let (a, b) = (About::of(first), About::of(second));
    let mut differences = Vec::new();
    let mut unlike = |what: &str, a: &str, b: &str| {
        if a != b {
            differences.push(format!("{what}: {a} against {b}"));
        }
    };
    let none = "none stated";
    unlike("command", &first.command, &second.command);
    unlike("experiment", &a.experiment, &b.experiment);
    unlike(
        "network",
        a.network.as_deref().unwrap_or(none),
        b.network.as_deref().unwrap_or(none),
    );
    unlike(
        "testbed",
        first.testbed.as_deref().unwrap_or(none),
        second.testbed.as_deref().unwrap_or(none),
    );
    unlike("seeds", &a.seeds, &b.seeds);
    if differences.is_empty() && first.experiment != second.experiment {
        differences.push("experiment: the same name, but its settings differ".to_owned());
    } else if first.experiment == second.experiment
        && first.impairments != second.impairments
        && first.seeds == second.seeds
    {
        differences.push(
            "network conditions: the same seeds, but the link behaved differently".to_owned(),
        );
    }
    for (document, which) in [(first, "the first run"), (second, "the second run")] {
        if document.partial {
            differences.push(format!("{which} was cut short"));
        }
        if let Some(words) = trust::invalid(document) {
            differences.push(format!("{which} is {}", words.trim_end_matches('.')));
        }
    }
    differences
}

/// What is not alike in the two lanes: library, transport, settings, failures.
pub(super) fn lane_differences(a: &Lane, b: &Lane) -> Vec<String> {
    let mut differences = Vec::new();
    if a.library != b.library {
        differences.push(format!("library {} against {}", a.library, b.library));
    }
    if a.transport != b.transport {
        differences.push(format!("transport {} against {}", a.transport, b.transport));
    }
    if let (Some(a), Some(b)) = (a.settings.as_object(), b.settings.as_object()) {
        let mut keys: Vec<&String> = a
            .keys()
            .chain(b.keys().filter(|key| !a.contains_key(*key)))
            .collect();
        keys.sort();
        for key in keys {
            if a.get(key) != b.get(key) {
                let side = |value: Option<&serde_json::Value>| {
                    value.map_or_else(|| "unset".to_owned(), ToString::to_string)
                };
                differences.push(format!(
                    "{key} {} against {}",
                    side(a.get(key)),
                    side(b.get(key))
                ));
            }
        }
    }
    for (lane, which) in [(a, "first"), (b, "second")] {
        if let Some(failure) = &lane.failure {
            differences.push(format!("failed in the {which} run: {failure}"));
        }
    }
    differences
}
