//! What a client awaits, as whoever watches sees it: frozen is who awaits something for
//! longer than a threshold.

use std::ops::RangeInclusive;
use std::time::Duration;

use lagometer_transport::Offer;
use lagometer_units::Time;

use super::made_up_path::{End, Way};
use super::{Workload, act};
use crate::live::LaneFigures;
use crate::plan::Plan;

/// The milliseconds in which a watcher sees a lane frozen by a threshold. Of what the
/// server sends between 300 and 600 ms nothing comes.
fn frozen_in(workload: &str, threshold: Duration) -> Vec<u64> {
    let plan = Plan {
        workload: toml::from_str(workload).unwrap(),
        offer: Offer::Datagrams,
        duration: Duration::from_secs(1),
        grace: Duration::from_secs(1),
        seed: 7,
        offset: Duration::ZERO,
    };
    let start = Time::from_secs(5);
    let mut client = Workload::client(&plan, start);
    let mut server = Workload::server(&plan);
    server.begin(start);
    let (mut up, mut down) = (Way::default(), Way::default());
    let figures = LaneFigures::new(threshold);
    figures.note_start(start, plan.duration, client.awaited());
    let mut frozen = Vec::new();
    for ms in 0..1_500 {
        let now = start + Duration::from_millis(ms);
        let is_lost = (300..600).contains(&ms);
        let mut end = End {
            out: &mut up,
            into: &mut down,
            copies: &|_, _| 1,
            is_full: false,
        };
        let before = client.returned();
        act(&mut end, |side| client.turn(now, side));
        if client.returned() > before {
            let (worst, awaited) = (client.take_worst(), client.awaited());
            // What a game's client still sends after the end is not recorded.
            assert!(worst.is_none_or(|worst| worst >= Duration::from_millis(20)));
            figures.note_returned(now, client.returned(), worst, awaited);
        }
        if figures.look(now).frozen_for.is_some() {
            frozen.push(ms);
        }
        let mut end = End {
            out: &mut down,
            into: &mut up,
            copies: &|_, _| usize::from(!is_lost),
            is_full: false,
        };
        act(&mut end, |side| server.turn(now, side));
    }
    let last = figures.look(start + Duration::from_secs(2));
    assert_eq!(last.freezes, u32::from(!frozen.is_empty()));
    frozen
}

fn all(range: RangeInclusive<u64>) -> Vec<u64> {
    range.collect()
}

const SOON: Duration = Duration::from_millis(50);

#[test]
fn of_a_stream_the_first_message_after_the_newest_is_awaited_and_none_in_a_pause() {
    let stream = "[stream]\nrate = \"80 kbit/s\"\nsize = \"100 B\"\n";
    // That of 300 ms is too late from 350 ms on, and that of 600 ms is there at 620 ms.
    assert_eq!(frozen_in(stream, SOON), all(351..=619));
    let bursts = format!("{stream}on = \"250 ms\"\noff = \"450 ms\"\n");
    assert!(frozen_in(&bursts, SOON).is_empty());
    // What the server has is not known at the client.
    let up = format!("{stream}direction = \"up\"\n");
    assert!(frozen_in(&up, SOON).is_empty());
}

#[test]
fn of_requests_the_first_after_the_newest_that_is_answered_is_awaited() {
    let asked = "[request-response]\nrequest = \"100 B\"\nresponse = \"100 B\"\n\
                 pause = \"100 ms\"\ntimeout = \"200 ms\"\n";
    // That of 280 ms is given up at 480 ms; that of 580 ms is answered at 620 ms.
    assert_eq!(frozen_in(asked, SOON), all(331..=619));
}

#[test]
fn of_a_game_the_first_input_without_effect_is_awaited() {
    let game = "[game]\ninterpolation = \"100 ms\"\n\
                inputs = { rate = 50, size = \"20 B\" }\n\
                snapshots = { rate = 25, full = \"800 B\", delta = \"100 B\" }\n";
    let found = frozen_in(game, Duration::from_millis(150));
    let (first, last) = (found[0], found[found.len() - 1]);
    assert_eq!(found, all(first..=last));
    // The last snapshot that comes leaves by 300 ms, with inputs of 280 ms at most, and the
    // next from 600 ms on, at most 40 ms later.
    assert!((390..=450).contains(&first), "{first}");
    assert!((619..=660).contains(&last), "{last}");
}
