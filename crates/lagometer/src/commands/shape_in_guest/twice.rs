//! Two plays side by side: whether they were the same, and what differs first.

use lagometer_emu::{LoggedPacket, logged_packets};
use lagometer_guest::{Ended, Outcome};

use super::super::in_guest::packets;
use super::playing::{Captured, Kept};

/// The longest part of a line that is shown.
const SHOWN_BYTES: usize = 120;
/// The guest's clock when it boots, in nanoseconds since 1970.
const EPOCH_NS: u64 = lagometer_guest::EPOCH_S * 1_000_000_000;

/// One play.
pub(super) struct Playing<'a> {
    captured: &'a Captured,
    outcome: Outcome,
    log: Vec<u8>,
}

impl<'a> Playing<'a> {
    pub(super) fn new(captured: &'a Captured, ended: &Ended) -> Self {
        Self {
            captured,
            outcome: ended.outcome,
            log: packets(ended),
        }
    }

    /// How many lines were said.
    pub(super) fn lines(&self) -> u64 {
        self.captured.lines
    }

    /// How many packets were offered to the links.
    pub(super) fn packets(&self) -> usize {
        logged_packets(&self.log).count()
    }

    /// What differs, in words: of output and packets what differs first by the
    /// guest's clock; nothing if all is the same.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        // The commands may have removed it; one of no packets is not empty.
        if self.log.is_empty() || other.log.is_empty() {
            return Some("the log of packets is gone, so what was sent is not known".to_owned());
        }
        let line = first_difference(self.captured.kept().iter(), other.captured.kept().iter());
        let packet = (self.log != other.log)
            .then(|| first_difference(logged_packets(&self.log), logged_packets(&other.log)))
            .flatten();
        let line_at = line.map(|(_, one, two)| earlier(one, two, |line| line.at.as_nanos()));
        let packet_at = packet.map(|(_, one, two)| {
            earlier(one, two, |packet| {
                u128::from(packet.epoch_ns.saturating_sub(EPOCH_NS))
            })
        });
        match (line, packet) {
            (None, Some(packet)) => Some(about_packet(packet)),
            (Some(_), Some(packet)) if packet_at <= line_at => Some(about_packet(packet)),
            (Some(line), _) => Some(about_line(line)),
            (None, None) if self.captured.digest() != other.captured.digest() => {
                Some("the output, after the first 64 MiB".to_owned())
            }
            (None, None) if self.log != other.log => Some("the log of packets".to_owned()),
            (None, None) => (self.outcome != other.outcome).then(|| {
                format!(
                    "first {}, then {}",
                    in_words(self.outcome),
                    in_words(other.outcome)
                )
            }),
        }
    }
}

/// Where two sequences begin to differ: which element, and both.
type Difference<T> = (usize, Option<T>, Option<T>);

fn first_difference<T: PartialEq>(
    mut one: impl Iterator<Item = T>,
    mut two: impl Iterator<Item = T>,
) -> Option<Difference<T>> {
    for index in 0.. {
        let (a, b) = (one.next(), two.next());
        if a != b {
            return Some((index, a, b));
        }
        if a.is_none() {
            break;
        }
    }
    None
}

fn earlier<T: Copy>(one: Option<T>, two: Option<T>, at: impl Fn(T) -> u128) -> u128 {
    one.map(&at)
        .into_iter()
        .chain(two.map(&at))
        .min()
        .unwrap_or(u128::MAX)
}

fn about_line((index, one, two): Difference<&Kept>) -> String {
    let said = |kept: Option<&Kept>| {
        kept.map_or_else(
            || "nothing".to_owned(),
            |kept| {
                let shown = &kept.line[..kept.line.len().min(SHOWN_BYTES)];
                let text = String::from_utf8_lossy(shown);
                format!(
                    "at {:.6} s `{}`",
                    kept.at.as_secs_f64(),
                    text.escape_debug()
                )
            },
        )
    };
    format!(
        "line {} of the output was first {}, then {}",
        index + 1,
        said(one),
        said(two)
    )
}

fn about_packet((index, one, two): Difference<LoggedPacket<'_>>) -> String {
    let said = |packet: Option<LoggedPacket<'_>>| {
        packet.map_or_else(
            || "none".to_owned(),
            |packet| {
                let direction = if packet.interface % 2 == 0 {
                    "up"
                } else {
                    "down"
                };
                format!(
                    "{direction} at {:.6} s, {} B, {}",
                    packet.epoch_ns.saturating_sub(EPOCH_NS) as f64 / 1e9,
                    packet.bytes.len(),
                    packet.fate,
                )
            },
        )
    };
    let only_within = one.zip(two).is_some_and(|(one, two)| {
        one.epoch_ns == two.epoch_ns && one.bytes.len() == two.bytes.len() && one.fate == two.fate
    });
    let what = if only_within {
        "in what it holds: "
    } else {
        ""
    };
    format!(
        "packet {} differs {what}first {}, then {}",
        index + 1,
        said(one),
        said(two)
    )
}

fn in_words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Exited(code) => format!("exit code {code}"),
        Outcome::Cut(_) => "ended at its limit".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_also_at_an_end() {
        let first =
            |one: &[u32], two: &[u32]| first_difference(one.iter().copied(), two.iter().copied());
        assert_eq!(first(&[1, 2], &[1, 2]), None);
        assert_eq!(first(&[1, 2, 3], &[1, 5, 3]), Some((1, Some(2), Some(5))));
        assert_eq!(first(&[1], &[1, 2]), Some((1, None, Some(2))));
        assert_eq!(first(&[1], &[]), Some((0, Some(1), None)));
    }
}
