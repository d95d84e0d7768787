//! One end of a conversation run twice, by our engine and by the C reference.
//! Whatever is done is done to both, and whatever comes out must be the same.

use kcp_oracle::{Oracle, Reference};
use lagometer_kcp::{BadDatagram, Config, Engine};
use lagometer_units::Time;

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
    reference: Oracle,
    /// 2015's says 0 for all that `send` takes and for a datagram too short.
    of_2015: bool,
    room: Vec<u8>,
}

impl Twin {
    /// Both, set up alike. The rules of `config` must be those of the reference.
    pub(crate) fn new(of: Reference, conversation: u32, config: &Config) -> Self {
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
        Self {
            ours: Engine::new(conversation, config),
            reference,
            of_2015: of.is_of_2015(),
            room: vec![0; 1 << 20],
        }
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
        same!(code, self.reference.send(bytes), "what send takes");
        self.compare()?;
        Ok(taken)
    }

    /// The next message, if there is one.
    pub(crate) fn receive(&mut self) -> Result<Option<Vec<u8>>, Difference> {
        let peeked = self.ours.peek_bytes().map_or(-1, int);
        same!(peeked, self.reference.peeksize(), "the size peeked");
        let mut message = Vec::new();
        let ours = self.ours.receive(&mut message).map(|_| &message[..]);
        let code = self.reference.recv(&mut self.room);
        let theirs = usize::try_from(code)
            .ok()
            .map(|length| &self.room[..length]);
        same!(ours, theirs, "the message received");
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
        same!(code, self.reference.input(datagram), "the code of input");
        self.compare()?;
        Ok(code)
    }

    /// The datagrams that an update makes.
    pub(crate) fn update(&mut self, now: u32) -> Result<Vec<Vec<u8>>, Difference> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        self.ours.update(now, |bytes| ours.push(bytes.to_vec()));
        self.reference
            .update(now, |bytes| theirs.push(bytes.to_vec()));
        self.compare_datagrams(ours, &theirs)
    }

    /// The datagrams that a flush makes.
    pub(crate) fn flush(&mut self) -> Result<Vec<Vec<u8>>, Difference> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        self.ours.flush(|bytes| ours.push(bytes.to_vec()));
        self.reference.flush(|bytes| theirs.push(bytes.to_vec()));
        self.compare_datagrams(ours, &theirs)
    }

    pub(crate) fn set_clock(&mut self, now: u32) {
        self.ours.set_clock(now);
        self.reference.set_current(now);
    }

    pub(crate) fn check(&mut self, now: u32) -> Result<u32, Difference> {
        let ours = self.ours.check(now);
        same!(ours, self.reference.check(now), format!("check({now})"));
        Ok(ours)
    }

    pub(crate) fn set_mtu(&mut self, mtu: usize) -> Result<(), Difference> {
        let code = if self.ours.set_mtu(mtu) { 0 } else { -1 };
        same!(code, self.reference.setmtu(int(mtu)), "the code of setmtu");
        Ok(())
    }

    pub(crate) fn set_windows(&mut self, send: u16, receive: u16) {
        self.ours.set_windows(send, receive);
        self.reference.wndsize(i32::from(send), i32::from(receive));
    }

    pub(crate) fn waiting(&self) -> usize {
        self.ours.waiting()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.ours.is_dead()
    }

    fn compare_datagrams(
        &self,
        ours: Vec<Vec<u8>>,
        theirs: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, Difference> {
        same!(ours.len(), theirs.len(), "the number of datagrams");
        for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            same!(
                segments(ours),
                segments(theirs),
                format!("the segments of datagram {index}")
            );
            same!(ours, theirs, format!("datagram {index}"));
        }
        self.compare()?;
        Ok(ours)
    }

    fn compare(&self) -> Result<(), Difference> {
        let theirs = usize::try_from(self.reference.waitsnd()).unwrap();
        same!(self.ours.waiting(), theirs, "the segments waiting");
        let dead = self.reference.state() != 0;
        same!(self.ours.is_dead(), dead, "the state");
        let ours = (self.ours.smoothed_rtt_ms(), self.ours.timeout_ms());
        let (srtt, rto) = self.reference.round_trip();
        let theirs = (srtt.cast_unsigned(), rto.cast_unsigned());
        same!(ours, theirs, "the round trip and the timeout");
        let theirs = self.reference.congestion().0;
        same!(
            self.ours.congestion_window(),
            theirs,
            "the congestion window"
        );
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
