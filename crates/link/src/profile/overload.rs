//! Traffic that nothing slows down before a queue without a bound: it would take the
//! memory of the machine.

use lagometer_units::Rate;
use thiserror::Error;

use super::Profile;
use super::cross::{Cross, CrossKind};
use crate::Direction;

/// Other traffic that sends all that a direction lets through or more, where what comes on
/// top of that would wait without end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "other traffic ({}) sends {offered} {direction} however much is lost, but {rate} pass there \
     and the queue has no bound: say a `queue` under `[{direction}]`, as in \"200 ms\", or a lower \
     `rate`",
    list(.names)
)]
pub struct Overload {
    /// Where its data go.
    pub direction: Direction,
    /// What sends at a rate of its own there, up to the one that is too much.
    pub names: Vec<String>,
    /// The place among all other traffic of the one that is too much.
    pub place: usize,
    /// What they send together.
    pub offered: Rate,
    /// What passes.
    pub rate: Rate,
}

fn list(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// What it sends in a second however little comes through, in bits: TCP adapts to
/// anything, a call to its lowest rate.
fn unyielding(cross: &Cross) -> u64 {
    match cross.kind {
        CrossKind::Bulk | CrossKind::Web => 0,
        CrossKind::Call => cross.least(),
        CrossKind::Constant => cross.rate.map_or(0, Rate::bits_per_second),
    }
}

impl Profile {
    /// Whether `crosses`, as other traffic of this network, would fill a queue that has
    /// no bound. When they flow does not count: an hour would be enough.
    ///
    /// # Errors
    ///
    /// [`Overload`] for the first with which those of its direction send its rate or more.
    pub fn check_overload(&self, crosses: &[Cross]) -> Result<(), Overload> {
        [Direction::Up, Direction::Down]
            .into_iter()
            .try_for_each(|direction| match self.unbounded_rate(direction) {
                Some(rate) => check(crosses, direction, rate),
                None => Ok(()),
            })
    }

    /// What passes in a direction whose queue has no bound.
    fn unbounded_rate(&self, direction: Direction) -> Option<Rate> {
        if !self.has_unbounded_queue(direction) {
            return None;
        }
        self.plan(direction)
            .mean_rate()
            .and_then(Rate::from_bits_per_second)
    }
}

fn check(crosses: &[Cross], direction: Direction, rate: Rate) -> Result<(), Overload> {
    let mut offered = 0_u64;
    let mut names = Vec::new();
    for (place, cross) in crosses.iter().enumerate() {
        let bits = unyielding(cross);
        if Direction::from(cross.direction) != direction || bits == 0 {
            continue;
        }
        names.push(cross.name().to_owned());
        offered = offered.saturating_add(bits);
        if let Some(offered) = Rate::from_bits_per_second(offered)
            && offered.bits_per_second() >= rate.bits_per_second()
        {
            return Err(Overload {
                direction,
                names,
                place,
                offered,
                rate,
            });
        }
    }
    Ok(())
}
