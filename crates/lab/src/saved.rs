//! What the lanes of one seed did, as a text: how a guest or another machine hands its
//! findings to who started it, and they become one document with those of other seeds.
//!
//! What was used of a processor is left out: in virtual time computing takes
//! none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lagometer_results::{FlowRecords, GameRecords, MessageRecord};
use lagometer_transport::Closed;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::outcome::{BottleneckUse, Cost, LaneEnd, LaneOutcome, PlayBytes, WireCounts};
use crate::runner::{LaneRun, SeedRun};
use crate::workload::Misdeliveries;
use flows::SavedFlows;
use game::SavedGame;

mod flows;
mod game;

/// One seed's findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedSeed {
    seed: u64,
    lanes: Vec<SavedLane>,
    /// Who used each link, where that is known. Lanes that share one name the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bottlenecks: Vec<BottleneckUse>,
}

impl SavedSeed {
    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many lanes it is of.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedLane {
    Played(SavedOutcome),
    /// With the instant at which it was cut, in nanoseconds.
    Cut(SavedOutcome, u64),
    Panicked(String),
    Unopened(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedOutcome {
    records: Vec<SavedRecord>,
    up_packets: u64,
    down_packets: u64,
    bytes: u64,
    /// Up, down, and nanoseconds that they are of.
    play: (u64, u64, u64),
    dropped: BTreeMap<String, u64>,
    /// A game's other streams.
    game: Option<SavedGame>,
    /// Each direction's messages, where they were not echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flows: Option<SavedFlows>,
    payload_bytes: u64,
    damaged: u64,
    duplicated: u64,
    out_of_order: u64,
    ready_at: Option<u64>,
    end: Option<SavedEnd>,
    /// System calls, and how bytes got to the wire.
    cost: Option<(u64, String)>,
    /// Which of the seed's bottlenecks was on its link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bottleneck: Option<usize>,
}

/// Intended, accepted, arrived, returned; whether it was refused; how long it
/// was blocked. All in nanoseconds. A tuple, for there are many.
type SavedRecord = (
    u64,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    bool,
    Option<u64>,
);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedEnd {
    Done,
    NeverReady,
    NoProgress,
    DeadLink,
    ByPeer,
    Failed(String),
}

impl From<&SeedRun> for SavedSeed {
    fn from(run: &SeedRun) -> Self {
        let mut links = Vec::new();
        let lanes = run.lanes.iter().map(|lane| save_lane(lane, &mut links));
        Self {
            seed: run.seed,
            lanes: lanes.collect(),
            bottlenecks: links.into_iter().map(|link| (*link).clone()).collect(),
        }
    }
}

impl From<SavedSeed> for SeedRun {
    fn from(saved: SavedSeed) -> Self {
        let links: Vec<_> = saved.bottlenecks.into_iter().map(Arc::new).collect();
        let lanes = saved.lanes.into_iter();
        Self {
            seed: saved.seed,
            lanes: lanes.map(|lane| load_lane(lane, &links)).collect(),
        }
    }
}

fn save_lane(run: &LaneRun, links: &mut Vec<Arc<BottleneckUse>>) -> SavedLane {
    let mut save = |outcome: &LaneOutcome| SavedOutcome {
        bottleneck: outcome.bottleneck.as_ref().map(|link| {
            let known = links.iter().position(|each| Arc::ptr_eq(each, link));
            known.unwrap_or_else(|| {
                links.push(Arc::clone(link));
                links.len() - 1
            })
        }),
        ..SavedOutcome::from(outcome)
    };
    match run {
        LaneRun::Played(outcome) => SavedLane::Played(save(outcome)),
        LaneRun::Cut(outcome, at) => SavedLane::Cut(save(outcome), at.as_nanos()),
        LaneRun::Panicked(why) => SavedLane::Panicked(why.clone()),
        LaneRun::Unopened(why) => SavedLane::Unopened(why.clone()),
    }
}

fn load_lane(saved: SavedLane, links: &[Arc<BottleneckUse>]) -> LaneRun {
    let load = |saved: SavedOutcome| LaneOutcome {
        bottleneck: saved.bottleneck.and_then(|link| links.get(link).cloned()),
        ..LaneOutcome::from(saved)
    };
    match saved {
        SavedLane::Played(saved) => LaneRun::Played(load(saved)),
        SavedLane::Cut(saved, at) => LaneRun::Cut(load(saved), Time::from_nanos(at)),
        SavedLane::Panicked(why) => LaneRun::Panicked(why),
        SavedLane::Unopened(why) => LaneRun::Unopened(why),
    }
}

impl From<&LaneOutcome> for SavedOutcome {
    fn from(outcome: &LaneOutcome) -> Self {
        let wire = &outcome.wire;
        let dropped = wire.dropped.iter();
        Self {
            bottleneck: None,
            records: outcome.records.iter().map(save_record).collect(),
            up_packets: wire.up_packets,
            down_packets: wire.down_packets,
            bytes: wire.bytes,
            play: (
                wire.play.up,
                wire.play.down,
                wire.play.over.as_nanos() as u64,
            ),
            dropped: dropped
                .map(|(reason, &packets)| (reason.to_string(), packets))
                .collect(),
            game: outcome.game.as_ref().map(SavedGame::from),
            flows: outcome.flows.as_ref().map(SavedFlows::from),
            payload_bytes: outcome.payload_bytes,
            damaged: outcome.misdeliveries.damaged,
            duplicated: outcome.misdeliveries.duplicated,
            out_of_order: outcome.misdeliveries.out_of_order,
            ready_at: outcome.ready_at.map(Time::as_nanos),
            end: outcome.end.as_ref().map(SavedEnd::from),
            cost: outcome
                .cost
                .as_ref()
                .map(|cost| (cost.system_calls, cost.path.clone())),
        }
    }
}

impl From<SavedOutcome> for LaneOutcome {
    fn from(saved: SavedOutcome) -> Self {
        let dropped = saved.dropped.into_iter();
        Self {
            bottleneck: None,
            records: saved.records.into_iter().map(load_record).collect(),
            wire: WireCounts {
                up_packets: saved.up_packets,
                down_packets: saved.down_packets,
                bytes: saved.bytes,
                play: PlayBytes {
                    up: saved.play.0,
                    down: saved.play.1,
                    over: Duration::from_nanos(saved.play.2),
                },
                dropped: dropped
                    .map(|(reason, packets)| (Cow::Owned(reason), packets))
                    .collect(),
            },
            game: saved.game.map(GameRecords::from),
            flows: saved.flows.map(FlowRecords::from),
            payload_bytes: saved.payload_bytes,
            misdeliveries: Misdeliveries {
                damaged: saved.damaged,
                duplicated: saved.duplicated,
                out_of_order: saved.out_of_order,
            },
            ready_at: saved.ready_at.map(Time::from_nanos),
            end: saved.end.map(LaneEnd::from),
            cost: saved.cost.map(|(system_calls, path)| Cost {
                system_calls,
                path,
                ..Cost::default()
            }),
        }
    }
}

fn save_record(record: &MessageRecord) -> SavedRecord {
    (
        record.intended.as_nanos(),
        record.accepted.map(Time::as_nanos),
        record.arrived.map(Time::as_nanos),
        record.returned.map(Time::as_nanos),
        record.refused,
        record.blocked.map(|blocked| blocked.as_nanos() as u64),
    )
}

fn load_record(
    (intended, accepted, arrived, returned, refused, blocked): SavedRecord,
) -> MessageRecord {
    MessageRecord {
        intended: Time::from_nanos(intended),
        accepted: accepted.map(Time::from_nanos),
        arrived: arrived.map(Time::from_nanos),
        returned: returned.map(Time::from_nanos),
        refused,
        blocked: blocked.map(Duration::from_nanos),
    }
}

impl From<&LaneEnd> for SavedEnd {
    fn from(end: &LaneEnd) -> Self {
        match end {
            LaneEnd::Done => Self::Done,
            LaneEnd::NeverReady => Self::NeverReady,
            LaneEnd::NoProgress => Self::NoProgress,
            LaneEnd::Died(Closed::DeadLink) => Self::DeadLink,
            LaneEnd::Died(Closed::ByPeer) => Self::ByPeer,
            LaneEnd::Died(Closed::Failed(why)) => Self::Failed(why.clone()),
        }
    }
}

impl From<SavedEnd> for LaneEnd {
    fn from(saved: SavedEnd) -> Self {
        match saved {
            SavedEnd::Done => Self::Done,
            SavedEnd::NeverReady => Self::NeverReady,
            SavedEnd::NoProgress => Self::NoProgress,
            SavedEnd::DeadLink => Self::Died(Closed::DeadLink),
            SavedEnd::ByPeer => Self::Died(Closed::ByPeer),
            SavedEnd::Failed(why) => Self::Died(Closed::Failed(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{PartyUse, WayUse};
    use lagometer_results::{EventRecord, FlowMessage, GameTerms, Rollback, StateRecord};

    fn game() -> GameRecords {
        let event = EventRecord {
            at: Time::from_millis(3),
            arrived: None,
        };
        GameRecords {
            played: Duration::from_secs(9),
            terms: GameTerms {
                interpolation: Duration::from_millis(100),
                rollback: Some(Rollback {
                    frame: Duration::from_millis(16),
                    input_delay: 2,
                    most: 8,
                }),
                voice_within: Duration::from_millis(150),
            },
            states: vec![StateRecord {
                at: Time::from_millis(1),
                seen: Some(Time::from_millis(31)),
            }],
            events: vec![event],
            voice: vec![event, event],
        }
    }

    fn flows() -> FlowRecords {
        let message = FlowMessage {
            record: MessageRecord {
                accepted: Some(Time::from_millis(3)),
                ..MessageRecord::due(Time::from_millis(2))
            },
            bytes: 77,
        };
        FlowRecords {
            played: Duration::from_secs(9),
            within: Duration::from_millis(100),
            answers: true,
            ways: [vec![message], vec![message, message]],
        }
    }

    fn outcome(end: Option<LaneEnd>) -> LaneOutcome {
        LaneOutcome {
            bottleneck: None,
            records: vec![
                MessageRecord::due(Time::from_millis(50)),
                MessageRecord {
                    intended: Time::from_millis(100),
                    accepted: Some(Time::from_millis(101)),
                    arrived: Some(Time::from_millis(120)),
                    returned: Some(Time::from_nanos(140_000_001)),
                    refused: true,
                    blocked: Some(Duration::from_micros(7)),
                },
            ],
            wire: WireCounts {
                up_packets: 2,
                down_packets: 1,
                bytes: 1_600,
                play: PlayBytes {
                    up: 1_000,
                    down: 600,
                    over: Duration::from_secs(9),
                },
                dropped: [(Cow::Borrowed("burst"), 1)].into(),
            },
            game: Some(game()),
            flows: Some(flows()),
            payload_bytes: 1,
            misdeliveries: Misdeliveries {
                damaged: 1,
                duplicated: 2,
                out_of_order: 3,
            },
            ready_at: Some(Time::from_millis(20)),
            end,
            cost: Some(Cost {
                system_calls: 9,
                path: "batches".to_owned(),
                ..Cost::default()
            }),
        }
    }

    fn shared_link() -> Arc<BottleneckUse> {
        let way = |name: &str| WayUse {
            parties: vec![PartyUse {
                name: name.to_owned(),
                contends: true,
                packets: 9,
                goodput_bytes: Some(1),
                waiting_bytes: vec![1, 0, 3],
                ..PartyUse::default()
            }],
            together: Duration::from_nanos(1_000_000_001),
        };
        Arc::new(BottleneckUse {
            measured: Duration::from_secs(7),
            step: Duration::from_millis(3),
            ways: [way("udp"), way("a download")],
        })
    }

    #[test]
    fn who_used_a_link_comes_back_and_lanes_that_shared_it_share_it() {
        let on = |link: &Arc<BottleneckUse>| {
            LaneRun::Played(LaneOutcome {
                bottleneck: Some(Arc::clone(link)),
                ..outcome(None)
            })
        };
        let (one, other) = (shared_link(), shared_link());
        let run = SeedRun {
            seed: 1,
            lanes: vec![on(&one), on(&one), on(&other)],
        };
        let text = serde_json::to_string(&SavedSeed::from(&run)).unwrap();
        let saved: SavedSeed = serde_json::from_str(&text).unwrap();
        assert_eq!(saved.bottlenecks.len(), 2);
        assert_eq!(format!("{:?}", SeedRun::from(saved)), format!("{run:?}"));
    }

    #[test]
    fn every_kind_of_lane_comes_back_as_it_was_saved() {
        let ends = [
            LaneEnd::Done,
            LaneEnd::NeverReady,
            LaneEnd::NoProgress,
            LaneEnd::Died(Closed::DeadLink),
            LaneEnd::Died(Closed::ByPeer),
            LaneEnd::Died(Closed::Failed("no route".to_owned())),
        ];
        let played = ends.map(|end| LaneRun::Played(outcome(Some(end))));
        let others = [
            LaneRun::Cut(outcome(None), Time::from_millis(12_345)),
            LaneRun::Panicked("index".to_owned()),
            LaneRun::Unopened("no port".to_owned()),
        ];
        let run = SeedRun {
            seed: u64::MAX,
            lanes: played.into_iter().chain(others).collect(),
        };
        let text = serde_json::to_string(&SavedSeed::from(&run)).unwrap();
        let saved: SavedSeed = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{:?}", SeedRun::from(saved)), format!("{run:?}"));
    }
}
