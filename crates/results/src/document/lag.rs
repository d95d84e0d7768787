//! Lag of a lane: how long its player looked at the past.

use serde::{Deserialize, Serialize};

/// What a lane's player suffered, by one threshold that is the same for every
/// lane of a run.
///
/// At an instant of play the *awaited* message is the oldest that is newer than
/// all whose echo has come. The player *lags* while that message has been due
/// for longer than the threshold. A *freeze* is a maximal stretch of lag, with
/// pauses of less than 250 ms counted in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lag {
    /// The threshold in milliseconds.
    pub threshold_ms: f64,
    /// Seconds of lag in a minute of play, 0 to 60.
    pub s_per_min: f64,
    /// Freezes in a minute of play.
    pub freezes_per_min: f64,
    /// The longest freeze; absent without one. Where any did not end, the longest lasted
    /// at least as long as was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_freeze: Option<Lasted>,
    /// The longest time from the end of the first disturbance that a freeze
    /// touched to the freeze's own end; absent where none touched any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_first: Option<Lasted>,
    /// The same from the end of the last disturbance that it touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_last: Option<Lasted>,
    /// The freezes in order of time, seed by seed; the 500 longest where there
    /// are more. Empty in the figures of one seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub freezes: Vec<Freeze>,
}

/// How long something lasted, or at least did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lasted {
    /// Milliseconds that were seen of it.
    pub ms: f64,
    /// Its end was not seen: nothing newer came before the run and the time in
    /// which its last echoes were waited for were over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

impl Lasted {
    /// The duration in milliseconds, infinite where no end was seen.
    #[must_use]
    pub const fn censored_ms(self) -> f64 {
        if self.at_least {
            f64::INFINITY
        } else {
            self.ms
        }
    }
}

/// A stretch of play in which nothing newer came for too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Freeze {
    /// The seed in whose run it happened, where several were played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// When the awaited message had been due for the threshold, in seconds
    /// since measuring began.
    pub start_s: f64,
    /// To the arrival of something newer; to the end of play where nothing
    /// came.
    pub duration_ms: f64,
    /// How much of it was lag within the time of play: without the pauses, and
    /// without what came after the last message was due.
    pub lag_ms: f64,
    /// Whether something newer came.
    pub over: bool,
    /// From the end of the first disturbance that it touched to its own end;
    /// zero where the disturbance outlasted it, absent where none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_first_ms: Option<f64>,
    /// From the end of the last disturbance that it touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_last_ms: Option<f64>,
}
