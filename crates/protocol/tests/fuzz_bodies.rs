//! The bodies of the fuzz targets over inputs drawn from a seed, so that they
//! are tried, and kept true, wherever the tests run.

#[path = "../../../fuzz/bodies/frames.rs"]
mod frames;
#[path = "../../../fuzz/bodies/masks.rs"]
mod masks;
#[path = "../../../fuzz/bodies/merging.rs"]
mod merging;
#[path = "../../../fuzz/bodies/packets.rs"]
mod packets;

use lagometer_protocol::messages::{chatpb, tankspb, tpspb, unrealpb};
use lagometer_protocol::{Compressor, FrameBuilder, MessagePack, update_body};
use lagometer_units::SplitMix64;
use prost::Message;

const CASES: u64 = 4000;

/// Numbers from a seed.
struct Draw(SplitMix64);

impl Draw {
    const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    /// Some of `seeds` one after the other, with a few changes.
    fn input(&mut self, lead: usize, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input: Vec<u8> = (0..lead).map(|_| self.byte()).collect();
        for _ in 0..=self.below(4) {
            input.extend_from_slice(&seeds[self.below(seeds.len())]);
        }
        for _ in 0..self.below(4) {
            let at = self.below(input.len());
            match self.below(4) {
                0 => input[at] = self.byte(),
                1 => input[at] ^= 1 << self.below(8),
                2 => input.insert(at, self.byte()),
                _ => drop(input.remove(at)),
            }
        }
        input
    }
}

fn run(lead: usize, seeds: &[Vec<u8>], body: fn(&[u8])) {
    for case in 0..CASES {
        body(&Draw::new(case).input(lead, seeds));
    }
}

/// Channel data of the bundled types.
fn data() -> Vec<Vec<u8>> {
    let vector = |x, y| unrealpb::FVector {
        x,
        y,
        z: Some(-1.5),
    };
    let actor = unrealpb::ActorState {
        replicated_movement: Some(unrealpb::FRepMovement {
            location: Some(vector(Some(100.0), None)),
            ..Default::default()
        }),
        ..Default::default()
    };
    let gone = unrealpb::ActorState {
        removed: true,
        ..Default::default()
    };
    let reference = unrealpb::UnrealObjectRef {
        net_guid: Some(0x80000),
        context: vec![unrealpb::unreal_object_ref::GuidCachedObject {
            net_guid: 3,
            path_name: "/Game/Map".into(),
            outer_guid: 1,
        }],
        ..Default::default()
    };
    let entity = tpspb::EntityChannelData {
        obj_ref: Some(reference.clone()),
        actor_state: Some(actor.clone()),
        ..Default::default()
    };
    let mut all = tpspb::TestRepChannelData {
        actor_states: [(1, actor.clone()), (2, gone.clone())].into(),
        pawn_states: [(1, unrealpb::PawnState::default())].into(),
        ..Default::default()
    };
    let mut seeds = vec![entity.encode_to_vec(), all.encode_to_vec()];
    all.actor_states = [(1, gone)].into();
    seeds.push(all.encode_to_vec());
    for removed in [false, true] {
        let state = unrealpb::SpatialEntityState {
            obj_ref: Some(reference.clone()),
            removed,
            entity_data: None,
        };
        seeds.push(
            unrealpb::SpatialChannelData {
                entities: [(7, state)].into(),
            }
            .encode_to_vec(),
        );
        let tank = tankspb::TankState {
            removed,
            health: 50,
            is_ai: true,
        };
        seeds.push(
            tankspb::TankGameChannelData {
                tank_states: [(1, tank)].into(),
                ..Default::default()
            }
            .encode_to_vec(),
        );
    }
    let chat = chatpb::ChatMessage {
        send_time: 95,
        content: "hello".into(),
        ..Default::default()
    };
    seeds.push(
        chatpb::ChatChannelData {
            chat_messages: vec![chat; 3],
        }
        .encode_to_vec(),
    );
    seeds
}

/// Packets of a few messages each.
fn packets_of_data() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for (index, data) in data().iter().enumerate() {
        let body = update_body("type.googleapis.com/tpspb.EntityChannelData", data);
        let mut packet = Vec::new();
        for msg_type in [8, 6, 100, index as u32] {
            MessagePack {
                channel_id: 0x80000,
                msg_type,
                stub_id: 1,
                body: &body,
                ..Default::default()
            }
            .encode_in_packet(&mut packet);
        }
        packets.push(packet);
    }
    packets
}

#[test]
fn frames_of_any_bytes() {
    let mut seeds = vec![b"CHN\x02\0\x0a\0".to_vec(), b"CHN\x02\x01".to_vec()];
    let mut compressor = Compressor::new();
    for packet in packets_of_data() {
        let mut builder = FrameBuilder::new();
        builder.push_encoded(&packet).unwrap();
        seeds.push(builder.finish().unwrap().to_vec());
        seeds.push(builder.finish_compressed(&mut compressor).unwrap().to_vec());
    }
    run(1, &seeds, frames::body);
}

#[test]
fn packets_of_any_bytes() {
    run(0, &packets_of_data(), packets::body);
}

#[test]
fn merging_of_any_bytes() {
    run(4, &data(), merging::body);
}

#[test]
fn masks_over_any_bytes() {
    run(4, &data(), masks::body);
}
