//! Whatever settings are accepted, the endpoints made of them work.

use std::time::Duration;

use lagometer_transport::{Refused, Spec, State, presets};
use serde_json::{Map, Value, json};

use crate::network::{Network, Path, Side};

/// Values of every kind, many of them at or beyond some edge.
fn candidates() -> Vec<Value> {
    vec![
        json!(0),
        json!(1),
        json!(2),
        json!(31),
        json!(32),
        json!(255),
        json!(65_535),
        json!(1_000_000),
        json!(u32::MAX),
        json!(-1),
        json!(true),
        json!(false),
        json!("0 ms"),
        json!("1 ms"),
        json!("333 us"),
        json!("100 ms"),
        json!("1 s"),
        json!("1 h"),
        json!("0 B"),
        json!("50 B"),
        json!("64 B"),
        json!("576 B"),
        json!("1200 B"),
        json!("4096 B"),
        json!("64 KiB"),
        json!("1 MiB"),
        json!("1 GB"),
        json!("none"),
        json!(null),
        json!({}),
    ]
}

pub(crate) fn one_setting_changed_is_refused_or_works() {
    let mut accepted = 0;
    let mut seen = Vec::new();
    for preset in presets() {
        let base = Spec::preset(preset.name).expect("it is listed");
        if seen.contains(&base.transport()) {
            continue;
        }
        seen.push(base.transport());
        let settings = base.settings_json();
        for (key, own) in settings.as_object().expect("settings are a table") {
            for value in candidates() {
                if value == *own {
                    continue;
                }
                let overrides = Map::from_iter([(key.clone(), value.clone())]);
                match Spec::resolve(preset.name, &overrides) {
                    Ok(spec) => {
                        play(&spec);
                        accepted += 1;
                    }
                    Err(refused) => {
                        let refused = refused.to_string();
                        assert!(!refused.contains('\n'), "{refused}");
                        assert!(refused.starts_with("setting `"), "{refused}");
                    }
                }
            }
        }
    }
    assert!(accepted > 100, "only {accepted} were accepted");
}

/// Three seconds of play. Settings may make it useless, but not wrong.
fn play(spec: &Spec) {
    let mut network = Network::new(spec, Path::BAD, 71);
    let len = spec.largest_message_bytes().min(500);
    for _ in 0..60 {
        for side in Side::BOTH {
            let is_closed = matches!(network.state(side), State::Closed(_));
            match network.send(side, &vec![9; len]) {
                Ok(()) => assert!(!is_closed, "{spec:?} takes messages when closed"),
                Err(Refused::BufferFull | Refused::NotOpen) => {}
                Err(refused) => panic!("{spec:?}: {refused}"),
            }
        }
        network.run_for(Duration::from_millis(50));
    }
}
