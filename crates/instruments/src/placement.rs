//! Where the two ends of a measurement run: what can be asked for, what there
//! is to try, and pinning a thread.
//!
//! A thread that sleeps wakes at once on the processor that wakes it and, on
//! many virtual machines, dozens of microseconds later on another one. So the
//! placement of the two ends can change an echo's rate more than anything
//! else, and left to the scheduler it changes while one measures.

use std::io;
use std::str::FromStr;

use lagometer_results::{Placement, PlacementTrial};
use thiserror::Error;

/// What a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// Measure the possible placements briefly and take the best.
    #[default]
    Best,
    /// Leave both ends to the scheduler.
    Free,
    /// Both ends on one processor.
    Same,
    /// Each end on a processor of its own.
    Cross,
    /// The local end here, the remote end there, where it is to be pinned at all.
    Cpus {
        /// The local end's processor.
        local: u32,
        /// The remote end's.
        remote: Option<u32>,
    },
}

/// A placement that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadPin {
    /// The words are not understood.
    #[error("`{0}` is no placement; write best, none, same, cross, or processors as in 0 or 0,1")]
    Unknown(String),
    /// A processor does not exist or may not be used.
    #[error("processor {asked} may not be used here; there are: {there_are}")]
    NoSuchCpu {
        /// What was asked for.
        asked: u32,
        /// Those that may be used.
        there_are: String,
    },
    /// The system does not place threads, or not for programs as this one.
    #[error("this system does not place threads on processors; leave `--pin` out, or write `none`")]
    NotHere,
    /// There is only one processor.
    #[error("there is only one processor here; `same` is all there is")]
    OnlyOne,
}

impl FromStr for Pin {
    type Err = BadPin;

    fn from_str(written: &str) -> Result<Self, BadPin> {
        let unknown = || BadPin::Unknown(written.to_owned());
        let cpu = |text: &str| text.trim().parse::<u32>().map_err(|_| unknown());
        Ok(match written.trim() {
            "best" => Self::Best,
            "none" => Self::Free,
            "same" => Self::Same,
            "cross" => Self::Cross,
            list => match list.split_once(',') {
                Some((local, remote)) => Self::Cpus {
                    local: cpu(local)?,
                    remote: Some(cpu(remote)?),
                },
                None => Self::Cpus {
                    local: cpu(list)?,
                    remote: None,
                },
            },
        })
    }
}

/// One placement of the two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// The local end's processor; any where there is none.
    pub local: Option<u32>,
    /// The remote end's.
    pub remote: Option<u32>,
}

impl Spot {
    /// Both ends share a processor, as far as is known.
    #[must_use]
    pub fn is_shared(self) -> bool {
        self.local.is_some() && self.local == self.remote
    }

    /// In a few words. `own_remote` says that both ends are on this machine.
    #[must_use]
    pub const fn name(self, own_remote: bool) -> &'static str {
        match (self.local, self.remote) {
            (None, None) => "left to the scheduler",
            (Some(local), Some(remote)) if own_remote && local == remote => "same core",
            (Some(_), Some(_)) if own_remote => "cross core",
            (Some(_), Some(_)) => "both ends pinned",
            (Some(_), None) => "local end pinned",
            (None, Some(_)) => "remote end pinned",
        }
    }

    /// As the document has it.
    #[must_use]
    pub fn into_document(
        self,
        own_remote: bool,
        asked: bool,
        tried: Vec<PlacementTrial>,
    ) -> Placement {
        Placement {
            name: self.name(own_remote).to_owned(),
            local_cpu: self.local,
            remote_cpu: self.remote,
            asked,
            tried,
        }
    }

    /// As the document has a trial.
    #[must_use]
    pub fn trial(self, own_remote: bool, rate: f64) -> PlacementTrial {
        PlacementTrial {
            name: self.name(own_remote).to_owned(),
            local_cpu: self.local,
            remote_cpu: self.remote,
            rate,
        }
    }
}

/// Partners of the first processor that are tried: its siblings and some distant
/// from it, few enough that trying stays short.
const PARTNERS: usize = 4;

impl Pin {
    /// The placements to try, the usual best first; one where there is nothing
    /// to choose. `cpus` are those that may be used here; `own_remote` says that
    /// the remote end runs here too.
    ///
    /// # Errors
    ///
    /// [`BadPin`] where what is asked for cannot be had.
    pub fn spots(self, cpus: &[u32], own_remote: bool) -> Result<Vec<Spot>, BadPin> {
        let first = cpus.first().copied();
        let check = |cpu: u32| {
            if cpus.contains(&cpu) {
                return Ok(());
            }
            if cpus.is_empty() {
                return Err(BadPin::NotHere);
            }
            let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
            Err(BadPin::NoSuchCpu {
                asked: cpu,
                there_are: list.join(", "),
            })
        };
        let pair = |local, remote| Spot {
            local: Some(local),
            remote: Some(remote),
        };
        let same = first.map_or(Spot::default(), |cpu| pair(cpu, cpu));
        Ok(match self {
            Self::Free => vec![Spot::default()],
            Self::Same if own_remote => vec![same],
            Self::Cross if own_remote => match cpus {
                [first, .., last] => vec![pair(*last, *first)],
                [] => return Err(BadPin::NotHere),
                _ => return Err(BadPin::OnlyOne),
            },
            // The remote end's machine is not ours to arrange.
            Self::Same | Self::Cross => vec![Spot {
                local: first,
                remote: None,
            }],
            Self::Cpus { local, remote } => {
                check(local)?;
                if let Some(remote) = remote.filter(|_| own_remote) {
                    check(remote)?;
                }
                vec![Spot {
                    local: Some(local),
                    remote,
                }]
            }
            Self::Best if own_remote => {
                let others = cpus.iter().skip(1);
                let step = (cpus.len().saturating_sub(1)).div_ceil(PARTNERS).max(1);
                let cross = others
                    .step_by(step)
                    .filter_map(|&other| first.map(|first| pair(other, first)));
                // What is left to the scheduler changes while one measures, so
                // it is no choice to be made from a short trial.
                let mut spots = vec![same];
                if let [_, .., last] = cpus {
                    spots.push(pair(*last, *last));
                }
                spots.extend(cross);
                spots
            }
            Self::Best => {
                let step = cpus.len().div_ceil(PARTNERS).max(1);
                let pinned = cpus.iter().step_by(step).map(|&cpu| Spot {
                    local: Some(cpu),
                    remote: None,
                });
                std::iter::once(Spot::default()).chain(pinned).collect()
            }
        })
    }
}

/// The processors that this process may use, in order; none where threads cannot be
/// placed.
#[must_use]
pub fn usable_cpus() -> Vec<u32> {
    lagometer_platform::processors()
        .into_iter()
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect()
}

/// Keeps the calling thread on processor `cpu`; does nothing where there is
/// none.
///
/// # Errors
///
/// What the system says: there is no such processor, or it may not be used.
pub fn pin_this_thread(cpu: Option<u32>) -> io::Result<()> {
    match cpu {
        Some(cpu) => lagometer_platform::place_thread(&[cpu as usize]),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn spot(local: u32, remote: u32) -> Spot {
        Spot {
            local: Some(local),
            remote: Some(remote),
        }
    }

    #[test]
    fn placements_are_understood() {
        assert_eq!("best".parse(), Ok(Pin::Best));
        assert_eq!("none".parse(), Ok(Pin::Free));
        assert_eq!(
            " 0,3".parse(),
            Ok(Pin::Cpus {
                local: 0,
                remote: Some(3)
            })
        );
        assert_eq!(
            "2".parse(),
            Ok(Pin::Cpus {
                local: 2,
                remote: None
            })
        );
        for wrong in ["", "x", "-1", "0,", "0,1,2", "99999999999"] {
            assert!(wrong.parse::<Pin>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn one_placement_is_taken_where_one_is_asked_for() {
        let cpus = [2, 5, 7];
        assert_eq!(Pin::Same.spots(&cpus, true), Ok(vec![spot(2, 2)]));
        assert_eq!(Pin::Cross.spots(&cpus, true), Ok(vec![spot(7, 2)]));
        assert_eq!(Pin::Free.spots(&cpus, true), Ok(vec![Spot::default()]));
        assert_eq!(Pin::Cross.spots(&[4], true), Err(BadPin::OnlyOne));
        assert_eq!(Pin::Cross.spots(&[], true), Err(BadPin::NotHere));
        let there = Pin::Cpus {
            local: 5,
            remote: Some(99),
        };
        assert!(there.spots(&cpus, true).is_err());
        assert_eq!(there.spots(&[], false), Err(BadPin::NotHere));
        assert_eq!(there.spots(&cpus, false), Ok(vec![spot(5, 99)]));
    }

    #[test]
    fn the_best_is_sought_among_few() {
        let spots = Pin::Best.spots(&[0, 1], true).unwrap();
        assert_eq!(spots, [spot(0, 0), spot(1, 1), spot(1, 0)]);
        let many: Vec<u32> = (0..256).collect();
        assert!(Pin::Best.spots(&many, true).unwrap().len() <= PARTNERS + 2);
        assert!(Pin::Best.spots(&many, false).unwrap().len() <= PARTNERS + 2);
        assert_eq!(Pin::Best.spots(&[], true).unwrap(), [Spot::default()]);
    }

    #[test]
    fn a_thread_can_be_pinned_where_the_process_may_run() {
        let cpu = usable_cpus()[0];
        let here = std::thread::spawn(move || {
            pin_this_thread(Some(cpu)).unwrap();
            usable_cpus()
        });
        assert_eq!(here.join().unwrap(), [cpu]);
        assert!(pin_this_thread(Some(u32::MAX)).is_err());
    }
}
