//! Documents of the schema before, as this version has them.
//!
//! `lagometer/1` took the quantiles of round trips over the messages that were
//! delivered. Its histograms and counts hold all that is needed to take them
//! over all intended ones; what was kept by seed or draw does not, and is left
//! out where a message was lost.

use lagometer_stats::{Distribution, in_millis, nanos, position};

use super::{CensoredQuantiles, Document, Lane, Population, Quantiles, SCHEMA};
use crate::metric::Statistic;

/// Makes a document of `lagometer/1`, read as one of this version, say what
/// this version means by its fields.
pub(super) fn from_first(document: &mut Document) {
    SCHEMA.clone_into(&mut document.schema);
    for lane in &mut document.lanes {
        lane.rtt_delivered_ms = plain(&lane.rtt_ms);
        lane.rtt_ms = over_all(lane);
        if lane.messages.lost > 0
            && let Some(resamples) = &mut lane.resamples
        {
            let is_quantile = |name: &String| name.starts_with("rtt_ms.");
            resamples.values.retain(|name, _| !is_quantile(name));
        }
        for seed in &mut lane.per_seed {
            if seed.messages.lost == 0 {
                seed.rtt_ms.of = Population::Intended;
            }
        }
    }
}

fn plain(quantiles: &CensoredQuantiles) -> Quantiles {
    let [min, p50, p90, p99, p99_9, max, mean] = [
        quantiles.min,
        quantiles.p50,
        quantiles.p90,
        quantiles.p99,
        quantiles.p99_9,
        quantiles.max,
        quantiles.mean,
    ]
    .map(Option::unwrap_or_default);
    Quantiles {
        min,
        p50,
        p90,
        p99,
        p99_9,
        max,
        mean,
    }
}

/// The quantiles over all intended messages, from those over the delivered ones
/// where the two cannot differ and otherwise from the histogram.
fn over_all(lane: &Lane) -> CensoredQuantiles {
    let messages = &lane.messages;
    let delivered = &lane.rtt_delivered_ms;
    let histogram = Distribution::from_base64(&lane.histogram).unwrap_or_default();
    let at = |statistic: Statistic| {
        let position = position(statistic.per_mille()?, messages.delivered, messages.lost);
        let value = position.value(|rank| match messages.lost {
            0 => statistic.of(delivered),
            _ if rank == 1 => delivered.min,
            _ => in_millis(nanos(histogram.at_rank(rank))),
        });
        value.filter(|value| value.is_finite())
    };
    CensoredQuantiles {
        of: Population::Intended,
        min: at(Statistic::Min),
        p50: at(Statistic::P50),
        p90: at(Statistic::P90),
        p99: at(Statistic::P99),
        p99_9: at(Statistic::P99_9),
        max: at(Statistic::Max),
        mean: (messages.lost == 0 && messages.delivered > 0).then_some(delivered.mean),
    }
}
