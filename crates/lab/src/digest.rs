//! A run's fingerprint: equal for equal findings, whatever machine, thread
//! count or hour they were made at.

use lagometer_stats::Document;
use serde_json::Value;

/// The digest of everything in the document that its seed governs: all but
/// when, where and how fast it ran.
///
/// FNV-1a (Fowler, Noll and Vo), 64 bits, over the document as JSON, in hex.
/// It tells runs apart; it is no protection against forgery.
#[must_use]
pub fn digest(document: &Document) -> String {
    let mut value = serde_json::to_value(document).unwrap_or(Value::Null);
    if let Some(fields) = value.as_object_mut() {
        for volatile in ["started", "wall_s", "host", "digest", "audit"] {
            fields.remove(volatile);
        }
        for lane in fields
            .get_mut("lanes")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(lane) = lane.as_object_mut() {
                for volatile in [
                    "cpu_ns_per_message",
                    "library_cpu_ns_per_message",
                    "system_calls_per_message",
                    "socket_path",
                ] {
                    lane.remove(volatile);
                }
            }
        }
    }
    let hash = value
        .to_string()
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
    format!("{hash:016x}")
}
