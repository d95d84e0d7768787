//! The facts of an echo run.

use lagometer_results::Echo;

use crate::written;
use crate::written::units::delay;

/// Names and values, in the order they are read.
pub(crate) fn facts(echo: &Echo) -> Vec<(&'static str, String)> {
    let messages = &echo.messages;
    let rtt = &echo.rtt_ms;
    // Nothing is sent while one that is lost is waited for.
    let waits = if messages.lost > 0 {
        ", with the waiting for lost ones"
    } else {
        ""
    };
    let mut facts = vec![
        ("echoes/s", written::count(echo.iops.round() as u64)),
        (
            "one way",
            echo.delay_ms.map_or_else(
                || written::NOTHING.to_owned(),
                |one_way| format!("{} (1000 / echoes/s / 2{waits})", delay(one_way)),
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
                echo.placement.in_words(),
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
