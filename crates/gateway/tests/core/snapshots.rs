//! Channels written down: what was changed, cut or is of others is refused. That those who
//! read them back do the same is what [`twins`](crate::twins) shows in all tests.

use lagometer_gateway::core::bus::{AuthAttempt, ToChannels, ToConnections};
use lagometer_gateway::core::{
    ChannelManager, ChannelSettings, ConnKey, ConnNumbers, ConnectionManager, ConnectionSettings,
    Grid, Peer, SideId, SnapshotError,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_units::Time;

use crate::schedules::{CHAT, Draw, chat};
use crate::world::{GLOBAL, World, every, writing};

/// A world with some of everything under way.
fn busy() -> World {
    let (mut world, _) = chat();
    let players: Vec<_> = (0..4).map(|_| world.join(Peer::Client)).collect();
    for (player, interval) in players.iter().zip([20, 50, 500, 900]) {
        world.subscribe(*player, GLOBAL, every(interval));
    }
    let writer = world.server();
    world.subscribe(writer, GLOBAL, writing(30));
    for text in ["one", "two", "three"] {
        let line = ChatChannelData {
            chat_messages: vec![ChatMessage {
                content: text.into(),
                ..ChatMessage::default()
            }],
        };
        world.update(writer, GLOBAL, CHAT, &line);
        world.pass(70);
    }
    world.create(players[0], 2);
    world
}

#[test]
fn what_is_cut_short_or_longer_is_refused() {
    let world = busy();
    let (settings, written) = (world.channels.settings(), world.channels.snapshot());
    let restore = |bytes: &[u8]| ChannelManager::restore(settings.clone(), bytes);
    assert!(restore(&written).is_ok());
    for end in 0..written.len() {
        assert!(restore(&written[..end]).is_err(), "cut at {end}");
    }
    let longer = [&written[..], b"x"].concat();
    assert!(matches!(restore(&longer), Err(SnapshotError::Length(_))));
}

#[test]
fn bytes_that_were_changed_are_refused_or_are_channels_that_go_on() {
    let world = busy();
    let (settings, written) = (world.channels.settings(), world.channels.snapshot());
    let mut draw = Draw::new(7);
    let mut refused = 0;
    for _ in 0..3_000 {
        let mut bytes = written.clone();
        for _ in 0..=draw.below(3) {
            let at = draw.below(bytes.len() as u64) as usize;
            bytes[at] = draw.below(256) as u8;
        }
        match ChannelManager::restore(settings.clone(), &bytes) {
            Err(_) => refused += 1,
            Ok(mut channels) => {
                channels.check_invariants().expect("sound channels");
                for _ in 0..20 {
                    if let Some(at) = channels.next_deadline() {
                        channels.handle_deadline(at);
                    }
                }
                channels.snapshot().expect("channels that go on");
            }
        }
    }
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn another_version_and_other_settings_are_named() {
    let world = busy();
    let (settings, mut written) = (world.channels.settings().clone(), world.channels.snapshot());
    let grid = r#"{"Config":{"WorldOffsetX":0,"WorldOffsetZ":0,"GridWidth":10,"GridHeight":10,
        "GridCols":4,"GridRows":1,"ServerCols":2,"ServerRows":1,"ServerInterestBorderSize":1}}"#;
    let others = [
        ChannelSettings {
            grid: Some(Grid::from_json(grid).expect("a grid")),
            ..settings.clone()
        },
        ChannelSettings {
            spatial_channels_from: 77_777,
            ..settings.clone()
        },
    ];
    for other in others {
        let restored = ChannelManager::restore(other, &written);
        assert!(matches!(restored, Err(SnapshotError::OtherSettings(_))));
    }
    written[0] = 99;
    let restored = ChannelManager::restore(settings, &written);
    let Err(SnapshotError::OtherVersion { theirs: 99, .. }) = restored else {
        panic!("{restored:?}");
    };
}

#[test]
fn logins_that_were_given_out_are_given_out_again_by_who_goes_on() {
    let mut world = World::with(|_, channels| {
        *channels = ChannelSettings {
            servers_bypass_auth: true,
            ..ChannelSettings::default()
        };
    });
    let who = world.connect(Peer::Client);
    world.send(
        who,
        GLOBAL,
        0,
        crate::world::types::AUTH,
        &crate::world::login("eve"),
    );
    let asked = world.channels.poll_auth_request().expect("a login");
    let (settings, written) = (world.channels.settings().clone(), world.channels.snapshot());
    let mut other = ChannelManager::restore(settings, &written).expect("channels");
    assert_eq!(other.poll_auth_request(), None);
    other.ask_again();
    assert_eq!(other.poll_auth_request(), Some(asked.clone()));
    assert!(other.wants(asked.ticket));
    assert_eq!(other.poll_auth_request(), None);
}

/// The number that a server gets that logs in next.
fn next_number(channels: &mut ChannelManager, key: ConnKey) -> u32 {
    let attempt = AuthAttempt {
        key,
        peer: Peer::Server,
        address: None,
        is_address_forgeable: false,
        stub_id: 0,
        broadcast: 0,
        player: "next".to_owned(),
        login_token: String::new(),
    };
    channels.handle(Time::from_secs(9), SideId(0), ToChannels::Auth(attempt));
    while let Some((_, message)) = channels.poll_bus() {
        if let ToConnections::AuthAnswer { id, .. } = message {
            return id.0;
        }
    }
    panic!("no answer");
}

#[test]
fn numbers_of_connections_are_drawn_as_they_were_where_they_were_written() {
    let drawn = |secret| ChannelSettings {
        conn_numbers: ConnNumbers::Drawn([secret; 32]),
        servers_bypass_auth: true,
        ..ChannelSettings::default()
    };
    let mut connections = ConnectionManager::new(ConnectionSettings::default());
    let mut open = || connections.open(Time::ZERO, Peer::Server, None);
    let keys = [open(), open()].map(|key| key.expect("nobody is banned"));
    let mut one = ChannelManager::new(drawn(1));
    next_number(&mut one, keys[0]);
    let written = one.snapshot().expect("channels");
    let mut other = ChannelManager::restore(drawn(2), &written).expect("channels");
    assert_eq!(
        next_number(&mut one, keys[1]),
        next_number(&mut other, keys[1])
    );
}
