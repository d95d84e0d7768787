//! A conversation before it is held: the gateway's settings, and what everybody
//! does, in order. Data alone, so that it can be cut down and printed.

use std::fmt;

use lagometer_gateway::core::{AuthVerdict, Peer};
use lagometer_protocol::messages::channeldpb::MessagePack;
use lagometer_protocol::{Compression, Compressor, FrameBuilder, HEADER_LEN, frame_header};

use super::choices::Choices;
use super::hostile;
use super::settings::ConversationSettings;
use super::tactics;

/// The most acts of a conversation.
const MAX_ACTS: usize = 160;

/// The most tactics woven into one.
const MAX_TACTICS: usize = 3;

/// Whichever attacker came last.
pub(crate) const LAST: usize = usize::MAX;

/// What an inflated frame unpacks to at most, in messages and bytes: a little more
/// messages than the gateway takes, as many bytes as it takes.
const INFLATED: (usize, usize) = (16_400, 1 << 20);

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
    /// The well-behaved server stands still while each of so many attackers, those
    /// who came last, sends a frame; then it reads on.
    Crush { attackers: usize, frame: SentFrame },
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
    /// Snappy that unpacks to far more than a plain frame holds.
    Inflated,
}

/// A whole conversation.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) settings: ConversationSettings,
    pub(crate) acts: Vec<Act>,
}

impl Script {
    pub(crate) fn draw(choices: &mut Choices<'_>) -> Self {
        let mut settings = ConversationSettings::draw(choices);
        let count = 30 + choices.below(MAX_ACTS - 30);
        let mut acts = Vec::new();
        while acts.len() < count && !choices.are_over() {
            acts.push(act(&settings, choices));
        }
        settings.small = choices.one_in(4);
        let tactics = choices.below(MAX_TACTICS + 1);
        for _ in 0..tactics {
            let woven = tactics::tactic(&settings, choices);
            let at = choices.below(acts.len() + 1);
            acts.splice(at..at, woven);
        }
        // Drawn last, so that what came before is what it was for a seed.
        if choices.one_in(4) {
            let woven = tactics::crush(choices);
            let at = choices.below(acts.len() + 1);
            acts.splice(at..at, woven);
        }
        Self { settings, acts }
    }
}

fn act(settings: &ConversationSettings, choices: &mut Choices<'_>) -> Act {
    let who = choices.below(12);
    match choices.below(42) {
        0..4 => Act::Come {
            peer: if settings.hostile_servers && choices.one_in(2) {
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
            side: choices.below(settings.sides),
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
        if self.form == Form::Inflated {
            let packet = self.inflated();
            if let Some(packed) = Compressor::new().compress(&packet)
                && let Ok(len) = u16::try_from(packed.len())
            {
                bytes.extend(frame_header(len, Compression::Snappy));
                bytes.extend(packed);
            }
            return bytes;
        }
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

    /// How many bytes it comes to, unpacked.
    pub(crate) fn unpacked_len(&self) -> usize {
        let plain = |frame: &Self| Self {
            form: Form::Plain,
            ..frame.clone()
        };
        match self.form {
            Form::Inflated => self.inflated().len(),
            Form::Snappy => plain(self).bytes().len(),
            _ => self.bytes().len(),
        }
    }

    /// The packet of an inflated frame.
    fn inflated(&self) -> Vec<u8> {
        let (most, most_bytes) = INFLATED;
        let mut packet = Vec::new();
        let messages = self.messages.iter().cycle();
        for pack in messages.take(most.min(self.times * self.messages.len())) {
            let before = packet.len();
            view(pack).encode_in_packet(&mut packet);
            if packet.len() > most_bytes {
                packet.truncate(before);
                break;
            }
        }
        packet
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
        writeln!(out, "{:?}", self.settings)?;
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
