//! Families of metrics, built anew for each scrape.

use std::collections::BTreeMap;

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

use crate::core::{BUCKET_ENDS_US, Buckets};

/// What sort of number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Families by their name.
#[derive(Debug, Default)]
pub(super) struct Families {
    by_name: BTreeMap<&'static str, MetricFamily>,
}

impl Families {
    /// Adds one number.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        name: &'static str,
        help: &str,
        labels: &[(&str, &str)],
        value: f64,
    ) {
        let mut metric = labelled(labels);
        let field_type = match kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
                MetricType::COUNTER
            }
            Kind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
                MetricType::GAUGE
            }
        };
        self.push(name, help, field_type, metric);
    }

    /// Adds durations that were counted in buckets, in seconds.
    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        help: &str,
        labels: &[(&str, &str)],
        buckets: &Buckets,
    ) {
        let mut histogram = Histogram::default();
        let mut so_far = 0;
        let cumulative = BUCKET_ENDS_US
            .iter()
            .zip(buckets.counts)
            .map(|(&end_us, count)| {
                so_far += count;
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(end_us as f64 / 1e6);
                bucket.set_cumulative_count(so_far);
                bucket
            })
            .collect();
        histogram.set_bucket(cumulative);
        histogram.set_sample_count(buckets.count());
        histogram.set_sample_sum(buckets.sum_ns as f64 / 1e9);
        let mut metric = labelled(labels);
        metric.set_histogram(histogram);
        self.push(name, help, MetricType::HISTOGRAM, metric);
    }

    pub(super) fn into_families(self) -> Vec<MetricFamily> {
        self.by_name.into_values().collect()
    }

    fn push(&mut self, name: &'static str, help: &str, field_type: MetricType, metric: Metric) {
        let family = self.by_name.entry(name).or_insert_with(|| {
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_field_type(field_type);
            family
        });
        family.mut_metric().push(metric);
    }
}

fn labelled(labels: &[(&str, &str)]) -> Metric {
    Metric::from_label(
        labels
            .iter()
            .map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name((*name).to_owned());
                pair.set_value((*value).to_owned());
                pair
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use prometheus::{Encoder, TextEncoder};

    use super::*;

    #[test]
    fn names_and_labels_stay_as_they_are_given() {
        let mut families = Families::default();
        for (peer, value) in [("SERVER", 1.0), ("CLIENT", 2.0)] {
            let labels = &[("connType", peer)];
            families.add(Kind::Counter, "messages_in", "Messages", labels, value);
        }
        let mut buckets = Buckets::default();
        (buckets.counts[0], buckets.counts[12], buckets.sum_ns) = (3, 1, 5_000_000_000);
        families.histogram("late_seconds", "Late", &[], &buckets);
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&families.into_families(), &mut text)
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            "# TYPE messages_in counter",
            "messages_in{connType=\"SERVER\"} 1",
            "messages_in{connType=\"CLIENT\"} 2",
            "late_seconds_bucket{le=\"0.0001\"} 3",
            "late_seconds_bucket{le=\"2\"} 3",
            "late_seconds_bucket{le=\"+Inf\"} 4",
            "late_seconds_sum 5",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
