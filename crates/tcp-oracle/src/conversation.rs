//! Plays one conversation between two kernels and writes down what happens.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::Shutdown;

use lagometer_tcp::Seq;
use lagometer_tcp::wire::{
    Ecn, Flags, icmp_too_big, is_ecn_capable, mark_congestion, parse_packet,
};
use rustix::event::{PollFd, PollFlags, poll};

use crate::host::{Alarm, Host, Namespace, clock};
use crate::path::Path;
use crate::plan::{Act, Conversation, Plan, Reader};
use crate::random::Random;
use crate::settings::hosts;
use crate::trace::{Happened, Line, Packet, Trace, spoken};

/// A conversation is left when it has gone on for so long, in nanoseconds.
const LONGEST: u64 = 100_000_000_000;
/// When both have closed and nothing was sent for so long.
const QUIET: u64 = 8_000_000_000;
/// Or when so much has happened.
const MOST_LINES: usize = 12_000;
/// Room for what is read at once.
const READ_AT_ONCE: usize = 65_536;

/// An end and its application.
struct End {
    host: Host,
    plan: Plan,
    acts: VecDeque<(u64, Act)>,
    /// When it was connected.
    connected: Option<u64>,
    /// Bytes that wait to be written.
    pending: u32,
    /// A write found too little room.
    blocked: bool,
    written: u64,
    read: u64,
    answered: u64,
    next_read: u64,
    peer_finished: bool,
    closed: bool,
    first_seq: Option<Seq>,
}

/// A conversation that is being played.
pub(crate) struct Playing {
    ends: [End; 2],
    paths: [Path; 2],
    lines: Vec<Line>,
    /// Packets on their way, by when they arrive and the order in which they
    /// left; and to which end.
    on_the_way: BTreeMap<(u64, u64), (usize, Vec<u8>, Happened)>,
    sent: u64,
    began: u64,
    last_packet: u64,
    alarm: Alarm,
    room: Vec<u8>,
    /// Of the end that connects.
    port: Option<u16>,
    is_ipv6: bool,
}

/// Plays a conversation to its end.
pub(crate) fn play(
    name: &str,
    conversation: &Conversation,
    seed: u64,
    namespaces: &[Namespace; 2],
    jiffies: (u64, u64),
) -> io::Result<Trace> {
    let end = |index: usize| -> io::Result<End> {
        let plan = conversation.plans[index].clone();
        Ok(End {
            host: Host::new(&namespaces[index], index, &conversation.ends[index])?,
            acts: plan.acts.iter().copied().collect(),
            plan,
            connected: None,
            pending: 0,
            blocked: false,
            written: 0,
            read: 0,
            answered: 0,
            next_read: 0,
            peer_finished: false,
            closed: false,
            first_seq: None,
        })
    };
    let path = |index: usize| {
        Path::new(
            conversation.paths[index].clone(),
            Random::new(seed, 100 + index as u64),
        )
    };
    // The listener first.
    let [server, client] = [end(1)?, end(0)?];
    let began = clock();
    let mut playing = Playing {
        ends: [client, server],
        paths: [path(0), path(1)],
        lines: Vec::new(),
        on_the_way: BTreeMap::new(),
        sent: 0,
        began,
        last_packet: began,
        alarm: Alarm::new()?,
        room: vec![0; READ_AT_ONCE + 1],
        port: None,
        is_ipv6: conversation.ends[0].is_ipv6,
    };
    // What the devices themselves had to say at first is nobody's.
    for index in 0..2 {
        while playing.ends[index]
            .host
            .packet(&mut playing.room)?
            .is_some()
        {}
    }
    playing.run()?;
    let ended = clock();
    playing.note_errors()?;
    for end in &playing.ends {
        // Whatever is left goes without a word.
        let _ = end
            .host
            .socket()
            .set_linger(Some(std::time::Duration::ZERO));
    }
    Ok(Trace {
        name: name.to_owned(),
        jiffies,
        ends: conversation.ends.clone(),
        lines: playing.lines,
        ended,
    })
}

fn number_of(error: &io::Error) -> u32 {
    error.raw_os_error().unwrap_or_default().unsigned_abs()
}

impl Playing {
    fn run(&mut self) -> io::Result<()> {
        let at = self.note(0, Happened::Connect);
        self.ends[0].host.connect()?;
        self.drain(0, at)?;
        loop {
            self.deliver_due()?;
            for end in 0..2 {
                self.act(end)?;
            }
            let now = clock();
            let closed = self.ends.iter().all(|end| end.closed);
            let is_quiet = closed && now > self.last_packet + QUIET;
            if is_quiet || now > self.began + LONGEST || self.lines.len() > MOST_LINES {
                return Ok(());
            }
            self.wait(now)?;
            let now = clock();
            for end in 0..2 {
                self.drain(end, now)?;
            }
        }
    }

    /// What ends that nobody has closed would say of errors.
    fn note_errors(&mut self) -> io::Result<()> {
        for end in 0..2 {
            let this = &self.ends[end];
            if this.connected.is_some() && !this.closed {
                let error = this.host.socket().take_error()?;
                self.note(end, Happened::Error(error.as_ref().map_or(0, number_of)));
            }
        }
        Ok(())
    }

    fn note(&mut self, end: usize, what: Happened) -> u64 {
        let at = clock();
        self.lines.push(Line { at, end, what });
        at
    }

    /// Sleeps until there is something to do.
    fn wait(&self, now: u64) -> io::Result<()> {
        let mut next = now + 500_000_000;
        if let Some(((at, _), _)) = self.on_the_way.first_key_value() {
            next = next.min(*at);
        }
        for end in &self.ends {
            let Some(connected) = end.connected.filter(|_| !end.closed) else {
                continue;
            };
            if let Some((after, _)) = end.acts.front().filter(|_| end.pending == 0) {
                next = next.min(connected + after);
            }
            if matches!(end.plan.reader, Reader::Periodic(..)) {
                next = next.min(end.next_read);
            }
        }
        self.alarm.set(next)?;
        let mut events = vec![PollFd::new(self.alarm.fd(), PollFlags::IN)];
        for end in &self.ends {
            events.push(PollFd::new(&end.host.device, PollFlags::IN));
            if end.blocked && !end.closed {
                events.push(PollFd::new(end.host.socket(), PollFlags::OUT));
            }
        }
        poll(&mut events, None)?;
        Ok(())
    }

    fn deliver_due(&mut self) -> io::Result<()> {
        loop {
            let Some(entry) = self.on_the_way.first_entry() else {
                return Ok(());
            };
            if entry.key().0 > clock() {
                return Ok(());
            }
            let (end, packet, what) = entry.remove();
            let at = self.note(end, what);
            self.ends[end].host.deliver(&packet)?;
            self.drain(end, at)?;
            self.react(end)?;
        }
    }

    /// Takes what the kernel of an end has sent.
    fn drain(&mut self, end: usize, at: u64) -> io::Result<()> {
        let mut has_sent = false;
        while let Some(packet) = self.ends[end].host.packet(&mut self.room)? {
            let Ok((header, segment)) = parse_packet(packet) else {
                continue;
            };
            // A conversation before may still have something to say.
            let port = if end == 0 {
                segment.source_port
            } else {
                segment.destination_port
            };
            if *self.port.get_or_insert(port) != port {
                continue;
            }
            let first = *self.ends[end].first_seq.get_or_insert(segment.seq);
            let place = u64::from(segment.seq - first).wrapping_sub(1);
            let mut payload = (0..).zip(segment.payload);
            let is_syn = segment.has(Flags::SYN);
            if !is_syn
                && payload.any(|(index, byte)| spoken(end, place.wrapping_add(index)) != *byte)
            {
                return Err(io::Error::other(
                    "the kernel sent other bytes than were written",
                ));
            }
            let seen = Packet::of(&header, &segment);
            let packet = packet.to_vec();
            let what = Happened::Out(seen);
            self.lines.push(Line { at, end, what });
            self.carry(end, at, packet, seen);
            self.last_packet = at;
            has_sent = true;
        }
        if has_sent && let Some(state) = self.ends[end].host.state() {
            let what = Happened::State(state);
            self.lines.push(Line { at, end, what });
        }
        Ok(())
    }

    /// Puts a packet on the path to the other end.
    fn carry(&mut self, end: usize, at: u64, mut packet: Vec<u8>, mut seen: Packet) {
        let now = at - self.began;
        let path = &mut self.paths[end];
        if let Some(mtu) = path.refuse(packet.len()) {
            if let Some(arrives) = path.report_at(now) {
                let router = hosts(self.is_ipv6)[1 - end];
                let notice = icmp_too_big(router, &packet, mtu).unwrap_or_default();
                let what = Happened::TooBig(seen.seq, mtu.into());
                self.put_on_the_way(arrives, end, notice, what);
            }
            return;
        }
        if is_ecn_capable(&packet) && path.marks() {
            mark_congestion(&mut packet);
            seen.ecn = Ecn::CongestionExperienced;
        }
        for arrives in path.offer(now, packet.len()) {
            self.put_on_the_way(arrives, 1 - end, packet.clone(), Happened::In(seen));
        }
    }

    fn put_on_the_way(&mut self, arrives: u64, end: usize, packet: Vec<u8>, what: Happened) {
        let key = (self.began + arrives, self.sent);
        self.on_the_way.insert(key, (end, packet, what));
        self.sent += 1;
    }

    /// The application of an end, after a packet came.
    fn react(&mut self, end: usize) -> io::Result<()> {
        let this = &mut self.ends[end];
        if this.closed {
            return Ok(());
        }
        if this.connected.is_none() {
            if !this.host.is_connected() {
                return Ok(());
            }
            let now = clock();
            this.connected = Some(now);
            this.next_read = now;
        }
        if this.plan.reader == Reader::Eager {
            while self.read(end, READ_AT_ONCE)? {}
        }
        Ok(())
    }

    /// Whether a poll of an end's socket says so now.
    fn is_ready(&mut self, end: usize, flags: PollFlags) -> bool {
        let ready = self.ends[end].host.ready();
        if !ready.contains(PollFlags::OUT) {
            self.note(end, Happened::Full);
        }
        ready.intersects(flags | PollFlags::ERR | PollFlags::HUP)
    }

    /// Reads once; whether there may be more.
    fn read(&mut self, end: usize, most: usize) -> io::Result<bool> {
        let this = &self.ends[end];
        if this.closed || this.peer_finished || !self.is_ready(end, PollFlags::IN) {
            return Ok(false);
        }
        let this = &mut self.ends[end];
        let at = clock();
        let read = this.host.read(&mut self.room[..most]);
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                self.fail(end, &error)?;
                return Ok(false);
            }
        };
        let place = this.read;
        let bytes = self.room[..read].iter();
        if (place..)
            .zip(bytes)
            .any(|(place, byte)| spoken(1 - end, place) != *byte)
        {
            return Err(io::Error::other(
                "the kernel delivered other bytes than were written",
            ));
        }
        this.read += read as u64;
        this.peer_finished = read == 0;
        if let Some((of, answer)) = this.plan.reply {
            let requests = this.read / of;
            this.pending += (requests - this.answered) as u32 * answer;
            this.answered = requests;
        }
        let what = Happened::Read(most as u32, read as u32);
        self.lines.push(Line { at, end, what });
        self.drain(end, at)?;
        if self.ends[end].plan.quick_ack {
            let at = self.note(end, Happened::QuickAck);
            self.ends[end].host.socket().set_tcp_quickack(true)?;
            self.drain(end, at)?;
        }
        if self.ends[end].pending > 0 && !self.ends[end].blocked {
            self.write(end)?;
        }
        Ok(!self.ends[end].peer_finished)
    }

    /// What an application does by itself.
    fn act(&mut self, end: usize) -> io::Result<()> {
        let Some(connected) = self.ends[end].connected else {
            return Ok(());
        };
        if let Reader::Periodic(most, every) = self.ends[end].plan.reader {
            let now = clock();
            if now >= self.ends[end].next_read {
                self.ends[end].next_read = now + every;
                self.read(end, (most as usize).min(READ_AT_ONCE))?;
            }
        }
        if self.ends[end].blocked && self.is_ready(end, PollFlags::OUT) {
            self.write(end)?;
        }
        while !self.ends[end].closed
            && self.ends[end].pending == 0
            && let Some((after, act)) = self.ends[end].acts.front().copied()
            && connected + after <= clock()
        {
            self.ends[end].acts.pop_front();
            self.carry_out(end, act)?;
        }
        let this = &self.ends[end];
        if this.peer_finished && this.pending == 0 && this.acts.is_empty() && !this.closed {
            self.close(end)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, end: usize, act: Act) -> io::Result<()> {
        let at = match act {
            Act::Write(bytes) => {
                self.ends[end].pending += bytes;
                return self.write(end);
            }
            Act::Close => return self.close(end),
            Act::Nodelay(is_on) => {
                let at = self.note(end, Happened::Nodelay(is_on));
                self.ends[end].host.socket().set_tcp_nodelay(is_on)?;
                at
            }
            Act::Cork(is_on) => {
                let at = self.note(end, Happened::Cork(is_on));
                self.ends[end].host.socket().set_tcp_cork(is_on)?;
                at
            }
            Act::Finish => {
                let at = self.note(end, Happened::Finish);
                // It may have been reset, which reading will show.
                let _ = self.ends[end].host.socket().shutdown(Shutdown::Write);
                at
            }
        };
        self.drain(end, at)
    }

    /// Writes what waits, as far as there is room.
    fn write(&mut self, end: usize) -> io::Result<()> {
        let this = &mut self.ends[end];
        let bytes: Vec<u8> = (0..u64::from(this.pending))
            .map(|place| spoken(end, this.written + place))
            .collect();
        let at = clock();
        let taken = match this.host.write(&bytes) {
            Ok(taken) => taken,
            Err(error) => return self.fail(end, &error),
        };
        this.written += taken as u64;
        let of = this.pending;
        this.pending -= taken as u32;
        this.blocked = this.pending > 0;
        let what = Happened::Write(of, taken as u32);
        self.lines.push(Line { at, end, what });
        self.drain(end, at)
    }

    /// The application closes what has failed.
    fn fail(&mut self, end: usize, error: &io::Error) -> io::Result<()> {
        self.note(end, Happened::Error(number_of(error)));
        self.close(end)
    }

    fn close(&mut self, end: usize) -> io::Result<()> {
        let at = self.note(end, Happened::Close);
        let this = &mut self.ends[end];
        this.closed = true;
        this.blocked = false;
        this.host.close()?;
        self.drain(end, at)
    }
}
