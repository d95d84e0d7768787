use std::time::Duration;

use proptest::collection;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn control(change: impl FnOnce(&mut Limits)) -> Arc<AdmissionControl> {
    let mut limits = Limits {
        connections: 3,
        reserved_for_servers: 0,
        unauthenticated: 100,
        unauthenticated_per_address: 100,
        unauthenticated_bytes: 10 << 10,
        connections_per_address: None,
        connects_per_second: None,
        messages_per_second_per_address: None,
        messages_per_second: 2_000,
        bytes_per_second: 1 << 20,
        login_within: Duration::from_secs(1),
        login_work: Duration::from_millis(100),
        banned: Vec::new(),
    };
    change(&mut limits);
    AdmissionControl::new(limits, u32::MAX)
}

/// Someone at the `n`th address.
fn at_address(n: u32) -> IpAddr {
    IpAddr::V4((0x0a00_0000 + n).to_be_bytes().into())
}

fn admit(control: &Arc<AdmissionControl>, peer: Peer, n: u32) -> Result<Admitted, Refusal> {
    control.admit(Time::ZERO, peer, at_address(n), 0)
}

/// A connection that has logged in.
fn player(control: &Arc<AdmissionControl>, n: u32) -> Permit {
    let permit = admit(control, Peer::Client, n).unwrap().permit;
    permit.authenticated().unwrap();
    permit
}

#[test]
fn a_place_is_given_back() {
    let control = control(|_| {});
    let permits: Vec<Permit> = (0..3).map(|n| player(&control, n)).collect();
    assert_eq!(admit(&control, Peer::Client, 9).unwrap_err(), Refusal::Full);
    assert_eq!(control.turned_away(Refusal::Full), 1);
    drop(permits);
    player(&control, 9);
}

#[test]
fn clients_cannot_take_the_places_of_servers() {
    let control = control(|limits| {
        limits.connections = 8;
        limits.reserved_for_servers = 2;
    });
    let _players: Vec<Permit> = (0..6).map(|n| player(&control, n)).collect();
    assert_eq!(admit(&control, Peer::Client, 2).unwrap_err(), Refusal::Full);
    let first = admit(&control, Peer::Server, 2).unwrap().permit;
    let second = admit(&control, Peer::Server, 2).unwrap().permit;
    first.authenticated().unwrap();
    second.authenticated().unwrap();
    assert_eq!(admit(&control, Peer::Server, 2).unwrap_err(), Refusal::Full);
}

#[test]
fn unauthenticated_connections_give_way_to_newcomers_and_players_stay() {
    let control = control(|limits| limits.connections = 3);
    let player = player(&control, 0);
    let first = admit(&control, Peer::Client, 1).unwrap().permit;
    let second = admit(&control, Peer::Client, 2).unwrap().permit;
    let third = admit(&control, Peer::Client, 3).unwrap();
    let evicted = third.evicted.unwrap();
    assert_eq!(evicted.permit, first.id());
    assert!(first.is_evicted() && !second.is_evicted() && !player.is_evicted());
    assert_eq!(control.evicted(Peer::Client), 1);
    // The evicted connection's end gives no place back that is not its own.
    drop(first);
    assert_eq!(
        admit(&control, Peer::Client, 4)
            .unwrap()
            .evicted
            .map(|evicted| evicted.permit),
        Some(second.id())
    );
}

#[test]
fn silent_connections_of_one_address_push_out_only_each_other() {
    let control = control(|limits| {
        limits.connections = 100;
        limits.unauthenticated = 10;
        limits.unauthenticated_per_address = 3;
    });
    let other = admit(&control, Peer::Client, 1).unwrap().permit;
    let mut flood: Vec<Permit> = Vec::new();
    for _ in 0..50 {
        let admitted = admit(&control, Peer::Client, 2).unwrap();
        flood.push(admitted.permit);
    }
    assert!(!other.is_evicted());
    assert_eq!(
        flood.iter().filter(|permit| !permit.is_evicted()).count(),
        3
    );
    assert_eq!(control.unauthenticated(Peer::Client), 4);
    drop(flood);
    assert_eq!(control.unauthenticated(Peer::Client), 1);
}

#[test]
fn two_addresses_that_flood_the_pool_push_out_only_each_other() {
    let control = control(|limits| {
        limits.connections = 100;
        limits.unauthenticated = 10;
        limits.unauthenticated_per_address = 8;
    });
    let others: Vec<Permit> = (0..3)
        .map(|n| admit(&control, Peer::Client, n).unwrap().permit)
        .collect();
    let flood: Vec<Permit> = (0..100)
        .map(|n| admit(&control, Peer::Client, 50 + n % 2).unwrap().permit)
        .collect();
    let newcomer = admit(&control, Peer::Client, 4).unwrap().permit;
    assert!(!others.iter().any(Permit::is_evicted));
    let left = flood.iter().filter(|permit| !permit.is_evicted()).count();
    assert_eq!(left, 6);
    assert!(!flood[99].is_evicted() && !newcomer.is_evicted());
    drop((others, flood, newcomer));
    let places = lock(&control.places);
    assert!(places.shares.is_empty());
    assert_eq!(places.connected, [0, 0]);
}

#[test]
fn who_has_as_many_as_any_makes_room_for_itself() {
    let control = control(|limits| limits.unauthenticated = 2);
    let other = admit(&control, Peer::Client, 1).unwrap().permit;
    let own = admit(&control, Peer::Client, 2).unwrap().permit;
    let _newest = admit(&control, Peer::Client, 2).unwrap();
    assert!(own.is_evicted() && !other.is_evicted());
}

#[test]
fn who_logs_in_while_it_is_evicted_keeps_a_place_if_there_is_one() {
    let control = control(|limits| limits.unauthenticated = 1);
    let first = admit(&control, Peer::Client, 1).unwrap().permit;
    let _second = admit(&control, Peer::Client, 2).unwrap();
    assert!(first.is_evicted());
    assert_eq!(first.authenticated(), Ok(()));
    assert!(!first.is_evicted());
    drop(first);
    assert_eq!(lock(&control.places).connected, [0, 1]);
}

#[test]
fn who_logs_in_while_it_is_evicted_is_turned_away_if_there_is_no_place() {
    let full = control(|limits| limits.connections = 1);
    let first = admit(&full, Peer::Client, 1).unwrap().permit;
    let _second = admit(&full, Peer::Client, 2).unwrap();
    assert_eq!(first.authenticated(), Err(Refusal::Full));
    assert!(first.is_evicted());
    assert_eq!(full.turned_away(Refusal::Full), 1);
    drop(first);
    assert_eq!(lock(&full.places).connected, [0, 1]);

    let control = control(|limits| {
        limits.connections_per_address = Some(1);
        limits.unauthenticated = 1;
    });
    let first = admit(&control, Peer::Client, 1).unwrap().permit;
    let other = admit(&control, Peer::Client, 2).unwrap().permit;
    let _second = admit(&control, Peer::Client, 1).unwrap();
    assert!(first.is_evicted() && other.is_evicted());
    assert_eq!(first.authenticated(), Err(Refusal::AddressFull));
    assert_eq!(other.authenticated(), Ok(()));
}

/// What may happen to the connections there are.
#[derive(Clone, Debug)]
enum Step {
    Come(Peer, u32),
    LogIn(Index),
    HangUp(Index),
}

fn step() -> impl Strategy<Value = Step> {
    let peer = prop_oneof![Just(Peer::Client), Just(Peer::Server)];
    prop_oneof![
        3 => (peer, 0..4_u32).prop_map(|(peer, n)| Step::Come(peer, n)),
        3 => any::<Index>().prop_map(Step::LogIn),
        1 => any::<Index>().prop_map(Step::HangUp),
    ]
}

proptest! {
    /// Of ten places two are the servers', and three at most one address's.
    #[test]
    fn in_whatever_order_they_come_and_log_in_nobody_has_more_places_than_allowed(
        steps in collection::vec(step(), 1..200),
    ) {
        let control = control(|limits| {
            limits.connections = 10;
            limits.reserved_for_servers = 2;
            limits.unauthenticated = 5;
            limits.unauthenticated_per_address = 2;
            limits.connections_per_address = Some(3);
        });
        // Each with whether it has logged in.
        let mut open: Vec<(Permit, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Come(peer, n) => {
                    if let Ok(admitted) = admit(&control, peer, n) {
                        open.push((admitted.permit, false));
                    }
                }
                Step::LogIn(who) if !open.is_empty() => {
                    let (permit, is_in) = who.get_mut(&mut open);
                    *is_in = permit.authenticated().is_ok();
                    prop_assert_eq!(*is_in, !permit.is_evicted());
                }
                Step::HangUp(who) if !open.is_empty() => drop(open.remove(who.index(open.len()))),
                _ => {}
            }
            for (permit, is_in) in &open {
                prop_assert!(!(*is_in && permit.is_evicted()), "a player lost its place");
            }
            let count = |of: &dyn Fn(&Permit) -> bool| {
                let placed = open.iter().filter(|(permit, _)| !permit.is_evicted() && of(permit));
                placed.count()
            };
            let connected = Peer::ALL.map(|peer| count(&|permit| permit.peer == peer));
            prop_assert_eq!(lock(&control.places).connected.map(|it| it as usize), connected);
            prop_assert!(connected[Peer::Client.index()] <= 8, "{:?}", connected);
            prop_assert!(connected.iter().sum::<usize>() <= 10, "{:?}", connected);
            for n in 0..4 {
                prop_assert!(count(&|permit| permit.address == Some(at_address(n))) <= 3);
            }
        }
        drop(open);
        let places = lock(&control.places);
        prop_assert_eq!(places.connected, [0, 0]);
        prop_assert_eq!(places.open, 0);
        prop_assert!(places.addresses.values().all(|known| known.connected == 0));
    }
}

#[test]
fn the_largest_of_the_address_that_holds_most_memory_goes_and_who_logs_in_holds_none() {
    const STEP: usize = LOGIN_MEMORY_STEP;
    let control = control(|limits| {
        limits.connections = 100;
        limits.unauthenticated_bytes = 10 * STEP;
    });
    let hold = |permit: &mut Permit, bytes| {
        let evicted = permit.hold(bytes);
        evicted.into_iter().map(|it| it.permit).collect::<Vec<_>>()
    };
    let mut of_one = [(); 3].map(|()| admit(&control, Peer::Client, 1).unwrap().permit);
    let mut other = admit(&control, Peer::Client, 2).unwrap().permit;
    assert_eq!(hold(&mut other, 4 * STEP), []);
    assert_eq!(hold(&mut of_one[0], STEP), []);
    assert_eq!(hold(&mut of_one[1], 3 * STEP), []);
    // Three more are too much by one: of the address with seven its largest goes.
    assert_eq!(hold(&mut of_one[2], 3 * STEP), [of_one[1].id()]);
    assert_eq!(control.held_bytes(), 8 * STEP);
    assert!(of_one[1].is_evicted());
    // What the evicted says of itself counts no more.
    assert_eq!(hold(&mut of_one[1], 9 * STEP), []);
    assert_eq!(control.held_bytes(), 8 * STEP);
    other.authenticated().unwrap();
    assert_eq!(control.held_bytes(), 4 * STEP);
    drop(of_one);
    assert_eq!(control.held_bytes(), 0);
    // A newcomer that alone holds too much has nobody to push out but itself.
    let mut alone = admit(&control, Peer::Client, 3).unwrap().permit;
    assert_eq!(hold(&mut alone, 11 * STEP), [alone.id()]);
    // Servers have their own places, and these bytes are not counted.
    let mut server = admit(&control, Peer::Server, 4).unwrap().permit;
    assert_eq!(hold(&mut server, 20 * STEP), []);
}

/// Who came anew held a little more than each of them at once, and was the first to go.
#[test]
fn mute_connections_of_many_addresses_go_before_a_newcomer_that_means_to_log_in() {
    let control = control(|limits| {
        limits.connections = 1000;
        limits.unauthenticated = 1000;
        limits.unauthenticated_bytes = 100 << 10;
    });
    let mut mute: Vec<Permit> = (0..10)
        .map(|n| admit(&control, Peer::Client, n).unwrap().permit)
        .collect();
    for permit in &mut mute {
        assert!(permit.hold(10 << 10).is_empty());
    }
    let mut newcomer = admit(&control, Peer::Client, 50).unwrap().permit;
    let evicted = newcomer.hold(30 << 10);
    let evicted: Vec<_> = evicted.into_iter().map(|it| it.permit).collect();
    assert_eq!(evicted, [mute[0].id(), mute[1].id(), mute[2].id()]);
    newcomer.authenticated().unwrap();
}

#[test]
fn there_are_no_more_connections_than_files() {
    let limits = (*control(|limits| limits.connections = 100).limits()).clone();
    let control = AdmissionControl::new(limits, 2);
    let _players = [player(&control, 0), player(&control, 1)];
    assert_eq!(admit(&control, Peer::Client, 2).unwrap_err(), Refusal::Full);
}

#[test]
fn the_evicted_who_are_still_open_keep_clients_waiting_and_servers_less() {
    let mut limits = (*control(|_| {}).limits()).clone();
    (limits.connections, limits.unauthenticated) = (100, 4);
    let control = AdmissionControl::new(limits, 32);
    let mut flood = Vec::new();
    while control.has_file_for(Peer::Client) {
        flood.push(admit(&control, Peer::Client, 1).unwrap().permit);
    }
    assert_eq!(flood.len(), 32 + 4);
    for n in 0..4 {
        assert!(control.has_file_for(Peer::Server), "{n}");
        flood.push(admit(&control, Peer::Server, 2).unwrap().permit);
    }
    assert!(!control.has_file_for(Peer::Server));
    // Their loop closes them.
    flood.retain(|permit| !permit.is_evicted());
    assert!(control.has_file_for(Peer::Client) && control.has_file_for(Peer::Server));
    drop(flood);
    assert_eq!(lock(&control.places).open, 0);
}

#[test]
fn an_address_has_its_own_limits_and_servers_have_none() {
    let control = control(|limits| {
        limits.connections = 100;
        limits.connections_per_address = Some(2);
        limits.connects_per_second = Some(4);
    });
    let admit = |at_ms, peer, address| {
        let admitted = control.admit(Time::from_millis(at_ms), peer, address, 0);
        admitted.map(|admitted| admitted.permit)
    };
    let first = admit(0, Peer::Client, HERE).unwrap();
    let _second = admit(0, Peer::Client, HERE).unwrap();
    let third = admit(0, Peer::Client, HERE);
    assert_eq!(third.unwrap_err(), Refusal::AddressFull);
    drop(first);
    let _fourth = admit(0, Peer::Client, HERE).unwrap();
    let fifth = admit(999, Peer::Client, HERE);
    assert_eq!(fifth.unwrap_err(), Refusal::AddressTooFast);
    let mapped = "::ffff:127.0.0.1".parse().unwrap();
    let sixth = admit(1000, Peer::Client, mapped);
    assert_eq!(sixth.unwrap_err(), Refusal::AddressFull);
    admit(1000, Peer::Server, HERE).unwrap();
}

#[test]
fn clients_of_one_address_that_send_too_much_together_are_to_be_read_later() {
    let control = control(|limits| limits.messages_per_second_per_address = Some(10));
    let admit = |at_ms, address| {
        let admitted = control.admit(Time::from_millis(at_ms), Peer::Client, address, 0);
        admitted.unwrap().permit
    };
    let (one, other) = (admit(0, HERE), admit(0, HERE));
    let elsewhere = admit(0, at_address(1));
    // Two seconds' worth at once.
    assert_eq!(one.spend(Time::ZERO, 12), None);
    assert_eq!(other.spend(Time::ZERO, 8), None);
    let later = Some(Time::from_millis(100));
    assert_eq!(other.spend(Time::ZERO, 1), later);
    assert_eq!(elsewhere.spend(Time::ZERO, 20), None);
    // Nor is it forgotten by hanging up.
    drop((one, other, elsewhere));
    let again = admit(1_900, HERE);
    let paid_for = Some(Time::from_millis(2_000));
    assert_eq!(again.spend(Time::from_millis(1_900), 19), paid_for);
}

#[test]
fn ranges_are_turned_away() {
    let control = control(|limits| limits.banned = vec!["127.0.0.0/8".parse().unwrap()]);
    let refused = control.admit(Time::ZERO, Peer::Server, HERE, 0);
    assert_eq!(refused.unwrap_err(), Refusal::Banned);
}

#[test]
fn addresses_that_went_are_forgotten() {
    let control = control(|limits| limits.connects_per_second = Some(1));
    for n in 0..1000_u32 {
        let now = Time::from_secs(u64::from(n));
        let _ = control.admit(now, Peer::Client, at_address(n), 0);
    }
    assert!(lock(&control.places).addresses.len() <= 2);
}
