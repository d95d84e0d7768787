//! Workers come, are turned away, leave and come again, before any world is
//! played.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_cluster::{Coordinator, Error, Joined, Settings, join};
use lagometer_remote::Secret;
use lagometer_world::{BUILT_IN, Scenario};

/// How long anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

static NEVER: AtomicBool = AtomicBool::new(false);

fn scenario() -> Scenario {
    let (name, text) = BUILT_IN[0];
    let mut scenario = Scenario::parse(name, text).unwrap();
    scenario.players = 5;
    scenario
}

fn coordinator(secret: &Secret) -> Coordinator {
    start(secret, &scenario(), [2, 0], TIMEOUT).unwrap()
}

/// With so many workers for players and for game servers.
fn start(
    secret: &Secret,
    scenario: &Scenario,
    [workers, server_workers]: [u32; 2],
    timeout: Duration,
) -> Result<Coordinator, Error> {
    Coordinator::start(Settings {
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        secret,
        scenario,
        gateway: "gateway:12108".to_owned(),
        servers: "gateway:11288".to_owned(),
        workers,
        server_workers,
        timeout,
    })
}

fn come(at: &Coordinator, secret: &Secret, index: Option<u32>) -> Result<Joined, Error> {
    join(&at.address().to_string(), secret, index, TIMEOUT, &NEVER)
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
    let other = come(&coordinator, &Secret::generate(), None).err().unwrap();
    assert!(other.to_string().contains("another secret"), "{other}");
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
    let gathered: Result<(), Error> = coordinator.gather(|_| Ok(()));
    assert_eq!(gathered.unwrap_err().to_string(), "worker 1: it rains");
}

#[test]
fn those_who_came_and_were_not_ready_do_not_count() {
    let secret = Secret::generate();
    let timeout = Duration::from_millis(50);
    let coordinator = start(&secret, &scenario(), [2, 0], timeout).unwrap();
    let _worker = come(&coordinator, &secret, None).unwrap();
    let gathered: Result<(), Error> = coordinator.gather(|_| Ok(()));
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

#[test]
fn servers_that_share_the_world_are_shared_among_workers() {
    let (name, text) = BUILT_IN
        .iter()
        .find(|(name, _)| *name == "spatial")
        .unwrap();
    let scenario = Scenario::parse(name, text).unwrap();
    let secret = Secret::generate();
    let coordinator = start(&secret, &scenario, [1, 2], TIMEOUT).unwrap();
    let shares: Vec<[u32; 2]> = (0..3)
        .map(|index| {
            let worker = come(&coordinator, &secret, Some(index)).unwrap();
            assert_eq!(worker.gateway_for_servers(), "gateway:11288");
            [worker.players(), worker.servers()]
        })
        .collect();
    // The master stays with the coordinator.
    assert_eq!(shares, [[scenario.players, 0], [0, 5], [0, 4]]);
    let error = start(&secret, &scenario, [0, 10], TIMEOUT).unwrap_err();
    assert_eq!(error.to_string(), "10 workers have 9 game servers to share");
}

#[test]
fn a_server_that_has_the_world_alone_stays() {
    let error = start(&Secret::generate(), &scenario(), [1, 1], TIMEOUT).unwrap_err();
    let (asked, shared) = (1, 0);
    assert!(
        matches!(error, Error::TooFewServers { asked: a, shared: s } if (a, s) == (asked, shared)),
        "{error}"
    );
}
