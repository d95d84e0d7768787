//! What was seen of a conversation between two kernels, as text: one line for
//! each thing that happened, in the order in which it did.

use std::fmt::Write as _;
use std::str::FromStr;

use lagometer_tcp::Seq;
use lagometer_tcp::wire::{Ecn, Flags, IpHeader, SackBlock, SackBlocks, Segment, TcpOptions};

use crate::settings::EndSettings;

/// A packet, without its payload, whose bytes were looked at when it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) length: u32,
    pub(crate) ecn: Ecn,
    pub(crate) options: TcpOptions,
}

impl Packet {
    pub(crate) fn of(header: &IpHeader, segment: &Segment<'_>) -> Self {
        Self {
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window,
            length: segment.payload.len() as u32,
            ecn: header.ecn,
            options: segment.options,
        }
    }

    /// The same with the sender's numbers moved on by so much, and those that
    /// it repeats of its peer.
    pub(crate) fn moved(mut self, own: Shift, peer: Shift) -> Self {
        self.seq += own.seq;
        if self.flags.contains(Flags::ACK) {
            self.ack += peer.seq;
        }
        if let Some((value, echo)) = &mut self.options.timestamps {
            *value = value.wrapping_add(own.timestamp);
            if *echo != 0 {
                *echo = echo.wrapping_add(peer.timestamp);
            }
        }
        let blocks = self.options.sack;
        self.options.sack = SackBlocks::default();
        for block in blocks.as_slice() {
            self.options.sack.push(SackBlock {
                start: block.start + peer.seq,
                end: block.end + peer.seq,
            });
        }
        self
    }
}

/// By how much the numbers differ that an end chooses at random.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shift {
    pub(crate) seq: u32,
    pub(crate) timestamp: u32,
}

impl Shift {
    /// Back again.
    pub(crate) const fn back(self) -> Self {
        Self {
            seq: self.seq.wrapping_neg(),
            timestamp: self.timestamp.wrapping_neg(),
        }
    }
}

/// What happened at an end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Happened {
    /// The application connects.
    Connect,
    /// A packet reached it.
    In(Packet),
    /// A packet left it.
    Out(Packet),
    /// The application wrote; how many bytes it had, and how many found room.
    Write(u32, u32),
    /// The application read; for how many bytes it had room, and how many came.
    Read(u32, u32),
    /// It set `TCP_NODELAY`.
    Nodelay(bool),
    /// It set `TCP_CORK`.
    Cork(bool),
    /// It set `TCP_QUICKACK`.
    QuickAck,
    /// A router reported to it that the packet with this sequence number is larger than so many
    /// bytes.
    TooBig(Seq, u32),
    /// It ended its stream.
    Finish,
    /// It closed.
    Close,
    /// It asked whether there is something to read, and there was no room to write:
    /// the kernel reports when there is, and the buffer may grow until then.
    Full,
    /// A call failed with this error number, or `SO_ERROR` has it at the end: 0 for none.
    Error(u32),
    /// The kernel's state after this, as `TCP_INFO` reports it.
    State(String),
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// Nanoseconds on the guest's monotonic clock.
    pub(crate) at: u64,
    /// 0 for the end that connects.
    pub(crate) end: usize,
    pub(crate) what: Happened,
}

/// A conversation as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub(crate) name: String,
    /// The tick when the monotonic clock was so many nanoseconds old.
    pub(crate) jiffies: (u64, u64),
    pub(crate) ends: [EndSettings; 2],
    pub(crate) lines: Vec<Line>,
    /// Until when it was watched, in nanoseconds on the guest's monotonic clock; 0 in one
    /// that is broken off.
    pub(crate) ended: u64,
}

fn or_dash(value: Option<u32>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A number, or nothing for a dash.
fn dashed<T: FromStr>(word: &str) -> Result<Option<T>, T::Err> {
    if word == "-" {
        return Ok(None);
    }
    word.parse().map(Some)
}

const ECN: [Ecn; 4] = [
    Ecn::NotCapable,
    Ecn::Capable1,
    Ecn::Capable0,
    Ecn::CongestionExperienced,
];

/// The two bits of the header.
fn ecn_bits(ecn: Ecn) -> usize {
    ECN.iter().position(|it| *it == ecn).unwrap_or_default()
}

fn ecn_of(bits: &str) -> Option<Ecn> {
    ECN.get(bits.parse::<usize>().ok()?).copied()
}

fn put_packet(out: &mut String, packet: &Packet) {
    let options = &packet.options;
    let _ = write!(
        out,
        "{} {} {:02x} {} {} {} {} {} {}",
        packet.seq.0,
        packet.ack.0,
        packet.flags.0,
        packet.window,
        packet.length,
        ecn_bits(packet.ecn),
        or_dash(options.mss.map(u32::from)),
        or_dash(options.window_scale.map(u32::from)),
        u8::from(options.sack_permitted),
    );
    match options.timestamps {
        Some((value, echo)) => {
            let _ = write!(out, " {value} {echo}");
        }
        None => out.push_str(" - -"),
    }
    for block in options.sack.as_slice() {
        let _ = write!(out, " {}-{}", block.start.0, block.end.0);
    }
}

fn packet<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Packet> {
    let mut next = || words.next();
    let seq = Seq(next()?.parse().ok()?);
    let ack = Seq(next()?.parse().ok()?);
    let flags = Flags(u8::from_str_radix(next()?, 16).ok()?);
    let window = next()?.parse().ok()?;
    let length = next()?.parse().ok()?;
    let ecn = ecn_of(next()?)?;
    let mut options = TcpOptions {
        mss: dashed(next()?).ok()?,
        window_scale: dashed(next()?).ok()?,
        sack_permitted: next()? == "1",
        ..TcpOptions::default()
    };
    options.timestamps = dashed(next()?).ok()?.zip(dashed(next()?).ok()?);
    for word in words {
        let (start, end) = word.split_once('-')?;
        options.sack.push(SackBlock {
            start: Seq(start.parse().ok()?),
            end: Seq(end.parse().ok()?),
        });
    }
    Some(Packet {
        seq,
        ack,
        flags,
        window,
        length,
        ecn,
        options,
    })
}

impl Line {
    fn put(&self, out: &mut String) {
        let _ = write!(out, "{} {} ", self.at, self.end);
        let _ = match &self.what {
            Happened::Connect => write!(out, "connect"),
            Happened::In(packet) => {
                out.push_str("in ");
                put_packet(out, packet);
                Ok(())
            }
            Happened::Out(packet) => {
                out.push_str("out ");
                put_packet(out, packet);
                Ok(())
            }
            Happened::Write(of, taken) => write!(out, "write {of} {taken}"),
            Happened::Read(of, taken) => write!(out, "read {of} {taken}"),
            Happened::Nodelay(is_on) => write!(out, "nodelay {}", u8::from(*is_on)),
            Happened::Cork(is_on) => write!(out, "cork {}", u8::from(*is_on)),
            Happened::QuickAck => write!(out, "quickack"),
            Happened::TooBig(seq, mtu) => write!(out, "toobig {} {mtu}", seq.0),
            Happened::Finish => write!(out, "finish"),
            Happened::Close => write!(out, "close"),
            Happened::Full => write!(out, "full"),
            Happened::Error(number) => write!(out, "error {number}"),
            Happened::State(state) => write!(out, "state {state}"),
        };
        out.push('\n');
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let at = words.next()?.parse().ok()?;
        let end = words.next()?.parse().ok().filter(|end| *end < 2)?;
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<u32>().ok();
        let what = match kind {
            "connect" => Happened::Connect,
            "in" => Happened::In(packet(&mut words)?),
            "out" => Happened::Out(packet(&mut words)?),
            "write" => Happened::Write(number()?, number()?),
            "read" => Happened::Read(number()?, number()?),
            "nodelay" => Happened::Nodelay(number()? == 1),
            "cork" => Happened::Cork(number()? == 1),
            "quickack" => Happened::QuickAck,
            "toobig" => Happened::TooBig(Seq(number()?), number()?),
            "finish" => Happened::Finish,
            "close" => Happened::Close,
            "full" => Happened::Full,
            "error" => Happened::Error(number()?),
            "state" => Happened::State(words.collect::<Vec<_>>().join(" ")),
            _ => return None,
        };
        Some(Self { at, end, what })
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        self.put(&mut out);
        f.write_str(out.trim_end())
    }
}

impl Trace {
    /// Its name: class, control and seed.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!(
            "conversation {} {} {}\n",
            self.name, self.jiffies.0, self.jiffies.1
        );
        for end in &self.ends {
            let settings = serde_json::to_string(end).unwrap_or_default();
            let _ = writeln!(out, "end {settings}");
        }
        for line in &self.lines {
            line.put(&mut out);
        }
        let _ = writeln!(out, "ended {}", self.ended);
        out
    }

    /// All conversations of a text.
    ///
    /// # Errors
    ///
    /// The first line that is not as [`to_text`](Self::to_text) writes it.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let mut traces: Vec<Self> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let is_read = if let Some(rest) = line.strip_prefix("conversation ") {
                Self::begin(rest).map(|trace| traces.push(trace))
            } else {
                traces.last_mut().and_then(|trace| trace.take(line))
            };
            is_read
                .ok_or_else(|| format!("line {} of a trace makes no sense: {line}", number + 1))?;
        }
        Ok(traces)
    }

    /// Reads the traces of the conversations called so, in this order: all of them, and
    /// each from the first packet to the end of it.
    ///
    /// # Errors
    ///
    /// As [`parse_all`](Self::parse_all), and the first of the conversations that is
    /// missing or broken off. What is compared with nothing agrees with anything.
    pub fn parse_whole(
        text: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Vec<Self>, String> {
        let traces = Self::parse_all(text)?;
        let mut recorded = traces.iter();
        for name in names {
            match recorded.next() {
                Some(trace) if trace.name == name && trace.is_whole() => (),
                Some(trace) if trace.name == name => {
                    return Err(format!("conversation {name} is broken off"));
                }
                Some(other) => {
                    return Err(format!(
                        "{} where conversation {name} was asked for",
                        other.name
                    ));
                }
                None => return Err(format!("conversation {name} was not recorded")),
            }
        }
        match recorded.next() {
            Some(other) => Err(format!("conversation {} was not asked for", other.name)),
            None => Ok(traces),
        }
    }

    fn is_whole(&self) -> bool {
        let has_spoken = |line: &Line| matches!(line.what, Happened::Out(_));
        self.lines.iter().any(has_spoken) && self.ended > 0
    }

    fn begin(rest: &str) -> Option<Self> {
        let mut words = rest.split(' ');
        let name = words.next()?.to_owned();
        let jiffies = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let unset = EndSettings {
            mtu: 0,
            ..EndSettings::default()
        };
        Some(Self {
            name,
            jiffies,
            ends: [unset.clone(), unset],
            lines: Vec::new(),
            ended: 0,
        })
    }

    fn take(&mut self, line: &str) -> Option<()> {
        if let Some(settings) = line.strip_prefix("end ") {
            let end = self.ends.iter_mut().find(|end| end.mtu == 0)?;
            *end = serde_json::from_str(settings).ok()?;
        } else if let Some(at) = line.strip_prefix("ended ") {
            self.ended = at.parse().ok()?;
        } else {
            self.lines.push(Line::parse(line)?);
        }
        Some(())
    }
}

/// The byte at this place of what an end says.
#[must_use]
pub(crate) const fn spoken(end: usize, place: u64) -> u8 {
    (place.wrapping_mul(131) ^ (place >> 8).wrapping_mul(29) ^ (end as u64 * 0x55)) as u8
}

#[cfg(test)]
mod tests;
