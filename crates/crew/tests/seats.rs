//! Workers come, are turned away, leave and come again, before any world is
//! played.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_crew::{Coordinator, Error, Joined, Settings, join};
use lagometer_far::Secret;
use lagometer_world::{BUILT_IN, Scenario};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

static NEVER: AtomicBool = AtomicBool::new(false);

fn scenario() -> Scenario {
    let (name, text) = BUILT_IN[0];
    let mut scenario = Scenario::parse(name, text).unwrap();
    scenario.players = 5;
    scenario
}

fn coordinator(secret: &Secret) -> Coordinator {
    Coordinator::start(Settings {
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        secret,
        scenario: &scenario(),
        gateway: "gateway:12108".to_owned(),
        workers: 2,
    })
    .unwrap()
}

fn come(at: &Coordinator, secret: &Secret, index: Option<u32>) -> Result<Joined, Error> {
    join(&at.address().to_string(), secret, index, PATIENCE, &NEVER)
}

#[test]
fn each_gets_a_share_and_no_more_are_let_in() {
    let secret = Secret::generate();
    let coordinator = coordinator(&secret);
    let second = come(&coordinator, &secret, Some(1)).unwrap();
    let first = come(&coordinator, &secret, None).unwrap();
    assert_eq!((first.place(), first.players()), ((1, 2), 3));
    assert_eq!((second.place(), second.players()), ((2, 2), 2));
    assert_eq!(first.gateway(), "gateway:12108");
    assert_eq!(first.scenario(), &**coordinator.scenario());
    for (index, why) in [
        (None, "all 2 workers have come"),
        (Some(1), "there is a worker 2 already"),
        (Some(7), "there is no worker 8"),
    ] {
        let error = come(&coordinator, &secret, index).err().unwrap();
        assert!(error.to_string().contains(why), "{error}");
    }
    let stranger = come(&coordinator, &Secret::generate(), None).err().unwrap();
    assert!(
        stranger.to_string().contains("another secret"),
        "{stranger}"
    );
}

#[test]
fn who_leaves_before_the_start_may_come_again() {
    let secret = Secret::generate();
    let coordinator = coordinator(&secret);
    drop(come(&coordinator, &secret, Some(0)).unwrap());
    // That it has left is known as soon as its conversation has ended.
    let again = loop {
        match come(&coordinator, &secret, Some(0)) {
            Ok(again) => break again,
            Err(error) => assert!(error.to_string().contains("already"), "{error}"),
        }
    };
    assert_eq!(again.place(), (1, 2));
}

#[test]
fn a_worker_that_cannot_play_says_why() {
    let secret = Secret::generate();
    let coordinator = coordinator(&secret);
    let worker = come(&coordinator, &secret, None).unwrap();
    worker.give_up("it rains");
    let gathered: Result<(), Error> = coordinator.gather(PATIENCE, |_| Ok(()));
    assert_eq!(gathered.unwrap_err().to_string(), "worker 1: it rains");
}

#[test]
fn those_who_came_and_were_not_ready_do_not_count() {
    let secret = Secret::generate();
    let coordinator = coordinator(&secret);
    let _worker = come(&coordinator, &secret, None).unwrap();
    let gathered: Result<(), Error> = coordinator.gather(Duration::from_millis(50), |_| Ok(()));
    let error = gathered.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Missing {
                came: 0,
                asked: 2,
                ..
            }
        ),
        "{error}"
    );
}
