//! A script played by our streams, driven as the gateway drives them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lagometer_transport::ByteStream;
use lagometer_transport::kcp::{FecStream, Stream};
use lagometer_units::Time;

use super::Sent;
use super::script::Script;

/// What our two streams send.
pub(crate) fn play(script: &Script) -> Vec<Sent> {
    let mut play = Play {
        script,
        sides: [
            ScriptedEnd::new(script, 0),
            ScriptedEnd::new(script, script.second_start_ns),
        ],
        path: BTreeMap::new(),
        order: 0,
        sent: Vec::new(),
        counts: [0; 2],
    };
    play.run();
    play.sent
}

struct Play<'a> {
    script: &'a Script,
    sides: [ScriptedEnd; 2],
    /// Datagrams on their way by arrival and order: to whom, and their bytes.
    path: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    order: u64,
    sent: Vec<Sent>,
    counts: [u64; 2],
}

/// One of the two ends, which writes as the script says.
struct ScriptedEnd {
    stream: Box<dyn ByteStream>,
    /// Writes that wait for room.
    blocked: VecDeque<Vec<u8>>,
}

impl ScriptedEnd {
    fn new(script: &Script, ns: u64) -> Self {
        let (config, now) = (&script.config, at(script, ns));
        let stream: Box<dyn ByteStream> = match script.fec {
            None => Box::new(Stream::with_config(script.conversation, config, now)),
            Some(group) => {
                let conversation = script.conversation;
                Box::new(FecStream::with_config(conversation, config, group, now))
            }
        };
        Self {
            stream,
            blocked: VecDeque::new(),
        }
    }
}

impl Play<'_> {
    fn run(&mut self) {
        let mut writes = self.script.writes.iter().copied().peekable();
        let mut now = 0;
        loop {
            let pause = self.script.pause_ns;
            let arrival = self.path.first_key_value().map(|(key, _)| key.0);
            let write = writes.peek().map(|write| write.ns);
            let resumes = (pause.1 > now).then_some(pause.1);
            let wakes = [0, 1].map(|side| self.deadline(side, now));
            let events = [arrival, write, resumes, wakes[0], wakes[1]];
            let next = events.into_iter().flatten().min();
            let Some(next) = next.filter(|&next| next < self.script.until_ns) else {
                return;
            };
            now = now.max(next);
            if let Some(side) = (0..2).find(|&side| wakes[side] == Some(next)) {
                self.with(side, now, |stream, now, output| stream.tick(now, output));
                self.write(side, now);
            } else if write == Some(next) {
                let write = writes.next().expect("it was peeked at");
                let bytes = self.script.bytes_of(write);
                self.sides[write.side].blocked.push_back(bytes);
                self.write(write.side, now);
            } else if arrival == Some(next) {
                let (_, (side, bytes)) = self.path.pop_first().expect("it was peeked at");
                self.with(side, now, |stream, now, output| {
                    stream.input(now, &bytes, output);
                });
                self.write(side, now);
            }
            for side in 0..2 {
                if side == 0 || !(pause.0..pause.1).contains(&now) {
                    self.sides[side].stream.read(&mut |_| {});
                }
            }
        }
    }

    fn deadline(&mut self, side: usize, now: u64) -> Option<u64> {
        let origin = at(self.script, 0);
        let start = if side == 1 {
            self.script.second_start_ns
        } else {
            0
        };
        let time = at(self.script, now.max(start));
        let due = self.sides[side].stream.next_deadline(time)?;
        Some(due.since(origin).as_nanos() as u64)
    }

    /// Writes what there is room for, each write being followed by a flush.
    fn write(&mut self, side: usize, now: u64) {
        while let Some(bytes) = self.sides[side].blocked.pop_front() {
            let time = at(self.script, now);
            if self.sides[side].stream.write(time, &bytes) == 0 {
                self.sides[side].blocked.push_front(bytes);
                return;
            }
            self.with(side, now, |stream, now, output| stream.send(now, output));
        }
    }

    /// Lets a side act, and puts on the path what it sends.
    fn with(
        &mut self,
        side: usize,
        now: u64,
        act: impl FnOnce(&mut dyn ByteStream, Time, &mut dyn FnMut(&[u8])),
    ) {
        let mut sent = Vec::new();
        let time = at(self.script, now);
        act(&mut *self.sides[side].stream, time, &mut |bytes| {
            sent.push(bytes.to_vec());
        });
        for bytes in sent {
            let index = self.counts[side];
            self.counts[side] += 1;
            for arrival in self.script.arrivals(side, index, now) {
                self.order += 1;
                let key = (arrival, self.order);
                self.path.insert(key, (1 - side, bytes.clone()));
            }
            let ns = now;
            self.sent.push(Sent { ns, side, bytes });
        }
    }
}

/// So many nanoseconds into the conversation.
fn at(script: &Script, ns: u64) -> Time {
    Time::from_millis(script.clock_ms) + Duration::from_nanos(ns)
}
