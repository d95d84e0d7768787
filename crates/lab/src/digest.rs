//! A run's fingerprint: equal for equal findings, whatever machine, thread
//! count or hour they were made at.

use lagometer_results::{Document, Metric};
use serde_json::{Map, Value};

/// Everything in the document that its seed governs: all but when, where and how
/// fast it ran.
pub(crate) fn findings(document: &Document) -> Value {
    let mut value = serde_json::to_value(document).unwrap_or(Value::Null);
    let Some(fields) = value.as_object_mut() else {
        return value;
    };
    for volatile in ["started", "wall_s", "host", "digest", "audit"] {
        fields.remove(volatile);
    }
    // Neither what its files were called is a finding, nor a price, nor what a player costs
    // by it. They go by `retain`: `remove` would change the order of the others, and every
    // digest.
    fields.retain(|key, _| key != "asked");
    if let Some(experiment) = fields.get_mut("experiment").and_then(Value::as_object_mut) {
        experiment.retain(|key, _| key != "prices");
    }
    let lanes = fields.get_mut("lanes").and_then(Value::as_array_mut);
    for lane in lanes.into_iter().flatten() {
        if let Some(lane) = lane.as_object_mut() {
            lane.retain(|key, _| key != "cost");
            forget_cost_of_seeds(lane);
            for volatile in [
                "cpu_ns_per_message",
                "kernel_cpu_ns_per_message",
                "library_cpu_ns_per_message",
                "system_calls_per_message",
                "socket_path",
            ] {
                lane.remove(volatile);
            }
            // What differs from run to run, and what a late answer costs, are remarks for
            // people and no findings.
            if let Some(properties) = lane.get_mut("properties").and_then(Value::as_object_mut) {
                properties.retain(|key, _| key != "varies" && key != "late_answer");
            }
        }
    }
    value
}

/// Takes what a player costs from a lane's figures by seed, and by draw.
fn forget_cost_of_seeds(lane: &mut Map<String, Value>) {
    let seeds = lane.get_mut("per_seed").and_then(Value::as_array_mut);
    for seed in seeds.into_iter().flatten() {
        if let Some(seed) = seed.as_object_mut() {
            seed.retain(|key, _| key != "cost");
        }
    }
    let values = lane
        .get_mut("resamples")
        .and_then(|it| it.get_mut("values"));
    if let Some(values) = values.and_then(Value::as_object_mut) {
        let of_cost = [Metric::BytesPerHour, Metric::MoneyPerHour].map(|it| it.to_string());
        values.retain(|key, _| !of_cost.contains(key));
    }
}

/// Calls the properties of lanes `parity`, as documents did when the first digests were
/// taken: bundles have those, and a key's name is no finding. The keys keep their order,
/// which counts too.
fn name_properties_as_before(findings: &mut Value) {
    let lanes = findings.get_mut("lanes").and_then(Value::as_array_mut);
    for lane in lanes.into_iter().flatten().filter_map(Value::as_object_mut) {
        *lane = std::mem::take(lane)
            .into_iter()
            .map(|(key, value)| match key.as_str() {
                "properties" => ("parity".to_owned(), value),
                _ => (key, value),
            })
            .collect();
    }
}

/// The digest of the findings.
///
/// FNV-1a (Fowler, Noll and Vo), 64 bits, over them as JSON, in hex. It tells
/// runs apart; it is no protection against forgery.
#[must_use]
pub fn digest(document: &Document) -> String {
    let mut findings = findings(document);
    name_properties_as_before(&mut findings);
    let hash = findings
        .to_string()
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
    format!("{hash:016x}")
}
