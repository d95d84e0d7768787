//! What the lanes of a speed run say together, in one sentence.

use std::fmt::Write as _;

use crate::document::{Bulk, Lane};

/// Which lane carried most, which least, and what was lost.
#[must_use]
pub fn speed_verdict(lanes: &[Lane]) -> String {
    let mut carried: Vec<(&str, &Bulk)> = lanes
        .iter()
        .filter_map(|lane| Some((lane.lane.as_str(), lane.bulk.as_ref()?)))
        .filter(|(_, bulk)| bulk.received_bytes > 0)
        .collect();
    carried.sort_by(|(_, one), (_, other)| other.recv_mbit_per_s.total_cmp(&one.recv_mbit_per_s));
    let (Some((fastest, most)), Some((slowest, least))) = (carried.first(), carried.last()) else {
        return "Nothing was carried.".to_owned();
    };
    let mut text = format!("{fastest} carries {}", rate(most.recv_mbit_per_s));
    if carried.len() > 1 {
        let times = most.recv_mbit_per_s / least.recv_mbit_per_s.max(0.01);
        let _ = write!(
            text,
            ", {times:.1} times as much as {slowest} with {} ({})",
            rate(least.recv_mbit_per_s),
            match most.rate_per_seed.len().min(least.rate_per_seed.len()) {
                0 | 1 => "one measurement of each".to_owned(),
                seeds => format!("means of {seeds} seeds"),
            }
        );
    }
    let losers: Vec<String> = carried
        .iter()
        .filter(|(_, bulk)| bulk.loss_pct > 0.0)
        .map(|(name, bulk)| format!("{name} loses {} %", bulk.loss_pct))
        .collect();
    if !losers.is_empty() {
        let _ = write!(text, "; {}", losers.join(", "));
    }
    text + "."
}

/// A rate in the unit in which it has one to three digits.
fn rate(mbit_per_s: f64) -> String {
    if mbit_per_s >= 1000.0 {
        format!("{:.2} Gbit/s", mbit_per_s / 1000.0)
    } else {
        format!("{mbit_per_s:.1} Mbit/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::figures;

    fn lane(name: &str, recv_mbit_per_s: f64, loss_pct: f64) -> Lane {
        Lane {
            bulk: Some(Bulk {
                recv_mbit_per_s,
                loss_pct,
                received_bytes: 1,
                ..Bulk::default()
            }),
            ..figures(&[], &[], None).into_lane(name, name)
        }
    }

    #[test]
    fn the_fastest_the_slowest_and_what_is_lost() {
        let lanes = [
            lane("kcp", 15_000.0, 0.0),
            lane("udp", 7_500.0, 1.25),
            lane("enet", 500.0, 0.0),
        ];
        assert_eq!(
            speed_verdict(&lanes),
            "kcp carries 15.00 Gbit/s, 30.0 times as much as enet with 500.0 Mbit/s (one measurement of each); \
             udp loses 1.25 %."
        );
        assert_eq!(speed_verdict(&lanes[..1]), "kcp carries 15.00 Gbit/s.");
        assert_eq!(speed_verdict(&[]), "Nothing was carried.");
    }
}
