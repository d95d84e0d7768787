//! What differs first between two runs' findings, in the order in which one
//! thing leads to another.

use std::fmt;

use serde_json::Value;

/// What is looked at first, for it explains the rest: what was played, on what,
/// by which library with which settings.
const CAUSES: [&str; 11] = [
    "schema",
    "experiment",
    "seeds",
    "impairments",
    "lanes",
    "lane",
    "transport",
    "library",
    "settings",
    "properties",
    "per_seed",
];

/// The first value that is not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstDifference {
    /// Where it stands, as in `lanes[2].settings.interval_ms`, with the lane's
    /// name after it.
    pub place: String,
    /// The bundle's value, as JSON; `nothing` where there is none.
    pub bundled: String,
    /// The other run's value.
    pub played: String,
}

impl fmt::Display for FirstDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: {} then, {} now",
            self.place, self.bundled, self.played
        )
    }
}

/// The first difference of two values; `None` where there is none.
pub(super) fn first(bundled: &Value, played: &Value) -> Option<FirstDifference> {
    within(String::new(), Some(bundled), Some(played))
}

fn within(
    place: String,
    bundled: Option<&Value>,
    played: Option<&Value>,
) -> Option<FirstDifference> {
    match (bundled, played) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys: Vec<&String> = a
                .keys()
                .chain(b.keys().filter(|key| !a.contains_key(*key)))
                .collect();
            let rank = |key: &&String| {
                let cause = CAUSES.iter().position(|cause| cause == key);
                cause.unwrap_or(CAUSES.len())
            };
            keys.sort_by_key(rank);
            keys.into_iter().find_map(|key| {
                let place = match place.as_str() {
                    "" => key.clone(),
                    place => format!("{place}.{key}"),
                };
                within(place, a.get(key), b.get(key))
            })
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => (0..a.len().max(b.len()))
            .find_map(|index| within(named(&place, index, a), a.get(index), b.get(index))),
        (a, b) if a == b => None,
        (a, b) => Some(FirstDifference {
            place,
            bundled: written(a),
            played: written(b),
        }),
    }
}

/// `lanes[2]`, or `lanes[kcp]` where what stands there has a name.
fn named(place: &str, index: usize, values: &[Value]) -> String {
    let name = values.get(index).and_then(|value| value["lane"].as_str());
    match name {
        Some(name) => format!("{place}[{name}]"),
        None => format!("{place}[{index}]"),
    }
}

/// As much of a value as fits a line.
fn written(value: Option<&Value>) -> String {
    const LONGEST: usize = 60;
    let Some(value) = value else {
        return "nothing".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn causes_come_before_what_they_did() {
        let a = json!({ "budgets": [1], "lanes": [
            { "rtt_ms": 1.0, "lane": "kcp", "settings": { "interval_ms": 10.0 } }
        ] });
        let b = json!({ "budgets": [2], "lanes": [
            { "rtt_ms": 2.0, "lane": "kcp", "settings": { "interval_ms": 20.0 } }
        ] });
        assert_eq!(
            first(&a, &b).unwrap().to_string(),
            "lanes[kcp].settings.interval_ms: 10.0 then, 20.0 now"
        );
        assert_eq!(first(&a, &a), None);
    }

    #[test]
    fn what_only_one_has_is_a_difference() {
        let (a, b) = (json!({ "a": 1 }), json!({ "a": 1, "b": [1, 2] }));
        assert_eq!(
            first(&a, &b).unwrap().to_string(),
            "b: nothing then, [1,2] now"
        );
        let (a, b) = (json!([1, 2]), json!([1]));
        assert_eq!(
            first(&a, &b).unwrap().to_string(),
            "[1]: 2 then, nothing now"
        );
    }
}
