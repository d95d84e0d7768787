//! A run's fingerprint: equal for equal findings, whatever machine, thread
//! count or hour they were made at.

use lagometer_stats::Document;
use serde_json::Value;

/// Everything in the document that its seed governs: all but when, where and how
/// fast it ran.
pub(crate) fn findings(document: &Document) -> Value {
    // What a player costs follows from what is on the wire and from prices, which change. It
    // is taken out here and not below, where the order of the other fields would change.
    let mut document = document.clone();
    for lane in &mut document.lanes {
        lane.cost = None;
    }
    let mut value = serde_json::to_value(document).unwrap_or(Value::Null);
    let Some(fields) = value.as_object_mut() else {
        return value;
    };
    for volatile in ["started", "wall_s", "host", "digest", "audit"] {
        fields.remove(volatile);
    }
    if let Some(experiment) = fields.get_mut("experiment").and_then(Value::as_object_mut) {
        // Not by `remove`, which changes the order of the others.
        experiment.retain(|key, _| key != "prices");
    }
    let lanes = fields.get_mut("lanes").and_then(Value::as_array_mut);
    for lane in lanes.into_iter().flatten() {
        if let Some(lane) = lane.as_object_mut() {
            for volatile in [
                "cpu_ns_per_message",
                "kernel_cpu_ns_per_message",
                "library_cpu_ns_per_message",
                "system_calls_per_message",
                "socket_path",
            ] {
                lane.remove(volatile);
            }
            // It says what differs from run to run, and is no finding.
            if let Some(properties) = lane.get_mut("parity").and_then(Value::as_object_mut) {
                properties.remove("varies");
            }
        }
    }
    value
}

/// The digest of the findings.
///
/// FNV-1a (Fowler, Noll and Vo), 64 bits, over them as JSON, in hex. It tells
/// runs apart; it is no protection against forgery.
#[must_use]
pub fn digest(document: &Document) -> String {
    let hash = findings(document)
        .to_string()
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
    format!("{hash:016x}")
}
