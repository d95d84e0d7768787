//! Lanes that may be tuned, what is asked of them, and what is kept of a search.

use lagometer_lab::Experiment;
use lagometer_results::{Budget, Metric};
use lagometer_testbed::Testbed;
use lagometer_tune::{Aim, BadMemory, Memory, TunableLane};
use serde_json::json;

const EXPERIMENT: &str = r#"
name = "x"
summary = "x"
network = "cable"

[workload.paced-echo]
size = "100 B"
interval = "50 ms"
"#;

fn lane(name: &str) -> TunableLane {
    TunableLane::named(name, &[], Testbed::Sim).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn every_usual_lane_has_something_to_choose_and_promises_the_same_throughout() {
    let usual = TunableLane::usual(Testbed::Sim);
    assert!(usual.len() >= 7, "{usual:?}");
    for own in usual {
        let lane = lane(own.name());
        let space = lane.space();
        let as_it_is = lane.spec(&space.start(0)).unwrap().properties();
        for place in [0.0, 0.3, 0.7, 1.0] {
            let positions = vec![place; space.tunables().len()];
            let spec = lane.spec(&space.at(0, &positions)).unwrap();
            let found = spec.properties();
            assert_eq!(found.reliable, as_it_is.reliable, "{}", lane.name());
            assert_eq!(found.ordered, as_it_is.ordered, "{}", lane.name());
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_kernel_its_own_tcp_is_searched_and_what_owns_its_sockets_where_it_is_linked() {
    let usual: Vec<_> = TunableLane::usual(Testbed::Kernel);
    let is_usual = |name: &str| usual.iter().any(|lane| lane.name() == name);
    assert!(is_usual("kcp-game") && is_usual("tcp-game"), "{usual:?}");
    let of_kernel = TunableLane::named("tcp-game", &[], Testbed::Kernel).unwrap();
    let spec = |lane: &TunableLane| lane.spec(&lane.space().start(0)).unwrap();
    assert!(spec(&of_kernel).endpoint().is_none());
    assert!(spec(&lane("tcp-game")).endpoint().is_some());

    match TunableLane::named("udt-game", &[], Testbed::Kernel) {
        Ok(udt) => {
            assert!(is_usual("udt-game"));
            let starts: Vec<&str> = udt.space().starts().iter().map(|it| &*it.name).collect();
            assert!(starts.contains(&"udt-default"), "{starts:?}");
            // They take smaller messages.
            assert!(
                !starts.iter().any(|name| name.contains("2015")),
                "{starts:?}"
            );
        }
        Err(why) => {
            assert!(why.to_string().contains("libudt-dev"), "{why}");
            assert!(!is_usual("udt-game"));
        }
    }
    let in_sim = TunableLane::named("udt-game", &[], Testbed::Sim).unwrap_err();
    assert!(
        in_sim.to_string().contains("`--testbed kernel`"),
        "{in_sim}"
    );
}

#[test]
fn settings_that_change_a_promise_are_no_choice() {
    let keys = |name: &str| -> Vec<&str> {
        let lane = lane(name);
        let tunables = lane.space().tunables().iter();
        tunables.map(|tunable| tunable.key).collect()
    };
    assert!(!keys("webrtc").contains(&"max_retransmits"));
    assert!(keys("webrtc-unreliable").contains(&"max_retransmits"));
    assert!(!keys("webrtc-unreliable").contains(&"ordered"));
    assert!(!keys("kcp-2015-late").contains(&"wake_at_timeouts"));
}

#[test]
fn a_found_lane_can_be_pasted_into_an_experiment_whatever_was_chosen() {
    for own in TunableLane::usual(Testbed::Sim) {
        let lane = lane(own.name());
        let space = lane.space();
        for start in 0..space.starts().len() {
            let positions = vec![0.6; space.tunables().len()];
            let candidate = space.at(start, &positions);
            let Some(spec) = lane.spec(&candidate) else {
                continue;
            };
            let text = format!("{EXPERIMENT}\n{}", lane.toml(&candidate, "found"));
            let experiment = Experiment::parse("pasted.toml", &text)
                .unwrap_or_else(|why| panic!("{why}\n{text}"));
            assert_eq!(experiment.own_lanes[0].name(), "found");
            let pasted = TunableLane::named("found", &experiment.own_lanes, Testbed::Sim).unwrap();
            let as_pasted = pasted.spec(&pasted.space().start(0)).unwrap();
            assert_eq!(as_pasted, spec, "{text}");
        }
    }
}

#[test]
fn lanes_that_cannot_be_tuned_are_refused_with_what_can() {
    let why = |name: &str| {
        TunableLane::named(name, &[], Testbed::Sim)
            .unwrap_err()
            .to_string()
    };
    assert!(why("udp").contains("has no settings that are worth searching; `udp-redundant-game`"));
    assert!(why("kpc").contains("did you mean `kcp`?"));
}

#[test]
fn goals_and_limits_that_cannot_be_are_refused() {
    let limit = |metric: &str, at: f64| Budget::new(metric.parse().unwrap(), at);
    let why = |goal: &str, limits: Vec<Budget>| {
        let refused = Aim::new(goal.parse::<Metric>().unwrap(), limits);
        refused.unwrap_err().to_string()
    };
    assert!(why("max", Vec::new()).contains("cannot be searched by"));
    assert!(why("lag", vec![limit("cpu per message", 1.0)]).contains("cannot be searched by"));
    assert!(why("lag", vec![limit("overhead", 0.5)]).contains("is above 1"));
    let twice = vec![limit("p99", 100.0), limit("p99", 200.0)];
    assert!(why("lag", twice).contains("two limits on `rtt_ms.p99`, 100 and 200"));
    let aim = Aim::new(Metric::Lag, vec![limit("p50", 20.0)]).unwrap();
    assert!(aim.check_network("far", 90.0).is_err());
    assert!(aim.check_network("near", 9.0).is_ok());
}

#[test]
fn a_state_is_taken_by_its_own_search_alone() {
    let (ours, other) = (json!({"lanes": ["kcp"]}), json!({"lanes": ["enet"]}));
    let text = Memory::new(&ours).to_text();
    assert!(Memory::read(&text, &ours).unwrap().is_empty());
    assert!(matches!(
        Memory::read(&text, &other),
        Err(BadMemory::OtherSearch)
    ));
    let older = text.replace(env!("CARGO_PKG_VERSION"), "0.0.9");
    assert!(matches!(
        Memory::read(&older, &ours),
        Err(BadMemory::OtherVersion { .. })
    ));
    for damage in ["", "{}", "[1]", &text[..text.len() / 2]] {
        let refused = Memory::read(damage, &ours);
        assert!(matches!(refused, Err(BadMemory::Damaged(_))), "{damage}");
    }
    let endless = text.replace("{}", r#"{"1 a b c": "inf 1 2"}"#);
    assert!(matches!(
        Memory::read(&endless, &ours),
        Err(BadMemory::Damaged(_))
    ));
    let known = text.replace("{}", r#"{"1 a b c": "0.1 1e-7 2"}"#);
    let memory = Memory::read(&known, &ours).unwrap();
    assert_eq!(memory.len(), 1);
    assert_eq!(Memory::read(&memory.to_text(), &ours).unwrap(), memory);
}
