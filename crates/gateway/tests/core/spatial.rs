//! The grid, its servers, entities that cross its edges.

use lagometer_gateway::core::Grid;
use lagometer_protocol::messages::channeldpb::spatial_interest_query::SphereAoi;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelDataHandoverMessage, CreateChannelMessage,
    CreateEntityChannelMessage, CreateSpatialChannelsResultMessage, QuerySpatialChannelMessage,
    QuerySpatialChannelResultMessage, ServerForwardMessage, SpatialChannelsReadyMessage,
    SpatialInfo, SpatialInterestQuery, SpatialRegionsUpdateMessage,
    SubscribedToChannelResultMessage, UpdateSpatialInterestMessage,
};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use lagometer_protocol::messages::unrealpb::{
    ActorState, FRepMovement, FVector, SpatialChannelData, SpatialEntityState, SpawnObjectMessage,
    UnrealObjectRef,
};
use prost::Message;

use crate::world::{GLOBAL, Who, World, any, every, types, writing};

const ENTITY: &str = "tpspb.EntityChannelData";
const FIRST: u32 = 65_536;

/// Four cells in a row, each ten wide and ten deep, shared by two servers.
pub(crate) fn row_of_four(border: u32) -> (World, [Who; 3]) {
    let grid = format!(
        r#"{{ "Config": {{ "WorldOffsetX": 0, "WorldOffsetZ": 0, "GridWidth": 10, "GridHeight": 10,
            "GridCols": 4, "GridRows": 1, "ServerCols": 2, "ServerRows": 1,
            "ServerInterestBorderSize": {border} }} }}"#
    );
    let mut world = World::with(|_, channels| {
        channels.grid = Some(Grid::from_json(&grid).unwrap());
    });
    let master = world.master();
    let servers = [world.server(), world.server()];
    for server in servers {
        let message = lagometer_protocol::messages::channeldpb::CreateChannelMessage {
            channel_type: 4,
            sub_options: Some(writing(20)),
            ..Default::default()
        };
        world.send(server, GLOBAL, 2, types::CREATE, &message);
    }
    (world, [master, servers[0], servers[1]])
}

pub(crate) fn at(id: u32, x: f32) -> EntityChannelData {
    EntityChannelData {
        obj_ref: Some(UnrealObjectRef {
            net_guid: Some(id),
            ..UnrealObjectRef::default()
        }),
        actor_state: Some(ActorState {
            replicated_movement: Some(FRepMovement {
                location: Some(FVector {
                    x: Some(x),
                    y: Some(5.0),
                    z: Some(1.0),
                }),
                ..FRepMovement::default()
            }),
            ..ActorState::default()
        }),
        ..EntityChannelData::default()
    }
}

pub(crate) fn make_entity(world: &mut World, server: Who, id: u32, x: f32) {
    let message = CreateEntityChannelMessage {
        entity_id: id,
        sub_options: Some(writing(20)),
        data: Some(any(ENTITY, &at(id, x))),
        ..CreateEntityChannelMessage::default()
    };
    world.send(server, GLOBAL, 1, types::CREATE_ENTITY, &message);
    assert_eq!(world.take(server, types::CREATE_ENTITY).len(), 1);
}

pub(crate) fn walk(world: &mut World, server: Who, id: u32, x: f32) {
    world.update(server, id, ENTITY, &at(id, x));
}

fn handover(world: &mut World, who: Who) -> (ChannelDataHandoverMessage, SpatialChannelData) {
    let pack = world.one(who, types::HANDOVER);
    let message = ChannelDataHandoverMessage::decode(&*pack.msg_body).unwrap();
    assert_eq!(pack.channel_id, message.dst_channel_id);
    let data = SpatialChannelData::decode(&*message.data.as_ref().unwrap().value).unwrap();
    (message, data)
}

#[test]
fn servers_get_their_blocks_in_turn_and_are_notified_when_the_grid_is_full() {
    let (mut world, [master, first, second]) = row_of_four(1);
    let created = world.one(first, 10);
    let result = CreateSpatialChannelsResultMessage::decode(&*created.msg_body).unwrap();
    assert_eq!(created.stub_id, 2);
    assert_eq!(result.spatial_channel_id, [FIRST, FIRST + 1]);
    assert_eq!(world.take(master, 10).len(), 2);
    // What the last server got, in order: its border, that all is ready, its
    // channels, its subscriptions, the regions.
    let order: Vec<(u32, u32)> = world.peers[second]
        .inbox
        .iter()
        .map(|pack| (pack.msg_type, pack.channel_id))
        .collect();
    assert_eq!(
        order,
        [
            (types::SUB, FIRST + 1),
            (types::READY, 0),
            (10, 0),
            (types::SUB, FIRST + 2),
            (types::SUB, FIRST + 3),
            (types::REGIONS, 0)
        ]
    );
    for who in [master, first, second] {
        let ready = world.one(who, types::READY);
        let ready = SpatialChannelsReadyMessage::decode(&*ready.msg_body).unwrap();
        assert_eq!(ready.server_count, 2);
    }
    let regions = world.one(second, types::REGIONS);
    let regions = SpatialRegionsUpdateMessage::decode(&*regions.msg_body)
        .unwrap()
        .regions;
    assert_eq!(
        regions
            .iter()
            .map(|region| region.server_index)
            .collect::<Vec<_>>(),
        [0, 0, 1, 1]
    );
    let third = world.server();
    let message = lagometer_protocol::messages::channeldpb::CreateChannelMessage {
        channel_type: 4,
        ..Default::default()
    };
    world.send(third, GLOBAL, 2, types::CREATE, &message);
    assert!(world.types(third).is_empty(), "no block is left");
    world.hang_up(first);
    world.send(third, GLOBAL, 2, types::CREATE, &message);
    let created = world.one(third, 10);
    let result = CreateSpatialChannelsResultMessage::decode(&*created.msg_body).unwrap();
    assert_eq!(result.spatial_channel_id, [FIRST, FIRST + 1]);
}

#[test]
fn places_are_asked_for_by_anyone() {
    let (mut world, [master, ..]) = row_of_four(0);
    let message = QuerySpatialChannelMessage {
        spatial_info: [0.0, 39.9, 40.0]
            .map(|x| SpatialInfo { x, y: 0.0, z: 0.0 })
            .to_vec(),
    };
    world.send(master, GLOBAL, 7, types::QUERY, &message);
    let answer = world.one(master, types::QUERY);
    let result = QuerySpatialChannelResultMessage::decode(&*answer.msg_body).unwrap();
    assert_eq!(result.channel_id, [FIRST, FIRST + 3, 0]);
}

#[test]
fn an_interest_subscribes_near_cells_closely_and_drops_others() {
    let (mut world, [_, first, second]) = row_of_four(0);
    let client = world.client();
    let mut look = |x| {
        world.forget_all();
        let message = UpdateSpatialInterestMessage {
            conn_id: world.id(client),
            query: Some(SpatialInterestQuery {
                sphere_aoi: Some(SphereAoi {
                    center: Some(SpatialInfo { x, y: 0.0, z: 5.0 }),
                    radius: 10.0,
                }),
                ..SpatialInterestQuery::default()
            }),
        };
        world.send(first, FIRST, 4, types::INTEREST, &message);
        let subscribed: Vec<(u32, u32)> = world
            .take(client, types::SUB)
            .iter()
            .map(|pack| {
                let result = SubscribedToChannelResultMessage::decode(&*pack.msg_body).unwrap();
                let interval = result.sub_options.unwrap().fan_out_interval_ms.unwrap();
                (pack.channel_id - FIRST, interval)
            })
            .collect();
        let dropped: Vec<(u32, u32)> = world
            .take(client, types::UNSUB)
            .iter()
            .map(|pack| (pack.channel_id - FIRST, pack.stub_id))
            .collect();
        (subscribed, dropped, world.take(second, types::SUB).len())
    };
    assert_eq!(look(5.0), (vec![(0, 20), (1, 50)], vec![], 0));
    assert_eq!(look(25.0), (vec![(2, 20), (3, 50)], vec![(0, 4)], 2));
}

#[test]
fn cells_that_outlive_their_server_begin_empty_and_keep_their_subscribers() {
    let (mut world, [_, first, _]) = row_of_four(0);
    let cell = FIRST;
    let full = SpatialChannelData {
        entities: [(0x80_001, SpatialEntityState::default())].into(),
    };
    world.update(first, cell, "unrealpb.SpatialChannelData", &full);
    let early = world.client();
    world.subscribe(early, cell, every(20));
    world.pass(100);
    world.hang_up(first);
    world.forget_all();
    let again = world.server();
    let message = CreateChannelMessage {
        channel_type: 4,
        sub_options: Some(writing(20)),
        ..CreateChannelMessage::default()
    };
    world.send(again, GLOBAL, 2, types::CREATE, &message);
    let late = world.client();
    world.subscribe(late, cell, every(20));
    world.pass(100);
    let seen: Vec<SpatialChannelData> = world.updates(late, cell);
    assert_eq!(
        seen,
        [SpatialChannelData::default()],
        "of the old server nothing"
    );
    world.update(again, cell, "unrealpb.SpatialChannelData", &full);
    world.pass(40);
    assert_eq!(world.updates::<SpatialChannelData>(early, cell), [full]);
}

#[test]
fn far_cells_come_at_their_types_interval() {
    let grid = r#"{ "Config": { "WorldOffsetX": 0, "WorldOffsetZ": 0, "GridWidth": 10,
        "GridHeight": 10, "GridCols": 9, "GridRows": 1, "ServerCols": 1, "ServerRows": 1 } }"#;
    let mut world = World::with(|_, channels| channels.grid = Some(Grid::from_json(grid).unwrap()));
    let server = world.server();
    let message = CreateChannelMessage {
        channel_type: 4,
        ..CreateChannelMessage::default()
    };
    world.send(server, GLOBAL, 2, types::CREATE, &message);
    let client = world.client();
    let message = UpdateSpatialInterestMessage {
        conn_id: world.id(client),
        query: Some(SpatialInterestQuery {
            sphere_aoi: Some(SphereAoi {
                center: Some(SpatialInfo {
                    x: 5.0,
                    y: 0.0,
                    z: 5.0,
                }),
                radius: 80.0,
            }),
            ..SpatialInterestQuery::default()
        }),
    };
    world.send(server, FIRST, 0, types::INTEREST, &message);
    let intervals: Vec<u32> = world
        .take(client, types::SUB)
        .iter()
        .map(|notice| {
            let body = SubscribedToChannelResultMessage::decode(&*notice.msg_body).unwrap();
            body.sub_options.unwrap().fan_out_interval_ms()
        })
        .collect();
    assert_eq!(intervals, [20, 50, 100, 20, 20, 20, 20, 20, 20]);
}

#[test]
fn an_entity_changes_hands_with_its_cell() {
    let (mut world, [_, first, second]) = row_of_four(0);
    let (here, there) = (world.client(), world.client());
    world.subscribe(here, FIRST + 1, every(20));
    world.subscribe(there, FIRST + 2, every(20));
    let entity = 0x80_010;
    make_entity(&mut world, first, entity, 15.0);
    world.pass(100);
    world.forget_all();

    walk(&mut world, first, entity, 19.0);
    assert!(world.types(second).is_empty(), "within one cell");
    world.pass(100);
    world.forget_all();
    walk(&mut world, first, entity, 21.0);

    // The old server is unsubscribed first; it sees the source cell.
    let order = world.peers[first]
        .inbox
        .iter()
        .map(|pack| pack.msg_type)
        .collect::<Vec<_>>();
    assert_eq!(order, [types::UNSUB, types::HANDOVER]);
    let (message, data) = handover(&mut world, first);
    assert_eq!(
        (message.src_channel_id, message.dst_channel_id),
        (FIRST + 1, FIRST + 2)
    );
    assert_eq!(data.entities[&entity].entity_data, None);
    assert_eq!(
        handover(&mut world, here).1.entities[&entity].entity_data,
        None
    );
    for (who, access) in [(second, 2), (there, 1)] {
        let subscribed = world.one(who, types::SUB);
        assert_eq!(subscribed.channel_id, entity);
        let result = SubscribedToChannelResultMessage::decode(&*subscribed.msg_body).unwrap();
        assert_eq!(result.sub_options.unwrap().data_access, Some(access));
        let (_, data) = handover(&mut world, who);
        let entity_data = data.entities[&entity].entity_data.as_ref().unwrap();
        let state = EntityChannelData::decode(&*entity_data.value).unwrap();
        assert_eq!(state, at(entity, 21.0));
    }

    // The new owner moves it on, and it is shown to those who come later.
    walk(&mut world, second, entity, 22.0);
    world.pass(50);
    assert_eq!(
        world.take(there, types::UPDATE).len(),
        1,
        "without the whole state"
    );
    let late = world.client();
    world.subscribe(late, FIRST + 2, every(20));
    world.pass(100);
    let state = world.updates::<SpatialChannelData>(late, FIRST + 2);
    assert_eq!(
        state[0].entities.keys().copied().collect::<Vec<_>>(),
        [entity]
    );
}

/// A game whose server has the whole world, where an earlier one had a grid.
#[test]
fn cells_without_a_server_take_no_entity_from_its_owner() {
    let (mut world, [master, first, second]) = row_of_four(0);
    world.hang_up(first);
    world.hang_up(second);
    let entity = 0x80_010;
    make_entity(&mut world, master, entity, 15.0);
    walk(&mut world, master, entity, 21.0);
    walk(&mut world, master, entity, 5.0);
    let client = world.client();
    world.subscribe(client, entity, every(20));
    world.pass(100);
    world.forget_all();
    world.hang_up(master);
    assert_eq!(
        world.types(client),
        [types::REMOVE],
        "it goes with its owner"
    );
}

#[test]
fn a_server_whose_cells_are_removed_may_ask_for_a_block_again() {
    let (mut world, [_, first, second]) = row_of_four(0);
    let remove = |world: &mut World, cell: u32| {
        let message = lagometer_protocol::messages::channeldpb::RemoveChannelMessage {
            channel_id: FIRST + cell,
        };
        world.send(first, FIRST + cell, 0, types::REMOVE, &message);
    };
    let ask = |world: &mut World| {
        world.forget_all();
        let message = lagometer_protocol::messages::channeldpb::CreateChannelMessage {
            channel_type: 4,
            ..Default::default()
        };
        world.send(first, GLOBAL, 2, types::CREATE, &message);
        let made = world.take(first, 10);
        made.first()
            .map(|pack| CreateSpatialChannelsResultMessage::decode(&*pack.msg_body).unwrap())
            .map(|made| made.spatial_channel_id)
    };
    remove(&mut world, 0);
    assert_eq!(ask(&mut world), None, "it has one of them still");
    remove(&mut world, 1);
    assert_eq!(ask(&mut world), Some(vec![FIRST, FIRST + 1]));
    assert!(world.take(second, 10).is_empty());
}

#[test]
fn a_group_goes_together_and_a_lock_holds_it() {
    let (mut world, [_, first, second]) = row_of_four(0);
    let [pawn, controller, hat] = [0x80_020, 0x80_022, 0x80_024];
    for id in [pawn, controller, hat] {
        make_entity(&mut world, first, id, 15.0);
    }
    let group = |world: &mut World, kind, add: &[u32]| {
        let message = AddEntityGroupMessage {
            r#type: kind,
            entities_to_add: add.to_vec(),
        };
        world.send(first, pawn, 0, types::GROUP_ADD, &message);
    };
    group(&mut world, 0, &[pawn, controller]);
    world.forget_all();
    walk(&mut world, first, pawn, 21.0);
    let (_, data) = handover(&mut world, second);
    assert_eq!(
        data.entities.keys().copied().collect::<Vec<_>>(),
        [pawn, controller]
    );
    assert_eq!(world.channels.counters().handovers, 2);

    let (mut world, [_, first, second]) = row_of_four(0);
    for id in [pawn, controller] {
        make_entity(&mut world, first, id, 15.0);
    }
    group(&mut world, 0, &[pawn, controller]);
    group(&mut world, 1, &[controller]);
    world.forget_all();
    walk(&mut world, first, pawn, 21.0);
    assert!(world.types(second).is_empty(), "one of them is locked");
}

#[test]
fn a_spawn_is_put_where_it_happens() {
    let (mut world, [_, first, _]) = row_of_four(0);
    let client = world.client();
    world.subscribe(client, FIRST + 3, every(20));
    world.pass(100);
    world.forget_all();
    let spawn = SpawnObjectMessage {
        obj: Some(UnrealObjectRef {
            net_guid: Some(0x80_030),
            ..UnrealObjectRef::default()
        }),
        channel_id: Some(FIRST),
        location: Some(FVector {
            x: Some(35.0),
            y: Some(5.0),
            z: Some(0.0),
        }),
        ..SpawnObjectMessage::default()
    };
    let forward = |spawn: &SpawnObjectMessage| ServerForwardMessage {
        client_conn_id: 0,
        payload: spawn.encode_to_vec().into(),
    };
    world.send_raw(first, FIRST, 0, 32, 103, &forward(&spawn).encode_to_vec());
    let notice = world.one(client, 103);
    assert_eq!(notice.channel_id, FIRST, "as the server wrote it");
    let body = ServerForwardMessage::decode(&*notice.msg_body).unwrap();
    let rewritten = SpawnObjectMessage::decode(&*body.payload).unwrap();
    assert_eq!(rewritten.channel_id, Some(FIRST + 3));
    for broken in [
        SpawnObjectMessage {
            obj: None,
            ..spawn.clone()
        },
        SpawnObjectMessage {
            location: Some(FVector {
                x: Some(-1.0),
                y: Some(0.0),
                z: None,
            }),
            ..spawn.clone()
        },
    ] {
        world.send_raw(first, FIRST, 0, 32, 103, &forward(&broken).encode_to_vec());
    }
    world.send_raw(first, FIRST, 0, 32, 103, b"\xff");
    assert!(world.types(client).is_empty());
    assert_eq!(world.channels.counters().dropped, 3);
}

#[test]
fn neighbours_receive_what_is_sent_in_the_next_cell() {
    let (mut world, [_, first, second]) = row_of_four(0);
    let clients: Vec<Who> = (0..4)
        .map(|cell| {
            let client = world.client();
            world.subscribe(client, FIRST + cell, every(20));
            client
        })
        .collect();
    let mut receivers = |flags, to| {
        world.forget_all();
        world.forward(first, FIRST + 1, flags, to, b"bang");
        let everyone = clients.iter().chain([&first, &second]);
        everyone
            .map(|&who| world.take(who, types::GAME).len())
            .collect::<Vec<_>>()
    };
    assert_eq!(receivers(64, 0), [1, 1, 1, 0, 1, 1]);
    assert_eq!(receivers(64 | 32, 0), [1, 1, 1, 0, 0, 0]);
    assert_eq!(
        receivers(64 | 8, 0),
        [1, 0, 1, 0, 1, 1],
        "the whole centre is left out"
    );
    assert_eq!(receivers(64 | 16 | 4, 0), [0, 0, 0, 0, 0, 1]);
}
