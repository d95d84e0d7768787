//! An echo run in words.

use lagometer_results::{Echo, Placement};

use super::units::{delay, size};
use crate::written;

/// The answer in one sentence.
#[must_use]
pub fn verdict(echo: &Echo) -> String {
    let Some(one_way) = echo.delay_ms else {
        return "Nothing came back.".to_owned();
    };
    let mut text = format!(
        "{} echoes each second of {} over {}, {}",
        written::count(echo.iops.round() as u64),
        size(echo.size_bytes),
        echo.transport.to_uppercase(),
        placement(&echo.placement),
    );
    if echo.outstanding == 1 {
        append!(text, ": {} one way", delay(one_way));
    } else {
        append!(text, " with {} on their way at once", echo.outstanding);
    }
    append!(
        text,
        "; 99 % of round trips took at most {}",
        delay(echo.rtt_ms.p99)
    );
    match echo.messages.lost {
        0 => text.push('.'),
        lost => {
            append!(
                text,
                ", and {} % of messages were lost.",
                written::lost_share(lost as f64 / echo.messages.sent.max(1) as f64)
            );
        }
    }
    text
}

/// Names and values, in the order they are read.
pub(crate) fn facts(echo: &Echo) -> Vec<(&'static str, String)> {
    let messages = &echo.messages;
    let rtt = &echo.rtt_ms;
    let mut facts = vec![
        ("echoes/s", written::count(echo.iops.round() as u64)),
        (
            "one way",
            echo.delay_ms.map_or_else(
                || written::NOTHING.to_owned(),
                |one_way| format!("{} (1000 / echoes/s / 2)", delay(one_way)),
            ),
        ),
        (
            "round trip",
            [
                ("min", rtt.min),
                ("p50", rtt.p50),
                ("p90", rtt.p90),
                ("p99", rtt.p99),
                ("p99.9", rtt.p99_9),
                ("max", rtt.max),
            ]
            .map(|(name, value)| format!("{name} {}", delay(value)))
            .join(" · "),
        ),
        (
            "messages",
            format!(
                "{} echoed and verified, {} lost, {} late, {} corrupt, in {} s",
                written::count(messages.echoed),
                written::count(messages.lost),
                written::count(messages.late),
                written::count(messages.corrupt),
                written::factor(echo.measured_s),
            ),
        ),
        (
            "placement",
            format!(
                "{}{}",
                placement(&echo.placement),
                if echo.placement.tried.is_empty() {
                    ""
                } else {
                    ", the best of those tried"
                }
            ),
        ),
        (
            "waiting",
            if echo.spin {
                "spinning: each end asks again and again"
            } else {
                "asleep in the system call"
            }
            .to_owned(),
        ),
    ];
    if messages.nudges > 0 {
        facts.push((
            "nudges",
            format!("{} to wake a silent path", written::count(messages.nudges)),
        ));
    }
    facts
}

/// A placement with its processors.
pub(crate) fn placement(placement: &Placement) -> String {
    let cpus = match (placement.near_cpu, placement.far_cpu) {
        (Some(local), Some(remote)) if local == remote => format!(" (processor {local})"),
        (Some(local), Some(remote)) => format!(" (processors {local} and {remote})"),
        (Some(local), None) => format!(" (processor {local})"),
        (None, _) => String::new(),
    };
    format!("{}{cpus}", placement.name)
}
