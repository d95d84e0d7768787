//! The queue of a direction: a bound, or a discipline with its settings.

use std::fmt;

use lagometer_units::{Share, Size, Span};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::plan::{Complaint, SHORTEST, nanos};
use super::written::QueueBound;
use crate::queue::{CoDel, Discipline, Isolation, Limit, Thresholds};

/// What waits for a direction's rate, and which of it is sent or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum QueueWritten {
    /// First in, first out, with a bound; what comes on top is dropped.
    Bound(QueueBound),
    /// As a discipline has it.
    Managed(ManagedQueue),
}

/// A discipline and its settings. Those it does not have must be left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedQueue {
    /// Which of the packets that wait is sent next, and which is dropped.
    pub discipline: DisciplineName,
    /// What may wait. Default: that of Linux, see [`DisciplineName`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueBound>,
    /// A wait that is no harm (`codel`, `fq-codel`, `cake`). Default: 5 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Span>,
    /// How long all must wait for longer before one is dropped (`codel`,
    /// `fq-codel`, `cake`). Default: 100 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Whether packets whose transport understands it are marked instead of
    /// dropped. Default: yes, but for `codel` and `drop-tail`, as in Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Queues that flows are hashed into (`fq-codel`), 1 to 65,536. Default:
    /// 1,024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// What a flow may send in its turn (`fq-codel`, `cake`). Default: 1514 B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Size>,
    /// The average length from which on packets are dropped or marked (`red`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<QueueBound>,
    /// The average length from which on all are dropped (`red`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<QueueBound>,
    /// The share that is dropped or marked just below `most` (`red`). Default:
    /// 2 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<Share>,
}

/// The disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisciplineName {
    /// First in, first out; by default no bound.
    DropTail,
    /// RFC 8289; by default at most 1,000 packets.
    #[serde(rename = "codel")]
    CoDel,
    /// RFC 8290; by default at most 10,240 packets.
    #[serde(rename = "fq-codel")]
    FqCodel,
    /// Fair to hosts, then to flows; by default at most 4 MiB.
    Cake,
    /// Random early detection; by default at most twice `most`.
    Red,
}

/// A queue in the model's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePlan {
    pub(crate) discipline: Discipline,
    pub(crate) limit: Limit,
}

impl<'de> Deserialize<'de> for QueueWritten {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QueueVisitor)
    }
}

struct QueueVisitor;

impl<'de> Visitor<'de> for QueueVisitor {
    type Value = QueueWritten;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "a bound such as \"64 KiB\" or \"100 ms\", or a table such as \
             { discipline = \"fq-codel\" }",
        )
    }

    fn visit_str<E: serde::de::Error>(self, written: &str) -> Result<QueueWritten, E> {
        let bound = written.parse().map_err(|_| {
            E::custom(format!(
                "`{written}` is neither a size (B, KB, MB, KiB, MiB) nor a time \
                 (ns, us, ms, s, min, h); write a queue as \"64 KiB\" or \"100 ms\", or as \
                 {{ discipline = \"fq-codel\" }}"
            ))
        })?;
        Ok(QueueWritten::Bound(bound))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<QueueWritten, A::Error> {
        let managed = ManagedQueue::deserialize(MapAccessDeserializer::new(map));
        managed.map(QueueWritten::Managed).map_err(A::Error::custom)
    }
}

impl QueuePlan {
    /// The queue that is `written`, where `bytes` says how many bytes a bound is
    /// and `packet_time` how long a packet of 1000 bytes is on the wire, in
    /// nanoseconds.
    pub(crate) fn new(
        written: Option<&QueueWritten>,
        bytes: &dyn Fn(QueueBound) -> Result<u64, Complaint>,
        packet_time: u64,
    ) -> Result<Self, Complaint> {
        let drop_tail = |bytes| Self {
            discipline: Discipline::DropTail,
            limit: Limit {
                bytes,
                packets: None,
            },
        };
        let managed = match written {
            None => return Ok(drop_tail(None)),
            Some(QueueWritten::Bound(bound)) => return Ok(drop_tail(Some(bytes(*bound)?))),
            Some(QueueWritten::Managed(managed)) => managed,
        };
        managed.check()?;
        let limit_bytes = managed.limit.map(bytes).transpose()?;
        if limit_bytes == Some(0) {
            return Err(complaint(
                "`limit` must be above 0 B; leave it out for the usual one",
            ));
        }
        let limit = |packets: Option<usize>, otherwise: Option<u64>| Limit {
            bytes: limit_bytes.or(otherwise),
            packets: packets.filter(|_| limit_bytes.is_none()),
        };
        let quantum = managed.quantum.map_or(1514, Size::bytes);
        Ok(match managed.discipline {
            DisciplineName::DropTail => drop_tail(limit_bytes),
            DisciplineName::CoDel => Self {
                discipline: Discipline::CoDel(managed.codel(false)),
                limit: limit(Some(1000), None),
            },
            DisciplineName::FqCodel => Self {
                discipline: Discipline::Fair {
                    codel: managed.codel(true),
                    isolation: Isolation::Flows(managed.flows.unwrap_or(1024)),
                    quantum,
                },
                limit: limit(Some(10_240), None),
            },
            DisciplineName::Cake => Self {
                discipline: Discipline::Fair {
                    codel: managed.codel(true),
                    isolation: Isolation::Hosts,
                    quantum,
                },
                limit: limit(None, Some(4 << 20)),
            },
            DisciplineName::Red => {
                let thresholds = managed.thresholds(bytes, packet_time)?;
                if limit_bytes.is_some_and(|limit| limit < thresholds.most) {
                    return Err(complaint(
                        "`limit` must not be below `most`; leave it out for twice `most`",
                    ));
                }
                Self {
                    discipline: Discipline::Red(thresholds),
                    limit: limit(None, Some(2 * thresholds.most)),
                }
            }
        })
    }
}

impl ManagedQueue {
    fn codel(&self, ecn: bool) -> CoDel {
        CoDel {
            target: self.target.map_or(5_000_000, nanos),
            interval: self.interval.map_or(100_000_000, nanos),
            ecn: self.ecn.unwrap_or(ecn),
        }
    }

    fn thresholds(
        &self,
        bytes: &dyn Fn(QueueBound) -> Result<u64, Complaint>,
        packet_time: u64,
    ) -> Result<Thresholds, Complaint> {
        let (Some(least), Some(most)) = (self.least, self.most) else {
            return Err(complaint(
                "red needs `least` and `most`, the average lengths between which packets are \
                 dropped or marked, as in least = \"20 ms\", most = \"60 ms\"",
            ));
        };
        let (least, most) = (bytes(least)?, bytes(most)?);
        if least >= most {
            return Err(complaint("`least` must be below `most`"));
        }
        Ok(Thresholds {
            least,
            most,
            probability: self.probability.map_or(0.02, Share::fraction),
            weight: 0.002,
            packet_time,
            ecn: self.ecn.unwrap_or(true),
        })
    }

    /// Whether each setting has its range and belongs to the discipline.
    fn check(&self) -> Result<(), Complaint> {
        use DisciplineName::{Cake, CoDel, FqCodel, Red};
        let timed: &[_] = &[CoDel, FqCodel, Cake];
        for (key, is_said, has_it) in [
            ("target", self.target.is_some(), timed),
            ("interval", self.interval.is_some(), timed),
            ("ecn", self.ecn.is_some(), &[CoDel, FqCodel, Cake, Red][..]),
            ("flows", self.flows.is_some(), &[FqCodel]),
            ("quantum", self.quantum.is_some(), &[FqCodel, Cake]),
            ("least", self.least.is_some(), &[Red]),
            ("most", self.most.is_some(), &[Red]),
            ("probability", self.probability.is_some(), &[Red]),
        ] {
            if is_said && !has_it.contains(&self.discipline) {
                return Err(complaint(format!(
                    "this discipline has no `{key}`; leave it out"
                )));
            }
        }
        for (key, span) in [("target", self.target), ("interval", self.interval)] {
            if span.is_some_and(|span| span < SHORTEST) {
                return Err(complaint(format!("`{key}` must be at least {SHORTEST}")));
            }
        }
        let codel = self.codel(false);
        if codel.target >= codel.interval {
            return Err(complaint(
                "`target` (5 ms where it is not said) must be below `interval` (100 ms)",
            ));
        }
        if self
            .probability
            .is_some_and(|share| share.fraction() <= 0.0)
        {
            return Err(complaint(
                "`probability` must be above 0 %; leave it out for 2 %",
            ));
        }
        if self
            .flows
            .is_some_and(|flows| !(1..=65_536).contains(&flows))
        {
            return Err(complaint("`flows` must be between 1 and 65536"));
        }
        if self
            .quantum
            .is_some_and(|quantum| !(64..=1 << 20).contains(&quantum.bytes()))
        {
            return Err(complaint("`quantum` must be between 64 B and 1 MiB"));
        }
        Ok(())
    }
}

fn complaint(message: impl Into<String>) -> Complaint {
    Complaint::new("queue", message)
}
