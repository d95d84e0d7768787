//! Recorded traffic: when a client and its server sent messages to each other, and of how
//! many bytes; from a capture or from a log. What was in them is not kept.
//!
//! A **capture** is a pcapng or pcap file. Each UDP datagram of one conversation is a
//! message with the size of its payload. The client's side is the one that is named, else
//! the sender of the first packet; of several conversations the one with the most packets
//! counts.
//!
//! A **log** is a text with a message on each line: when it was sent, in seconds from
//! anywhere; `up` from the client or `down` from the server; its bytes. Commas,
//! semicolons, tabs or blanks stand between them, `#` begins a remark, and a head without
//! digits is passed over.
//!
//! ```text
//! seconds,direction,bytes
//! 0.000,up,48
//! 0.012,down,310
//! ```
//!
//! Either way times are moved so that the first message is at zero.

mod address_pattern;
mod capture;
mod log;
mod packet;

use std::fmt;
use std::time::Duration;

use lagometer_link::Direction;
use thiserror::Error;

pub use address_pattern::{AddressPattern, BadAddressPattern};

/// The most messages that a file may have, both ways: what a record of each takes fits
/// memory many times over.
pub const MOST_MESSAGES: usize = 1_000_000;

/// The largest message: what a UDP datagram over IPv4 holds.
pub const LARGEST_MESSAGE_BYTES: u32 = 65_507;

/// The longest that a file may cover.
pub const LONGEST: Duration = Duration::from_hours(24);

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedMessage {
    /// When, from the first message of either side on.
    pub at: Duration,
    /// Bytes of what it carried, without headers.
    pub bytes: u32,
}

/// What a client and its server sent to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    ways: [Vec<RecordedMessage>; 2],
    origin: Origin,
}

/// Where traffic is from: what a reader chose of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The client and the server of a capture.
    pub ends: Option<(std::net::SocketAddr, std::net::SocketAddr)>,
    /// Packets of a capture that are not of this conversation.
    pub left_out: usize,
}

/// Which conversation of a capture is meant; whatever there is where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The client's address, port or both.
    pub client: Option<AddressPattern>,
    /// The server's.
    pub server: Option<AddressPattern>,
}

/// Why a file is no traffic that can be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadTraffic {
    /// It has nothing.
    #[error(
        "has no message: a log has lines as `0.016,up,48`, and a capture UDP datagrams between a \
         client and a server"
    )]
    Empty,
    /// A line of a log says nothing that is understood.
    #[error(
        "line {line}: {what}; a line is `0.016,up,48`: seconds, `up` or `down`, bytes ({} at \
         most)",
        LARGEST_MESSAGE_BYTES
    )]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Times of a log run backwards.
    #[error("line {line}: {at} s is before the {before} s of a line above: sort the lines by time")]
    Backwards {
        /// The line, counted from 1.
        line: usize,
        /// Its time as it is written.
        at: String,
        /// The time above.
        before: String,
    },
    /// Times of a capture run backwards.
    #[error(
        "packet {packet} is {} s before one above it, so its times cannot be believed: sort it \
         with `reordercap`, or capture again", seconds.as_secs_f64()
    )]
    PacketBackwards {
        /// The packet, counted from 1.
        packet: usize,
        /// By how much.
        seconds: Duration,
    },
    /// It holds too much.
    #[error(
        "has more than {MOST_MESSAGES} messages, the most that is read: cut it with `editcap` or a \
         shorter log"
    )]
    TooMany,
    /// It lasts too long.
    #[error("is longer than {} h, the most that is read: cut it", LONGEST.as_secs() / 3600)]
    TooLong,
    /// A capture ends within a packet.
    #[error(
        "was cut short within packet {packet}: {}capture again",
        if *packet > 1 {
            format!("keep those before it, as with `editcap -r IN OUT 1-{}`, or ", packet - 1)
        } else {
            String::new()
        }
    )]
    CutShort {
        /// The packet, counted from 1.
        packet: usize,
    },
    /// A capture is damaged.
    #[error(
        "is damaged in front of packet {packet}: capture again, or write it anew with `editcap`"
    )]
    Damaged {
        /// The packet, counted from 1.
        packet: usize,
    },
    /// A capture is of something else than IP packets as computers send them.
    #[error(
        "has packets of link type {link_type}, which is not read: capture on Ethernet, Linux's \
         `any`, loopback or a tunnel (link types 0, 1, 101, 108, 113, 228, 229, 276)"
    )]
    LinkType {
        /// Its number by <https://www.tcpdump.org/linktypes.html>.
        link_type: i32,
    },
    /// A capture has no UDP.
    #[error(
        "has {packets} packets and none of UDP{}: a message's size cannot be seen in other \
         protocols; write a log of your game's messages instead (`0.016,up,48`)",
        if *tcp > 0 { format!(", {tcp} of TCP") } else { String::new() }
    )]
    NoUdp {
        /// Packets in it.
        packets: usize,
        /// Those of TCP.
        tcp: usize,
    },
    /// No conversation is the one that is meant.
    #[error(
        "has no UDP between {asked}; the conversation with the most packets is {largest}: name one \
         of these as `client`, or leave it out"
    )]
    NotThere {
        /// What was asked for.
        asked: String,
        /// What there is, in words.
        largest: String,
    },
}

impl Traffic {
    /// Reads a capture or a log, whichever it is.
    ///
    /// # Errors
    ///
    /// [`BadTraffic`], in words to be put behind the file's name and a colon.
    pub fn read(bytes: &[u8], choice: &Choice) -> Result<Self, BadTraffic> {
        if capture::is_one(bytes) {
            capture::read(bytes, choice)
        } else {
            log::read(bytes)
        }
    }

    /// The traffic as a log, which [`Self::read`] reads as the same messages.
    #[must_use]
    pub fn to_log(&self) -> String {
        log::write(self)
    }

    /// Those messages that are sent before `end`, as a log.
    #[must_use]
    pub fn log_before(&self, end: Duration) -> String {
        let ways = self.ways.clone().map(|mut way| {
            way.retain(|message| message.at < end);
            way
        });
        log::write(&Self {
            ways,
            ..Self::default()
        })
    }

    /// Of messages in the order of their times within each direction.
    fn of(ways: [Vec<RecordedMessage>; 2], origin: Origin) -> Result<Self, BadTraffic> {
        let traffic = Self { ways, origin };
        if traffic.messages() == 0 {
            return Err(BadTraffic::Empty);
        }
        if traffic.last() > LONGEST {
            return Err(BadTraffic::TooLong);
        }
        Ok(traffic)
    }

    /// What was sent in a direction, in order of time.
    #[must_use]
    pub fn way(&self, direction: Direction) -> &[RecordedMessage] {
        &self.ways[direction.index()]
    }

    /// How many messages there are, both ways.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.ways.iter().map(Vec::len).sum()
    }

    /// What was chosen of a capture.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// When the last message was sent.
    fn last(&self) -> Duration {
        let lasts = self.ways.iter().filter_map(|way| way.last());
        lasts.map(|message| message.at).max().unwrap_or_default()
    }

    /// How long it is: to the last message, and on as long as it is from one to the next
    /// on average. After so long it begins again where it is repeated. At least 1 ms.
    #[must_use]
    pub fn length(&self) -> Duration {
        let messages = self.messages() as u128;
        let nanos = match messages {
            0 => 0,
            1 => 1_000_000_000,
            _ => self.last().as_nanos() * messages / (messages - 1),
        };
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).max(Duration::from_millis(1))
    }

    /// How many messages are sent within `span`, both ways, where it is repeated.
    #[must_use]
    pub fn messages_within(&self, span: Duration) -> u64 {
        let length = self.length().as_nanos();
        let (whole, rest) = (span.as_nanos() / length, span.as_nanos() % length);
        let rest = Duration::from_nanos(rest as u64);
        let of_rest: usize = self
            .ways
            .iter()
            .map(|way| way.partition_point(|message| message.at < rest))
            .sum();
        let all = whole * self.messages() as u128 + of_rest as u128;
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// Bits a second in a direction.
    #[must_use]
    pub fn bits_per_second(&self, direction: Direction) -> f64 {
        let bytes: u64 = self
            .way(direction)
            .iter()
            .map(|message| u64::from(message.bytes))
            .sum();
        bytes as f64 * 8.0 / self.length().as_secs_f64()
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [up, down] = Direction::BOTH.map(|direction| self.way(direction).len());
        let seconds = self.length().as_secs_f64();
        write!(
            formatter,
            "{up} messages up and {down} down in {seconds:.3} s"
        )?;
        let Some((client, server)) = self.origin.ends else {
            return Ok(());
        };
        write!(formatter, ", client {client}, server {server}")?;
        match self.origin.left_out {
            0 => Ok(()),
            more => write!(formatter, "; {more} packets of others are left out"),
        }
    }
}

#[cfg(test)]
mod tests;
