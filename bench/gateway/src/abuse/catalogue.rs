//! All abuses, each with a sentence on what it does.
//!
//! A new one is an entry in one of the lists: most are a [`Flood`] of something
//! that [`payloads`](super::payloads) makes, the others a function of their own.

mod clients;
mod connections;
mod engines;
mod unauthenticated;

use std::io;

use super::attacker::{Attacker, Target};
use super::deployment::Deployment;
use super::flood::{Flood, Source};

/// One abuse.
pub(super) struct Abuse {
    /// What the table calls it.
    pub(super) name: &'static str,
    /// What it does, one sentence.
    pub(super) does: &'static str,
    /// The gateway that it is played against.
    pub(super) deployment: Deployment,
    /// How it is played.
    pub(super) attack: Attack,
}

/// How an abuse is played.
pub(super) enum Attack {
    /// Not at all: what the figures are without an attacker.
    Nobody,
    /// By a flood over TCP or WebSocket.
    Flood(Flood),
    /// By a function of its own, until the attacker is to stop.
    Own(fn(&Attacker) -> io::Result<()>),
}

impl Abuse {
    /// Whether what comes back is held against what was sent: its senders may
    /// be forged.
    pub(super) fn reflects(&self) -> bool {
        self.name.starts_with("kcp-reflects-")
    }

    const fn plain(name: &'static str, does: &'static str, attack: Attack) -> Self {
        Self {
            name,
            does,
            deployment: Deployment::PLAIN,
            attack,
        }
    }

    const fn engine(name: &'static str, does: &'static str, attack: Attack) -> Self {
        Self {
            deployment: Deployment::ENGINE,
            ..Self::plain(name, does, attack)
        }
    }
}

const fn flood(source: fn(&Target, usize) -> Source) -> Attack {
    Attack::Flood(Flood::of(source))
}

const fn client_flood(source: fn(&Target, usize) -> Source) -> Attack {
    Attack::Flood(Flood::logged_in(source))
}

const fn websocket_flood(source: fn(&Target, usize) -> Source) -> Attack {
    Attack::Flood(Flood::websocket(source))
}

/// Every abuse, in the order in which they are played.
pub(super) fn all() -> impl Iterator<Item = &'static Abuse> {
    unauthenticated::ALL
        .iter()
        .chain(connections::ALL)
        .chain(clients::ALL)
        .chain(engines::ALL)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lagometer_protocol::{FrameDecoder, FrameLimits};

    use super::*;
    use crate::abuse::deployment::Endpoints;
    use crate::abuse::flood::ConnectionState;

    fn target() -> Target {
        Target {
            endpoints: Endpoints::free().unwrap(),
            rooms: vec![1, 2, 3],
            owner: 1,
            players: (2..202).collect(),
        }
    }

    #[test]
    fn every_abuse_has_a_name_of_its_own_and_says_what_it_does() {
        let names: BTreeSet<&str> = all().map(|abuse| abuse.name).collect();
        assert_eq!(names.len(), all().count());
        for abuse in all() {
            assert!(abuse.does.len() > 10, "{}", abuse.name);
            let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
            assert!(abuse.name.chars().all(is_name), "{}", abuse.name);
        }
    }

    #[test]
    fn every_flood_says_something_each_time() {
        for abuse in all() {
            let Attack::Flood(flood) = &abuse.attack else {
                continue;
            };
            let mut source = (flood.source)(&target(), 0);
            for _ in 0..3 {
                let mut said = Vec::new();
                source(&mut said);
                assert!(!said.is_empty(), "{}", abuse.name);
            }
        }
    }

    #[test]
    fn floods_of_clients_are_frames_so_that_no_early_fault_ends_them() {
        let limits = FrameLimits::default();
        for abuse in all() {
            let Attack::Flood(flood) = &abuse.attack else {
                continue;
            };
            if flood.state != ConnectionState::LoggedIn {
                continue;
            }
            let mut said = Vec::new();
            let mut source = (flood.source)(&target(), 0);
            (0..3).for_each(|_| source(&mut said));
            let mut decoder = FrameDecoder::new(limits);
            let (mut bytes, mut frames) = (&*said, 0);
            let mut scratch = Vec::new();
            while let Some(frame) = decoder.next(&mut bytes).unwrap() {
                let packet = frame.packet_bytes(limits.max_packet_bytes, &mut scratch);
                assert!(packet.is_ok(), "{}: {packet:?}", abuse.name);
                frames += 1;
            }
            assert!(frames >= 3 && bytes.is_empty(), "{}", abuse.name);
        }
    }
}
