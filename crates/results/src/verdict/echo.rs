//! The sentence above an echo run's table, from its document.

use std::fmt::Write as _;

use crate::document::Echo;
use crate::written;
use crate::written::units::{delay, size};

/// The answer in one sentence.
#[must_use]
pub fn echo_verdict(echo: &Echo) -> String {
    let Some(one_way) = echo.delay_ms else {
        return "Nothing came back.".to_owned();
    };
    let mut text = format!(
        "{} echoes each second of {} over {}, {}",
        written::count(echo.iops.round() as u64),
        size(echo.size_bytes),
        echo.transport.to_uppercase(),
        echo.placement.in_words(),
    );
    if echo.outstanding == 1 {
        let _ = write!(text, ": {} one way", delay(one_way));
    } else {
        let _ = write!(text, " with {} on their way at once", echo.outstanding);
    }
    let _ = write!(
        text,
        "; 99 % of round trips took at most {}",
        delay(echo.rtt_ms.p99)
    );
    match echo.messages.lost {
        0 => text.push('.'),
        lost => {
            let _ = write!(
                text,
                ", and {} % of messages were lost.",
                written::lost_share(lost as f64 / echo.messages.sent.max(1) as f64)
            );
        }
    }
    text
}
