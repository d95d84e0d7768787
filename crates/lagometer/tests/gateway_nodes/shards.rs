//! Channels that are divided into shards: nodes that join take their share of them, and those
//! that end or die lose nothing.

use std::time::{Duration, Instant};

use lagometer_client::blocking::Client;

use crate::nats_server::NatsServer;
use crate::node::{Node, PATIENT};
use crate::peers::{GameServer, player, rooms, seen_of, subscribe};

const SHARDS: u32 = 6;

/// A server that adds to rooms, and a player who sees all of them.
struct Game {
    server: GameServer,
    player: Client,
    rooms: Vec<u32>,
}

impl Game {
    /// Goes on until something holds. Returns the longest that a room had nothing new.
    fn play_until(&mut self, what: &str, holds: impl Fn() -> bool) -> Duration {
        let began = Instant::now();
        let mut news: Vec<(usize, Instant)> = vec![(0, began); self.rooms.len()];
        let (mut longest, mut asked_at) = (Duration::ZERO, began);
        loop {
            self.server.add_to(&self.rooms);
            // What came back is of no matter; that the server is there still is.
            self.server
                .client
                .next_event(Duration::from_millis(1))
                .unwrap();
            let step = Instant::now() + Duration::from_millis(20);
            while Instant::now() < step {
                self.player.next_event(Duration::from_millis(5)).unwrap();
            }
            for (room, (entries, at)) in self.rooms.iter().zip(&mut news) {
                let now_seen = seen_of(&self.player, *room).len();
                longest = longest.max(at.elapsed());
                if now_seen > *entries {
                    (*entries, *at) = (now_seen, Instant::now());
                }
            }
            if asked_at.elapsed() > Duration::from_millis(100) {
                asked_at = Instant::now();
                if holds() {
                    return longest;
                }
            }
            assert!(began.elapsed() < PATIENT, "never: {what}");
        }
    }

    /// Everything that was ever added comes to the player.
    fn is_seen_whole(&mut self) {
        let all = self.server.entries as usize;
        let rooms = &self.rooms;
        let has_all = |client: &Client| {
            let mut rooms = rooms.iter();
            rooms.all(|&room| seen_of(client, room).len() == all)
        };
        self.player.wait_until(PATIENT, has_all).unwrap();
    }
}

#[test]
fn shards_move_to_nodes_that_join_and_from_those_that_end_or_die_and_no_player_loses_anything() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nats) = NatsServer::start(folder.path().to_owned()) else {
        return;
    };
    let shards = format!("--shards={SHARDS}");
    let node = |role| {
        let arguments = ["--nats", &nats.url, &shards];
        Node::start_by(crate::lagometer(), folder.path(), role, &arguments)
    };
    let owned = |node: &Node| node.metric("gateway_owns_channels");
    let followed = |node: &Node| node.metric("gateway_followed");
    let one = node("channels");
    let edges = [node("edge"), node("edge")];
    for node in edges.iter().chain([&one]) {
        node.until_ready();
    }
    assert_eq!(owned(&one), u64::from(SHARDS));

    let mut server = GameServer::start(&[edges[0].servers], 0);
    let mut made = server.make_rooms(SHARDS);
    let mut player = player(&[edges[1].clients], "player");
    let listed: Vec<u32> = rooms(&mut player).iter().map(|(id, _)| *id).collect();
    made.sort_unstable();
    assert_eq!(listed, made, "the list of all shards, in order");
    let mut of_shards: Vec<u32> = made.iter().map(|id| (id - 1) % SHARDS).collect();
    of_shards.sort_unstable();
    assert_eq!(of_shards, (0..SHARDS).collect::<Vec<u32>>(), "one in each");
    for &room in &made {
        subscribe(&mut player, room);
    }
    let mut game = Game {
        server,
        player,
        rooms: made,
    };

    let mut other = node("channels");
    let joined = game.play_until("two nodes share", || (owned(&one), owned(&other)) == (3, 3));
    game.is_seen_whole();
    let mut third = node("channels");
    let joined_too = game.play_until("three nodes share", || {
        [&one, &other, &third].map(|node| (owned(node), followed(node))) == [(2, 2); 3]
    });
    game.is_seen_whole();

    other.signal("TERM");
    let ended = game.play_until("the two others share", || {
        (owned(&one), owned(&third)) == (3, 3) && (followed(&one), followed(&third)) == (3, 3)
    });
    other.end();
    game.is_seen_whole();

    third.kill();
    let died = game.play_until("the last has all", || owned(&one) == u64::from(SHARDS));
    game.is_seen_whole();
    eprintln!(
        "the longest that a room had nothing new: {joined:?} while the second node joined, \
         {joined_too:?} while the third did, {ended:?} while one ended, {died:?} when one was \
         killed"
    );
    assert!(one.log().contains("shard 5: "), "{}", one.log());

    // A room goes as any channel does, through the other edge.
    let gone = game.rooms[3];
    game.server.client.outbox().remove_channel(gone).unwrap();
    game.server.client.flush().unwrap();
    let until = Instant::now() + PATIENT;
    while rooms(&mut game.player).iter().any(|(id, _)| *id == gone) {
        assert!(Instant::now() < until, "the room stays");
    }
    for node in edges.iter().chain([&one]) {
        assert_eq!(node.get("/readyz").0, 200);
        assert_eq!(node.metric("gateway_resyncs_total"), 0);
    }
}

#[test]
fn nodes_with_another_number_of_shards_are_not_joined_and_one_line_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nats) = NatsServer::start(folder.path().to_owned()) else {
        return;
    };
    let node = |role, shards| {
        let arguments = ["--nats", &nats.url, shards];
        Node::start_by(crate::lagometer(), folder.path(), role, &arguments)
    };
    let channels = node("channels", "--shards=3");
    channels.until_ready();
    let edge = node("edge", "--shards=2");
    let says = "start all with the same --shards";
    edge.until("it says so", |edge| edge.log().contains(says));
    assert_eq!(edge.log().matches(says).count(), 1);
    assert_eq!(edge.get("/readyz").0, 503);
}
