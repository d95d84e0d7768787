//! Reading what people write of other traffic, where the type alone would not say
//! what was expected.

use std::fmt;

use lagometer_units::BadInput;
use serde::Deserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};

use super::{Cross, FLOWS_AT_MOST};
use crate::written::Spell;

/// Reads all other traffic of a link; for `#[serde(deserialize_with)]`.
///
/// # Errors
///
/// Where it is no list of tables: with one bracket, `[cross]`, it is a table.
pub fn listed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cross>, D::Error> {
    struct Listed;

    impl<'de> Visitor<'de> for Listed {
        type Value = Vec<Cross>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("other traffic, each under a `[[cross]]` of its own")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut crosses = Vec::new();
            while let Some(cross) = seq.next_element()? {
                crosses.push(cross);
            }
            Ok(crosses)
        }

        fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
            Err(A::Error::custom(
                "other traffic is said with two brackets, for there may be several: `[[cross]]`",
            ))
        }
    }

    deserializer.deserialize_seq(Listed)
}

/// Reads when it flows, which is some time or other.
pub(super) fn when<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Spell>, D::Error> {
    struct Times;

    impl<'de> Visitor<'de> for Times {
        type Value = Vec<Spell>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of times, as in [{ at = \"10 s\", for = \"20 s\" }]")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut when = Vec::new();
            while let Some(spell) = seq.next_element()? {
                when.push(spell);
            }
            Ok(when)
        }
    }

    let when = deserializer.deserialize_seq(Times)?;
    if when.is_empty() {
        return Err(D::Error::custom(
            "with an empty `when` it would never flow; leave `when` out for always, or say one as \
             in [{ at = \"10 s\", for = \"20 s\" }]",
        ));
    }
    Ok(when)
}

/// Names what may be said where other traffic or a queue lacks a key that has no
/// default, and where other traffic belongs.
#[must_use]
pub fn name_choices(mut bad: BadInput) -> BadInput {
    for (what, key, choices) in [
        (
            "other traffic",
            "kind",
            "`bulk`, `web`, `call` or `constant`",
        ),
        (
            "other traffic",
            "direction",
            "`up` (from the player's side) or `down` (to it)",
        ),
        (
            "a `queue` with settings",
            "discipline",
            "`drop-tail`, `codel`, `fq-codel`, `cake` or `red`",
        ),
    ] {
        if bad.message == format!("missing field `{key}`") {
            bad.message = format!("{what} needs a `{key}`: {choices}");
        }
    }
    if bad.message.starts_with("unknown field `cross`") {
        "other traffic is on the link, not in a section of it: move it out, under `[[cross]]`"
            .clone_into(&mut bad.message);
    }
    bad
}

/// Reads how many connections there are at the same time.
pub(super) fn flows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Flows;

    impl Visitor<'_> for Flows {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a whole number between 1 and {FLOWS_AT_MOST}")
        }

        fn visit_i64<E: Error>(self, said: i64) -> Result<u32, E> {
            let flows = u32::try_from(said).ok();
            flows.ok_or_else(|| out_of_range(said))
        }

        fn visit_u64<E: Error>(self, said: u64) -> Result<u32, E> {
            let flows = u32::try_from(said).ok();
            flows.ok_or_else(|| out_of_range(said))
        }
    }

    deserializer.deserialize_u32(Flows).map(Some)
}

fn out_of_range<E: Error>(said: impl fmt::Display) -> E {
    E::custom(format!(
        "`flows` must be between 1 and {FLOWS_AT_MOST}, and is {said}"
    ))
}
