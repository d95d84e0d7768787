//! Lets `lagometer-tcp` live through what a kernel's end of a conversation lived
//! through, and compares what it sends.
//!
//! Each end is played by itself: it receives what the kernel's end received and
//! does what the application did, at the same times and in the same order. So a
//! difference is this end's own, and ends that send the same in all their
//! circumstances send the same to each other. So with what is reported to the application: when
//! there is room to write, of errors, and by `TCP_INFO`.

mod difference;
mod reported;

use std::net::SocketAddr;

use difference::{first_field, is_same_stamp};
use lagometer_tcp::congestion::Flow;
use lagometer_tcp::wire::{Flags, IpHeader, Segment, parse_packet};
use lagometer_tcp::{Connection, Instant, PhaseSearch, Seq, State};
use reported::Reported;

use crate::info::{first_difference, of_connection};
use crate::settings::{PORT, hosts};
use crate::trace::{Happened, Line, Packet, Shift, Trace, spoken};

/// By how much a packet's time may differ, in nanoseconds.
pub const TOLERANCE_NS: u64 = 1_000;
/// What is random beside BBR's phases is moved to where the kernel has it.
const SEED: u64 = 1;
/// Of the end that connects; the kernel's is another.
const CLIENT_PORT: u16 = 40_000;

/// Where an end first did something else than the kernel's.
#[derive(Clone, Debug)]
pub struct Difference {
    /// 0 for the end that connects.
    pub end: usize,
    /// In a few words, for counting.
    pub kind: String,
    /// All that helps to find out why.
    pub text: String,
}

/// Compares both ends. In which phase BBR begins to probe for bandwidth is random: the
/// kernel's are found out.
#[must_use]
pub fn compare(trace: &Trace) -> Vec<Difference> {
    let differences = (0..2).map(|end| {
        let mut search = PhaseSearch::default();
        let mut best = played(trace, end, search.asked());
        while best.difference.is_some() && search.next(best.drawn) {
            let found = played(trace, end, search.asked());
            if found.reached > best.reached || found.difference.is_none() {
                search.keep();
                best = found;
            }
        }
        best.difference
    });
    differences.flatten().collect()
}

/// How far an end is as the kernel's.
struct Played {
    difference: Option<Difference>,
    reached: usize,
    /// How many of BBR's phases were drawn until then.
    drawn: usize,
}

/// Plays one end with the phases given.
fn played(trace: &Trace, end: usize, phases: &[u8]) -> Played {
    let mut replay = Replay::new(trace, end, phases);
    let difference = replay.run().err();
    let flow = replay.connection.as_ref().map(Connection::flow);
    Played {
        difference,
        reached: replay.reached,
        drawn: flow.map_or(0, Flow::phases_drawn),
    }
}

struct Replay<'a> {
    trace: &'a Trace,
    end: usize,
    phases: &'a [u8],
    connection: Option<Connection>,
    /// By how much the connection's own numbers are beyond the kernel's.
    shift: Option<Shift>,
    /// Sent and not yet compared.
    sent: std::collections::VecDeque<(u64, Packet)>,
    first_seq: Seq,
    written: u64,
    read: u64,
    /// When something last happened, in nanoseconds of the guest's clock.
    now: u64,
    /// The line reached.
    reached: usize,
    offset: u64,
    reported: Reported,
}

impl<'a> Replay<'a> {
    fn new(trace: &'a Trace, end: usize, phases: &'a [u8]) -> Self {
        // Ticks of the connection are the kernel's.
        let (jiffies, at) = trace.jiffies;
        let offset = jiffies * 1_000_000 - at / 1_000_000 * 1_000_000;
        Self {
            trace,
            end,
            phases,
            connection: None,
            shift: None,
            sent: std::collections::VecDeque::new(),
            first_seq: Seq(0),
            written: 0,
            read: 0,
            now: 0,
            reached: 0,
            offset,
            reported: Reported::default(),
        }
    }

    const fn instant(&self, at: u64) -> Instant {
        Instant::from_nanos(at + self.offset)
    }

    fn run(&mut self) -> Result<(), Difference> {
        let trace = self.trace;
        for (index, line) in trace.lines.iter().enumerate() {
            if line.end != self.end {
                continue;
            }
            self.reached = index;
            match &line.what {
                Happened::State(theirs) => self.check_info(theirs)?,
                Happened::Error(number) => {
                    self.pass(line.at)?;
                    self.check_error(*number)?;
                }
                Happened::Full => self.check_full()?,
                Happened::Out(packet) => self.expect(line.at, packet)?,
                _ => {
                    self.pass(line.at)?;
                    self.check_nothing_left()?;
                    self.happen(line)?;
                    self.collect(line.at)?;
                }
            }
        }
        self.pass(trace.ended.saturating_sub(TOLERANCE_NS))?;
        self.check_nothing_left()
    }

    /// Everything that was sent the kernel has sent, too.
    fn check_nothing_left(&self) -> Result<(), Difference> {
        if let Some((at, packet)) = self.sent.front() {
            let text = format!("sent at {at} what the kernel did not: {packet:?}");
            return Err(self.difference("an extra packet", &text));
        }
        Ok(())
    }

    /// Time passes: timers fire.
    fn pass(&mut self, until: u64) -> Result<(), Difference> {
        while self.fire(until)? {}
        Ok(())
    }

    /// Time passes until something is sent.
    fn pass_until_sent(&mut self, until: u64) -> Result<(), Difference> {
        while self.sent.is_empty() && self.fire(until)? {}
        Ok(())
    }

    /// The next timer fires, if it is due by `until`; whether it was.
    fn fire(&mut self, until: u64) -> Result<bool, Difference> {
        let Some(connection) = &mut self.connection else {
            return Ok(false);
        };
        let Some(deadline) = connection.next_deadline() else {
            return Ok(false);
        };
        let at = deadline.as_nanos() - self.offset;
        if at > until || (at <= self.now && until <= self.now) {
            // What is set to the past fires when the guest's clock moves on.
            return Ok(false);
        }
        let at = at.max(self.now);
        connection.handle_deadline(Instant::from_nanos(at + self.offset));
        self.collect(at)?;
        Ok(true)
    }

    fn happen(&mut self, line: &Line) -> Result<(), Difference> {
        self.now = line.at;
        let now = self.instant(line.at);
        if let Happened::In(packet) = &line.what {
            self.receive(now, packet);
            return Ok(());
        }
        if line.what == Happened::Connect {
            let [local, remote] = self.addresses();
            let config = self.trace.ends[self.end].config(self.phases);
            let connection = Connection::connect(&config, local, remote, SEED, now);
            self.connection = Some(connection);
            return Ok(());
        }
        let Some(connection) = &mut self.connection else {
            return Err(self.difference("no connection", "there is no connection"));
        };
        match line.what {
            Happened::Write(of, taken) => {
                if let Err(text) = self.reported.check_writable(connection, line.at) {
                    return Err(self.difference("writable at another time", &text));
                }
                let bytes: Vec<u8> = (0..u64::from(of))
                    .map(|place| spoken(self.end, self.written + place))
                    .collect();
                let written = connection.write(now, &bytes) as u32;
                if written != taken {
                    let text = format!("of {of} bytes {written} were taken, in the kernel {taken}");
                    return Err(self.difference("a write took less or more", &text));
                }
                self.written += u64::from(written);
                self.reported.written(of, taken);
            }
            Happened::Read(of, taken) => {
                let mut bytes = vec![0; of as usize];
                let read = connection.read(now, &mut bytes) as u32;
                if read != taken {
                    let text = format!("of {of} bytes {read} were read, in the kernel {taken}");
                    return Err(self.difference("a read gave less or more", &text));
                }
                let mut given = (self.read..).zip(&bytes[..read as usize]);
                if given.any(|(place, byte)| spoken(1 - self.end, place) != *byte) {
                    return Err(self.difference("a read gave other bytes", ""));
                }
                self.read += u64::from(read);
            }
            Happened::Nodelay(is_on) => connection.set_nodelay(now, is_on),
            Happened::Cork(is_on) => connection.set_cork(now, is_on),
            Happened::QuickAck => connection.acknowledge_quickly(now),
            Happened::TooBig(seq, mtu) => {
                let shift = self.shift.unwrap_or_default().seq;
                connection.on_packet_too_big(now, seq + shift, mtu);
            }
            Happened::Finish => {
                self.reported.finish();
                connection.finish(now);
            }
            Happened::Close => connection.close(now),
            _ => {}
        }
        Ok(())
    }

    fn receive(&mut self, now: Instant, packet: &Packet) {
        let [local, remote] = self.addresses();
        let header = IpHeader {
            source: remote.ip(),
            destination: local.ip(),
            ecn: packet.ecn,
        };
        let packet = packet.moved(Shift::default(), self.shift.unwrap_or_default());
        let peer = 1 - self.end;
        let syn = u32::from(packet.flags.contains(Flags::SYN));
        if syn == 1 {
            self.first_seq = packet.seq;
        }
        let place = u64::from(packet.seq - self.first_seq) + u64::from(syn);
        let payload: Vec<u8> = (0..u64::from(packet.length))
            .map(|index| spoken(peer, (place + index).wrapping_sub(1)))
            .collect();
        let segment = Segment {
            source_port: remote.port(),
            destination_port: local.port(),
            seq: packet.seq,
            ack: packet.ack,
            flags: packet.flags,
            window: packet.window,
            options: packet.options,
            payload: &payload,
        };
        if self.is_over() && syn == 1 && !packet.flags.contains(Flags::ACK) {
            // Its host begins another.
            self.connection = None;
            self.shift = None;
        }
        if let Some(connection) = &mut self.connection {
            connection.receive(now, &header, &segment);
        } else {
            let config = self.trace.ends[self.end].config(self.phases);
            self.connection = Connection::accept(&config, local, remote, &segment, SEED, now);
        }
    }

    /// Takes what the connection has to send.
    fn collect(&mut self, at: u64) -> Result<(), Difference> {
        if let Some(connection) = &mut self.connection {
            self.reported.collect(connection, at);
        }
        while let Some(packet) = self.connection.as_mut().and_then(Connection::poll_transmit) {
            let seen = match parse_packet(&packet) {
                Ok((header, segment)) => {
                    self.check_content(&segment)?;
                    Packet::of(&header, &segment)
                }
                Err(error) => return Err(self.difference("no packet", &error.to_string())),
            };
            self.sent.push_back((at, seen));
        }
        Ok(())
    }

    fn check_content(&self, segment: &Segment<'_>) -> Result<(), Difference> {
        let Some(shift) = self.shift else {
            return Ok(());
        };
        let first = self.kernels_first() + shift.seq;
        let place = u64::from(segment.seq - first).wrapping_sub(1);
        let mut bytes = (0..).zip(segment.payload);
        let is_right =
            bytes.all(|(index, byte)| spoken(self.end, place.wrapping_add(index)) == *byte);
        if is_right {
            return Ok(());
        }
        Err(self.difference("other content", &format!("{segment:?}")))
    }

    /// Of this end and of the other.
    fn addresses(&self) -> [SocketAddr; 2] {
        let [first, second] = hosts(self.trace.ends[self.end].is_ipv6);
        let both = [
            SocketAddr::new(first, CLIENT_PORT),
            SocketAddr::new(second, PORT),
        ];
        [both[self.end], both[1 - self.end]]
    }

    /// The kernel's initial sequence number.
    fn kernels_first(&self) -> Seq {
        let mut lines = self.trace.lines.iter().filter(|line| line.end == self.end);
        lines
            .find_map(|line| match line.what {
                Happened::Out(packet) => Some(packet.seq),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// The kernel sent this.
    fn expect(&mut self, at: u64, theirs: &Packet) -> Result<(), Difference> {
        self.pass_until_sent(at + TOLERANCE_NS)?;
        if self.sent.is_empty() {
            self.share_interrupt(at)?;
        }
        let Some((sent_at, ours)) = self.sent.pop_front() else {
            // A connection that is over is its host's, which answers by itself what comes.
            if self.is_over() && theirs.flags.contains(Flags::RST) && self.has_just_received(at) {
                return Ok(());
            }
            return Err(self.difference("a missing packet", "sent nothing"));
        };
        let shift = *self.shift.get_or_insert_with(|| Shift {
            seq: ours.seq - theirs.seq,
            timestamp: match (ours.options.timestamps, theirs.options.timestamps) {
                (Some((ours, _)), Some((theirs, _))) => ours.wrapping_sub(theirs),
                _ => 0,
            },
        });
        let mut ours = ours.moved(shift.back(), Shift::default());
        if is_same_stamp(at, &ours, theirs) {
            ours.options.timestamps = theirs.options.timestamps;
        }
        let kind = if ours != *theirs {
            first_field(&ours, theirs)
        } else if sent_at.abs_diff(at) > TOLERANCE_NS {
            "time"
        } else {
            return Ok(());
        };
        let what = Happened::Out(ours);
        let line = Line {
            at: sent_at,
            end: self.end,
            what,
        };
        Err(self.difference(kind, &line.to_string()))
    }

    fn is_over(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_none_or(|connection| connection.state() == State::Closed)
    }

    /// Whether a packet came at this instant.
    fn has_just_received(&self, at: u64) -> bool {
        let before = self.trace.lines[..self.reached].iter().rev();
        before
            .take_while(|line| line.at == at)
            .any(|line| line.end == self.end && matches!(line.what, Happened::In(_)))
    }

    /// Timers with slack fire with any other of their kernel, the other end's among
    /// them: what may have left by now has.
    fn share_interrupt(&mut self, at: u64) -> Result<(), Difference> {
        let now = self.instant(at);
        if let Some(connection) = &mut self.connection {
            connection.share_interrupt(now);
        }
        self.collect(at)
    }
}
