//! The lane presets of kcp-go: their endpoints send what sessions send, which
//! are held against kcp-go itself (`kcp_go_differential.rs`).

mod kcp_support;

use std::collections::BTreeMap;
use std::time::Duration;

use kcp_oracle::dice::Dice;
use kcp_support::lane::Lane;
use lagometer_transport::ByteStream as _;
use lagometer_transport::kcp::{Settings, Side, Stream};
use lagometer_units::{Span, Time};

/// Not a whole number of milliseconds, so that nothing arrives with a timer.
const DELAY: Duration = Duration::from_micros(20_300);
const MESSAGES: u64 = 300;
const LOST_PERCENT: u64 = 15;

/// A datagram with its time and sender.
type Sent = (Time, usize, Vec<u8>);

/// Loses the same datagrams of each side in either play.
fn loses() -> impl FnMut(usize) -> bool {
    let mut dice = [Dice::new(1), Dice::new(2)];
    move |side| dice[side].percent(LOST_PERCENT)
}

/// When, by whom and what is sent: every 37 ms by either side in turn.
fn messages() -> impl Iterator<Item = (Time, usize, Vec<u8>)> {
    (0..MESSAGES).map(|index| {
        let at = Time::from_nanos(index * 37_000_000 + 50_100_000);
        (at, index as usize % 2, vec![index as u8; 300])
    })
}

fn end() -> Time {
    Time::from_millis(MESSAGES * 37 + 5_000)
}

fn by_endpoints(settings: &Settings) -> Vec<Sent> {
    let mut loses = loses();
    let mut lane = Lane::new(settings, DELAY, |side, _, _| loses(side));
    for (at, side, message) in messages() {
        lane.run_until(at);
        lane.send(side, &message);
    }
    lane.run_until(end());
    lane.datagrams
}

fn by_streams(settings: &Settings) -> Vec<Sent> {
    let mut loses = loses();
    let stream = |side| Stream::with_config(7, &settings.of(side).config(), Time::ZERO);
    let mut streams = [stream(Side::Client), stream(Side::Server)];
    let mut path: BTreeMap<(Time, usize), (usize, Vec<u8>)> = BTreeMap::new();
    let mut sent: Vec<Sent> = Vec::new();
    let mut writes = messages().peekable();
    let mut now = Time::ZERO;
    loop {
        let arrival = path.first_key_value().map(|(key, _)| key.0);
        let wakes = [0, 1].map(|side: usize| streams[side].next_deadline(now));
        let write = writes.peek().map(|write| write.0);
        let events = [arrival, write, wakes[0], wakes[1]];
        let next = events.into_iter().flatten().min();
        let Some(next) = next.filter(|&next| next < end()) else {
            return sent;
        };
        now = next;
        let mut posted: Vec<(usize, Vec<u8>)> = Vec::new();
        if arrival == Some(now) {
            let (_, (to, bytes)) = path.pop_first().expect("it was looked at");
            streams[to].input(now, &bytes, &mut |_| {});
            streams[to].read(&mut |_| {});
        } else if write == Some(now) {
            let (_, side, message) = writes.next().expect("it was peeked at");
            assert_eq!(streams[side].write(now, &message), message.len());
            streams[side].send(now, &mut |bytes| posted.push((side, bytes.to_vec())));
        } else {
            for side in 0..2 {
                if wakes[side] == Some(now) {
                    streams[side].tick(now, &mut |bytes| posted.push((side, bytes.to_vec())));
                }
            }
        }
        for (side, bytes) in posted {
            if !loses(side) {
                path.insert((now + DELAY, sent.len()), (1 - side, bytes.clone()));
            }
            sent.push((now, side, bytes));
        }
    }
}

#[test]
fn a_lane_of_kcp_go_sends_what_its_sessions_send() {
    for settings in [Settings::kcp_go_default(), Settings::kcp_go_game()] {
        let settings = Settings {
            server_phase: Span::ZERO,
            ..settings
        };
        let (endpoints, streams) = (by_endpoints(&settings), by_streams(&settings));
        let differs = (0..endpoints.len().max(streams.len()))
            .find(|&index| endpoints.get(index) != streams.get(index));
        let at = differs.map(|index| (endpoints.get(index), streams.get(index)));
        assert!(at.is_none(), "datagram {differs:?}: {at:?}");
        assert!(streams.len() as u64 > MESSAGES, "{}", streams.len());
    }
}
