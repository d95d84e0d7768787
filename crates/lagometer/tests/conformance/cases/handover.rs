//! Entities that cross from one cell to another.

use lagometer_client::OwnedEvent;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelDataHandoverMessage, CreateEntityChannelMessage, EntityGroupType,
};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use lagometer_protocol::messages::unrealpb::{
    ActorState, FRepMovement, FVector, SpatialChannelData, SpawnObjectMessage, UnrealObjectRef,
};
use lagometer_protocol::{Broadcast, FromGateway, ToGateway};
use prost::Message;

use super::spatial::{FIRST, ROW_OF_FOUR, create_cells, with_grid};
use crate::harness::peer::any_of;
use crate::harness::{Gateway, Peer, READ, WRITE, Whose, options};

const ENTITY: u32 = 0x80005;
const COMPANION: u32 = 0x80006;
const DATA: &str = "tpspb.EntityChannelData";

/// A place in the game's axes, in which y and z are the other way round.
fn located(x: f32) -> EntityChannelData {
    EntityChannelData {
        actor_state: Some(ActorState {
            replicated_movement: Some(FRepMovement {
                location: Some(FVector {
                    x: Some(x),
                    y: Some(0.0),
                    z: Some(0.0),
                }),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn create_entity(server: &mut Peer, entity_id: u32, x: f32) {
    let asked = server.send(|outbox| {
        outbox.create_entity_channel(
            FIRST + 1,
            CreateEntityChannelMessage {
                entity_id,
                sub_options: Some(options(WRITE, 20)),
                data: Some(any_of(DATA, &located(x))),
                ..Default::default()
            },
        )
    });
    server.answer(asked);
    server.sub_result(entity_id);
    let spawn = SpawnObjectMessage {
        obj: Some(UnrealObjectRef {
            net_guid: Some(entity_id),
            ..Default::default()
        }),
        channel_id: Some(FIRST + 1),
        location: Some(FVector {
            x: Some(x),
            y: Some(0.0),
            z: Some(0.0),
        }),
        ..Default::default()
    };
    let payload = spawn.encode_to_vec();
    server.send(|outbox| outbox.message(FIRST + 1, Broadcast(32), 0, 103, &payload));
}

/// Two servers with two cells each, an entity in the second cell near its
/// eastern edge, owned by the western server.
fn at_the_border(whose: Whose) -> (Gateway, Peer, Peer) {
    let gateway = with_grid(whose, ROW_OF_FOUR);
    let (mut west, mut east) = (gateway.server(), gateway.server());
    create_cells(&mut west);
    create_cells(&mut east);
    create_entity(&mut west, ENTITY, -100.0);
    west.list();
    std::thread::sleep(std::time::Duration::from_millis(100));
    (gateway, west, east)
}

fn handover(peer: &mut Peer) -> (u32, ChannelDataHandoverMessage) {
    peer.expect("a handover", |event| match event {
        OwnedEvent::Message {
            channel_id,
            message: FromGateway::ChannelDataHandover(handover),
            ..
        } => Some((*channel_id, handover.clone())),
        _ => None,
    })
}

fn entities(handover: &ChannelDataHandoverMessage) -> Vec<(u32, bool)> {
    let data = handover.data.as_ref().unwrap();
    assert!(data.type_url.ends_with("unrealpb.SpatialChannelData"));
    let data = SpatialChannelData::decode(&*data.value).unwrap();
    let mut entities: Vec<(u32, bool)> = data
        .entities
        .iter()
        .map(|(&id, state)| (id, state.entity_data.is_some()))
        .collect();
    entities.sort_unstable();
    entities
}

pub(crate) fn c20_an_entity_goes_to_the_server_of_its_cell(whose: Whose) {
    let (gateway, mut west, mut east) = at_the_border(whose);
    let mut behind = gateway.client();
    behind.sub(FIRST + 1, options(READ, 20));
    let mut ahead = gateway.client();
    ahead.sub(FIRST + 2, options(READ, 20));
    west.update(ENTITY, DATA, &located(100.0));

    // The new owner may write and gets all of the entity.
    let word = east.sub_result(ENTITY);
    assert_eq!(word.conn_id, east.id);
    assert_eq!(word.sub_options.unwrap().data_access, Some(WRITE.into()));
    let (channel, to_owner) = handover(&mut east);
    assert_eq!(channel, FIRST + 2);
    assert_eq!(
        (to_owner.src_channel_id, to_owner.dst_channel_id),
        (FIRST + 1, FIRST + 2)
    );
    assert_eq!(entities(&to_owner), [(ENTITY, true)]);
    // Who sees the new cell is subscribed and gets it too.
    let word = ahead.sub_result(ENTITY);
    assert_eq!(word.sub_options.unwrap().data_access, Some(READ.into()));
    assert_eq!(entities(&handover(&mut ahead).1), [(ENTITY, true)]);
    // Who sees only the old one receives where it went.
    assert_eq!(entities(&handover(&mut behind).1), [(ENTITY, false)]);
    behind.expect_none(
        "a subscription",
        crate::harness::peer::sub_result_in(ENTITY),
    );

    // The new owner's updates reach those who see it.
    east.update(ENTITY, DATA, &located(150.0));
    let seen: EntityChannelData = ahead.data(ENTITY);
    let location = |data: &EntityChannelData| {
        data.actor_state
            .as_ref()?
            .replicated_movement
            .as_ref()?
            .location
            .as_ref()?
            .x
    };
    assert_eq!(location(&seen), Some(150.0));
}

pub(crate) fn c20_within_a_cell_nothing_is_handed_over(whose: Whose) {
    let (_gateway, mut west, mut east) = at_the_border(whose);
    west.update(ENTITY, DATA, &located(-200.0));
    let any = |event: &OwnedEvent| match event {
        OwnedEvent::Message {
            message: FromGateway::ChannelDataHandover(handover),
            ..
        } => Some(handover.clone()),
        _ => None,
    };
    west.expect_none("a handover", any);
    east.expect_none("a handover", any);
}

fn group(server: &mut Peer, group: EntityGroupType) {
    server.send(|outbox| {
        outbox.ask(
            ENTITY,
            &ToGateway::EntityGroupAdd(AddEntityGroupMessage {
                r#type: group.into(),
                entities_to_add: vec![ENTITY, COMPANION],
            }),
        )
    });
}

pub(crate) fn c20_a_group_goes_together(whose: Whose) {
    let (_gateway, mut west, mut east) = at_the_border(whose);
    create_entity(&mut west, COMPANION, -100.0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    group(&mut west, EntityGroupType::Handover);
    west.update(ENTITY, DATA, &located(100.0));
    assert_eq!(
        entities(&handover(&mut east).1),
        [(ENTITY, true), (COMPANION, true)]
    );
}

pub(crate) fn c20_a_locked_entity_stays(whose: Whose) {
    let (_gateway, mut west, mut east) = at_the_border(whose);
    create_entity(&mut west, COMPANION, -100.0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    group(&mut west, EntityGroupType::Handover);
    group(&mut west, EntityGroupType::Lock);
    west.update(ENTITY, DATA, &located(100.0));
    east.expect_none("a handover", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::ChannelDataHandover(handover),
            ..
        } => Some(handover.clone()),
        _ => None,
    });
}
