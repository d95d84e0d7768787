//! What our engine is played beside, and the rules it plays by then.

use kcp_oracle::{Oracle, Reference};
use lagometer_kcp::Rules;
use lagometer_units::Span;

/// What our engine is played beside.
#[derive(Clone, Copy)]
pub(crate) enum Beside {
    Reference(Reference),
    /// Nothing, by the rules of 2015: only the digest says anything.
    NothingOf2015,
}

impl Beside {
    pub(crate) const fn is_of_2015(self) -> bool {
        match self {
            Self::Reference(reference) => reference.is_of_2015(),
            Self::NothingOf2015 => true,
        }
    }
}

/// The rules of 2015. There were two sources, which differ in the shortest interval that
/// may be set.
pub(crate) fn rules_of_2015(interval_floor: Span) -> Rules {
    Rules {
        interval_floor,
        ..Rules::of_2015()
    }
}

/// The shortest interval that may be set in a reference.
pub(crate) fn interval_floor(reference: Reference) -> Span {
    let mut shortest = Oracle::of(reference, 0);
    shortest.nodelay(0, 1, 0, 0);
    Span::from_millis(shortest.interval().into())
}
