//! Servers that break off and come back, where there are several shards: home decides whether
//! they may.

use lagometer_gateway::core::bus::ToChannels;
use lagometer_gateway::core::{ConnId, ConnKey, Peer};
use lagometer_units::Time;

use crate::shards::{FIRST_ENTITY, Shards};

/// Two shards, and a server that has broken off with an entity of the second's, which misses it
/// four seconds before home does. Returns its number.
fn with_server_missed() -> (Shards, ConnId) {
    let mut shards = Shards::new(2);
    let server = shards.server_with_cells();
    shards.make_entity(server, FIRST_ENTITY + 1, 0);
    shards.settle();
    let key = shards.last_key.expect("it has logged in");
    for (shard, seconds) in [(1, 0), (0, 4)] {
        shards.now = Time::from_secs(seconds);
        let broke_off = true;
        shards.handle(shard, ToChannels::Closed { key, broke_off });
    }
    shards.settle();
    (shards, server)
}

/// The second shard learns that home has let in somebody of that number. Returns the
/// connection, and whether it is given anything then.
fn let_in(shards: &mut Shards, id: ConnId, recovers: bool) -> (ConnKey, bool) {
    let key = shards.keys.open(shards.now, Peer::Server, None);
    let key = key.expect("room");
    shards.make_known(1, key, id, Peer::Server, 99, recovers);
    shards.sent.clear();
    shards.handle(1, ToChannels::Introduced { key });
    (key, !shards.sent.is_empty())
}

/// Whether the second shard gives somebody of that number what its last holder left.
fn is_given_what_was_left(shards: &mut Shards, id: ConnId) -> bool {
    let_in(shards, id, true).1
}

#[test]
fn a_server_that_comes_back_while_home_waits_gets_what_it_left_in_other_shards() {
    let (mut shards, server) = with_server_missed();
    shards.pass(1, 13);
    assert!(is_given_what_was_left(&mut shards, server));
    shards.check();
}

#[test]
fn what_a_server_left_is_over_in_all_shards_once_it_is_at_home() {
    let (mut shards, server) = with_server_missed();
    shards.pass(1, 14);
    shards.pass(0, 14);
    shards.settle();
    shards.check();
    assert!(!is_given_what_was_left(&mut shards, server));
}

#[test]
fn who_has_the_number_of_one_that_is_missed_is_not_given_what_that_left() {
    let (mut shards, server) = with_server_missed();
    // Home has lost all, and has given the number out again.
    let (key, is_given) = let_in(&mut shards, server, false);
    assert!(!is_given);
    shards.check();
    let broke_off = false;
    shards.handle(1, ToChannels::Closed { key, broke_off });
    assert!(!is_given_what_was_left(&mut shards, server));
}
