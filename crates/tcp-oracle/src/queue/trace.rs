//! What was seen of a queue, and how it is written down.

use std::fmt::Write as _;

use super::plan::{QueueKind, QueueSettings};

/// One play of a queue: what entered, and what left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueTrace {
    pub(super) name: String,
    pub(super) settings: QueueSettings,
    pub(super) lines: Vec<Line>,
}

/// What happened, and when, in nanoseconds of the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at: u64,
    pub(super) what: Happened,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// A packet was handed to the queue.
    In {
        tag: u64,
        flow: u32,
        bytes: u64,
        is_ecn_capable: bool,
    },
    /// A packet came out.
    Out { tag: u64, is_marked: bool },
}

impl QueueTrace {
    /// As text, which [`parse_all`](Self::parse_all) reads.
    pub(super) fn to_text(&self) -> String {
        let QueueSettings {
            kind,
            rate,
            limit,
            target_us,
            interval_us,
            quantum,
            ecn,
        } = self.settings;
        let mut text = format!(
            "queue {} {} {rate} {limit} {target_us} {interval_us} {quantum} {}\n",
            self.name,
            kind.name(),
            u8::from(ecn),
        );
        for Line { at, what } in &self.lines {
            let _ = match what {
                Happened::In {
                    tag,
                    flow,
                    bytes,
                    is_ecn_capable,
                } => {
                    let capable = u8::from(*is_ecn_capable);
                    writeln!(text, "in {at} {tag} {flow} {bytes} {capable}")
                }
                Happened::Out { tag, is_marked } => {
                    writeln!(text, "out {at} {tag} {}", u8::from(*is_marked))
                }
            };
        }
        text
    }

    /// Reads several, one after the other.
    ///
    /// # Errors
    ///
    /// The line that is not understood.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let mut all: Vec<Self> = Vec::new();
        for line in text.lines() {
            let wrong = || format!("not understood: {line}");
            let words: Vec<&str> = line.split(' ').collect();
            let numbers = words.iter().map(|word| word.parse().unwrap_or_default());
            let numbers: Vec<u64> = numbers.collect();
            match (words[0], &numbers[1..]) {
                ("queue", &[_, _, rate, limit, target_us, interval_us, quantum, ecn]) => {
                    all.push(Self {
                        name: words[1].to_owned(),
                        settings: QueueSettings {
                            kind: QueueKind::named(words[2]).ok_or_else(wrong)?,
                            rate,
                            limit,
                            target_us,
                            interval_us,
                            quantum,
                            ecn: ecn == 1,
                        },
                        lines: Vec::new(),
                    });
                }
                ("in", &[at, tag, flow, bytes, capable]) => {
                    let what = Happened::In {
                        tag,
                        flow: u32::try_from(flow).map_err(|_| wrong())?,
                        bytes,
                        is_ecn_capable: capable == 1,
                    };
                    all.last_mut()
                        .ok_or_else(wrong)?
                        .lines
                        .push(Line { at, what });
                }
                ("out", &[at, tag, marked]) => {
                    let what = Happened::Out {
                        tag,
                        is_marked: marked == 1,
                    };
                    all.last_mut()
                        .ok_or_else(wrong)?
                        .lines
                        .push(Line { at, what });
                }
                _ => return Err(wrong()),
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let trace = QueueTrace {
            name: "fq_codel-7".to_owned(),
            settings: QueueSettings {
                kind: QueueKind::FqCodel,
                rate: 125_000,
                limit: 40,
                target_us: 5_000,
                interval_us: 100_000,
                quantum: 300,
                ecn: true,
            },
            lines: vec![
                Line {
                    at: 5,
                    what: Happened::In {
                        tag: 1,
                        flow: 2,
                        bytes: 300,
                        is_ecn_capable: true,
                    },
                },
                Line {
                    at: 6,
                    what: Happened::Out {
                        tag: 1,
                        is_marked: true,
                    },
                },
            ],
        };
        let twice = trace.to_text().repeat(2);
        assert_eq!(
            QueueTrace::parse_all(&twice).unwrap(),
            [trace.clone(), trace]
        );
        assert!(QueueTrace::parse_all("out 1 2 3").is_err());
        assert!(QueueTrace::parse_all("sideways 1").is_err());
    }
}
