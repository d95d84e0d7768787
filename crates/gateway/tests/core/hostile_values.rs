//! Values at the edges, well formed, from peers that mean harm.

use lagometer_gateway::core::Grid;
use lagometer_protocol::messages::channeldpb::spatial_interest_query::SphereAoi;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataUpdateMessage, ChannelSubscriptionOptions, CreateChannelMessage,
    CreateEntityChannelMessage, SpatialInfo, SpatialInterestQuery, UpdateSpatialInterestMessage,
};
use prost_types::Any;

use crate::world::{GLOBAL, World, every, types, writing};

/// Data with a URL of so many bytes.
fn with_url(bytes: usize) -> Any {
    Any {
        type_url: "u".repeat(bytes),
        // One field of bytes, which no message with a long URL has room for.
        value: [b"\x0a\xa0\x9c\x01".to_vec(), vec![7; 20_000]].concat(),
    }
}

#[test]
fn data_whose_url_leaves_no_room_in_a_frame_is_refused() {
    let mut world = World::new();
    let (master, reader) = (world.master(), world.client());
    world.subscribe(reader, GLOBAL, every(20));
    let update = ChannelDataUpdateMessage {
        data: Some(with_url(40_000)),
        context_conn_id: 0,
    };
    // Merged, two of them would be longer than a frame.
    for _ in 0..2 {
        world.send(master, GLOBAL, 0, types::UPDATE, &update);
    }
    world.pass(200);
    assert_eq!(world.take(reader, types::UPDATE).len(), 0);
    let create = CreateChannelMessage {
        channel_type: 3,
        data: Some(with_url(20_000)),
        ..CreateChannelMessage::default()
    };
    world.forget_all();
    world.send(reader, GLOBAL, 1, types::CREATE, &create);
    assert_eq!(world.take(reader, types::CREATE).len(), 0);
    // A URL that anybody would have is none of these.
    let update = ChannelDataUpdateMessage {
        data: Some(with_url(300)),
        context_conn_id: 0,
    };
    world.send(master, GLOBAL, 0, types::UPDATE, &update);
    world.pass(200);
    assert_eq!(world.take(reader, types::UPDATE).len(), 1);
}

#[test]
fn who_no_longer_waits_for_data_is_not_remembered() {
    let mut world = World::new();
    let client = world.client();
    for _ in 0..50 {
        world.subscribe(client, GLOBAL, writing(20));
        // Its state is due, and there is none. `pass` checks the tables.
        world.pass(60);
        world.unsubscribe(client, GLOBAL);
    }
    world.pass(60);
}

#[test]
fn the_last_number_there_is_names_an_entity() {
    let mut world = World::new();
    let server = world.server();
    let create = CreateEntityChannelMessage {
        entity_id: u32::MAX,
        ..CreateEntityChannelMessage::default()
    };
    world.send(server, GLOBAL, 1, types::CREATE_ENTITY, &create);
    assert_eq!(world.one(server, types::CREATE_ENTITY).stub_id, 1);
    let leaver = world.client();
    world.subscribe(leaver, u32::MAX, ChannelSubscriptionOptions::default());
    world.hang_up(leaver);
    world.pass(100);
    world.hang_up(server);
    world.pass(100);
}

#[test]
fn an_interest_in_next_to_nothing_is_answered_at_once() {
    let grid = r#"{ "Config": { "GridWidth": 10, "GridHeight": 10, "GridCols": 4,
        "GridRows": 4, "ServerCols": 1, "ServerRows": 1 } }"#;
    let mut world = World::with(|_, channels| channels.grid = Some(Grid::from_json(grid).unwrap()));
    let (server, client) = (world.master(), world.client());
    let create = CreateChannelMessage {
        channel_type: 4,
        ..CreateChannelMessage::default()
    };
    world.send(server, GLOBAL, 1, types::CREATE, &create);
    world.forget_all();
    let message = UpdateSpatialInterestMessage {
        conn_id: world.id(client),
        query: Some(SpatialInterestQuery {
            sphere_aoi: Some(SphereAoi {
                center: Some(SpatialInfo {
                    x: 5.0,
                    y: 0.0,
                    z: 5.0,
                }),
                radius: f64::MIN_POSITIVE,
            }),
            ..SpatialInterestQuery::default()
        }),
    };
    world.send(server, GLOBAL, 1, types::INTEREST, &message);
    assert_eq!(world.one(client, types::SUB).channel_id, 65_536);
}
