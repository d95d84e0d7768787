//! One end of a KCP conversation, with the datagrams that it wants to have sent.

use std::collections::VecDeque;

use lagometer_kcp::{BadDatagram, Config, Engine, LEAST_MTU, TooManySegments};
use lagometer_units::Time;
use thiserror::Error;

/// Datagrams that wait to be taken: more than these, and what the engine sends is lost,
/// as in a socket whose buffer is full. KCP sends it again.
const MOST_DATAGRAMS: usize = 4096;

/// The largest datagram that KCP may be set to make, in bytes.
pub(crate) const LARGEST_MTU: usize = 65_507;

/// A setting out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{key} is {value}; expected {range}")]
pub(crate) struct OutOfRange {
    key: &'static str,
    value: u32,
    range: &'static str,
}

/// One end of a conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    engine: Engine,
    /// To be sent, in order.
    outgoing: VecDeque<Vec<u8>>,
    /// What a message is read into.
    message: Vec<u8>,
    /// A message that was read and found no room.
    kept: bool,
}

impl Conversation {
    /// One end of the conversation so numbered.
    pub(crate) fn new(number: u32, config: &Config) -> Self {
        let mut engine = Engine::new(number, config);
        // A peer that repeats itself must not fill the memory.
        engine.limit_acknowledgements(config.most_acknowledgements());
        Self {
            engine,
            outgoing: VecDeque::new(),
            message: Vec::new(),
            kept: false,
        }
    }

    /// Queues a message, or bytes of a stream; says how many bytes were taken.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize, TooManySegments> {
        self.engine.send(bytes)
    }

    /// Takes in a datagram.
    pub(crate) fn input(&mut self, datagram: &[u8]) -> Result<(), BadDatagram> {
        self.engine.input(Time::ZERO, datagram)
    }

    /// Sets the clock and lets all be sent that is due.
    pub(crate) fn update(&mut self, now_ms: u32) {
        let outgoing = &mut self.outgoing;
        self.engine.update(now_ms, |datagram| {
            if outgoing.len() < MOST_DATAGRAMS {
                outgoing.push_back(datagram.to_vec());
            }
        });
    }

    /// When, on the program's clock, `update` has something to do.
    pub(crate) fn check(&mut self, now_ms: u32) -> u32 {
        self.engine.check(now_ms)
    }

    /// The datagram to be sent next.
    pub(crate) fn outgoing(&self) -> Option<&[u8]> {
        self.outgoing.front().map(Vec::as_slice)
    }

    /// It was sent.
    pub(crate) fn sent(&mut self) {
        self.outgoing.pop_front();
    }

    /// The next message, in a stream the bytes of the next segment; it stays until it
    /// is [`taken`](Self::taken).
    pub(crate) fn message(&mut self) -> Option<&[u8]> {
        if !self.kept {
            self.kept = self.engine.receive(&mut self.message).is_some();
        }
        self.kept.then_some(&self.message)
    }

    /// The message was read.
    pub(crate) fn taken(&mut self) {
        self.kept = false;
    }

    /// How many segments wait to be sent or acknowledged.
    pub(crate) fn waiting(&self) -> usize {
        self.engine.waiting()
    }

    /// A segment was sent as often as the settings allow.
    pub(crate) const fn is_dead(&self) -> bool {
        self.engine.is_dead()
    }
}

/// Whether an engine can be made so; what the engine would bring into range by itself is
/// refused here, for a program is better refused than corrected.
pub(crate) fn check(config: &Config) -> Result<(), OutOfRange> {
    let within = |key, value: u32, least: u32, most: u32, range| {
        let out = OutOfRange { key, value, range };
        (least..=most).contains(&value).then_some(()).ok_or(out)
    };
    within("nodelay", config.nodelay.into(), 0, 2, "0 to 2")?;
    within("interval_ms", config.interval_ms, 10, 5_000, "10 to 5000")?;
    within(
        "send_window",
        config.send_window.into(),
        1,
        65_535,
        "1 to 65535",
    )?;
    within(
        "receive_window",
        config.receive_window.into(),
        128,
        65_535,
        "128 to 65535",
    )?;
    let (least, most) = (LEAST_MTU as u32, LARGEST_MTU as u32);
    within("mtu", config.mtu as u32, least, most, "50 to 65507")?;
    within(
        "minimum_rto_ms",
        config.minimum_rto_ms.unwrap_or(0),
        0,
        60_000,
        "0 to 60000",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_until_it_is_taken() {
        let config = Config::default();
        let mut ends = [7, 7].map(|number| Conversation::new(number, &config));
        ends[0].send(b"first").unwrap();
        ends[0].send(b"second").unwrap();
        for now_ms in (0..1_000).step_by(10) {
            for from in 0..2 {
                ends[from].update(now_ms);
                while let Some(datagram) = ends[from].outgoing().map(<[u8]>::to_vec) {
                    ends[1 - from].input(&datagram).unwrap();
                    ends[from].sent();
                }
            }
        }
        assert_eq!(ends[1].message(), Some(&b"first"[..]));
        assert_eq!(ends[1].message(), Some(&b"first"[..]));
        ends[1].taken();
        assert_eq!(ends[1].message(), Some(&b"second"[..]));
        ends[1].taken();
        assert_eq!(ends[1].message(), None);
        assert_eq!(ends[0].waiting(), 0, "both are acknowledged");
    }

    #[test]
    fn what_nobody_takes_is_lost_and_not_kept_for_ever() {
        let config = Config {
            nodelay: 1,
            interval_ms: 10,
            send_window: 60_000,
            congestion_control: false,
            dead_link: 0,
            ..Config::default()
        };
        let mut end = Conversation::new(7, &config);
        for _ in 0..60_000 {
            end.send(&[0; 1_000]).unwrap();
        }
        for now_ms in (0..5_000).step_by(10) {
            end.update(now_ms);
        }
        assert!(end.outgoing.len() <= MOST_DATAGRAMS);
    }

    #[test]
    fn settings_out_of_range_are_refused_in_words() {
        let refused = |config: Config| check(&config).unwrap_err().to_string();
        assert_eq!(check(&Config::default()), Ok(()));
        let config = Config {
            mtu: 49,
            ..Config::default()
        };
        assert_eq!(refused(config), "mtu is 49; expected 50 to 65507");
        let config = Config {
            interval_ms: 0,
            ..Config::default()
        };
        assert_eq!(refused(config), "interval_ms is 0; expected 10 to 5000");
        let config = Config {
            receive_window: 1,
            ..Config::default()
        };
        assert_eq!(
            refused(config),
            "receive_window is 1; expected 128 to 65535"
        );
    }
}
