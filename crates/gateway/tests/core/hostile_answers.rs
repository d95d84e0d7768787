//! Requests of a few bytes that are answered with many, or sent on to many: by the
//! thousand in one frame they fill no memory and cut nobody off.

use lagometer_gateway::core::{Budget, Grid, Peer};
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelDataAccess, ChannelDataUpdateMessage, ChannelSubscriptionOptions,
    CreateEntityChannelMessage, DebugGetSpatialRegionsMessage, ListChannelMessage,
    SubscribedToChannelMessage,
};
use lagometer_protocol::messages::unrealpb::UnrealObjectRef;
use lagometer_protocol::{FrameBuilder, MessagePack};
use prost::Message;

use crate::hostile::{over, room};
use crate::spatial::{at, row_of_four};
use crate::world::{GLOBAL, Who, World, any, every, types};

const ENTITY: &str = "tpspb.EntityChannelData";

/// Sends these messages in turn, `(channel, type, body)`, over and over until a
/// frame is full or has as many as one of a client may have. Returns how many that are.
fn fill_a_frame(world: &mut World, who: Who, messages: &[(u32, u32, Vec<u8>)]) -> u64 {
    let mut builder = FrameBuilder::new();
    let mut count = 0;
    for (channel_id, msg_type, body) in messages.iter().cycle().take(4_096) {
        let message = MessagePack {
            channel_id: *channel_id,
            broadcast: 0,
            stub_id: 0,
            msg_type: *msg_type,
            body,
        };
        if builder.push(&message).is_err() {
            break;
        }
        count += 1;
    }
    let frame = builder.finish().unwrap().to_vec();
    world.send_bytes(who, &frame);
    count
}

fn access(world: &World, who: Who, access: ChannelDataAccess) -> Vec<u8> {
    let message = SubscribedToChannelMessage {
        conn_id: world.id(who),
        sub_options: Some(ChannelSubscriptionOptions {
            data_access: Some(access as i32),
            ..ChannelSubscriptionOptions::default()
        }),
    };
    message.encode_to_vec()
}

#[test]
fn access_given_up_and_taken_back_by_the_thousand_does_not_cut_off_the_owner() {
    let mut world = World::new();
    let server = world.server();
    let channel = world.create_with(server, &room(""));
    let clients: Vec<Who> = (0..4).map(|_| world.client()).collect();
    world.peers[server].stalled = true;
    for client in clients {
        let options = ChannelSubscriptionOptions {
            // They are sent with every change of the access, also to the owner.
            data_field_masks: (0..64).map(|mask| format!("{mask:063}")).collect(),
            ..every(20)
        };
        world.subscribe(client, channel, options);
        let [none, read] = [ChannelDataAccess::NoAccess, ChannelDataAccess::ReadAccess]
            .map(|level| (channel, types::SUB, access(&world, client, level)));
        fill_a_frame(&mut world, client, &[none, read]);
    }
    assert_eq!(world.peers[server].closed, None);
    assert!(over(&world, Peer::Client, Budget::Work) > 0);
}

#[test]
fn entities_that_walk_to_and_fro_by_the_thousand_do_not_cut_off_who_is_notified() {
    let (mut world, [_, first, second]) = row_of_four(0);
    let client = world.client();
    let ids: Vec<u32> = (0..8).map(|entity| 0x80_100 + entity).collect();
    for &id in &ids {
        let mut data = at(id, 5.0);
        data.obj_ref = Some(UnrealObjectRef {
            net_guid: Some(id),
            class_path: Some("c".repeat(10_000)),
            ..UnrealObjectRef::default()
        });
        let message = CreateEntityChannelMessage {
            entity_id: id,
            data: Some(any(ENTITY, &data)),
            ..CreateEntityChannelMessage::default()
        };
        world.send(client, GLOBAL, 1, types::CREATE_ENTITY, &message);
    }
    let group = AddEntityGroupMessage {
        r#type: 0,
        entities_to_add: ids.clone(),
    };
    world.send(client, ids[0], 0, types::GROUP_ADD, &group);
    world.forget_all();
    for server in [first, second] {
        world.peers[server].stalled = true;
    }
    let walks = [15.0, 5.0].map(|x| {
        let update = ChannelDataUpdateMessage {
            data: Some(any(ENTITY, &at(ids[0], x))),
            context_conn_id: 0,
        };
        (ids[0], types::UPDATE, update.encode_to_vec())
    });
    fill_a_frame(&mut world, client, &walks);
    let handovers = world.channels.counters().handovers;
    assert!(handovers >= 16, "{handovers}");
    for server in [first, second] {
        assert_eq!(world.peers[server].closed, None, "{handovers} handovers");
    }
    assert!(over(&world, Peer::Client, Budget::Work) > 0);
    // Once the work is paid it walks as ever.
    world.pass(60_000);
    fill_a_frame(&mut world, client, &walks);
    assert!(world.channels.counters().handovers > handovers);
}

#[test]
fn the_grid_is_not_shown_by_the_thousand() {
    let grid = r#"{ "Config": { "GridWidth": 10, "GridHeight": 10, "GridCols": 15, "GridRows": 15,
        "ServerCols": 1, "ServerRows": 1, "ServerInterestBorderSize": 0 } }"#;
    for peer in [Peer::Client, Peer::Server] {
        let mut world = World::with(|_, channels| {
            channels.grid = Some(Grid::from_json(grid).unwrap());
            channels.development = true;
        });
        let who = world.join(peer);
        let body = DebugGetSpatialRegionsMessage::default().encode_to_vec();
        let asked = fill_a_frame(&mut world, who, &[(GLOBAL, 99, body)]);
        let answered = asked - over(&world, peer, Budget::Work);
        assert!((100..2000).contains(&answered), "{answered} of {asked}");
    }
}

#[test]
fn lists_by_the_thousand_are_answered_as_far_as_a_frame_may_cost() {
    let mut world = World::new();
    let server = world.server();
    for number in 0..100 {
        world.create_with(server, &room(format!("{number:016000}")));
    }
    world.forget_all();
    world.peers[server].stalled = true;
    let list = ListChannelMessage::default().encode_to_vec();
    let asked = fill_a_frame(&mut world, server, &[(GLOBAL, types::LIST, list)]);
    assert_eq!(world.peers[server].closed, None);
    let refused = over(&world, Peer::Server, Budget::Work);
    assert!(refused > asked - 20, "{refused} of {asked}");
}
