//! One end of a conversation run twice, by our engine and by the C reference.
//! Whatever is done is done to both, and whatever comes out must be the same. What
//! comes out is digested too, so that it can be held against what came out beside a
//! reference that is not there.

use kcp_oracle::{Oracle, Reference};
use lagometer_kcp::{BadDatagram, Config, Engine};
use lagometer_units::Time;
use sha2::{Digest, Sha256};

use super::beside::Beside;
use kcp_oracle::dice::Dice;

/// What the two did differently.
#[derive(Debug)]
pub(crate) struct Difference(pub(crate) String);

macro_rules! same {
    ($ours:expr, $theirs:expr, $what:expr) => {{
        let (ours, theirs) = ($ours, $theirs);
        if ours != theirs {
            let text = format!("{}: ours {ours:?}, the reference's {theirs:?}", $what);
            return Err(Difference(text));
        }
    }};
}

/// Both implementations of one end.
pub(crate) struct Twin {
    ours: Engine,
    reference: Option<Oracle>,
    /// 2015's says 0 for all that `send` takes and for a datagram too short.
    of_2015: bool,
    room: Vec<u8>,
    /// Of every code, message, datagram and round trip of ours.
    digest: Sha256,
}

impl Twin {
    /// Both, set up alike. The rules of `config` must be those of the reference.
    pub(crate) fn new(beside: Beside, conversation: u32, config: &Config) -> Self {
        let reference = match beside {
            Beside::Reference(of) => Some(Self::set_up(of, conversation, config)),
            Beside::NothingOf2015 => None,
        };
        Self {
            ours: Engine::new(conversation, config),
            reference,
            of_2015: beside.is_of_2015(),
            room: vec![0; 1 << 20],
            digest: Sha256::new(),
        }
    }

    fn set_up(of: Reference, conversation: u32, config: &Config) -> Oracle {
        let mut reference = Oracle::of(of, conversation);
        reference.nodelay(
            i32::from(config.nodelay),
            int(config.interval_ms),
            int(config.resend),
            i32::from(!config.congestion_control),
        );
        reference.wndsize(
            i32::from(config.send_window),
            i32::from(config.receive_window),
        );
        assert_eq!(reference.setmtu(int(config.mtu)), 0);
        if let Some(millis) = config.minimum_rto_ms {
            reference.set_minrto(int(millis));
        }
        reference.set_fastlimit(int(config.fast_limit));
        reference.set_stream(config.stream);
        reference.set_first_sequence(config.first_sequence);
        reference.set_dead_link(if config.dead_link == 0 {
            u32::MAX
        } else {
            config.dead_link
        });
        reference
    }

    /// The first eight bytes of the digest of all that our end said, in hexadecimal
    /// digits: enough to notice a difference.
    pub(crate) fn digest(self) -> String {
        let first = self.digest.finalize()[..8].try_into();
        format!("{:016x}", u64::from_be_bytes(first.expect("eight bytes")))
    }

    /// About as many segments as a message may have.
    pub(crate) fn about_the_limit(&self, dice: &mut Dice) -> u64 {
        let twice = if self.of_2015 { 2 } else { 1 };
        twice * dice.within(100, 140)
    }

    /// How many bytes were taken; `None` when the message is too long.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<Option<usize>, Difference> {
        let taken = self.ours.send(bytes).ok();
        let code = taken.map_or(-2, |taken| if self.of_2015 { 0 } else { int(taken) });
        if let Some(reference) = &mut self.reference {
            same!(code, reference.send(bytes), "what send takes");
        }
        self.digest.update(code.to_le_bytes());
        self.compare()?;
        Ok(taken)
    }

    /// The next message, if there is one.
    pub(crate) fn receive(&mut self) -> Result<Option<Vec<u8>>, Difference> {
        let peeked = self.ours.peek_bytes().map_or(-1, int);
        let mut message = Vec::new();
        let ours = self.ours.receive(&mut message).map(|_| &message[..]);
        if let Some(reference) = &mut self.reference {
            same!(peeked, reference.peeksize(), "the size peeked");
            let code = reference.recv(&mut self.room);
            let theirs = usize::try_from(code)
                .ok()
                .map(|length| &self.room[..length]);
            same!(ours, theirs, "the message received");
        }
        self.digest.update(peeked.to_le_bytes());
        self.digest.update(ours.unwrap_or_default());
        let received = ours.is_some();
        self.compare()?;
        Ok(received.then_some(message))
    }

    /// The reference's code for a datagram: 0, or less for one that is refused.
    pub(crate) fn input(&mut self, datagram: &[u8]) -> Result<i32, Difference> {
        let code = match self.ours.input(Time::ZERO, datagram) {
            Ok(()) => 0,
            Err(BadDatagram::TooShort) if self.of_2015 => 0,
            Err(BadDatagram::TooShort | BadDatagram::OtherConversation) => -1,
            Err(BadDatagram::Truncated) => -2,
            Err(BadDatagram::UnknownCommand) => -3,
        };
        if let Some(reference) = &mut self.reference {
            same!(code, reference.input(datagram), "the code of input");
        }
        self.digest.update(code.to_le_bytes());
        self.compare()?;
        Ok(code)
    }

    /// The datagrams that an update makes.
    pub(crate) fn update(&mut self, now: u32) -> Result<Vec<Vec<u8>>, Difference> {
        let mut ours = Vec::new();
        self.ours.update(now, |bytes| ours.push(bytes.to_vec()));
        self.digest.update(now.to_le_bytes());
        let theirs = self.reference.as_mut().map(|reference| {
            let mut theirs = Vec::new();
            reference.update(now, |bytes| theirs.push(bytes.to_vec()));
            theirs
        });
        self.compare_datagrams(ours, theirs)
    }

    /// The datagrams that a flush makes.
    pub(crate) fn flush(&mut self) -> Result<Vec<Vec<u8>>, Difference> {
        let mut ours = Vec::new();
        self.ours.flush(|bytes| ours.push(bytes.to_vec()));
        let theirs = self.reference.as_mut().map(|reference| {
            let mut theirs = Vec::new();
            reference.flush(|bytes| theirs.push(bytes.to_vec()));
            theirs
        });
        self.compare_datagrams(ours, theirs)
    }

    pub(crate) fn set_clock(&mut self, now: u32) {
        self.ours.set_clock(now);
        if let Some(reference) = &mut self.reference {
            reference.set_current(now);
        }
    }

    pub(crate) fn check(&mut self, now: u32) -> Result<u32, Difference> {
        let ours = self.ours.check(now);
        if let Some(reference) = &mut self.reference {
            same!(ours, reference.check(now), format!("check({now})"));
        }
        self.digest.update(ours.to_le_bytes());
        Ok(ours)
    }

    pub(crate) fn set_mtu(&mut self, mtu: usize) -> Result<(), Difference> {
        let code = if self.ours.set_mtu(mtu) { 0 } else { -1 };
        if let Some(reference) = &mut self.reference {
            same!(code, reference.setmtu(int(mtu)), "the code of setmtu");
        }
        self.digest.update(code.to_le_bytes());
        Ok(())
    }

    pub(crate) fn set_windows(&mut self, send: u16, receive: u16) {
        self.ours.set_windows(send, receive);
        if let Some(reference) = &mut self.reference {
            reference.wndsize(i32::from(send), i32::from(receive));
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.ours.waiting()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.ours.is_dead()
    }

    /// Holds the datagrams of ours against the reference's, where there is one.
    fn compare_datagrams(
        &mut self,
        ours: Vec<Vec<u8>>,
        theirs: Option<Vec<Vec<u8>>>,
    ) -> Result<Vec<Vec<u8>>, Difference> {
        if let Some(theirs) = theirs {
            same!(ours.len(), theirs.len(), "the number of datagrams");
            for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                same!(
                    segments(ours),
                    segments(theirs),
                    format!("the segments of datagram {index}")
                );
                same!(ours, theirs, format!("datagram {index}"));
            }
        }
        for datagram in &ours {
            self.digest.update(int(datagram.len()).to_le_bytes());
            self.digest.update(datagram);
        }
        self.compare()?;
        Ok(ours)
    }

    /// Holds what our end knows of the path against what the reference does.
    fn compare(&mut self) -> Result<(), Difference> {
        let waiting = self.ours.waiting();
        let is_dead = self.ours.is_dead();
        let (srtt, rto) = (self.ours.smoothed_rtt_ms(), self.ours.timeout_ms());
        let window = self.ours.congestion_window();
        if let Some(reference) = &mut self.reference {
            let theirs = usize::try_from(reference.waitsnd()).unwrap();
            same!(waiting, theirs, "the segments waiting");
            same!(is_dead, reference.state() != 0, "the state");
            let theirs = reference.round_trip();
            let theirs = (theirs.0.cast_unsigned(), theirs.1.cast_unsigned());
            same!((srtt, rto), theirs, "the round trip and the timeout");
            same!(window, reference.congestion().0, "the congestion window");
        }
        self.digest.update(int(waiting).to_le_bytes());
        self.digest.update([u8::from(is_dead)]);
        for number in [srtt, rto, window] {
            self.digest.update(number.to_le_bytes());
        }
        Ok(())
    }
}

/// A number of ours as the reference takes it.
fn int<T: TryInto<i32>>(number: T) -> i32 {
    number.try_into().ok().expect("tests use small numbers")
}

/// (command, fragment, window, timestamp, sequence, una, length) of every
/// segment, to say where two datagrams differ.
pub(crate) fn segments(mut bytes: &[u8]) -> Vec<(u8, u8, u16, u32, u32, u32, u32)> {
    let mut found = Vec::new();
    while bytes.len() >= 24 {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let window = u16::from_le_bytes([bytes[6], bytes[7]]);
        let length = u32_at(20);
        found.push((
            bytes[4],
            bytes[5],
            window,
            u32_at(8),
            u32_at(12),
            u32_at(16),
            length,
        ));
        bytes = &bytes[(24 + length as usize).min(bytes.len())..];
    }
    found
}
