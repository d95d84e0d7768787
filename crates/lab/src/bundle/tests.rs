use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use lagometer_results::Host;
use proptest::prelude::*;

use super::*;
use crate::assemble::{RunContext, assemble};
use crate::experiment::Experiment;
use crate::resolve::resolve;
use crate::runner::{RunOptions, play};
use lagometer_link::Profile;

const EXPERIMENT_TEXT: &str = r#"
name = "bundled"
summary = "a short run"
network = "ours"
for = "3 s"
lanes = ["udp"]

[workload.paced-echo]
size = "200 B"
interval = "50 ms"

[[lane]]
name = "game"
transport = "kcp"
settings = { interval = "20 ms" }

[[budget]]
metric = "p99"
at_most = "200 ms"
lanes = ["game"]
"#;

const NETWORK_TEXT: &str = r#"
summary = "a link with a recording"
[both]
delay = "20 ms"
loss = "5 %"
[up]
trace = "recorded/up.trace"
"#;

const TRACE: &str = "1\n2\n3\n5\n8\n13\n";

fn profile() -> Profile {
    Profile::parse("ours.toml", NETWORK_TEXT, &mut |name| {
        assert_eq!(name, "recorded/up.trace");
        Ok(TRACE.to_owned())
    })
    .unwrap()
}

fn played(resolved: &Resolved) -> Document {
    let options = RunOptions {
        seeds: vec![7, 8],
        threads: 1,
    };
    let seeds = play(resolved, &options, &|_| {}, &AtomicBool::new(false));
    let context = RunContext {
        started: SystemTime::UNIX_EPOCH,
        wall: Duration::ZERO,
        host: Host::default(),
        testbed: Some(Testbed::Sim),
        audit: None,
    };
    assemble(resolved, &options.seeds, seeds, context)
}

fn bundle() -> Bundle {
    let experiment = Experiment::parse("bundled.toml", EXPERIMENT_TEXT).unwrap();
    let resolved = resolve(experiment, "ours".to_owned(), profile(), Testbed::Sim).unwrap();
    Bundle::of("1.2.3", &resolved, &played(&resolved)).unwrap()
}

#[test]
fn a_bundle_holds_all_that_is_needed_to_play_it_again() {
    let bytes = bundle().to_bytes().unwrap();
    let read = Bundle::from_bytes(&bytes).unwrap();
    assert_eq!(read.recipe.version, "1.2.3");
    assert_eq!(read.recipe.experiment, bundle().recipe.experiment);
    assert_eq!(read.recipe.profile.written(), profile().written());
    assert_eq!(
        read.recipe.profile.traces().collect::<Vec<_>>(),
        [("recorded/up.trace", TRACE)]
    );
    let again = played(&read.resolve().unwrap());
    assert_eq!(read.first_difference(&again), None);
    assert_eq!(
        bytes,
        bundle().to_bytes().unwrap(),
        "the same run, the same bytes"
    );
}

#[test]
fn a_recipe_is_played_elsewhere_as_it_is_here() {
    let experiment = Experiment::parse("bundled.toml", EXPERIMENT_TEXT).unwrap();
    let resolved = resolve(experiment, "ours".to_owned(), profile(), Testbed::Sim).unwrap();
    let bytes = Recipe::of("1.2.3", &resolved).to_bytes().unwrap();
    let read = Recipe::from_bytes(&bytes).unwrap();
    assert_eq!(read.version, "1.2.3");
    let elsewhere = played(&read.resolve(Testbed::Sim).unwrap());
    assert_eq!(elsewhere, played(&resolved));
    let no_bundle = Bundle::from_bytes(&bytes).unwrap_err().to_string();
    assert!(no_bundle.contains("lacks `result.json`"), "{no_bundle}");
    let of_bundle = Recipe::from_bytes(&bundle().to_bytes().unwrap()).unwrap();
    assert_eq!(of_bundle.to_bytes().unwrap(), bytes);
}

#[test]
fn another_run_is_said_to_differ_and_where_first() {
    let bundle = bundle();
    let mut other = bundle.recipe.experiment.clone();
    other.own_lanes[0].settings["interval"] = "30 ms".into();
    let resolved = resolve(other, "ours".to_owned(), profile(), Testbed::Sim).unwrap();
    let difference = bundle.first_difference(&played(&resolved)).unwrap();
    assert!(
        difference.place.starts_with("experiment.lane[0].settings"),
        "{difference}"
    );
}

#[test]
fn every_built_in_network_survives_being_bundled() {
    for name in lagometer_link::catalogue::names() {
        let profile = lagometer_link::catalogue::named(name).unwrap();
        let text = toml::to_string_pretty(profile.written()).unwrap();
        let again = Profile::parse(name, &text, &mut |trace| {
            let mut traces = profile.traces();
            let found = traces.find(|(each, _)| *each == trace);
            Ok(found.expect("a trace it names").1.to_owned())
        });
        assert_eq!(again.unwrap().written(), profile.written(), "{name}");
    }
}

#[test]
fn every_built_in_experiment_survives_being_bundled() {
    for name in crate::catalogue::names() {
        let text = crate::catalogue::text(name).unwrap();
        let experiment = Experiment::parse(name, text).unwrap();
        let written = toml::to_string_pretty(&experiment).unwrap();
        assert_eq!(Experiment::parse(name, &written).unwrap(), experiment);
    }
}

#[test]
fn what_was_changed_is_named() {
    let bundle = bundle();
    let bytes = bundle.to_bytes().unwrap();
    let mut archive = archive::Archive::open(&bytes).unwrap();
    let names = [MANIFEST, EXPERIMENT, NETWORK, RESULT, "traces/0"];
    let texts = names.map(|name| archive.text(name).unwrap());
    let with = |name: &str, change: &dyn Fn(&str) -> Option<String>| {
        let entries: Vec<(String, String)> = names
            .iter()
            .zip(&texts)
            .filter_map(|(each, text)| {
                let text = if *each == name {
                    change(text)?
                } else {
                    text.clone()
                };
                Some(((*each).to_owned(), text))
            })
            .collect();
        let changed = archive::write(&entries).unwrap();
        Bundle::from_bytes(&changed).unwrap_err().to_string()
    };
    for name in &names[1..] {
        let changed = with(name, &|text| Some(format!("{text} ")));
        let expected = format!("`{name}` was changed after the bundle was written");
        assert!(changed.ends_with(&expected), "{changed}");
        let gone = with(name, &|_| None);
        assert!(gone.contains(&format!("lacks `{name}`")), "{gone}");
    }
    let other = with(MANIFEST, &|text| {
        Some(text.replace("lagometer-bundle/1", "lagometer-bundle/9"))
    });
    assert!(other.contains("layout `lagometer-bundle/9`"), "{other}");
    let digest = with(MANIFEST, &|text| {
        Some(text.replace(bundle.digest(), "0123456789abcdef"))
    });
    assert!(
        digest.contains("the bundle says 0123456789abcdef"),
        "{digest}"
    );
}

#[test]
fn a_run_that_is_not_the_same_twice_is_not_bundled() {
    let experiment = Experiment::parse("bundled.toml", EXPERIMENT_TEXT).unwrap();
    let resolved = resolve(experiment, "ours".to_owned(), profile(), Testbed::Sim).unwrap();
    let mut document = played(&resolved);
    document.partial = true;
    assert!(matches!(
        Bundle::of("1", &resolved, &document),
        Err(NoBundle::CutShort)
    ));
    document.testbed = Some("emu".to_owned());
    assert!(matches!(
        Bundle::of("1", &resolved, &document),
        Err(NoBundle::Testbed(testbed)) if testbed == "emu"
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_damage_makes_it_panic_or_pass(at in 0.0..1.0_f64, bit in 0_u32..8, cut in any::<bool>()) {
        let mut bytes = small_bundle();
        let at = (at * bytes.len() as f64) as usize;
        if cut {
            bytes.truncate(at);
            prop_assert!(Bundle::from_bytes(&bytes).is_err());
        } else {
            bytes[at] ^= 1 << bit;
            // What is no part of any entry, as a time, may change.
            if let Ok(read) = Bundle::from_bytes(&bytes) {
                prop_assert_eq!(read.digest(), bundle_digest());
            }
        }
    }
}

fn kept() -> &'static (Vec<u8>, String) {
    static KEPT: std::sync::OnceLock<(Vec<u8>, String)> = std::sync::OnceLock::new();
    KEPT.get_or_init(|| {
        let bundle = bundle();
        (bundle.to_bytes().unwrap(), bundle.digest().to_owned())
    })
}

fn small_bundle() -> Vec<u8> {
    kept().0.clone()
}

fn bundle_digest() -> &'static str {
    &kept().1
}

/// Those that are kept were written when the properties of a lane had another key.
#[test]
fn bundles_of_before_are_read_with_the_digest_that_they_have() {
    let kept = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/studies/2015/kernel/d-kcp.bundle"
    );
    let bundle = Bundle::from_bytes(&std::fs::read(kept).unwrap()).unwrap();
    let lanes = &bundle.document.lanes;
    assert!(lanes.iter().all(|lane| lane.properties.is_some()));
}
