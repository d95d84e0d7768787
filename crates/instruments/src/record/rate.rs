//! The rate of a path from trains: packets that left back to back arrive
//! spread out by the slowest hop of the path (packet-pair dispersion;
//! Dovrolis, Ramanathan and Moore, "What do packet dispersion techniques
//! measure?", INFOCOM 2001).

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_units::{Encapsulation, Time};

use crate::record::probe::{TRAIN_BYTES, TRAIN_LENGTH};

/// Headers fill the path too.
const HEADER_BYTES: usize = Encapsulation::UdpIpv4.header_bytes() as usize;

/// A train that arrives within less measures the machine, not of the path.
const LEAST_SPREAD: Duration = Duration::from_millis(1);

/// A packet of a train, as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrainArrival {
    pub(crate) train: u32,
    pub(crate) place: u8,
    pub(crate) at: Time,
}

/// The median of what the trains met, in bits per second; `None` if none
/// shows: the path is too fast, or half of every train was lost.
pub(crate) fn bits_per_second(arrivals: &[TrainArrival]) -> Option<u64> {
    let mut trains: BTreeMap<u32, Vec<TrainArrival>> = BTreeMap::new();
    for arrival in arrivals {
        trains.entry(arrival.train).or_default().push(*arrival);
    }
    let mut rates: Vec<u64> = trains
        .values()
        .filter_map(|train| of_train(train))
        .collect();
    // Most trains must show it, or those that do are those that met others.
    if rates.len() * 2 < trains.len() || rates.is_empty() {
        return None;
    }
    rates.sort_unstable();
    Some(rates[rates.len() / 2])
}

fn of_train(train: &[TrainArrival]) -> Option<u64> {
    let first = train.iter().min_by_key(|packet| packet.at)?;
    let last = train.iter().max_by_key(|packet| packet.at)?;
    let spread = last.at.since(first.at);
    if train.len() * 2 < usize::from(TRAIN_LENGTH) || spread < LEAST_SPREAD {
        return None;
    }
    let bits = (train.len() - 1) * (TRAIN_BYTES + HEADER_BYTES) * 8;
    Some((bits as f64 / spread.as_secs_f64()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(number: u32, apart: Duration, packets: u8) -> Vec<TrainArrival> {
        (0..packets)
            .map(|place| TrainArrival {
                train: number,
                place,
                at: Time::from_secs(u64::from(number)) + apart * u32::from(place),
            })
            .collect()
    }

    #[test]
    fn the_spread_of_a_train_shows_the_rate() {
        // 1228 bytes each 982.4 µs are 10 Mbit/s.
        let mut arrivals: Vec<TrainArrival> = (0..9)
            .flat_map(|number| train(number, Duration::from_nanos(982_400), TRAIN_LENGTH))
            .collect();
        let rate = bits_per_second(&arrivals).unwrap();
        assert!(rate.abs_diff(10_000_000) < 1000, "{rate}");
        // One train that met another's traffic changes nothing.
        arrivals.extend(train(9, Duration::from_millis(5), TRAIN_LENGTH));
        assert_eq!(bits_per_second(&arrivals), Some(rate));
    }

    #[test]
    fn a_fast_path_and_torn_trains_show_nothing() {
        assert_eq!(bits_per_second(&[]), None);
        let fast = train(0, Duration::from_micros(10), TRAIN_LENGTH);
        assert_eq!(bits_per_second(&fast), None);
        let torn = train(0, Duration::from_millis(1), TRAIN_LENGTH / 2 - 1);
        assert_eq!(bits_per_second(&torn), None);
    }
}
