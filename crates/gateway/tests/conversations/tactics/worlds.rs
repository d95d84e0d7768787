//! Tactics about worlds: entities that walk and are many, servers that come and go
//! with their blocks of the grid.

use lagometer_gateway::core::Peer;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelSubscriptionOptions, CreateEntityChannelMessage, MessagePack,
    RemoveChannelMessage,
};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use lagometer_protocol::messages::unrealpb::{ActorState, FRepMovement, FVector, UnrealObjectRef};
use prost_types::Any;

use super::super::choices::Choices;
use super::super::hostile::NAMES;
use super::super::script::{Act, LAST};
use super::super::sentinels::pack;
use super::{ENTITIES, any, create, flood, once, subscribe, update};

fn entity_at(id: u32, x: f32, class_path: Option<String>) -> EntityChannelData {
    EntityChannelData {
        obj_ref: Some(UnrealObjectRef {
            net_guid: Some(id),
            class_path,
            ..UnrealObjectRef::default()
        }),
        actor_state: Some(ActorState {
            replicated_movement: Some(FRepMovement {
                location: Some(FVector {
                    x: Some(x),
                    y: Some(5.0),
                    z: None,
                }),
                ..FRepMovement::default()
            }),
            ..ActorState::default()
        }),
        ..EntityChannelData::default()
    }
}

/// Entities with long names, grouped, that walk over the edge of a cell and back;
/// others are subscribed with another access each, or the group is locked midway.
pub(super) fn walk_together(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let ids: Vec<u32> = (0..=choices.below(6) as u32)
        .map(|entity| ENTITIES + entity)
        .collect();
    let long = choices.pick(&[1, 3000, 12_000]);
    let mut acts: Vec<Act> = ids
        .iter()
        .map(|&id| {
            let data = entity_at(id, 5.0, Some("c".repeat(long)));
            let message = CreateEntityChannelMessage {
                entity_id: id,
                data: Some(any("tpspb.EntityChannelData", &data)),
                is_well_known: id % 3 == 0,
                ..CreateEntityChannelMessage::default()
            };
            once(who, vec![pack(0, 1, 15, &message)])
        })
        .collect();
    let group = |kind| {
        let message = AddEntityGroupMessage {
            r#type: kind,
            entities_to_add: ids.clone(),
        };
        pack(ids[0], 0, 16, &message)
    };
    acts.push(once(who, vec![group(0)]));
    for other in 0..choices.below(3) {
        let options = ChannelSubscriptionOptions {
            data_access: Some(choices.pick(&[0, 1, 2])),
            ..ChannelSubscriptionOptions::default()
        };
        let one = choices.pick(&ids);
        acts.push(once(who + 1 + other, vec![subscribe(one, options)]));
    }
    let steps = [15.0, 5.0, 35.0, -1.0, f32::NAN];
    let walks = (0..2 + choices.below(2))
        .map(|_| {
            let to = entity_at(ids[0], choices.pick(&steps), None);
            update(ids[0], any("tpspb.EntityChannelData", &to))
        })
        .collect();
    acts.push(flood(who, choices, walks));
    if choices.one_in(3) {
        acts.push(once(who, vec![group(1)]));
    }
    acts
}

/// More entities than anybody may have, some with data that cannot be read.
pub(super) fn entities_by_the_dozen(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let is_sound = !choices.one_in(3);
    let messages = (0..choices.pick(&[1, 4, 65, 130]))
        .map(|entity| {
            let message = CreateEntityChannelMessage {
                entity_id: ENTITIES + 0x100 + entity,
                data: Some(Any {
                    type_url: "type.googleapis.com/tpspb.EntityChannelData".to_owned(),
                    value: if is_sound { Vec::new() } else { vec![0xff; 9] },
                }),
                is_well_known: choices.one_in(4),
                ..CreateEntityChannelMessage::default()
            };
            pack(0, 1, 15, &message)
        })
        .collect();
    vec![once(who, messages), Act::Pass(20)]
}

/// A server breaks off and comes back, twice at once, and too late.
pub(super) fn servers_that_come_back(choices: &mut Choices<'_>) -> Vec<Act> {
    let come = Act::Come {
        peer: Peer::Server,
        mute: false,
        name: choices.below(NAMES.len()),
    };
    let mut acts = vec![
        come.clone(),
        once(
            LAST,
            vec![
                create(3, "left", None),
                create(1, "", None),
                subscribe(0, ChannelSubscriptionOptions::default()),
                subscribe(1, ChannelSubscriptionOptions::default()),
            ],
        ),
    ];
    for _ in 0..2 + choices.below(3) {
        acts.push(Act::Go { who: LAST });
        acts.push(Act::Pass(choices.pick(&[1, 500, 999, 1000, 1001, 3000])));
        acts.push(come.clone());
        if choices.one_in(2) {
            acts.push(come.clone());
        }
        acts.push(Act::Pass(choices.pick(&[1, 999, 1000])));
    }
    acts
}

/// Servers take blocks of the grid, lose cells of it one by one, go, come again.
pub(super) fn blocks_of_the_grid(choices: &mut Choices<'_>) -> Vec<Act> {
    let come = Act::Come {
        peer: Peer::Server,
        mute: false,
        name: choices.below(NAMES.len()),
    };
    let mut acts = Vec::new();
    for _ in 0..3 {
        acts.push(come.clone());
        acts.push(once(LAST, vec![create(4, "", None), create(4, "", None)]));
        let removals = (0..choices.below(12)).map(|_| {
            let channel_id = 0x1_0000 + choices.below(16) as u32;
            pack(channel_id, 0, 4, &RemoveChannelMessage { channel_id })
        });
        let removals: Vec<MessagePack> = removals.collect();
        acts.push(once(LAST, removals));
        if choices.one_in(2) {
            acts.push(Act::Go { who: LAST });
            acts.push(Act::Pass(choices.pick(&[1, 1000, 3000])));
        }
    }
    acts
}
