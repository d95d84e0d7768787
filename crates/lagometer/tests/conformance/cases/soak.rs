//! Sessions drawn at random, sound and unsound, for a while: nobody else is
//! harmed and memory stays flat.
//!
//! A few seconds unless `LAGOMETER_SOAK` says how many.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use lagometer_client::blocking::{Client, ClientError};
use lagometer_client::{Outbox, SendError, Settings as ClientSettings};
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, ChannelType, CreateChannelMessage, CreateEntityChannelMessage,
};
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
use lagometer_protocol::schema::Schema;
use lagometer_protocol::{Broadcast, MessagePack, any};
use prost::Message;

use super::spatial::SQUARE;
use crate::harness::peer::any_of;
use crate::harness::{Gateway, READ, SOON, Settings, WRITE, Whose, options};

/// Names the seconds to go on for.
const SOAK: &str = "LAGOMETER_SOAK";

/// Sessions at once.
const SESSIONS: usize = 24;

const GAME: &str = "tpspb.TestRepChannelData";

/// Numbers that look random and come again with their seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        // Knuth's MMIX constants.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(sides)) as u32
    }
}

pub(crate) fn c30_random_sessions_harm_nobody_and_leave_no_memory_behind(whose: Whose) {
    let seconds = std::env::var(SOAK).map_or(4, |text| text.parse().unwrap());
    let mut gateway = Gateway::start_with(
        whose,
        &Settings {
            spatial: Some(SQUARE),
            recovery: true,
            ..Settings::default()
        },
    );
    // Somebody whose service must not suffer.
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &npc(1), None);
    let mut watcher = gateway.client();
    watcher.sub(channel, options(READ, 20));
    watcher.data::<TestRepChannelData>(channel);

    let mut dice = Dice(20_260_101);
    let mut sessions: Vec<Option<Client>> = (0..SESSIONS).map(|_| None).collect();
    let span = Duration::from_secs(seconds);
    let start = Instant::now();
    let mut after_a_third = None;
    let mut count = 0;
    while start.elapsed() < span {
        for session in &mut sessions {
            let address = [gateway.servers, gateway.clients][dice.roll(2) as usize];
            step(session, address, &mut dice, channel);
        }
        count += 1;
        owner.update(channel, GAME, &npc(count));
        let seen: TestRepChannelData = watcher.data(channel);
        assert!(!seen.test_npc_states.is_empty());
        owner.client.drain_events().for_each(drop);
        if after_a_third.is_none() && start.elapsed() > span / 3 {
            after_a_third = Some(gateway.resident_kb());
        }
    }
    drop(sessions);
    gateway.assert_serves();
    let (before, after) = (after_a_third.unwrap(), gateway.resident_kb());
    assert!(
        after < before + before / 2 + 16 * 1024,
        "{before} kB after a third, {after} kB at the end"
    );
}

fn npc(id: u32) -> TestRepChannelData {
    let state = TestNpcState {
        b_moving: Some(id.is_multiple_of(2)),
        goal_location: None,
    };
    TestRepChannelData {
        test_npc_states: [(id % 64, state)].into(),
        ..Default::default()
    }
}

/// One session does something, or ends, or one begins in its place.
fn step(session: &mut Option<Client>, address: SocketAddr, dice: &mut Dice, spared: u32) {
    let Some(client) = session else {
        *session = begin(address, dice);
        return;
    };
    if dice.roll(40) == 0 {
        *session = None;
        return;
    }
    let said = say(client.outbox(), dice, spared);
    let went = client.flush();
    // What comes back is read, or the session would be a reader that stopped.
    let event = client.take_event(Duration::from_micros(50), |_| false);
    client.drain_events().for_each(drop);
    let alive = matches!(event, Err(ClientError::TimedOut(_)));
    if said.is_err() || went.is_err() || !alive {
        *session = None;
    }
}

fn begin(address: SocketAddr, dice: &mut Dice) -> Option<Client> {
    if dice.roll(6) == 0 {
        // One that means harm: noise behind a sound header or without one.
        let mut stream = TcpStream::connect(address).ok()?;
        let mut noise: Vec<u8> = (0..dice.roll(300)).map(|_| dice.roll(256) as u8).collect();
        if dice.roll(2) == 0 {
            let len = (noise.len() as u16).to_be_bytes();
            noise.splice(0..0, [b'C', b'H', len[0], len[1], dice.roll(3) as u8]);
        }
        let _ = stream.write_all(&noise);
        return None;
    }
    let mut client = Client::connect(address, ClientSettings::default(), Schema::empty()).ok()?;
    let token = format!("soak-{}", dice.roll(30));
    client.login(&token, "lt", SOON).ok()?;
    Some(client)
}

/// Something a peer may say, with numbers that may mean something.
fn say(outbox: &mut Outbox, dice: &mut Dice, spared: u32) -> Result<(), SendError> {
    let channel = match dice.roll(4) {
        0 => 0,
        1 => 0x0008_0000 + dice.roll(20),
        2 => 0x0001_0000 + dice.roll(90),
        _ => spared + 1 + dice.roll(10),
    };
    let conn_id = dice.roll(60);
    match dice.roll(12) {
        0 => outbox
            .create_channel(CreateChannelMessage {
                channel_type: [1, 2, 3, 4, 100, 7][dice.roll(6) as usize],
                metadata: "m".repeat(dice.roll(20) as usize),
                data: (dice.roll(2) == 0).then(|| any_of(GAME, &npc(conn_id))),
                ..Default::default()
            })
            .map(drop),
        1 if channel != spared => outbox.remove_channel(channel).map(drop),
        2 => outbox.list_channels(ChannelType::Test, &["m"]).map(drop),
        3 => {
            let access = [READ, WRITE][dice.roll(2) as usize];
            let wanted = ChannelSubscriptionOptions {
                data_field_masks: vec!["testNPCStates".into(); dice.roll(2) as usize],
                fan_out_delay_ms: Some(dice.roll(100).cast_signed() - 50),
                ..options(access, dice.roll(60))
            };
            outbox.subscribe(channel, conn_id, Some(wanted)).map(drop)
        }
        4 => outbox.unsubscribe(channel, conn_id).map(drop),
        5 => outbox
            .create_entity_channel(
                channel,
                CreateEntityChannelMessage {
                    entity_id: 0x0008_0000 + dice.roll(20),
                    is_well_known: dice.roll(2) == 0,
                    ..Default::default()
                },
            )
            .map(drop),
        6 => outbox.message(
            channel,
            Broadcast(dice.roll(140)),
            conn_id,
            100 + dice.roll(9),
            b"?",
        ),
        7 => {
            let body: Vec<u8> = (0..dice.roll(40)).map(|_| dice.roll(256) as u8).collect();
            outbox.send(&MessagePack {
                channel_id: channel,
                broadcast: dice.roll(140),
                stub_id: dice.roll(5),
                msg_type: dice.roll(110),
                body: &body,
            })
        }
        _ => outbox.update(channel, &any::type_url(GAME), &npc(conn_id).encode_to_vec()),
    }
}

impl Gateway {
    /// Resident memory, kilobytes.
    fn resident_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}
