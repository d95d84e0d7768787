//! A peer that is gone is reported, and one that is only away is not.

use std::time::Duration;

use lagometer_transport::{Closed, Refused, Spec, State};

use crate::messages::message;
use crate::network::{Network, Path, Side};
use crate::promises::send_patiently;

/// A transport that never notices must still not claim otherwise after this;
/// nor must one that takes longer than anybody waits.
const LONG: Duration = Duration::from_mins(10);

/// How long it takes, if it happens within an hour.
fn dead_link_after(spec: &Spec) -> Option<Duration> {
    spec.dead_link_after()
        .filter(|&after| after <= Duration::from_hours(1))
}

pub(crate) fn is_reported(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 31);
    for number in 0..20 {
        for side in Side::BOTH {
            network.send(side, &message(number, 500)).unwrap();
        }
        network.run_for(Duration::from_millis(50));
    }
    network.path = Path::CUT;
    // What was on the way when the path was cut still arrives.
    let on_the_way = Path::CLEAN.delay;
    play_for(
        &mut network,
        dead_link_after(spec).unwrap_or(LONG) + on_the_way,
    );
    for side in Side::BOTH {
        expect_dead(&network, spec, side);
    }
}

pub(crate) fn is_reported_when_nobody_answers(spec: &Spec) {
    let mut network = Network::new(spec, Path::CUT, 32);
    play_for(&mut network, dead_link_after(spec).unwrap_or(LONG));
    expect_dead(&network, spec, Side::Client);
}

/// Two seconds of silence are not the end of a connection.
pub(crate) fn an_outage_is_not_one(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 33);
    let mut number = 0;
    for path in [Path::CLEAN, Path::CUT, Path::CLEAN] {
        network.path = path;
        for _ in 0..40 {
            for side in Side::BOTH {
                send_patiently(&mut network, side, &message(number, 500));
            }
            number += 1;
            network.run_for(Duration::from_millis(50));
        }
    }
    // Not longer than it takes: an idle connection may close in its own time.
    for _ in 0..600 {
        if network
            .arrived
            .iter()
            .all(|messages| messages.len() == number as usize)
        {
            break;
        }
        network.run_for(Duration::from_millis(if spec.properties().reliable {
            100
        } else {
            2
        }));
    }
    for side in Side::BOTH {
        assert_eq!(network.state(side), State::Ready, "{side:?}");
        let numbers = network.numbers_at(side);
        if spec.properties().reliable {
            assert!(numbers.iter().copied().eq(0..number), "{numbers:?}");
        } else {
            assert!(numbers.len() >= 70, "{} of {number}", numbers.len());
        }
    }
}

/// Both ends go on sending, as games do.
fn play_for(network: &mut Network, span: Duration) {
    let end = network.now + span;
    while network.now < end {
        for side in Side::BOTH {
            match network.send(side, &[7; 100]) {
                Ok(()) | Err(Refused::BufferFull | Refused::NotOpen) => {}
                Err(refused) => panic!("{side:?}: {refused}"),
            }
        }
        network.run_for(Duration::from_millis(50));
    }
}

fn expect_dead(network: &Network, spec: &Spec, side: Side) {
    let state = network.state(side);
    match dead_link_after(spec) {
        Some(_) => assert!(
            matches!(state, State::Closed(Closed::DeadLink | Closed::Failed(_))),
            "{side:?} is {state:?}"
        ),
        None => assert_eq!(state, State::Ready, "{side:?}"),
    }
}
