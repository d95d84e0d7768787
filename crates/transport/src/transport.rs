//! What every transport's settings can do: describe themselves, be checked,
//! and make a pair of endpoints.

use std::fmt::Debug;
use std::time::Duration;

use lagometer_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::{Encapsulation, End, LogWriter, Offer, Pair, TransportProperties, Tunable};

/// A transport's settings, from which everything else about it follows.
///
/// Written as a table whose keys are the fields; implementors refuse unknown
/// keys, so that a typing mistake is never taken for a default.
pub trait Transport: Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static {
    /// The transport's name, as in `kcp`. Presets of one transport share it.
    const TRANSPORT: &'static str;

    /// The library that carries the messages and its version, as in
    /// `rusty_enet 0.4.1`.
    const LIBRARY: &'static str;

    /// The settings that are worth searching, and between which ends; none where
    /// none changes what a game feels.
    const TUNABLES: &'static [Tunable] = &[];

    /// Settings that were called otherwise, the name of before first: files that
    /// have it are read.
    const FORMER_SETTINGS: &'static [(&'static str, &'static str)] = &[];

    /// Whether its endpoints can write what they do as qlog.
    const HAS_QLOG: bool = false;

    /// Whether the settings make sense together.
    ///
    /// # Errors
    ///
    /// [`BadSetting`] names the first setting that is out of its range.
    fn check(&self) -> Result<(), BadSetting>;

    /// What carries the datagrams.
    fn encapsulation(&self) -> Encapsulation;

    /// What is promised and what it costs.
    fn properties(&self) -> TransportProperties;

    /// What there is for a game whose streams want different deliveries. One kind of
    /// message, unless the library has more.
    fn offer(&self) -> Offer {
        Offer::of(self.properties().reliable)
    }

    /// The largest message that is taken, in bytes. A larger one is
    /// [`Refused::TooLarge`](crate::Refused::TooLarge).
    fn largest_message_bytes(&self) -> usize;

    /// The longest it can take, from the moment the peer falls silent while
    /// messages are being sent, until the endpoint reports
    /// [`Closed`](crate::Closed). `None` where the transport never notices.
    fn dead_link_after(&self) -> Option<Duration>;

    /// Makes both ends of a new connection at the instant `start`. Whatever
    /// they draw at random follows from `seed`.
    ///
    /// Settings that do not pass [`check`](Self::check) may panic here.
    fn pair(&self, seed: u64, start: Time) -> Pair;

    /// The same, with endpoints that write what they do as qlog wherever `log` has a
    /// place for that; instants are milliseconds from [`Time::ZERO`]. What has no such
    /// log asks for none.
    fn pair_logged(
        &self,
        seed: u64,
        start: Time,
        _log: &mut dyn FnMut(End) -> Option<LogWriter>,
    ) -> Pair {
        self.pair(seed, start)
    }
}

/// A setting that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("setting `{setting}`: {message}")]
pub struct BadSetting {
    /// The key.
    pub setting: String,
    /// What is wrong and what was expected, on one line.
    pub message: String,
}

impl BadSetting {
    /// A fault in `setting`.
    pub fn new(setting: &str, message: impl Into<String>) -> Self {
        Self {
            setting: setting.to_owned(),
            message: message.into(),
        }
    }
}

/// Refuses a number outside a range, saying which range.
pub(crate) fn within<T: Copy + PartialOrd + std::fmt::Display>(
    setting: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<(), BadSetting> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(BadSetting::new(
        setting,
        format!(
            "{value} is out of range; expected {} to {}",
            range.start(),
            range.end()
        ),
    ))
}
