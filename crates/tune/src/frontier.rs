//! Of which points none is better in two ways at once.

/// The places of the points that no other is at least as good as in both figures
/// and better in one, less being better, from the least first figure on. Of equal
/// points the first.
#[must_use]
pub fn frontier(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        let (one, other) = (points[a], points[b]);
        let by_first = one.0.total_cmp(&other.0);
        by_first.then(one.1.total_cmp(&other.1)).then(a.cmp(&b))
    });
    let mut best = f64::INFINITY;
    order.retain(|&place| {
        let better = points[place].1 < best;
        if better {
            best = points[place].1;
        }
        better
    });
    order
}

/// At most `most` places of a frontier, both ends and others evenly between them.
#[must_use]
pub fn thinned(places: &[usize], most: usize) -> Vec<usize> {
    if places.len() <= most || most < 2 {
        return places.iter().copied().take(most).collect();
    }
    (0..most)
        .map(|nth| places[nth * (places.len() - 1) / (most - 1)])
        .collect()
}
