//! The settings that transports offer for searching: what a range holds, its
//! transport takes.

use std::collections::BTreeSet;

use lagometer_transport::{BadSetting, Spec, Tunable, TunableRange, presets};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Every preset and every setting that may be searched of it.
fn declared() -> impl Iterator<Item = (&'static str, Spec, Tunable)> {
    presets().iter().flat_map(|preset| {
        let spec = Spec::preset(preset.name).unwrap();
        let tunables = spec.tunables().iter();
        tunables.map(move |tunable| (preset.name, spec.clone(), *tunable))
    })
}

fn flag(key: &'static str) -> Tunable {
    Tunable {
        key,
        range: TunableRange::Flag,
    }
}

fn with(spec: &Spec, tunable: &Tunable, value: Value) -> Result<Spec, BadSetting> {
    let mut overrides = Map::new();
    tunable.put(value, &mut overrides);
    spec.with_overrides(&overrides)
}

#[test]
fn every_value_of_a_range_is_taken_by_its_transport_and_kept() {
    let mut seen = 0;
    for (preset, spec, tunable) in declared() {
        for value in tunable.range.levels(9) {
            let changed = with(&spec, &tunable, value.clone());
            // Two timers for one flush are refused, whichever is set first.
            let is_timed = tunable.key == "wake_at_timeouts" && preset.contains("2015");
            if is_timed && value == json!(true) {
                assert!(changed.is_err(), "{preset}");
                continue;
            }
            let changed = changed.unwrap_or_else(|why| panic!("{preset}: {why}"));
            let kept = tunable.of(&changed.settings_json());
            // What is left out where it is off is off.
            let kept = kept.unwrap_or(json!(false));
            // A number may be kept with single precision.
            let position = |value: &Value| tunable.range.position(value).unwrap();
            let apart = (position(&kept) - position(&value)).abs();
            assert!(apart < 1e-6, "{preset} {tunable:?}: {value} became {kept}");
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} values were tried");
}

#[test]
fn keys_are_declared_once_and_ranges_are_not_empty() {
    for preset in presets() {
        let spec = Spec::preset(preset.name).unwrap();
        let keys: Vec<&str> = spec.tunables().iter().map(|it| it.key).collect();
        let unique: BTreeSet<_> = keys.iter().collect();
        assert_eq!(unique.len(), keys.len(), "{}: {keys:?}", preset.name);
    }
    for (preset, _, tunable) in declared() {
        let levels = tunable.range.levels(9);
        assert!(levels.len() > 1, "{preset}: {tunable:?}");
        assert_ne!(levels.first(), levels.last(), "{preset}: {tunable:?}");
    }
}

#[test]
fn a_key_with_dots_is_put_into_its_table() {
    let mut overrides = Map::new();
    flag("a.b").put(json!(true), &mut overrides);
    flag("a.c").put(json!(false), &mut overrides);
    assert_eq!(
        Value::Object(overrides),
        json!({"a": {"b": true, "c": false}})
    );
    let settings = json!({"a": {"b": 3}, "n": null});
    assert_eq!(flag("a.b").of(&settings), Some(json!(3)));
    assert_eq!(flag("n").of(&settings), None);
}

#[test]
fn times_and_sizes_are_spread_by_ratio_and_round() {
    let time = TunableRange::Time {
        low_ms: 10,
        high_ms: 1000,
    };
    assert_eq!(time.at(0.5), json!("100 ms"));
    assert_eq!(time.at(0.77), json!("350 ms"));
    let size = TunableRange::Size {
        low_bytes: 576,
        high_bytes: 1452,
    };
    assert_eq!(size.at(0.0), json!("576 B"));
    assert_eq!(size.at(1.0), json!("1.452 KB"));
    assert_eq!(size.position(&json!("1 MB")), Some(1.0));
    assert_eq!(size.position(&json!(7)), None);
    let word = TunableRange::Choice(&["a", "b", "c"]);
    assert_eq!(word.levels(2), [json!("a"), json!("b"), json!("c")]);
}

proptest! {
    #[test]
    fn a_value_stands_where_it_was_made(position in 0.0_f64..=1.0, which in any::<proptest::sample::Index>()) {
        let all: Vec<_> = declared().collect();
        let (_, _, tunable) = which.get(&all);
        let value = tunable.range.at(position);
        let again = tunable.range.at(tunable.range.position(&value).unwrap());
        prop_assert_eq!(value, again);
    }
}
