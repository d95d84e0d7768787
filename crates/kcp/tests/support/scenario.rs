//! A conversation between two twins over a seeded in-memory network: settings,
//! traffic, impairments, application and clock all drawn from one seed.

use std::collections::{BTreeMap, VecDeque};

use kcp_oracle::Reference;
use lagometer_kcp::{Config, Rules};

use super::beside::Beside;
use super::damage::{corrupt, forged};
use super::stats::ScenarioStats;
use super::twin::{Difference, Twin, segments};
use kcp_oracle::dice::Dice;

/// An hour in milliseconds.
const AN_HOUR_MS: u64 = 3_600_000;

/// Events in which all must have arrived, or an hour gone by: enough to read six
/// hundred segments one a round trip.
const MOST_EVENTS: u32 = 800_000;

/// Plays the conversation of one seed to its end, against the current reference.
pub(crate) fn play(seed: u64) -> Result<ScenarioStats, Difference> {
    let current = Beside::Reference(Reference::current());
    play_beside(current, Rules::default(), seed).map(|played| played.stats)
}

/// What a conversation left.
pub(crate) struct Played {
    pub(crate) stats: ScenarioStats,
    /// Of all that our two ends said, in hexadecimal digits.
    pub(crate) digest: String,
}

/// Plays the conversation of one seed to its end, by rules which are those of what is
/// played beside.
///
/// Returns the first difference between our engine and the reference, or
/// between what was sent and what was received.
pub(crate) fn play_beside(beside: Beside, rules: Rules, seed: u64) -> Result<Played, Difference> {
    let mut dice = Dice::new(seed);
    let mut run = Run::new(beside, rules, &mut dice);
    let steps = dice.within(40, 200);
    for _ in 0..steps {
        run.step(&mut dice)?;
    }
    run.finish()?;
    Ok(Played {
        stats: run.stats,
        digest: run.ends.map(|end| end.twin.digest()).concat(),
    })
}

/// How the network treats datagrams, in percent and milliseconds.
struct Impairments {
    loss: u64,
    duplication: u64,
    corruption: u64,
    /// Chance of a datagram that neither end made, from somebody who knows the
    /// conversation's number.
    forgery: u64,
    delay: u64,
    jitter: u64,
    /// No datagram arrives from this step on.
    blackout: Option<u64>,
}

/// How an application uses its end.
struct Habits {
    /// Chance per step of a burst of sends, and the most in a burst.
    send: u64,
    burst: u64,
    /// The most segments a message is meant to need.
    segments: u64,
    /// Chance per step of reading.
    read: u64,
    /// Chance of setting the clock before a datagram is handed in.
    fresh_clock: u64,
    /// Chance of a flush after a send or a datagram.
    flush: u64,
    /// Chance of an update in a step in which `check` asks for none.
    needless_update: u64,
}

struct End {
    twin: Twin,
    habits: Habits,
    mtu: usize,
    largest_mtu: usize,
    stream: bool,
    /// What has been sent and must arrive: messages, or pieces of a stream.
    owed: VecDeque<Vec<u8>>,
}

struct Run {
    ends: [End; 2],
    impairments: Impairments,
    now: u64,
    clock_start: u32,
    longest_step: u64,
    steps: u64,
    /// Datagrams on their way by arrival time and order: where to, and what.
    wire: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    sent: u64,
    conversation: u32,
    first_sequence: u32,
    /// When each segment of data was first sent, by sender and number.
    first_sent: BTreeMap<(usize, u32), u64>,
    stats: ScenarioStats,
}

impl Run {
    fn new(beside: Beside, rules: Rules, dice: &mut Dice) -> Self {
        let conversation = dice.any() as u32;
        let first_sequence = dice.pick(&[0, 0, u32::MAX - 30, i32::MAX as u32 - 30]);
        // There were none in 2015.
        let stream = dice.percent(25) && !beside.is_of_2015();
        let mut config = Config {
            stream,
            first_sequence,
            rules,
            ..Config::default()
        };
        let alike = dice.percent(60);
        randomise(&mut config, dice);
        let ends = [0, 1].map(|_| {
            if !alike {
                randomise(&mut config, dice);
            }
            if beside.is_of_2015() {
                // It resends early as often as it likes.
                config.fast_limit = 0;
            }
            End {
                twin: Twin::new(beside, conversation, &config),
                habits: Habits::draw(dice),
                mtu: config.mtu,
                largest_mtu: config.mtu,
                stream,
                owed: VecDeque::new(),
            }
        });
        let clock_start = match dice.below(5) {
            0 => 0,
            1 => u32::MAX - dice.below(3_000) as u32,
            2 => i32::MAX as u32 - dice.below(3_000) as u32,
            _ => dice.any() as u32,
        };
        Self {
            ends,
            impairments: Impairments::draw(dice),
            now: 0,
            clock_start,
            longest_step: dice.pick(&[1, 5, 10, 10, 30, 100, 700]),
            steps: 0,
            wire: BTreeMap::new(),
            sent: 0,
            conversation,
            first_sequence,
            first_sent: BTreeMap::new(),
            stats: ScenarioStats::default(),
        }
    }

    fn step(&mut self, dice: &mut Dice) -> Result<(), Difference> {
        self.steps += 1;
        // Now and then the process sleeps long enough for probes, and for
        // the clock to count as having been set.
        self.now += if dice.percent(1) {
            dice.within(1, 25_000)
        } else {
            dice.within(0, self.longest_step)
        };
        if dice.percent(self.impairments.forgery) {
            let to = dice.below(2) as usize;
            let bytes = forged(self.conversation, self.clock(), self.first_sequence, dice);
            self.sent += 1;
            self.wire.insert((self.now, 2 * self.sent), (to, bytes));
        }
        self.deliver(Some(dice))?;
        for side in [0, 1] {
            self.act(side, dice)?;
            self.tick(
                side,
                dice.percent(self.ends[side].habits.needless_update),
                dice,
            )?;
        }
        Ok(())
    }

    /// Lets the application of one end send, read and change its mind.
    fn act(&mut self, side: usize, dice: &mut Dice) -> Result<(), Difference> {
        let habits = &self.ends[side].habits;
        if dice.percent(habits.send) {
            for _ in 0..dice.within(1, habits.burst) {
                self.send(side, dice)?;
            }
            if dice.percent(self.ends[side].habits.flush) {
                self.flush(side, dice)?;
            }
        }
        if dice.percent(self.ends[side].habits.read) {
            let most = dice.pick(&[1, 3, 1_000]);
            for _ in 0..most {
                if !self.read(side)? {
                    break;
                }
            }
        }
        let end = &mut self.ends[side];
        if dice.percent(1) {
            // No smaller than the reference's buffer can bear while segments
            // cut for the largest size so far are about.
            let most = dice.pick(&[300, 1500]);
            let mtu = dice.within(40, most) as usize;
            if 3 * (mtu + 24) >= end.largest_mtu {
                end.twin.set_mtu(mtu)?;
                if mtu >= 50 {
                    end.mtu = mtu;
                    end.largest_mtu = end.largest_mtu.max(mtu);
                }
            }
        }
        if dice.percent(1) {
            let (send, receive) = (dice.below(300) as u16, dice.below(300) as u16);
            end.twin.set_windows(send, receive);
        }
        Ok(())
    }

    fn send(&mut self, side: usize, dice: &mut Dice) -> Result<(), Difference> {
        let end = &mut self.ends[side];
        // Unread messages pile up without end otherwise.
        if end.twin.waiting() > 600 {
            return Ok(());
        }
        let piece = end.mtu as u64 - 24;
        let most = piece * end.habits.segments;
        let length = match dice.below(8) {
            0 => dice.below(2),
            1 => piece + dice.within(0, 2) - 1,
            2 if dice.percent(10) => piece * end.twin.about_the_limit(dice),
            3 => most,
            _ => dice.below(most + 1),
        };
        let mark = dice.any().to_le_bytes();
        let bytes: Vec<u8> = mark.iter().copied().cycle().take(length as usize).collect();
        let taken = end.twin.send(&bytes)?;
        self.stats.reached[11] += u64::from(taken.is_none());
        if let Some(taken) = taken {
            self.ends[1 - side].owed.push_back(bytes[..taken].to_vec());
            self.stats.messages += 1;
        }
        Ok(())
    }

    fn read(&mut self, side: usize) -> Result<bool, Difference> {
        let end = &mut self.ends[side];
        let Some(message) = end.twin.receive()? else {
            return Ok(false);
        };
        if self.impairments.is_damaging() {
            return Ok(true);
        }
        if end.stream {
            let mut rest = &message[..];
            while !rest.is_empty() {
                let Some(next) = end.owed.front_mut() else {
                    return Err(Difference("bytes that were never sent".to_owned()));
                };
                let length = rest.len().min(next.len());
                if next.drain(..length).as_slice() != &rest[..length] {
                    return Err(Difference("other bytes than were sent".to_owned()));
                }
                rest = &rest[length..];
                if next.is_empty() {
                    end.owed.pop_front();
                }
            }
        } else if end.owed.pop_front().as_ref() != Some(&message) {
            return Err(Difference("another message than was sent".to_owned()));
        }
        Ok(true)
    }

    /// Updates one end if it asks for that, or in any case.
    fn tick(&mut self, side: usize, anyway: bool, dice: &mut Dice) -> Result<(), Difference> {
        let clock = self.clock();
        let twin = &mut self.ends[side].twin;
        if twin.check(clock)? == clock || anyway {
            let datagrams = twin.update(clock)?;
            self.post(1 - side, datagrams, Some(dice));
        }
        Ok(())
    }

    fn flush(&mut self, side: usize, dice: &mut Dice) -> Result<(), Difference> {
        let datagrams = self.ends[side].twin.flush()?;
        self.post(1 - side, datagrams, Some(dice));
        Ok(())
    }

    /// Hands in what has arrived by now. Without dice nothing else happens.
    fn deliver(&mut self, mut dice: Option<&mut Dice>) -> Result<(), Difference> {
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= self.now
        {
            let (side, bytes) = entry.remove();
            self.stats.datagrams += 1;
            let clock = self.clock();
            let end = &mut self.ends[side];
            let Some(dice) = dice.as_deref_mut() else {
                end.twin.input(&bytes)?;
                continue;
            };
            if dice.percent(end.habits.fresh_clock) {
                end.twin.set_clock(clock);
            }
            match end.twin.input(&bytes)? {
                -3 => self.stats.reached[12] += 1,
                -2 => self.stats.reached[13] += 1,
                _ => {}
            }
            if dice.percent(self.ends[side].habits.flush) {
                self.flush(side, dice)?;
            }
        }
        Ok(())
    }

    /// Puts datagrams on the wire. Without dice nothing is impaired.
    fn post(&mut self, to: usize, datagrams: Vec<Vec<u8>>, mut dice: Option<&mut Dice>) {
        for mut bytes in datagrams {
            self.note(1 - to, &bytes);
            self.sent += 1;
            let Some(dice) = dice.as_deref_mut() else {
                self.wire.insert((self.now + 5, self.sent), (to, bytes));
                continue;
            };
            let impairments = &self.impairments;
            let dark = impairments.blackout.is_some_and(|step| self.steps >= step);
            if dark || dice.percent(impairments.loss) {
                continue;
            }
            if dice.percent(impairments.corruption) {
                corrupt(&mut bytes, dice);
            }
            let copies = 1 + u64::from(dice.percent(impairments.duplication));
            for copy in 0..copies {
                let arrival = self.now + impairments.delay + dice.within(0, impairments.jitter);
                let order = 2 * self.sent + copy;
                self.wire.insert((arrival, order), (to, bytes.clone()));
            }
        }
    }

    /// Where nothing was damaged, lets what is still under way arrive over a
    /// network that has become perfect.
    fn finish(&mut self) -> Result<(), Difference> {
        self.stats.dead = u64::from(self.ends.iter().any(|end| end.twin.is_dead()));
        if self.impairments.is_damaging() {
            self.stats.damaged = 1;
            return Ok(());
        }
        let mended = self.now;
        for _ in 0..MOST_EVENTS {
            if self.now - mended >= AN_HOUR_MS {
                break;
            }
            if self.ends.iter().all(|end| end.owed.is_empty()) {
                self.stats.complete = 1;
                return Ok(());
            }
            self.now = self.next_event()?;
            self.deliver(None)?;
            for side in [0, 1] {
                while self.read(side)? {}
                let clock = self.clock();
                let datagrams = self.ends[side].twin.update(clock)?;
                self.post(1 - side, datagrams, None);
            }
        }
        // Timeouts that have doubled again and again can be hours away; anything
        // else would be a transport that forgets.
        if self.now - mended < AN_HOUR_MS {
            return Err(Difference(format!(
                "not all has arrived {} ms after the network was mended",
                self.now - mended
            )));
        }
        self.stats.late = 1;
        Ok(())
    }

    /// Counts what a datagram by one end shows.
    fn note(&mut self, by: usize, bytes: &[u8]) {
        let segments = segments(bytes);
        let reached = &mut self.stats.reached;
        reached[7] += u64::from(segments.len() > 1);
        reached[10] += u64::from(bytes.len() == 1400);
        for &(command, fragment, window, _, sequence, _, _) in &segments {
            match command {
                81 => reached[0] += 1,
                82 => reached[1] += 1,
                83 => reached[2] += 1,
                84 => reached[3] += 1,
                _ => {}
            }
            reached[8] += u64::from(window == 0);
            if command != 81 {
                continue;
            }
            reached[6] += u64::from(fragment > 0);
            reached[9] += u64::from(sequence < self.first_sequence);
            if let Some(&first) = self.first_sent.get(&(by, sequence)) {
                reached[4] += 1;
                // A timeout takes longer: it is twice the round trip at least.
                let trip = 2 * self.impairments.delay;
                reached[5] += u64::from(trip > 0 && 2 * (self.now - first) < 3 * trip);
            } else {
                self.first_sent.insert((by, sequence), self.now);
            }
        }
    }

    /// The next arrival, or the next instant at which an end asks for an
    /// update, whichever is earlier, but no earlier than the next tick of 5.
    fn next_event(&mut self) -> Result<u64, Difference> {
        let clock = self.clock();
        let mut wait = u64::MAX;
        for end in &mut self.ends {
            let due = end.twin.check(clock)?;
            wait = wait.min(u64::from(due.wrapping_sub(clock)));
        }
        if let Some((&(arrival, _), _)) = self.wire.first_key_value() {
            wait = wait.min(arrival.saturating_sub(self.now));
        }
        Ok(self.now + wait.max(5))
    }

    const fn clock(&self) -> u32 {
        self.clock_start.wrapping_add(self.now as u32)
    }
}

impl Impairments {
    /// Whether what arrives may be other than what was sent.
    const fn is_damaging(&self) -> bool {
        self.corruption > 0 || self.forgery > 0
    }

    fn draw(dice: &mut Dice) -> Self {
        Self {
            loss: dice.pick(&[0, 0, 2, 5, 10, 30, 60]),
            duplication: dice.pick(&[0, 0, 2, 20]),
            corruption: dice.pick(&[0, 0, 0, 0, 0, 10]),
            forgery: dice.pick(&[0, 0, 0, 0, 0, 0, 0, 2, 20]),
            delay: dice.pick(&[0, 1, 10, 30, 30, 200]),
            jitter: dice.pick(&[0, 0, 3, 20, 60, 300]),
            blackout: dice.percent(10).then(|| dice.within(10, 60)),
        }
    }
}

impl Habits {
    fn draw(dice: &mut Dice) -> Self {
        Self {
            send: dice.pick(&[0, 10, 30, 30, 80]),
            burst: dice.pick(&[1, 1, 4, 40]),
            segments: dice.pick(&[1, 1, 2, 6, 30]),
            read: dice.pick(&[0, 3, 30, 100, 100, 100]),
            fresh_clock: dice.pick(&[0, 100, 50]),
            flush: dice.pick(&[0, 0, 100, 30]),
            needless_update: dice.pick(&[0, 0, 30]),
        }
    }
}

/// Draws what two ends need not have in common.
fn randomise(config: &mut Config, dice: &mut Dice) {
    config.nodelay = dice.pick(&[0, 1, 2]);
    config.interval_ms = dice.pick(&[1, 10, 10, 20, 50, 100, 6_000]);
    config.resend = dice.pick(&[0, 1, 2, 2, 3, 7]);
    config.fast_limit = dice.pick(&[0, 1, 2, 5, 5]);
    config.congestion_control = dice.percent(50);
    config.send_window = dice.pick(&[1, 4, 32, 32, 128, 600]);
    config.receive_window = dice.pick(&[1, 128, 128, 200, 600]);
    config.mtu = dice.pick(&[50, 60, 76, 120, 200, 300, 1400, 1400]);
    config.minimum_rto_ms = dice.pick(&[None, None, Some(0), Some(10), Some(300)]);
    config.dead_link = dice.pick(&[0, 1, 2, 5, 20, 20]);
}
