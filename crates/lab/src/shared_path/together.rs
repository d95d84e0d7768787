//! When all other traffic of a direction is on.

use lagometer_link::Direction;
use lagometer_link::cross::Cross;
use lagometer_units::Time;

use crate::plan::Plan;

type Stretch = (Time, Time);

/// The stretches of what is measured in which all of `crosses` that have data in
/// `direction` are on, in order. What cannot be on before the end does not count.
pub(super) fn together(plan: &Plan, crosses: &[Cross], direction: Direction) -> Vec<Stretch> {
    let starts = plan.measuring_starts();
    let from = Time::ZERO + plan.offset;
    let until = from + plan.duration;
    let end = plan.offset + plan.duration;
    let contending = (0_u64..).zip(crosses).filter(|(_, cross)| {
        Direction::from(cross.direction) == direction && cross.may_start_before(end)
    });
    let all = contending.fold(vec![(from, until)], |on, (position, cross)| {
        let begun = cross.stretches(plan.seed, position);
        let begun: Vec<_> = begun.take_while(|(start, _)| *start < until).collect();
        both(&on, &begun)
    });
    let at = |time: Time| starts + time.since(Time::ZERO);
    all.into_iter()
        .map(|(start, end)| (at(start), at(end)))
        .collect()
}

/// What lies in both.
fn both(one: &[Stretch], other: &[Stretch]) -> Vec<Stretch> {
    let (mut i, mut j) = (0, 0);
    let mut found = Vec::new();
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        let (start, end) = (a.0.max(b.0), a.1.min(b.1));
        if start < end {
            found.push((start, end));
        }
        if a.1 < b.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_in_both_is_left() {
        let at = |stretches: &[(u64, u64)]| -> Vec<Stretch> {
            let one = |&(start, end)| (Time::from_millis(start), Time::from_millis(end));
            stretches.iter().map(one).collect()
        };
        let found = both(
            &at(&[(0, 10), (20, 30), (40, 50)]),
            &at(&[(5, 25), (30, 45)]),
        );
        assert_eq!(found, at(&[(5, 10), (20, 25), (40, 45)]));
        assert_eq!(both(&at(&[(0, 10)]), &at(&[(10, 20)])), []);
    }
}
