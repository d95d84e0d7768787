//! What the lanes of one seed did, as a text: how a guest hands its findings to
//! who started it, and they become one document with those of other seeds.
//!
//! What was used of a processor is left out: in virtual time computing takes
//! none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lagometer_stats::{GameRecords, MessageRecord};
use lagometer_transport::Closed;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::outcome::{BottleneckUse, Cost, LaneEnd, LaneOutcome, WireCounts};
use crate::runner::{LaneRun, SeedRun};
use crate::workload::Misdeliveries;
use game::SavedGame;

mod game;

/// One seed's findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedSeed {
    seed: u64,
    lanes: Vec<SavedLane>,
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
    dropped: BTreeMap<String, u64>,
    /// A game's other streams.
    game: Option<SavedGame>,
    payload_bytes: u64,
    damaged: u64,
    duplicated: u64,
    out_of_order: u64,
    ready_at: Option<u64>,
    end: Option<SavedEnd>,
    /// System calls, and how bytes got to the wire.
    cost: Option<(u64, String)>,
    /// Who used its link, where others did.
    bottleneck: Option<BottleneckUse>,
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
        Self {
            seed: run.seed,
            lanes: run.lanes.iter().map(SavedLane::from).collect(),
        }
    }
}

impl From<SavedSeed> for SeedRun {
    fn from(saved: SavedSeed) -> Self {
        Self {
            seed: saved.seed,
            lanes: saved.lanes.into_iter().map(LaneRun::from).collect(),
        }
    }
}

impl From<&LaneRun> for SavedLane {
    fn from(run: &LaneRun) -> Self {
        match run {
            LaneRun::Played(outcome) => Self::Played(outcome.into()),
            LaneRun::Cut(outcome, at) => Self::Cut(outcome.into(), at.as_nanos()),
            LaneRun::Panicked(why) => Self::Panicked(why.clone()),
            LaneRun::Unopened(why) => Self::Unopened(why.clone()),
        }
    }
}

impl From<SavedLane> for LaneRun {
    fn from(saved: SavedLane) -> Self {
        match saved {
            SavedLane::Played(outcome) => Self::Played(outcome.into()),
            SavedLane::Cut(outcome, at) => Self::Cut(outcome.into(), Time::from_nanos(at)),
            SavedLane::Panicked(why) => Self::Panicked(why),
            SavedLane::Unopened(why) => Self::Unopened(why),
        }
    }
}

impl From<&LaneOutcome> for SavedOutcome {
    fn from(outcome: &LaneOutcome) -> Self {
        let wire = &outcome.wire;
        let dropped = wire.dropped.iter();
        Self {
            records: outcome.records.iter().map(save_record).collect(),
            up_packets: wire.up_packets,
            down_packets: wire.down_packets,
            bytes: wire.bytes,
            dropped: dropped
                .map(|(reason, &packets)| (reason.to_string(), packets))
                .collect(),
            game: outcome.game.as_ref().map(SavedGame::from),
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
            bottleneck: outcome.bottleneck.as_deref().cloned(),
        }
    }
}

impl From<SavedOutcome> for LaneOutcome {
    fn from(saved: SavedOutcome) -> Self {
        let dropped = saved.dropped.into_iter();
        Self {
            bottleneck: saved.bottleneck.map(Arc::new),
            records: saved.records.into_iter().map(load_record).collect(),
            wire: WireCounts {
                up_packets: saved.up_packets,
                down_packets: saved.down_packets,
                bytes: saved.bytes,
                dropped: dropped
                    .map(|(reason, packets)| (Cow::Owned(reason), packets))
                    .collect(),
            },
            game: saved.game.map(GameRecords::from),
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
    use lagometer_stats::{EventRecord, GameTerms, Rollback, StateRecord};

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

    fn outcome(end: Option<LaneEnd>) -> LaneOutcome {
        let way = |name: &str| WayUse {
            parties: vec![PartyUse {
                name: name.to_owned(),
                contends: true,
                packets: 1,
                bytes: 2,
                bytes_together: 3,
                dropped: 4,
                marked: 5,
                goodput_bytes: Some(6),
                waiting_bytes: vec![7, 8],
            }],
            together: Duration::from_secs(9),
        };
        LaneOutcome {
            bottleneck: Some(Arc::new(BottleneckUse {
                measured: Duration::from_secs(10),
                step: Duration::from_millis(50),
                ways: [way("photos"), way("film")],
            })),
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
                dropped: [(Cow::Borrowed("burst"), 1)].into(),
            },
            game: Some(game()),
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
