//! One direction of a profile, checked, resolved and in the model's numbers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lagometer_units::{Rate, Span};

use super::queue::QueuePlan;
use super::spells::{self, spells};
use super::written::{
    Bursts, DistributionName, Handover, JitterWritten, Oversize, QueueBound, QueueWritten, Spell,
    Way,
};
use crate::Direction;
use crate::interval::{Length, Onset};
use crate::jitter::{Distribution, Table, Truncated};
use crate::trace::{Opportunities, Recording, Trace};

/// The least that times which drive a process may be: processes that change
/// more often than that are noise, and would be slow.
pub(crate) const SHORTEST: Span = Span::from_millis(1);

/// A key that is wrong and why.
#[derive(Debug)]
pub(crate) struct Complaint {
    key: &'static str,
    message: String,
}

/// One direction. Times are nanoseconds, shares are fractions.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) delay_ns: u64,
    pub(crate) jitter: Option<(Table, Option<u64>)>,
    pub(crate) may_reorder: bool,
    pub(crate) loss: f64,
    pub(crate) bursts: Option<Shared<BurstPlan>>,
    pub(crate) rate: Option<u64>,
    pub(crate) queue: QueuePlan,
    pub(crate) duplication: Option<(f64, u64)>,
    pub(crate) reordering: Option<(f64, u64)>,
    pub(crate) corruption: f64,
    pub(crate) outages: Shared<Vec<(Onset, Length)>>,
    pub(crate) stalls: Shared<Vec<(Onset, Length)>>,
    pub(crate) handover: Option<Shared<HandoverPlan>>,
    pub(crate) mtu: Option<(u64, Oversize)>,
    pub(crate) played: Option<Played>,
}

/// Something that comes from `both`, and so happens in both directions at the
/// same instant, or from the direction's own section.
#[derive(Clone, Debug)]
pub(crate) struct Shared<T> {
    pub(crate) by_both: bool,
    pub(crate) value: T,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstPlan {
    pub(crate) onset: Onset,
    pub(crate) length: Length,
    pub(crate) loss_good: f64,
    pub(crate) loss_bad: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HandoverPlan {
    pub(crate) every_ns: u64,
    pub(crate) extra_ns: u64,
}

/// The trace a direction plays.
#[derive(Clone, Debug)]
pub(crate) enum Played {
    Recorded(Arc<Recording>, Direction),
    Mahimahi(Arc<Opportunities>),
}

impl Complaint {
    pub(crate) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self {
            key,
            message: message.into(),
        }
    }

    pub(crate) const fn key(&self) -> &'static str {
        self.key
    }

    pub(crate) fn into_message(self) -> String {
        self.message
    }

    /// Whether the key complained about is written in `way`.
    pub(crate) fn is_said_in(&self, way: &Way) -> bool {
        match self.key {
            "delay" => way.delay.is_some(),
            "loss" => way.loss.is_some(),
            "rate" => way.rate.is_some(),
            "queue" => way.queue.is_some(),
            "stalls" => !way.stalls.is_empty(),
            "oversize" => way.oversize.is_some(),
            _ => false,
        }
    }
}

/// Checks what a section says key by key.
pub(crate) fn check(way: &Way) -> Result<(), Complaint> {
    if let Some(jitter) = &way.jitter {
        truncated(jitter)?;
    }
    if let Some(bursts) = &way.bursts {
        at_least_shortest("bursts", "mean_good", bursts.mean_good)?;
        at_least_shortest("bursts", "mean_bad", bursts.mean_bad)?;
    }
    if let Some(handover) = &way.handover {
        at_least_shortest("handover", "every", handover.every)?;
    }
    if way.mtu.is_some_and(|mtu| mtu.bytes() == 0) {
        return Err(Complaint::new("mtu", "an MTU must be at least 1 B"));
    }
    spells("outages", &way.outages)?;
    spells("stalls", &way.stalls)?;
    Ok(())
}

impl Plan {
    /// The plan of `direction`: what `own` says, and `both` where it is silent.
    pub(crate) fn new(
        direction: Direction,
        both: &Way,
        own: &Way,
        traces: &BTreeMap<&str, Trace>,
    ) -> Result<Self, Complaint> {
        let way = merge(both, own);
        let played =
            way.trace
                .as_deref()
                .and_then(|name| traces.get(name))
                .map(|trace| match trace {
                    Trace::Recorded(recording) => {
                        Played::Recorded(Arc::new(recording.clone()), direction)
                    }
                    Trace::Mahimahi(opportunities) => {
                        Played::Mahimahi(Arc::new(opportunities.clone()))
                    }
                });
        check_against_trace(&way, played.as_ref())?;
        if way.oversize.is_some() && way.mtu.is_none() {
            return Err(Complaint::new(
                "oversize",
                "`oversize` says what becomes of packets above the `mtu`; expected an `mtu` too",
            ));
        }
        let rate = way.rate.map(Rate::bits_per_second);
        let jitter = match &way.jitter {
            Some(jitter) => truncated(jitter)?
                .map(|truncated| (Table::new(truncated), jitter.correlation.map(nanos))),
            None => None,
        };
        Ok(Self {
            delay_ns: way.delay.map_or(0, nanos),
            jitter,
            may_reorder: way.jitter.is_some_and(|jitter| jitter.reorder),
            loss: way.loss.unwrap_or_default().fraction(),
            bursts: way.bursts.map(|bursts| Shared {
                by_both: own.bursts.is_none(),
                value: burst_plan(&bursts),
            }),
            rate,
            queue: queue_plan(direction, way.queue.as_ref(), rate, played.as_ref())?,
            duplication: way
                .duplication
                .map(|it| (it.share.fraction(), nanos(it.apart))),
            reordering: way
                .reordering
                .map(|it| (it.share.fraction(), nanos(it.extra))),
            corruption: way.corruption.unwrap_or_default().fraction(),
            outages: Shared {
                by_both: own.outages.is_empty(),
                value: spells("outages", &way.outages)?,
            },
            stalls: Shared {
                by_both: own.stalls.is_empty(),
                value: spells("stalls", &way.stalls)?,
            },
            handover: way.handover.map(|handover| Shared {
                by_both: own.handover.is_none(),
                value: handover_plan(&handover),
            }),
            mtu: way
                .mtu
                .map(|mtu| (mtu.bytes(), way.oversize.unwrap_or_default())),
            played,
        })
    }

    /// The delay before the impairments start: the base delay, or the least that
    /// was recorded.
    pub(crate) fn calm_delay_ns(&self) -> u64 {
        match &self.played {
            Some(Played::Recorded(recording, direction)) => recording
                .steps(*direction)
                .iter()
                .map(|step| step.delay_us * 1_000)
                .min()
                .unwrap_or_default(),
            Some(Played::Mahimahi(_)) | None => self.delay_ns,
        }
    }

    /// What passes in a second in the long run, in bits: the rate, or the mean of what is
    /// played, while nothing is stalled. `None` where there is no limit, or none for a time.
    pub(crate) fn mean_rate(&self) -> Option<u64> {
        let passing = 1.0 - spells::covered(&self.stalls.value);
        mean_rate(self.rate, self.played.as_ref()).map(|rate| (rate as f64 * passing) as u64)
    }

    /// The rate before the impairments start: the rate, or the highest that was
    /// recorded, or the mean of the opportunities. `None` is no limit.
    pub(crate) fn calm_rate(&self) -> Option<u64> {
        match &self.played {
            Some(Played::Recorded(recording, direction)) => {
                let rates = recording.steps(*direction).iter();
                // All must have one; the highest is above zero, or the
                // recording could not have been built.
                let rates: Option<Vec<u64>> = rates.map(|step| step.rate_bits_per_second).collect();
                rates?.into_iter().max()
            }
            Some(Played::Mahimahi(opportunities)) => Some(opportunities.mean_bits_per_second()),
            None => self.rate,
        }
    }
}

/// What `own` says, and `both` where it is silent.
fn merge(both: &Way, own: &Way) -> Way {
    let list =
        |own: &Vec<Spell>, both: &Vec<Spell>| if own.is_empty() { both } else { own }.clone();
    Way {
        delay: own.delay.or(both.delay),
        jitter: own.jitter.or(both.jitter),
        loss: own.loss.or(both.loss),
        bursts: own.bursts.or(both.bursts),
        rate: own.rate.or(both.rate),
        queue: own.queue.or(both.queue),
        duplication: own.duplication.or(both.duplication),
        reordering: own.reordering.or(both.reordering),
        corruption: own.corruption.or(both.corruption),
        outages: list(&own.outages, &both.outages),
        stalls: list(&own.stalls, &both.stalls),
        handover: own.handover.or(both.handover),
        mtu: own.mtu.or(both.mtu),
        oversize: own.oversize.or(both.oversize),
        trace: own.trace.clone().or_else(|| both.trace.clone()),
    }
}

/// What a trace says must not be said a second time.
fn check_against_trace(way: &Way, played: Option<&Played>) -> Result<(), Complaint> {
    let recorded = match played {
        None => return Ok(()),
        Some(Played::Recorded(..)) => true,
        Some(Played::Mahimahi(_)) => false,
    };
    for (key, said) in [
        ("rate", way.rate.is_some()),
        ("stalls", !way.stalls.is_empty()),
        ("delay", recorded && way.delay.is_some()),
        ("loss", recorded && way.loss.is_some()),
    ] {
        if said {
            return Err(Complaint::new(
                key,
                format!("the trace says the {key} of this direction; expected one of the two"),
            ));
        }
    }
    Ok(())
}

/// See [`Plan::mean_rate`].
fn mean_rate(rate: Option<u64>, played: Option<&Played>) -> Option<u64> {
    match played {
        None => rate,
        Some(Played::Mahimahi(opportunities)) => Some(opportunities.mean_bits_per_second()),
        Some(Played::Recorded(recording, direction)) => recording.mean_bits_per_second(*direction),
    }
}

fn queue_plan(
    direction: Direction,
    queue: Option<&QueueWritten>,
    rate: Option<u64>,
    played: Option<&Played>,
) -> Result<QueuePlan, Complaint> {
    let mean = mean_rate(rate, played).and_then(Rate::from_bits_per_second);
    let bytes = |bound| match bound {
        QueueBound::Size(size) => Ok(size.bytes()),
        QueueBound::Span(span) => {
            mean.map(|rate| rate.bytes_in(span.duration()))
                .ok_or_else(|| {
                    Complaint::new(
                        "queue",
                        "a queue given as a time needs a `rate`; expected one, or a size such as \
                     \"64 KiB\"",
                    )
                })
        }
    };
    let has_rate = match played {
        Some(Played::Recorded(recording, direction)) => {
            let steps = recording.steps(*direction);
            steps.iter().any(|step| step.rate_bits_per_second.is_some())
        }
        Some(Played::Mahimahi(_)) | None => mean.is_some(),
    };
    if let (Some(QueueWritten::Managed(_)), false) = (queue, has_rate) {
        return Err(Complaint::new(
            "queue",
            format!(
                "`[{direction}]` has no `rate`, so nothing waits there and the discipline does \
                 nothing; say a `rate`, or this queue in the other direction alone"
            ),
        ));
    }
    let packet_time = mean.map_or(0, |rate| nanos(Span(rate.time_for(1000))));
    QueuePlan::new(queue, &bytes, packet_time)
}

fn truncated(jitter: &JitterWritten) -> Result<Option<Truncated>, Complaint> {
    let complain = |message: &str| Err(Complaint::new("jitter", message));
    let name = jitter.distribution;
    if name == DistributionName::None {
        return Ok(None);
    }
    let Some(maximum) = jitter.maximum.filter(|maximum| *maximum > Span::ZERO) else {
        return complain("jitter needs a `maximum` above 0, as in maximum = \"50 ms\"");
    };
    if jitter.correlation.is_some_and(|span| span < SHORTEST) {
        return complain("`correlation` must be at least 1 ms; leave it out for none");
    }
    let mean = jitter.mean.map(|mean| nanos(mean) as f64);
    let is = |wanted| name == wanted;
    let unused = [
        ("mean", mean.is_some() && is(DistributionName::Uniform)),
        (
            "deviation",
            jitter.deviation.is_some() && !is(DistributionName::Normal),
        ),
        (
            "shape",
            jitter.shape.is_some() && !is(DistributionName::Pareto),
        ),
    ];
    for (key, unused) in unused {
        if unused {
            return complain(&format!("this distribution of jitter has no `{key}`"));
        }
    }
    let distribution = match (name, mean) {
        (DistributionName::Uniform | DistributionName::None, _) => Distribution::Uniform,
        (DistributionName::Normal, Some(mean)) => {
            let Some(deviation) = jitter.deviation.filter(|it| *it > Span::ZERO) else {
                return complain("normal jitter needs a `deviation` above 0");
            };
            Distribution::Normal {
                mean,
                deviation: nanos(deviation) as f64,
            }
        }
        (DistributionName::Pareto, Some(mean)) if mean > 0.0 => {
            let shape = jitter.shape.unwrap_or(3.0);
            if !(shape > 1.0 && shape <= 100.0) {
                return complain("the `shape` of pareto jitter must be above 1 and at most 100");
            }
            Distribution::Pareto {
                scale: mean * (shape - 1.0),
                shape,
            }
        }
        _ => return complain("this distribution of jitter needs a `mean`, as in mean = \"5 ms\""),
    };
    let truncated = Truncated::new(distribution, nanos(maximum));
    if truncated.within() < 0.01 {
        return complain("less than 1 % of this jitter lies between 0 and its `maximum`");
    }
    Ok(Some(truncated))
}

fn burst_plan(bursts: &Bursts) -> BurstPlan {
    BurstPlan {
        onset: Onset::AfterGap {
            mean: nanos(bursts.mean_good) as f64,
        },
        length: Length::Exponential {
            mean: nanos(bursts.mean_bad) as f64,
        },
        loss_good: bursts.loss_good.fraction(),
        loss_bad: bursts.loss_bad.fraction(),
    }
}

fn handover_plan(handover: &Handover) -> HandoverPlan {
    HandoverPlan {
        every_ns: nanos(handover.every),
        extra_ns: nanos(handover.extra),
    }
}

fn at_least_shortest(key: &'static str, name: &str, span: Span) -> Result<(), Complaint> {
    if span < SHORTEST {
        return Err(Complaint::new(
            key,
            format!("`{name}` must be at least {SHORTEST}, not {span}"),
        ));
    }
    Ok(())
}

pub(crate) fn nanos(span: Span) -> u64 {
    let duration: Duration = span.duration();
    // A span is at most 10 000 hours, which fits.
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
