//! Which transport a lane measures.

use lagometer_results::{Lane, TransportProperties, figures};
use lagometer_socket::SocketSpec;
use lagometer_testbed::{Testbed, promises};
use lagometer_transport::{BadSetting, BadSpec, HeadOfLine, Spec, new_name, tcp};
use lagometer_units::Size;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::plan::Plan;

/// Headers of TCP over IPv4 with timestamps: 20 (RFC 791), 20 (RFC 9293) and
/// 12 (RFC 7323).
const TCP_HEADER_BYTES: u32 = 52;
/// Bytes of a TCP chunk where nothing else is asked, as other instruments
/// write them.
const TCP_CHUNK_BYTES: usize = 128 << 10;

/// A lane: a transport with its settings and a name.
#[derive(Clone, Debug)]
pub struct LanePlan {
    name: String,
    pub(super) lane_transport: LaneTransport,
}

/// What carries a lane.
#[derive(Clone, Debug)]
pub(super) enum LaneTransport {
    /// The kernel's TCP, with the congestion control named or the system's.
    Tcp { congestion: Option<String> },
    /// A preset of the registry.
    Preset(SocketSpec),
}

/// Why there is no such lane.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadLane {
    /// There is no such transport, or it cannot be as it is asked for.
    #[error("lane `{name}`: {why}")]
    Transport {
        /// The name that was given.
        name: String,
        /// What is wrong with it.
        #[source]
        why: BadSpec,
    },
    /// The messages asked for are larger than the transport takes.
    #[error("--chunk {chunk}: lane `{name}` takes messages of up to {most}")]
    ChunkTooLarge {
        /// The lane's name.
        name: String,
        /// What was asked for.
        chunk: Size,
        /// What it takes.
        most: Size,
    },
}

impl LanePlan {
    /// The lane called `name`: `tcp`, `tcp-CONGESTION`, or a preset, the
    /// latter with the settings in `overrides` in place of its own.
    ///
    /// # Errors
    ///
    /// [`BadLane`] when there is no such transport or setting.
    pub fn resolve(name: &str, overrides: &Map<String, Value>) -> Result<Self, BadLane> {
        let bad = |why| BadLane::Transport {
            name: name.to_owned(),
            why,
        };
        let congestion = name
            .strip_prefix("tcp-")
            .filter(|word| is_congestion_control(name, word));
        let lane_transport = if name == "tcp" || congestion.is_some() {
            if let Some(key) = overrides.keys().next() {
                let message = "the kernel's TCP has none; write `tcp-cubic`";
                return Err(bad(BadSetting::new(key, message).into()));
            }
            LaneTransport::Tcp {
                congestion: congestion.map(str::to_owned),
            }
        } else {
            LaneTransport::Preset(preset(name, overrides).map_err(bad)?)
        };
        Ok(Self {
            name: name.to_owned(),
            lane_transport,
        })
    }

    /// The lane's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of a message where nothing else is asked: what one datagram
    /// carries.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        let Some((properties, largest)) = self.lane_transport.measures() else {
            return TCP_CHUNK_BYTES;
        };
        let room = properties.mtu_bytes.saturating_sub(properties.header_bytes) as usize;
        room.clamp(super::payload::NUMBER_BYTES, largest)
    }

    /// Whether the lane can carry what `plan` asks.
    ///
    /// # Errors
    ///
    /// [`BadLane::ChunkTooLarge`] when it takes no message of that size.
    pub fn check(&self, plan: &Plan) -> Result<(), BadLane> {
        let Some((_, most)) = self.lane_transport.measures() else {
            return Ok(());
        };
        let most = most as u64;
        match plan.chunk {
            Some(chunk) if chunk.bytes() > most => Err(BadLane::ChunkTooLarge {
                name: self.name.clone(),
                chunk,
                most: Size(most),
            }),
            _ => Ok(()),
        }
    }

    /// Bytes of the transport's own in each datagram.
    pub(super) fn header_bytes(&self) -> u64 {
        let LaneTransport::Preset(spec) = &self.lane_transport else {
            return 0;
        };
        spec.endpoint().map_or(0, |endpoint| {
            let of_lower = endpoint.encapsulation().header_bytes();
            u64::from(endpoint.properties().header_bytes.saturating_sub(of_lower))
        })
    }

    /// Every setting, to be sent to the remote end.
    pub(super) fn settings(&self) -> Map<String, Value> {
        let settings = match &self.lane_transport {
            LaneTransport::Tcp { .. } => Value::Null,
            LaneTransport::Preset(spec) => spec.settings_json(),
        };
        match settings {
            Value::Object(settings) => settings,
            _ => Map::new(),
        }
    }

    /// Whether everything is promised to arrive.
    pub(super) fn is_reliable(&self) -> bool {
        let measures = self.lane_transport.measures();
        measures.is_none_or(|(properties, _)| properties.reliable)
    }

    /// The lane's part of the document, before anything has been found.
    pub(super) fn document(&self) -> Lane {
        let (transport, library, settings, properties) = match &self.lane_transport {
            LaneTransport::Tcp { congestion } => (
                "tcp",
                "the kernel".to_owned(),
                json!({ "congestion_control": congestion, "no_delay": true }),
                TransportProperties {
                    reliable: true,
                    ordered: true,
                    head_of_line: HeadOfLine::AtReceiver.to_string(),
                    encrypted: false,
                    mtu_bytes: 0,
                    header_bytes: TCP_HEADER_BYTES,
                    acks: "the kernel's".to_owned(),
                    varies: String::new(),
                    late_answer: "the kernel's".to_owned(),
                    congestion_control: congestion
                        .clone()
                        .unwrap_or_else(|| "the system's default".to_owned()),
                    peer_timeout: "the kernel's".to_owned(),
                    fixed: String::new(),
                },
            ),
            LaneTransport::Preset(spec) => (
                spec.transport(),
                spec.library(),
                spec.settings_json(),
                promises(spec),
            ),
        };
        Lane {
            settings,
            library,
            properties: Some(properties),
            ..figures(&[], &[], None).into_lane(&self.name, transport)
        }
    }
}

impl LaneTransport {
    /// What the transport promises, and its largest message; nothing for the
    /// kernel's TCP, which carries a stream.
    fn measures(&self) -> Option<(lagometer_transport::TransportProperties, usize)> {
        match self {
            Self::Tcp { .. } => None,
            Self::Preset(spec) => Some((spec.properties(), spec.largest_message_bytes())),
        }
    }
}

/// Whether the lane `name`, of which `word` follows `tcp-`, is the kernel's TCP
/// with nothing set but the congestion control `word`, rather than a preset.
fn is_congestion_control(name: &str, word: &str) -> bool {
    let is_word =
        (1..16).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let preset = Spec::preset(name);
    let settings = preset.as_ref().and_then(Spec::settings::<tcp::Settings>);
    is_word
        && new_name(name).is_none()
        && settings.is_none_or(|settings| settings.congestion_control == word)
}

/// The preset called `name` with these settings, where this machine can play it.
fn preset(name: &str, overrides: &Map<String, Value>) -> Result<SocketSpec, BadSpec> {
    Testbed::Net
        .transport(name, overrides)
        .map_err(|why| match why {
            BadSpec::Unknown { name, .. } => {
                let streams = ["tcp", "tcp-CONGESTION"].into_iter();
                BadSpec::unknown(&name, streams.chain(lagometer_socket::names()))
            }
            why => why,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(name: &str) -> Result<LanePlan, BadLane> {
        LanePlan::resolve(name, &Map::new())
    }

    #[test]
    fn every_preset_is_a_lane_and_carries_at_least_a_number() {
        for preset in lagometer_transport::presets() {
            let lane = resolve(preset.name).unwrap();
            assert!(lane.chunk_bytes() >= 8, "{}", preset.name);
        }
        assert_eq!(resolve("kcp").unwrap().chunk_bytes(), 1376);
        assert_eq!(resolve("kcp").unwrap().header_bytes(), 24);
    }

    #[test]
    fn tcp_is_the_kernels_with_any_congestion_control() {
        let cubic = resolve("tcp-cubic").unwrap().lane_transport;
        assert!(
            matches!(&cubic, LaneTransport::Tcp { congestion: Some(name) } if name == "cubic"),
            "{cubic:?}"
        );
        let refused = resolve("tcp-../x").unwrap_err().to_string();
        assert!(refused.contains("no transport is called"), "{refused}");
        let settings = json!({ "mtu": "1 KB" });
        assert!(LanePlan::resolve("tcp", settings.as_object().unwrap()).is_err());
    }
}
