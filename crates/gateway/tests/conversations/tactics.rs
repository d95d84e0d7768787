//! What an attacker would send that has read the gateway's code: several acts
//! that mean harm together, where each by itself is harmless. They are put into
//! conversations between what is drawn act by act.

mod worlds;

use lagometer_gateway::core::Peer;
use lagometer_protocol::messages::channeldpb::{
    AuthMessage, ChannelDataMergeOptions, ChannelDataUpdateMessage, ChannelSubscriptionOptions,
    CreateChannelMessage, DebugGetSpatialRegionsMessage, ListChannelMessage, MessagePack,
    SubscribedToChannelMessage, UnsubscribedFromChannelMessage,
};
use lagometer_protocol::messages::tankspb::{TankGameChannelData, TankState};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use lagometer_protocol::messages::unrealpb::{SpatialChannelData, SpatialEntityState};
use prost::Message;
use prost_types::Any;

use super::choices::Choices;
use super::hostile::NAMES;
use super::script::{Act, Form, LAST, SentFrame};
use super::sentinels::pack;
use super::settings::ConversationSettings;

/// As often as a frame holds it.
const FULL: usize = 70_000;

/// The first of the entities that tactics are about.
const ENTITIES: u32 = 0x8_1000;

/// The acts of one tactic.
pub(crate) fn tactic(settings: &ConversationSettings, choices: &mut Choices<'_>) -> Vec<Act> {
    let who = choices.below(12);
    match choices.below(13) {
        0 => access_to_and_fro(who, choices),
        1 => worlds::walk_together(who, choices),
        2 if settings.hostile_servers => worlds::servers_that_come_back(choices),
        3 if settings.hostile_servers => worlds::blocks_of_the_grid(choices),
        4 => maps_of_many_keys(who, choices),
        5 => data_within_data(who, choices),
        6 => groups_by_the_dozen(who, choices),
        7 => channels_left_behind(who, choices),
        8 => times_at_their_limits(who, choices),
        9 => lists_of_long_names(who, choices),
        10 => logins_said_again(who, choices),
        11 => worlds::entities_by_the_dozen(who, choices),
        _ => settings_changed_in_between(who, choices),
    }
}

/// Newcomers by the handful who each have a frame of the game's own messages for a
/// server that stands still: each unpacks to as much as a frame may, and together
/// they are more than clients may have waiting for a server.
pub(crate) fn crush(choices: &mut Choices<'_>) -> Vec<Act> {
    let attackers = 3 + choices.below(4);
    let come = |name| Act::Come {
        peer: Peer::Client,
        mute: false,
        name,
    };
    let mut acts: Vec<Act> = (0..attackers)
        .map(|_| come(choices.below(NAMES.len())))
        .collect();
    let message = MessagePack {
        msg_type: 100,
        msg_body: vec![b'c'; choices.pick(&[60, 1000, 5000])].into(),
        ..MessagePack::default()
    };
    let frame = SentFrame {
        messages: vec![message],
        times: FULL,
        form: Form::Inflated,
    };
    acts.push(Act::Crush { attackers, frame });
    acts
}

fn send(who: usize, times: usize, form: Form, messages: Vec<MessagePack>) -> Act {
    let frame = SentFrame {
        messages,
        times,
        form,
    };
    Act::Send {
        who,
        frames: vec![frame],
        piece: usize::MAX,
    }
}

/// A full frame, or one that unpacks to as many messages as a frame may have.
fn flood(who: usize, choices: &mut Choices<'_>, messages: Vec<MessagePack>) -> Act {
    let form = choices.pick(&[Form::Plain, Form::Snappy, Form::Inflated]);
    send(who, FULL, form, messages)
}

fn once(who: usize, messages: Vec<MessagePack>) -> Act {
    send(who, 1, Form::Plain, messages)
}

fn any(name: &str, data: &impl Message) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{name}"),
        value: data.encode_to_vec(),
    }
}

fn subscribe(channel: u32, options: ChannelSubscriptionOptions) -> MessagePack {
    let message = SubscribedToChannelMessage {
        conn_id: 0,
        sub_options: Some(options),
    };
    pack(channel, 1, 6, &message)
}

/// One or another of the first connections unsubscribes, if it is the sender's
/// to do.
fn unsubscribe(channel: u32, choices: &mut Choices<'_>) -> MessagePack {
    let conn_id = 5 + choices.below(12) as u32;
    pack(channel, 1, 7, &UnsubscribedFromChannelMessage { conn_id })
}

fn update(channel: u32, data: Any) -> MessagePack {
    let message = ChannelDataUpdateMessage {
        data: Some(data),
        context_conn_id: 7,
    };
    pack(channel, 0, 8, &message)
}

fn create(channel_type: i32, metadata: &str, data: Option<Any>) -> MessagePack {
    let message = CreateChannelMessage {
        channel_type,
        metadata: metadata.to_owned(),
        data,
        ..CreateChannelMessage::default()
    };
    pack(0, 1, 3, &message)
}

/// A channel that may be there: one of the first, or an entity's.
fn channel(choices: &mut Choices<'_>) -> u32 {
    if choices.one_in(4) {
        ENTITIES + choices.below(8) as u32
    } else {
        choices.below(12) as u32
    }
}

/// Access given up and taken back: each time it is sent with all masks.
fn access_to_and_fro(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let channel = channel(choices);
    let masks = choices.pick(&[1, 63, 64, 65]);
    let begun = ChannelSubscriptionOptions {
        data_access: Some(choices.pick(&[1, 2])),
        data_field_masks: (0..masks).map(|mask| format!("{mask:062}")).collect(),
        ..ChannelSubscriptionOptions::default()
    };
    let level = |access| ChannelSubscriptionOptions {
        data_access: Some(access),
        ..ChannelSubscriptionOptions::default()
    };
    let changes = vec![subscribe(channel, level(0)), subscribe(channel, level(2))];
    vec![
        once(who, vec![subscribe(channel, begun)]),
        flood(who, choices, changes),
        Act::Pass(choices.pick(&[1, 50, 1000])),
    ]
}

/// Maps of as many keys as frames hold, merged over and over, with entries that
/// are removed and come back, while someone does not read.
fn maps_of_many_keys(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let map = |from: u32, count: u32, removed: bool| {
        let state = TankState {
            removed,
            health: 1,
            ..TankState::default()
        };
        let data = TankGameChannelData {
            tank_states: (from..from + count).map(|key| (key, state)).collect(),
            ..TankGameChannelData::default()
        };
        any("tankspb.TankGameChannelData", &data)
    };
    let message = CreateChannelMessage {
        channel_type: 3,
        data: Some(map(0, 10, false)),
        merge_options: Some(ChannelDataMergeOptions {
            should_check_removable_map_field: choices.one_in(2),
            ..ChannelDataMergeOptions::default()
        }),
        ..CreateChannelMessage::default()
    };
    let channel = 1 + choices.below(8) as u32;
    let mut acts = vec![
        once(who, vec![pack(0, 1, 3, &message)]),
        once(
            who + 1,
            vec![subscribe(channel, ChannelSubscriptionOptions::default())],
        ),
        Act::Stall {
            who: who + 1,
            stalls: choices.one_in(2),
        },
    ];
    for round in 0..3 + choices.below(5) as u32 {
        let count = choices.pick(&[1, 100, 1200, 4000]);
        let data = map(round * 900, count, choices.one_in(3));
        acts.push(once(who, vec![update(channel, data)]));
        acts.push(Act::Pass(choices.pick(&[1, 20, 50])));
    }
    // One entry, as often as a frame holds it.
    let data = map(u32::MAX - 1, 1, choices.one_in(2));
    acts.push(flood(who, choices, vec![update(channel, data)]));
    acts.push(Act::Read {
        who: who + 1,
        bytes: 50_000,
    });
    acts
}

/// Data with data in it, level after level.
fn data_within_data(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let levels = choices.pick(&[1, 24, 25, 33, 50, 99, 150]);
    let mut data = any("tpspb.EntityChannelData", &EntityChannelData::default());
    for _ in 0..levels {
        let state = SpatialEntityState {
            entity_data: Some(data),
            ..SpatialEntityState::default()
        };
        let around = SpatialChannelData {
            entities: [(7, state)].into(),
        };
        data = any("unrealpb.SpatialChannelData", &around);
    }
    let channel = choices.pick(&[1, 2, 3, 4, 0x1_0000, 0x1_0001]);
    vec![
        once(who, vec![create(3, "", Some(data.clone()))]),
        flood(who, choices, vec![update(channel, data)]),
        Act::Pass(50),
    ]
}

/// Groups of subscribers that differ in one mask or millisecond, joined and left
/// in the middle of windows; masks that are the same path over and over.
fn groups_by_the_dozen(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let channel = channel(choices);
    let paths = ["chatMessages", "chatMessages.content", "tankStates", ""];
    let mut acts = Vec::new();
    for one in 0..6 {
        let path = choices.pick(&paths);
        let options = ChannelSubscriptionOptions {
            data_field_masks: vec![path.to_owned(); choices.pick(&[0, 1, 64, 4000])],
            fan_out_interval_ms: Some(choices.pick(&[20, 21, 50, 100]) + one as u32),
            ..ChannelSubscriptionOptions::default()
        };
        acts.push(once(who + one, vec![subscribe(channel, options)]));
        acts.push(Act::Pass(choices.pick(&[1, 7, 19])));
        if choices.one_in(3) {
            let message = unsubscribe(channel, choices);
            acts.push(once(who + one, vec![message]));
        }
        acts.push(Act::Write);
    }
    acts
}

/// Channels whose makers go, and who subscribes to them while they are removed for
/// others that are left.
fn channels_left_behind(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let come = Act::Come {
        peer: Peer::Client,
        mute: false,
        name: choices.below(NAMES.len()),
    };
    let mut acts = Vec::new();
    for round in 0..2 + choices.below(3) {
        acts.push(come.clone());
        acts.push(send(LAST, 33, Form::Plain, vec![create(3, "mine", None)]));
        let messages = (0..20)
            .map(|_| {
                let at = 1 + choices.below(120) as u32;
                if choices.one_in(3) {
                    unsubscribe(at, choices)
                } else {
                    subscribe(at, ChannelSubscriptionOptions::default())
                }
            })
            .collect();
        acts.push(once(who + round, messages));
        acts.push(Act::Go { who: LAST });
    }
    acts
}

/// Intervals and delays at their limits, changed over and over.
fn times_at_their_limits(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let channel = channel(choices);
    let mut acts = Vec::new();
    for _ in 0..3 {
        let leaving = unsubscribe(channel, choices);
        let messages: Vec<MessagePack> = (0..2 + choices.below(3))
            .map(|_| {
                let options = ChannelSubscriptionOptions {
                    data_access: choices.pick(&[None, Some(0), Some(1)]),
                    fan_out_interval_ms: choices.pick(&[None, Some(0), Some(1), Some(u32::MAX)]),
                    fan_out_delay_ms: choices.pick(&[
                        None,
                        Some(0),
                        Some(i32::MIN),
                        Some(i32::MAX),
                    ]),
                    skip_first_fan_out: choices.pick(&[None, Some(true), Some(false)]),
                    ..ChannelSubscriptionOptions::default()
                };
                subscribe(channel, options)
            })
            .chain([leaving])
            .collect();
        acts.push(flood(who, choices, messages));
        acts.push(Act::Pass(choices.pick(&[1, 20, 1000])));
    }
    acts
}

/// Channels with names as long as they may be, listed as often as a frame holds
/// it; the grid likewise.
fn lists_of_long_names(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let mut acts: Vec<Act> = (0..choices.below(8))
        .map(|_| {
            let long = choices.pick(&[16_384, 16_385, 60_000]);
            once(who, vec![create(3, &"m".repeat(long), None)])
        })
        .collect();
    let list = ListChannelMessage {
        type_filter: 0,
        metadata_filters: vec!["mm".repeat(choices.pick(&[1, 60])); choices.below(17)],
    };
    let regions = pack(0, 1, 99, &DebugGetSpatialRegionsMessage::default());
    let asked = if choices.one_in(2) {
        pack(0, 1, 5, &list)
    } else {
        regions
    };
    acts.push(flood(who, choices, vec![asked]));
    acts
}

/// A login said again and again, by who is in and by who is not.
fn logins_said_again(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let message = AuthMessage {
        player_identifier_token: if choices.one_in(4) {
            "p".repeat(choices.pick(&[256, 257, 4000]))
        } else {
            choices.pick(&NAMES).to_owned()
        },
        login_token: "t".repeat(choices.pick(&[1, 8 << 10, (8 << 10) + 1])),
    };
    let to = choices.pick(&[0, 0, 0, 1]);
    let again = pack(to, 1, 1, &message);
    vec![
        Act::Come {
            peer: Peer::Client,
            mute: true,
            name: 0,
        },
        once(LAST, vec![again.clone()]),
        flood(LAST, choices, vec![again.clone()]),
        flood(who, choices, vec![again]),
    ]
}

/// The settings are read anew between an update and its window.
fn settings_changed_in_between(who: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let mut acts = Vec::new();
    for _ in 0..3 {
        acts.push(Act::Write);
        let channel = channel(choices);
        let options = ChannelSubscriptionOptions {
            data_access: Some(choices.pick(&[0, 1, 2])),
            ..ChannelSubscriptionOptions::default()
        };
        acts.push(once(who, vec![subscribe(channel, options)]));
        acts.push(Act::Reload {
            tight: choices.one_in(2),
            anti_ddos: choices.one_in(2),
        });
        acts.push(Act::Pass(choices.pick(&[1, 10, 20])));
    }
    acts
}
