//! Taking the best of several placements by trying each.

use lagometer_results::PlacementTrial;

use crate::error::Error;
use crate::placement::Spot;

/// A later placement must be better than an earlier one by this factor: equal
/// ones differ by luck, and the earlier ones are steadier.
const CLEARLY_BETTER: f64 = 1.05;

/// Tries every one of `spots` (at least one) with `attempt`, which returns a
/// rate, or nothing where the user stopped it; the best, with what each gave.
/// A single one is not tried.
///
/// # Errors
///
/// What `attempt` says, where no placement worked.
pub(crate) fn best(
    spots: &[Spot],
    own_remote: bool,
    mut attempt: impl FnMut(Spot) -> Result<Option<f64>, Error>,
) -> Result<(Spot, Vec<PlacementTrial>), Error> {
    let first = spots.first().copied().unwrap_or_default();
    if spots.len() < 2 {
        return Ok((first, Vec::new()));
    }
    let mut best = (first, 0.0);
    let mut tried = Vec::new();
    let mut failed = None;
    for &spot in spots {
        match attempt(spot) {
            Ok(Some(rate)) => {
                tried.push(spot.trial(own_remote, rate));
                if rate > best.1 * CLEARLY_BETTER {
                    best = (spot, rate);
                }
            }
            Ok(None) => break,
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if tried.is_empty() => Err(error),
        _ => Ok((best.0, tried)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clearly_best_is_taken_and_the_earlier_of_equals() {
        let spots: Vec<Spot> = (0..3)
            .map(|cpu| Spot {
                local: Some(cpu),
                remote: Some(0),
            })
            .collect();
        for (rates, chosen) in [
            ([100.0, 101.0, 102.0], 0),
            ([100.0, 300.0, 310.0], 1),
            ([10.0, 9.0, 30.0], 2),
        ] {
            let mut rates = rates.into_iter();
            let (spot, tried) = best(&spots, true, |_| Ok(rates.next())).unwrap();
            assert_eq!(spot, spots[chosen]);
            assert_eq!(tried.len(), 3);
        }
        let (spot, tried) = best(&spots[..1], true, |_| unreachable!()).unwrap();
        assert_eq!((spot, tried.len()), (spots[0], 0));
    }
}
