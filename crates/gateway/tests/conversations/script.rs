//! A conversation before it is held: the gateway's settings, and what everybody
//! does, in order. Data alone, so that it can be cut down and told.

use std::fmt;
use std::time::Duration;

use lagometer_gateway::core::{
    AntiDdos, AuthPolicy, AuthVerdict, ChannelSettings, ConnNumbers, ConnectionSettings, Fsm, Grid,
    Peer, Recovery, SlowReaders,
};
use lagometer_gateway::server::config::{Config, FileConfig};
use lagometer_protocol::messages::channeldpb::MessagePack;
use lagometer_protocol::{Compressor, FrameBuilder, HEADER_LEN};

use super::choices::Choices;
use super::hostile;

/// The most acts of a conversation.
const MAX_ACTS: usize = 160;

/// The least that a client is closed at.
pub(crate) const CLOSE_AT_BYTES: usize = 2 << 20;

/// The settings a conversation is held under.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting by itself")]
pub(crate) struct Stage {
    /// Attackers come in as servers too: then nothing is promised to anybody
    /// but that the gateway lives and its tables are sound.
    pub(crate) hostile_servers: bool,
    /// Clients subscribe and write by themselves.
    pub(crate) clients_decide: bool,
    /// Logins are for a provider to decide.
    pub(crate) provider: bool,
    pub(crate) grid: bool,
    pub(crate) recovery: bool,
    pub(crate) anti_ddos: bool,
    /// Little may wait for a reader.
    pub(crate) tight: bool,
    pub(crate) recording: bool,
    /// The gateway has settings files that come with channeld, or `--dev`: what
    /// they leave open is nobody's promise.
    pub(crate) files: Option<Files>,
    pub(crate) sides: usize,
    /// The largest connection number.
    pub(crate) max_conn_id: u32,
}

/// Settings files by their names, as a user gives them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    pub(crate) dev: bool,
    channels: Option<&'static str>,
    clients: Option<&'static str>,
    servers: Option<&'static str>,
    grid: Option<&'static str>,
}

impl Files {
    fn draw(choices: &mut Choices<'_>) -> Self {
        Self {
            dev: choices.one_in(2),
            channels: choices.pick(&[
                None,
                Some("channel_settings_hifi.json"),
                Some("channel_settings_lofi.json"),
                Some("channel_settings_tps.json"),
                Some("channel_settings_ue.json"),
            ]),
            clients: choices.pick(&[
                None,
                Some("client_authoratative_fsm.json"),
                Some("client_non_authoratative_fsm.json"),
            ]),
            servers: choices.pick(&[None, Some("server_authoratative_fsm.json")]),
            grid: choices.pick(&[
                Some("spatial_static_2x2.json"),
                Some("spatial_static_4x1.json"),
                Some("spatial_static_benchmark.json"),
                Some("spatial_static_tanks_big.json"),
                Some("spatial_static_tanks_small.json"),
            ]),
        }
    }

    /// What the server makes of them.
    fn resolve(self) -> Config {
        let mut file = FileConfig {
            dev: self.dev,
            ..FileConfig::default()
        };
        file.channels.settings = self.channels.map(Into::into);
        file.channels.grid = self.grid.map(Into::into);
        file.clients.state_machine = self.clients.map(Into::into);
        file.servers.state_machine = self.servers.map(Into::into);
        file.resolve(1)
            .expect("what comes with the gateway is sound")
    }
}

/// One thing that somebody does. Attackers go by number, whoever has it.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Another attacker connects, and logs in unless it is to be mute.
    Come { peer: Peer, mute: bool, name: usize },
    /// An attacker sends frames, in pieces of so many bytes.
    Send {
        who: usize,
        frames: Vec<SentFrame>,
        piece: usize,
    },
    /// An attacker hangs up.
    Go { who: usize },
    /// An attacker stops reading, or begins again.
    Stall { who: usize, stalls: bool },
    /// The gateway's driver stops reading an attacker, or begins again.
    HoldBack { who: usize, holds: bool },
    /// An attacker that does not read otherwise reads so many bytes.
    Read { who: usize, bytes: usize },
    /// The bus of one connection manager stands still, or moves again.
    Hold { side: usize, up: bool, holds: bool },
    /// The provider decides about the logins that wait.
    Decide(AuthVerdict),
    /// The settings are read anew: others.
    Reload { tight: bool, anti_ddos: bool },
    /// Time passes, milliseconds.
    Pass(u64),
    /// The well-behaved server writes a line.
    Write,
    /// A well-behaved client says something to the server, which answers.
    Echo { reader: usize },
}

/// A frame as a peer sends it.
#[derive(Clone, Debug)]
pub(crate) struct SentFrame {
    pub(crate) messages: Vec<MessagePack>,
    /// So many times over, as far as a frame holds them.
    pub(crate) times: usize,
    pub(crate) form: Form,
}

/// How a frame is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Snappy,
    /// The older tag, `CHNL` with the size over it.
    Legacy,
    /// A byte of it is another: which, and what it is xored with.
    Mangled(usize, u8),
}

/// A whole conversation.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) stage: Stage,
    pub(crate) acts: Vec<Act>,
}

impl Script {
    pub(crate) fn draw(choices: &mut Choices<'_>) -> Self {
        let stage = Stage::draw(choices);
        let count = 30 + choices.below(MAX_ACTS - 30);
        let mut acts = Vec::new();
        while acts.len() < count && !choices.are_over() {
            acts.push(act(&stage, choices));
        }
        Self { stage, acts }
    }
}

impl Stage {
    fn draw(choices: &mut Choices<'_>) -> Self {
        Self {
            hostile_servers: choices.one_in(2),
            clients_decide: choices.one_in(2),
            provider: choices.one_in(4),
            grid: !choices.one_in(3),
            recovery: choices.one_in(3),
            anti_ddos: choices.one_in(4),
            tight: choices.one_in(2),
            recording: choices.one_in(6),
            files: choices.one_in(3).then(|| Files::draw(choices)),
            sides: 1 + choices.below(3),
            max_conn_id: choices.pick(&[u32::MAX >> 1, u32::MAX >> 1, 31]),
        }
    }

    /// Another stage with these settings.
    pub(crate) fn reloaded(&self, tight: bool, anti_ddos: bool) -> Self {
        Self {
            anti_ddos,
            tight,
            ..self.clone()
        }
    }

    pub(crate) fn slow_readers(&self) -> SlowReaders {
        let roomy = SlowReaders::default();
        if !self.tight {
            return roomy;
        }
        SlowReaders {
            merge_from_bytes: 1000,
            resume_at_bytes: 500,
            close_at_bytes: CLOSE_AT_BYTES,
            close_after: Duration::from_secs(2),
            ..roomy
        }
    }

    pub(crate) fn connections(&self) -> ConnectionSettings {
        let base = match self.files {
            Some(files) => files.resolve().connection_settings().clone(),
            None => ConnectionSettings {
                client_fsm: if self.clients_decide {
                    Fsm::authoritative_client()
                } else {
                    Fsm::client()
                },
                ..ConnectionSettings::default()
            },
        };
        ConnectionSettings {
            anti_ddos: self.anti_ddos.then(AntiDdos::default),
            slow_readers: self.slow_readers(),
            ..base
        }
    }

    pub(crate) fn channels(&self) -> ChannelSettings {
        let grid = r#"{ "Config": { "GridWidth": 10, "GridHeight": 10, "GridCols": 4,
            "GridRows": 4, "ServerCols": 2, "ServerRows": 1, "ServerInterestBorderSize": 1 } }"#;
        let base = match self.files {
            Some(files) => files.resolve().channel_settings().clone(),
            None => ChannelSettings::default(),
        };
        let grid = self.grid.then(|| {
            base.grid
                .clone()
                .unwrap_or_else(|| Grid::from_json(grid).expect("a grid"))
        });
        ChannelSettings {
            auth: if self.provider {
                AuthPolicy::AskProvider
            } else {
                AuthPolicy::AdmitAll
            },
            grid,
            recovery: self.recovery.then_some(Recovery {
                within: Some(Duration::from_secs(1)),
            }),
            max_failed_auth: if self.anti_ddos { 5 } else { 0 },
            max_conn_id: self.max_conn_id,
            development: true,
            conn_numbers: ConnNumbers::Counted,
            unix_ns_at_zero: 0,
            ..base
        }
    }
}

fn act(stage: &Stage, choices: &mut Choices<'_>) -> Act {
    let who = choices.below(12);
    match choices.below(42) {
        0..4 => Act::Come {
            peer: if stage.hostile_servers && choices.one_in(2) {
                Peer::Server
            } else {
                Peer::Client
            },
            mute: choices.one_in(6),
            name: choices.below(hostile::NAMES.len()),
        },
        4 => Act::Go { who },
        5 => Act::Stall {
            who,
            stalls: choices.one_in(2),
        },
        6 => Act::Read {
            who,
            bytes: choices.pick(&[1, 5, 300, 5000]),
        },
        7 => Act::Hold {
            side: choices.below(stage.sides),
            up: choices.one_in(2),
            holds: !choices.one_in(3),
        },
        8 => Act::Decide(choices.pick(&[
            AuthVerdict::Admit,
            AuthVerdict::Admit,
            AuthVerdict::WrongLogin,
            AuthVerdict::WrongPlayer,
            AuthVerdict::Failed,
        ])),
        9 => Act::Reload {
            tight: choices.one_in(2),
            anti_ddos: choices.one_in(2),
        },
        10..15 => Act::Pass(choices.pick(&[1, 5, 20, 50, 100, 1000, 3000])),
        15..19 => Act::Write,
        19..22 => Act::Echo {
            reader: choices.below(2),
        },
        22 | 23 => Act::HoldBack {
            who,
            holds: !choices.one_in(3),
        },
        _ => send(who, choices),
    }
}

fn send(who: usize, choices: &mut Choices<'_>) -> Act {
    let frames = (0..=choices.below(3))
        .map(|_| SentFrame {
            messages: (0..=choices.below(4))
                .map(|_| hostile::message(choices))
                .collect(),
            times: match choices.below(16) {
                0 => 2,
                1 => 30,
                2 => 70_000,
                _ => 1,
            },
            form: match choices.below(16) {
                0 | 1 => Form::Snappy,
                2 => Form::Legacy,
                3 => Form::Mangled(choices.below(80), 1 << choices.below(8)),
                _ => Form::Plain,
            },
        })
        .collect();
    Act::Send {
        who,
        frames,
        piece: choices.pick(&[usize::MAX, usize::MAX, 1, 7, 1400]),
    }
}

impl SentFrame {
    /// The frame, or as many as its messages take.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut builder = FrameBuilder::new();
        'times: for _ in 0..self.times {
            for pack in &self.messages {
                let message = view(pack);
                if builder.push(&message).is_ok() {
                    continue;
                }
                // What is repeated fills a frame; else there are several.
                if self.times > 1 && !builder.is_empty() {
                    break 'times;
                }
                self.finish(&mut builder, &mut bytes);
                let _ = builder.push(&message);
            }
        }
        self.finish(&mut builder, &mut bytes);
        if let Form::Mangled(at, with) = self.form
            && let Some(byte) = bytes.get_mut(at)
        {
            *byte ^= with;
        }
        bytes
    }

    fn finish(&self, builder: &mut FrameBuilder, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        let frame = match self.form {
            Form::Snappy => builder.finish_compressed(&mut Compressor::new()),
            _ => builder.finish(),
        };
        bytes.extend_from_slice(frame.unwrap_or_default());
        if self.form == Form::Legacy
            && let Some(header) = bytes.get_mut(start..start + HEADER_LEN)
            && header[2] == 0
        {
            header[2] = b'N';
        }
        builder.clear();
    }
}

impl fmt::Display for Script {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:?}", self.stage)?;
        for (index, act) in self.acts.iter().enumerate() {
            let Act::Send { who, frames, piece } = act else {
                writeln!(out, "{index:3} {act:?}")?;
                continue;
            };
            writeln!(
                out,
                "{index:3} attacker {who} sends, {piece} bytes at once:"
            )?;
            for frame in frames {
                writeln!(
                    out,
                    "      a frame, {:?}, {} times:",
                    frame.form, frame.times
                )?;
                for message in &frame.messages {
                    writeln!(out, "        {}", in_words(message))?;
                }
            }
        }
        Ok(())
    }
}

/// What a message says, for a transcript: in one line, long things cut short.
fn in_words(pack: &MessagePack) -> String {
    let message = view(pack);
    let body = match lagometer_protocol::ToGateway::decode(&message) {
        Ok(known) if !message.is_user_space() => format!("{known:?}"),
        _ => format!("{:?}", pack.msg_body),
    };
    let mut short: String = body.chars().take(600).collect();
    if short.len() < body.len() {
        short.push('…');
    }
    format!(
        "type {} to channel {}, broadcast {}, stub {}, {} bytes: {short}",
        pack.msg_type,
        pack.channel_id,
        pack.broadcast,
        pack.stub_id,
        pack.msg_body.len()
    )
}

/// A message as frames take it.
fn view(pack: &MessagePack) -> lagometer_protocol::MessagePack<'_> {
    lagometer_protocol::MessagePack {
        channel_id: pack.channel_id,
        broadcast: pack.broadcast,
        stub_id: pack.stub_id,
        msg_type: pack.msg_type,
        body: &pack.msg_body,
    }
}
