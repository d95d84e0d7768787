//! How equally a bottleneck was shared.

/// Jain's index of what several got: 1 where all got the same, 1/n where one of n
/// got all (Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and
/// Discrimination for Resource Allocation in Shared Computer Systems", DEC-TR-301,
/// 1984). None for fewer than two, or where nobody got anything.
#[must_use]
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_one_for_equals_and_one_nth_for_one_who_has_all() {
        let near = |shares: &[f64], index: f64| {
            jain_index(shares).is_some_and(|found| (found - index).abs() < 1e-9)
        };
        assert!(near(&[7.0, 7.0, 7.0], 1.0));
        assert!(near(&[9.0, 0.0, 0.0, 0.0], 0.25));
        assert!(near(&[1.0, 3.0], 0.8));
        assert_eq!(jain_index(&[5.0]), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }
}
