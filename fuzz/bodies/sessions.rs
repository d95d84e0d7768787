//! Whole sessions: peers of both kinds that say anything, hang up, stop
//! reading, while time passes. Nothing panics, nothing hangs, and what waits
//! for a peer stays within its limits.

use std::time::Duration;

use lagometer_gateway::core::{
    AuthPolicy, ChannelManager, ChannelSettings, CloseReason, ConnKey, ConnectionManager,
    ConnectionSettings, Fsm, Grid, Peer, Recovery, SideId, SlowReaders,
};
use lagometer_protocol::{FrameBuilder, MessagePack};
use lagometer_units::Time;

const WAITING_LIMIT: usize = 300_000;

struct Session {
    connections: ConnectionManager,
    channels: ChannelManager,
    now: Time,
    keys: Vec<(ConnKey, bool)>,
}

pub(crate) fn body(data: &[u8]) {
    let mut session = Session::new();
    let mut rest = data;
    while let Some((command, after)) = rest.split_first() {
        rest = session.command(*command, after);
        session.settle();
    }
    session.pass(3000);
}

impl Session {
    fn new() -> Self {
        let grid = r#"{ "Config": { "GridWidth": 10, "GridHeight": 10, "GridCols": 4,
            "GridRows": 4, "ServerCols": 2, "ServerRows": 1, "ServerInterestBorderSize": 1 } }"#;
        let mut session = Self {
            connections: ConnectionManager::new(ConnectionSettings {
                client_fsm: Fsm::authoritative_client(),
                slow_readers: SlowReaders {
                    merge_from_bytes: 1000,
                    resume_at_bytes: 500,
                    close_at_bytes: WAITING_LIMIT / 2,
                    server_close_at_bytes: WAITING_LIMIT / 2,
                    ..SlowReaders::default()
                },
                ..ConnectionSettings::default()
            }),
            channels: ChannelManager::new(ChannelSettings {
                auth: AuthPolicy::AdmitAll,
                grid: Grid::from_json(grid).ok(),
                recovery: Some(Recovery {
                    within: Some(Duration::from_secs(1)),
                }),
                development: true,
                ..ChannelSettings::default()
            }),
            now: Time::ZERO,
            keys: Vec::new(),
        };
        for peer in [Peer::Server, Peer::Server, Peer::Client, Peer::Client] {
            session.connect(peer);
        }
        session
    }

    /// Does one thing; what it reads of the input is used up.
    fn command<'d>(&mut self, command: u8, input: &'d [u8]) -> &'d [u8] {
        let who = usize::from(command >> 5) % self.keys.len();
        let key = self.keys[who].0;
        match command & 31 {
            0 => {
                self.connections.close(key, CloseReason::PeerClosed);
                let peer = Peer::ALL[who % 2];
                self.connect(peer);
                let last = self.keys.len() - 1;
                self.keys.swap_remove(who.min(last));
                input
            }
            1 => {
                self.keys[who].1 ^= true;
                input
            }
            2 => {
                let (millis, rest) = take(input, 1);
                self.pass(u64::from(millis.first().copied().unwrap_or(5)));
                rest
            }
            3 => {
                let (bytes, rest) = take(input, 20);
                self.connections.receive(self.now, key, bytes);
                rest
            }
            _ => {
                let (head, rest) = take(input, 5);
                let head: Vec<u32> = head.iter().copied().map(u32::from).chain([0; 5]).collect();
                let (body, rest) = take(rest, head[4] as usize);
                let channels = [
                    0, 1, 2, 65_536, 65_537, 65_544, 0x80_000, 0x80_002, 0x80_004,
                ];
                let types = [
                    3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 17, 99, 103, 104, 150,
                ];
                let message = MessagePack {
                    channel_id: channels[head[0] as usize % channels.len()],
                    broadcast: head[1],
                    stub_id: head[2],
                    msg_type: types[head[3] as usize % types.len()],
                    body,
                };
                self.say(key, &message);
                rest
            }
        }
    }

    fn connect(&mut self, peer: Peer) {
        let Ok(key) = self.connections.open(self.now, peer, None) else {
            return;
        };
        self.keys.push((key, true));
        let login = MessagePack {
            msg_type: 1,
            body: b"\x0a\x01p",
            ..MessagePack::default()
        };
        self.say(key, &login);
        self.settle();
    }

    fn say(&mut self, key: ConnKey, message: &MessagePack<'_>) {
        let mut builder = FrameBuilder::new();
        if builder.push(message).is_ok()
            && let Some(frame) = builder.finish()
        {
            self.connections.receive(self.now, key, frame);
        }
    }

    fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            let deadlines = [
                self.connections.next_deadline(),
                self.channels.next_deadline(),
            ];
            let Some(next) = deadlines
                .into_iter()
                .flatten()
                .min()
                .filter(|&at| at <= end)
            else {
                break;
            };
            self.now = self.now.max(next);
            self.connections.handle_deadline(self.now);
            self.channels.handle_deadline(self.now);
            self.settle();
        }
        self.now = end;
    }

    fn settle(&mut self) {
        loop {
            let mut moved = false;
            while let Some(message) = self.connections.poll_bus() {
                self.channels.handle(self.now, SideId(0), message);
                moved = true;
            }
            while let Some((_, message)) = self.channels.poll_bus() {
                self.connections.handle(self.now, message);
                moved = true;
            }
            while self.connections.poll_writable().is_some() {}
            for &(key, reads) in &self.keys {
                let bytes: usize = self.connections.output(key).map(<[u8]>::len).sum();
                assert!(bytes <= WAITING_LIMIT, "{bytes} bytes wait");
                if reads && bytes > 0 {
                    self.connections.wrote(self.now, key, bytes);
                    moved = true;
                }
            }
            while let Some((key, why)) = self.connections.poll_close() {
                self.connections.close(key, why);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }
}

fn take(input: &[u8], most: usize) -> (&[u8], &[u8]) {
    input.split_at(most.min(input.len()))
}
