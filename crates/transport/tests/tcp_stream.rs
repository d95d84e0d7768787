//! TCP as a stream of bytes: what is written arrives once, in order, whatever
//! the path does, and a driver that heeds the deadlines never leaves it hanging.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_transport::tcp::{Algorithm, Stream, StreamOptions};
use lagometer_transport::{ByteStream as _, State};
use lagometer_units::Time;

/// Two streams and a path of 10 ms between them.
struct Play {
    now: Time,
    sides: [Stream; 2],
    in_flight: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    sent: u64,
    arrived: [Vec<u8>; 2],
    /// Whether a packet is lost, by when it is sent, its number and size.
    is_lost: fn(Time, u64, usize) -> bool,
}

impl Play {
    fn new(options: StreamOptions, is_lost: fn(Time, u64, usize) -> bool) -> Self {
        let now = Time::from_secs(1);
        Self {
            now,
            sides: [
                Stream::client(options, 5, now),
                Stream::server(options, 5, now),
            ],
            in_flight: BTreeMap::new(),
            sent: 0,
            arrived: Default::default(),
            is_lost,
        }
    }

    /// Lets a side act; what it sends is put on the path.
    fn with<R>(
        &mut self,
        side: usize,
        act: impl FnOnce(&mut Stream, Time, &mut dyn FnMut(&[u8])) -> R,
    ) -> R {
        let Self {
            now,
            sides,
            in_flight,
            sent,
            is_lost,
            ..
        } = self;
        act(&mut sides[side], *now, &mut |packet| {
            *sent += 1;
            if !is_lost(*now, *sent, packet.len()) {
                let at = *now + Duration::from_millis(10);
                in_flight.insert((at, *sent), (1 - side, packet.to_vec()));
            }
        })
    }

    fn write(&mut self, side: usize, bytes: &[u8]) -> usize {
        self.with(side, |stream, now, output| {
            let taken = stream.write(now, bytes);
            stream.send(now, output);
            taken
        })
    }

    /// Plays on; each side reads what there is after whatever happens to it.
    fn play_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let arrival = self.in_flight.keys().next().map(|key| key.0);
            let now = self.now;
            let due = [0, 1].map(|side: usize| self.sides[side].next_deadline(now));
            let next = [arrival, due[0], due[1]].into_iter().flatten().min();
            let Some(next) = next.filter(|&next| next <= end) else {
                self.now = end;
                return;
            };
            self.now = next;
            if arrival == Some(next) {
                let (_, (side, packet)) = self.in_flight.pop_first().expect("it was looked at");
                self.with(side, |stream, now, output| {
                    stream.input(now, &packet, output);
                });
                self.read(side);
            }
            for (side, due) in due.into_iter().enumerate() {
                if due.is_some_and(|at| at <= next) {
                    self.with(side, |stream, now, output| stream.tick(now, output));
                    self.read(side);
                }
            }
        }
    }

    fn read(&mut self, side: usize) {
        let arrived = &mut self.arrived[side];
        self.sides[side].read(&mut |bytes| arrived.extend_from_slice(bytes));
    }
}

fn options(congestion_control: Algorithm) -> StreamOptions {
    StreamOptions {
        congestion_control,
        no_delay: true,
        not_sent_low_water: Some(128 << 10),
    }
}

/// Writes of 300 bytes each 20 ms from both sides for seven seconds, and what
/// did not find room again later. Then ten seconds of silence.
fn dialogue(control: Algorithm, is_lost: fn(Time, u64, usize) -> bool) {
    let mut play = Play::new(options(control), is_lost);
    let mut written: [Vec<u8>; 2] = Default::default();
    let mut waiting: [Vec<u8>; 2] = Default::default();
    for turn in 0..850 {
        for side in 0..2 {
            if turn < 350 {
                waiting[side].extend((0..300_u32).map(|n| (n + turn) as u8));
            }
            let taken = play.write(side, &waiting[side]);
            written[side].extend(waiting[side].drain(..taken));
        }
        play.play_for(Duration::from_millis(20));
    }
    for side in 0..2 {
        assert_eq!(play.sides[side].state(), State::Ready, "{control:?}");
        assert!(waiting[side].is_empty(), "{control:?}: side {side} hangs");
        let (arrived, written) = (&play.arrived[1 - side], &written[side]);
        assert_eq!(arrived.len(), written.len(), "{control:?}: from {side}");
        assert!(arrived == written, "{control:?}: from {side}");
    }
}

const ALL: [Algorithm; 3] = [Algorithm::Cubic, Algorithm::Bbr, Algorithm::Reno];

#[test]
fn everything_arrives_over_a_path_that_loses() {
    for control in ALL {
        dialogue(control, |_, number, _| number % 17 == 3);
    }
}

#[test]
fn everything_arrives_after_the_path_was_cut_for_four_seconds() {
    for control in ALL {
        dialogue(control, |now, _, _| (2000..6000).contains(&now.as_millis()));
    }
}

#[test]
fn a_stream_nobody_reads_takes_no_more_than_its_buffers() {
    let mut play = Play::new(options(Algorithm::Cubic), |_, _, _| false);
    play.play_for(Duration::from_millis(100));
    let mut taken = 0;
    for _ in 0..2000 {
        taken += play.write(0, &vec![7; 60_000]);
        // Nobody reads: only packets and deadlines.
        let end = play.now + Duration::from_millis(20);
        while let Some((&(at, _), _)) = play.in_flight.first_key_value()
            && at <= end
        {
            play.now = at;
            let (_, (side, packet)) = play.in_flight.pop_first().expect("it was looked at");
            play.with(side, |stream, now, output| {
                stream.input(now, &packet, output);
            });
        }
        play.now = end;
        for side in 0..2 {
            play.with(side, |stream, now, output| stream.tick(now, output));
        }
    }
    assert!((100_000..16 << 20).contains(&taken), "{taken}");
    play.read(1);
    let before = play.arrived[1].len();
    play.play_for(Duration::from_secs(10));
    assert!(play.arrived[1].len() > before, "the window opens again");
    assert_eq!(play.write(0, b"x"), 1);
}
