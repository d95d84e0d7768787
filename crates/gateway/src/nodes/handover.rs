//! What crosses when the owner of the channels ends in order and another node goes on: the
//! channels, written down, and each edge's route.
//!
//! It crosses on a [route](super::route) of its own, in numbered pieces that are sent again
//! until they are acknowledged. The owner has done the last it ever does before it writes:
//! so whoever takes the lease after it, with what it wrote, goes on where it stopped.

use std::collections::VecDeque;

use bytes::Bytes;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use super::NodeTimes;
use super::bus::NodeId;
use super::route::RouteEnd;
use super::sides::SavedSides;

/// The most bytes that are handed over. A message of a route may have a little more.
pub(super) const MOST_BYTES: usize = 48 << 20;

/// What the node that goes on answers.
const TAKEN: &[u8] = b"taken";
const REFUSED: &[u8] = b"refused";

/// All that the next owner needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Package {
    /// What the clock of the channels showed.
    pub(super) channels_at: Time,
    /// The epoch since which the channels have not been lost.
    pub(super) since: u64,
    pub(super) has_global_owner: bool,
    pub(super) sides: SavedSides,
    /// The channel manager, as it wrote itself.
    pub(super) channels: Bytes,
}

impl Package {
    /// `None` if there is more than is handed over.
    pub(super) fn encode(&self) -> Option<Bytes> {
        let bytes = postcard::to_allocvec(self).ok()?;
        (bytes.len() <= MOST_BYTES).then(|| bytes.into())
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (package, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(package)
    }
}

/// An owner that ends hands the channels over. It does nothing else any more.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) to: NodeId,
    pub(super) end: RouteEnd,
    /// Since when it waits for something of that node, or when something came last.
    pub(super) answered_at: Time,
    /// What crosses, once it is written.
    pub(super) package: Bytes,
    /// Who else stands by, if that node does not answer.
    pub(super) others: VecDeque<NodeId>,
    /// When it gives up waiting.
    pub(super) until: Time,
}

/// What an owner that ends has handed over to this node, as far as it has come.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) from: NodeId,
    pub(super) epoch: u64,
    /// Absent once nothing comes of that owner any more.
    pub(super) end: Option<RouteEnd>,
    pub(super) package: Option<Package>,
    /// How far the clock of the channels is ahead of this node's.
    pub(super) shift: Shift,
    /// The channels were read back, and could go on here.
    pub(super) is_ready: bool,
}

impl Outgoing {
    /// The node asked does not answer: another is asked. Returns whether there is one.
    pub(super) fn ask_another(&mut self, now: Time, times: NodeTimes) -> bool {
        let Some(other) = self.others.pop_front() else {
            return false;
        };
        self.to = other;
        self.end = RouteEnd::new(now, times);
        self.answered_at = now;
        self.end.push(now, &self.package, None);
        true
    }
}

impl Incoming {
    /// Answers whether the channels were taken.
    pub(super) fn answer(&mut self, now: Time, is_taken: bool) {
        self.is_ready = is_taken;
        if !is_taken {
            self.package = None;
        }
        if let Some(end) = &mut self.end {
            let answer = if is_taken { TAKEN } else { REFUSED };
            end.push(now, &Bytes::from_static(answer), None);
        }
    }
}

/// Whether an answer says that the channels were taken.
pub(super) fn is_taken(answer: &[u8]) -> bool {
    answer == TAKEN
}

/// How far the clock of the channels is ahead of a node's own: the channels' goes on where
/// it was when another node owned them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shift {
    ahead_ns: i64,
}

impl Shift {
    /// The clock of the channels shows `channels_at` now.
    pub(super) fn new(now: Time, channels_at: Time) -> Self {
        let ahead = i128::from(channels_at.as_nanos()) - i128::from(now.as_nanos());
        Self {
            ahead_ns: i64::try_from(ahead).unwrap_or_default(),
        }
    }

    /// Nanoseconds, less than 0 where it is behind.
    pub(super) fn ahead_ns(self) -> i64 {
        self.ahead_ns
    }

    /// What the clock of the channels shows at an instant of the node's.
    pub(super) fn to_channels(self, now: Time) -> Time {
        Time::from_nanos(now.as_nanos().saturating_add_signed(self.ahead_ns))
    }

    /// The node's instant at which it shows that.
    pub(super) fn to_node(self, at: Time) -> Time {
        Time::from_nanos(at.as_nanos().saturating_sub_signed(self.ahead_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::core::SideId;
    use crate::nodes::sides::SavedSide;

    #[test]
    fn what_is_handed_over_is_read_again_and_nothing_cut_short_longer_or_too_long_is() {
        let mut end = RouteEnd::new(Time::ZERO, NodeTimes::default());
        end.push(Time::ZERO, &Bytes::from_static(b"waits"), None);
        let mut package = Package {
            channels_at: Time::from_secs(9),
            since: 3,
            has_global_owner: true,
            sides: SavedSides {
                next: 2,
                tokens: 8,
                sides: vec![SavedSide {
                    id: SideId(1),
                    edge: 77,
                    number: 0,
                    incarnation: 4,
                    token: 8,
                    keys: BTreeSet::new(),
                    end: end.save(Time::from_secs(1)),
                }],
            },
            channels: Bytes::from_static(b"channels"),
        };
        let bytes = package.encode().unwrap();
        let read = Package::decode(&bytes).unwrap();
        assert_eq!(format!("{read:?}"), format!("{package:?}"));
        for end in 0..bytes.len() {
            assert!(Package::decode(&bytes[..end]).is_none());
        }
        assert!(Package::decode(&[&bytes[..], b"x"].concat()).is_none());
        package.channels = vec![0; MOST_BYTES].into();
        assert!(package.encode().is_none());
    }

    #[test]
    fn the_clock_of_the_channels_goes_on_whichever_is_ahead() {
        let (early, late) = (Time::from_secs(3), Time::from_secs(500));
        for (now, channels_at) in [(early, late), (late, early)] {
            let shift = Shift::new(now, channels_at);
            assert_eq!(shift.to_channels(now), channels_at);
            assert_eq!(shift.to_node(channels_at), now);
        }
    }
}
