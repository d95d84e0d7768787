//! What the gateway answers to those who watch it: metrics and health.

use std::sync::atomic::Ordering;

use lagometer_web::Answer;

use super::metrics::Metrics;
use super::shared::Shared;

/// The answer to a request for `path`.
pub(super) fn answer(path: &str, metrics: &Metrics, shared: &Shared) -> Answer {
    let alive = |words: &str| match metrics.alive() {
        Ok(()) => Answer::ok(words),
        Err(hangs) => Answer::unavailable(format!("{hangs}\n")),
    };
    match path {
        "/metrics" => match metrics.text() {
            Ok(body) => Answer::metrics(body),
            Err(hangs) => Answer::unavailable(format!("{hangs}\n")),
        },
        "/healthz" => alive("alive\n"),
        "/readyz" if shared.draining.load(Ordering::Relaxed) => Answer::unavailable("draining\n"),
        "/readyz" if !shared.joined.is_all() => {
            Answer::unavailable("not joined with the other nodes\n")
        }
        "/readyz" => alive("ready\n"),
        _ => Answer::not_found("/metrics, /healthz and /readyz"),
    }
}
