//! A game over a made-up side: what is sent when, what becomes of losses, and what is
//! found.

use lagometer_transport::{Delivery, Offer};

use super::message::HEADER_BYTES;
use super::*;
use crate::workload::made_up_path::{End, Way};
use crate::workload::{Workload, act};

/// Of an event: no inputs or snapshots have as many.
const EVENT_BYTES: usize = 45;

fn traffic() -> GameTraffic {
    GameTraffic {
        interpolation: Span::from_millis(100),
        tick: None,
        inputs: Inputs {
            rate: 50,
            size: Size(20),
            repeat: 2,
        },
        snapshots: Snapshots {
            rate: 25,
            full: Size(800),
            delta: Size(100),
            spread: 0.0,
            repeat: 0,
        },
        events: Some(Events {
            up: 2.0,
            down: 2.0,
            size: Size(EVENT_BYTES as u64),
        }),
        voice: None,
        rollback: None,
    }
}

fn plan(traffic: GameTraffic, offer: Offer) -> Plan {
    Plan {
        workload: Workload::Game(Box::new(traffic)),
        offer,
        duration: Duration::from_secs(10),
        grace: Duration::from_secs(1),
        seed: 7,
        offset: Duration::ZERO,
    }
}

/// A played game: what was found, and what was sent up and down.
struct Played {
    found: crate::workload::Findings,
    up: Way,
    down: Way,
}

/// Plays a plan from 5 s on over a path that loses so, and whose client's side is full at
/// some milliseconds.
fn play(
    plan: &Plan,
    loses: &dyn Fn(Delivery, usize) -> bool,
    is_full: &dyn Fn(u64) -> bool,
) -> Played {
    let start = Time::from_secs(5);
    let mut client = Workload::client(plan, start);
    let mut server = Workload::server(plan);
    server.begin(start);
    let (mut up, mut down) = (Way::default(), Way::default());
    let copies = |delivery, nth| usize::from(!loses(delivery, nth));
    for ms in 0..17_000 {
        let now = Time::from_millis(ms);
        let mut end = End {
            out: &mut up,
            into: &mut down,
            copies: &copies,
            is_full: is_full(ms),
        };
        act(&mut end, |side| client.turn(now, side));
        let mut end = End {
            out: &mut down,
            into: &mut up,
            copies: &copies,
            is_full: false,
        };
        act(&mut end, |side| server.turn(now, side));
    }
    assert_eq!(client.misdeliveries().damaged, 0);
    assert_eq!(server.misdeliveries().damaged, 0);
    Played {
        found: client.findings(server.arrivals()),
        up,
        down,
    }
}

const NOTHING: fn(Delivery, usize) -> bool = |_, _| false;

fn seed_figures(found: &crate::workload::Findings) -> lagometer_results::Game {
    let game = found.game.as_ref().unwrap();
    lagometer_results::game(&[(game, &found.records)], &[]).unwrap()
}

#[test]
fn on_a_calm_path_every_input_shows_and_the_view_never_freezes() {
    let played = play(&plan(traffic(), Offer::Channels), &NOTHING, &|_| false);
    assert_eq!(played.found.records.len(), 500);
    for input in &played.found.records {
        let up = input.up().unwrap().as_millis();
        assert_eq!(up, 20);
        // The server's next step, and the way back.
        let shows = input.rtt().unwrap().as_millis();
        assert!((40..=82).contains(&shows), "{shows}");
    }
    let game = seed_figures(&played.found);
    assert!(game.freezes_per_min < 1e-9);
    assert!(game.interpolation_needed_ms <= 62.0);
    assert!(game.event_ms.unwrap().max.unwrap() <= 21.0);
}

#[test]
fn each_stream_asks_for_its_own_delivery() {
    let played = play(&plan(traffic(), Offer::Channels), &NOTHING, &|_| false);
    let event_bytes = HEADER_BYTES + EVENT_BYTES;
    for (delivery, bytes) in played.up.sent.iter().chain(&played.down.sent) {
        let is_event = *bytes == event_bytes;
        assert_eq!(*delivery == Delivery::Reliable, is_event, "{bytes}");
    }
    // Two inputs go along with each but the first two.
    assert_eq!(played.up.sent[0].1, HEADER_BYTES + 20);
    let inputs: Vec<usize> = played.up.sent.iter().map(|sent| sent.1).collect();
    assert!(
        inputs
            .iter()
            .filter(|&&bytes| bytes == HEADER_BYTES + 60)
            .count()
            > 490
    );
}

#[test]
fn repeated_inputs_make_up_for_single_losses() {
    let lost =
        |delivery, number: usize| delivery == Delivery::Unreliable && !number.is_multiple_of(3);
    let repeated = GameTraffic {
        events: None,
        ..traffic()
    };
    let mut once = repeated.clone();
    let repeated = play(&plan(repeated, Offer::Channels), &lost, &|_| false);
    let came = |played: &Played| {
        let records = &played.found.records;
        records
            .iter()
            .filter(|input| input.arrived.is_some())
            .count()
    };
    assert!(came(&repeated) >= 495, "{}", came(&repeated));
    once.inputs.repeat = 0;
    let once = play(&plan(once, Offer::Channels), &lost, &|_| false);
    assert!(came(&once) < 200, "{}", came(&once));
    // Its record says so: the server went on, but this input had no effect.
    let lost = once
        .found
        .records
        .iter()
        .filter(|input| input.arrived.is_none());
    assert!(lost.clone().all(|input| input.returned.is_none()));
}

#[test]
fn snapshots_grow_where_they_build_upon_older_ones() {
    let sizes = |offer, loses: &dyn Fn(Delivery, usize) -> bool| -> usize {
        let played = play(&plan(traffic(), offer), loses, &|_| false);
        let states = played.down.sent.iter().map(|sent| sent.1);
        states
            .filter(|&bytes| bytes != HEADER_BYTES + EVENT_BYTES)
            .sum()
    };
    // On one pipe each builds upon the one before.
    let states = 275;
    let on_a_pipe = sizes(Offer::Pipe, &NOTHING);
    assert_eq!(on_a_pipe, states * (HEADER_BYTES + 100) + 700);
    let calm = sizes(Offer::Channels, &NOTHING);
    let lossy = sizes(Offer::Channels, &|delivery, number| {
        delivery == Delivery::Unreliable && number % 2 == 0
    });
    assert!(
        calm > on_a_pipe && lossy > calm,
        "{on_a_pipe} {calm} {lossy}"
    );
}

#[test]
fn over_datagrams_the_game_sends_events_again() {
    let lost = |_, number: usize| number % 4 == 1;
    let played = play(&plan(traffic(), Offer::Datagrams), &lost, &|_| false);
    let game = seed_figures(&played.found);
    let events = game.event_ms.unwrap();
    assert!(events.max.is_some(), "every event came");
    assert!(events.max.unwrap() > 21.0, "some had to be sent again");
    let sent = |way: &Way| {
        let events = way
            .sent
            .iter()
            .filter(|sent| sent.1 == HEADER_BYTES + EVENT_BYTES);
        events.count()
    };
    let due = played.found.game.as_ref().unwrap().events.len();
    let all = sent(&played.up) + sent(&played.down);
    assert!(all > due && all < due * 3, "{all} for {due}");
}

#[test]
fn inputs_that_a_full_pipe_refuses_go_with_the_next() {
    let full = |ms: u64| (8_000..8_300).contains(&ms);
    let played = play(&plan(traffic(), Offer::Pipe), &NOTHING, &full);
    let records = &played.found.records;
    assert!(records.iter().all(|input| input.arrived.is_some()));
    assert!(records.iter().any(|input| input.refused));
    let longest = records
        .iter()
        .filter_map(lagometer_results::MessageRecord::up)
        .max()
        .unwrap();
    assert_eq!(longest, Duration::from_millis(320));
}

#[test]
fn what_is_drawn_follows_from_the_seed_alone() {
    let mut varied = traffic();
    varied.snapshots.spread = 0.5;
    let sent = |seed, loses: &dyn Fn(Delivery, usize) -> bool| {
        let plan = Plan {
            seed,
            ..plan(varied.clone(), Offer::Pipe)
        };
        play(&plan, loses, &|_| false).down.sent
    };
    assert_eq!(sent(1, &NOTHING), sent(1, &NOTHING));
    assert_ne!(sent(1, &NOTHING), sent(2, &NOTHING));
    // The same draw whatever became of others: sizes differ by the base alone.
    let schedule = |offer| Schedule::new(&varied, &plan(varied.clone(), offer));
    let (pipe, channels) = (schedule(Offer::Pipe), schedule(Offer::Channels));
    for number in 0..50 {
        assert_eq!(pipe.state_bytes(number, 3), channels.state_bytes(number, 3));
        assert!(pipe.state_bytes(number, 3) >= pipe.state_bytes(number, 1));
    }
}

#[test]
fn a_rollback_game_gets_the_other_players_inputs_from_later_messages() {
    let mut fighter = traffic();
    fighter.inputs.repeat = 7;
    fighter.snapshots = Snapshots {
        rate: 50,
        full: Size(20),
        delta: Size(20),
        spread: 0.0,
        repeat: 7,
    };
    fighter.rollback = Some(RollbackRules {
        input_delay: 1,
        most: 7,
    });
    let lost = |_, number: usize| number % 5 < 3;
    let played = play(&plan(fighter, Offer::Datagrams), &lost, &|_| false);
    let game = played.found.game.as_ref().unwrap();
    assert!(game.states.iter().all(|state| state.seen.is_some()));
    let frames = seed_figures(&played.found).rollback_frames.unwrap();
    // 20 ms there, of which a frame is foreseen; losses cost a frame each.
    assert_eq!(frames.min, Some(0.0));
    assert!(frames.max.unwrap() >= 1.0);
}

#[test]
fn values_out_of_range_are_named() {
    let check = |change: fn(&mut GameTraffic)| {
        let mut changed = traffic();
        change(&mut changed);
        changed.check().unwrap_err()
    };
    assert_eq!(traffic().check(), Ok(()));
    assert_eq!(check(|it| it.inputs.rate = 0).0, "rate");
    assert_eq!(check(|it| it.snapshots.full = Size(1400)).0, "full");
    assert_eq!(check(|it| it.snapshots.spread = f64::NAN).0, "spread");
    let (key, message) = check(|it| it.snapshots.delta = Size(900));
    assert_eq!(
        (key, &message[..]),
        ("delta", "`delta` is 1 to 800 B (`full`), not 900")
    );
    assert_eq!(check(|it| it.inputs.size = Size(0)).0, "size");
}
