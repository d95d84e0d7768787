//! What the emulator's own errors may be in a run that is valid.

use serde::Serialize;

use super::{Audit, Spread, WayAudit};

/// Limits of the emulator's own errors. Each direction of each lane is held to those
/// of delay and loss by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Band {
    /// Median release error, in microseconds.
    pub release_p50_us: f64,
    /// 99th percentile of the release error, in microseconds.
    pub release_p99_us: f64,
    /// Median error by the kernel's stamps, in microseconds.
    pub outside_p50_us: f64,
    /// 99th percentile of the error by the kernel's stamps, in microseconds.
    pub outside_p99_us: f64,
    /// Share of a direction's delivered packets that the kernel's stamps may not have
    /// followed, per cent, where hosts are tapped.
    pub unseen_pct: f64,
    /// How far realised and asked mean delay may be apart, in milliseconds.
    pub mean_delay_ms: f64,
    /// How far realised and asked loss may be apart, in percentage points.
    pub loss_points: f64,
    /// The longest absence of the router, in milliseconds: as it knows itself, and as
    /// the kernel's stamps show it in the packet that was longest under way.
    pub absence_ms: f64,
}

impl Default for Band {
    /// Limits below which an error cannot be mistaken for a difference between
    /// transports, whose delays are tens of milliseconds: a tenth of a millisecond in
    /// the middle, one at the edge, one packet in ten thousand, and no absence as long
    /// as the shortest intervals of a game, some of which are 15 ms. By the kernel's
    /// stamps, in which the router's waking is, twice to three times as much. If more
    /// than a hundredth of the packets had no stamps, nobody would know whether the
    /// 99th percentile is within its limit.
    fn default() -> Self {
        Self {
            release_p50_us: 100.0,
            release_p99_us: 1000.0,
            outside_p50_us: 300.0,
            outside_p99_us: 2000.0,
            unseen_pct: 1.0,
            mean_delay_ms: 0.2,
            loss_points: 0.01,
            absence_ms: 10.0,
        }
    }
}

/// A way with fewer packets has no 99th percentile and no mean of its own: one packet
/// would be them. It is in those of all ways together.
const JUDGED_ALONE: u64 = 200;

/// So few packets without stamps are no share of a way, as long as it has others: a
/// hundredth of [`JUDGED_ALONE`].
const FEW_UNSEEN: u64 = 2;

/// A rule for each way: what is held, in which unit, against which limit.
struct Rule {
    what: &'static str,
    unit: &'static str,
    limit: f64,
    of: fn(&WayAudit) -> Option<f64>,
}

impl Band {
    /// What of `audit` is outside the band, each in a sentence.
    pub(super) fn faults(&self, audit: &Audit) -> Vec<String> {
        let mut faults: Vec<String> = self
            .rules()
            .iter()
            .filter_map(|rule| rule.fault(audit))
            .collect();
        let mut hold = |value: f64, limit: f64, what: &str, unit: &str| {
            if value > limit {
                faults.push(beyond(what, value, limit, unit));
            }
        };
        let all = &audit.release_error_us;
        hold(
            all.p50,
            self.release_p50_us,
            "median release error of all",
            "us",
        );
        hold(
            all.p99,
            self.release_p99_us,
            "99th percentile of the release error of all",
            "us",
        );
        let seen = audit.outside_error_us.unwrap_or_default();
        hold(
            seen.p99,
            self.outside_p99_us,
            "99th percentile of the error by the kernel's stamps of all",
            "us",
        );
        hold(
            audit.longest_absence_us / 1000.0,
            self.absence_ms,
            "the router was away for",
            "ms",
        );
        let malformed: u64 = audit
            .lanes
            .iter()
            .map(|lane| lane.up.malformed + lane.down.malformed)
            .sum();
        if malformed > 0 {
            faults.push(format!(
                "{malformed} packets were longer than the MTU or of another length than they said"
            ));
        }
        faults
    }

    /// The rules for each way.
    fn rules(&self) -> [Rule; 8] {
        let rule = |what, unit, limit, of| Rule {
            what,
            unit,
            limit,
            of,
        };
        [
            rule("median release error", "us", self.release_p50_us, |way| {
                judged(Some(way.release_error_us)).map(|it| it.p50)
            }),
            rule(
                "99th percentile of the release error",
                "us",
                self.release_p99_us,
                |way| judged(Some(way.release_error_us)).map(|it| it.p99),
            ),
            rule(
                "median error by the kernel's stamps",
                "us",
                self.outside_p50_us,
                |way| judged(way.outside_error_us).map(|it| it.p50),
            ),
            rule(
                "99th percentile of the error by the kernel's stamps",
                "us",
                self.outside_p99_us,
                |way| judged(way.outside_error_us).map(|it| it.p99),
            ),
            rule(
                "by the kernel's stamps a packet was under way too long by",
                "ms",
                self.absence_ms,
                |way| way.outside_error_us.map(|it| it.max / 1000.0),
            ),
            rule(
                "share of packets that the kernel's stamps did not follow",
                "%",
                self.unseen_pct,
                unseen_pct,
            ),
            rule(
                "mean delay differs from what was asked by",
                "ms",
                self.mean_delay_ms,
                |way| {
                    let realised = judged(Some(way.realised.delay_ms))?;
                    Some((realised.mean - way.asked.delay_ms.mean).abs())
                },
            ),
            rule(
                "loss differs from what was asked by",
                "percentage points",
                self.loss_points,
                |way| Some((way.realised.loss_pct - way.asked.loss_pct).abs()),
            ),
        ]
    }
}

impl Rule {
    /// The way that breaks it most, in a sentence, and how many do.
    fn fault(&self, audit: &Audit) -> Option<String> {
        let ways = audit
            .lanes
            .iter()
            .flat_map(|lane| [(lane, "up", &lane.up), (lane, "down", &lane.down)]);
        let broken: Vec<_> = ways
            .filter_map(|(lane, direction, way)| {
                let value = (self.of)(way).filter(|value| *value > self.limit)?;
                Some((value, &lane.lane, direction))
            })
            .collect();
        let (value, lane, direction) = broken.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let others = match broken.len() - 1 {
            0 => String::new(),
            1 => " (and in one other direction)".to_owned(),
            more => format!(" (and in {more} other directions)"),
        };
        let fault = beyond(self.what, *value, self.limit, self.unit);
        Some(format!("`{lane}` {direction}: {fault}{others}"))
    }
}

fn beyond(what: &str, value: f64, limit: f64, unit: &str) -> String {
    format!("{what} {value:.2} {unit}, more than {limit} {unit}")
}

/// Share of a way's delivered packets that the kernel's stamps did not follow, per cent;
/// nothing where hosts are not tapped or nothing was delivered, and where it is a packet
/// or two beside others that were followed.
///
/// What was delivered is by the router's own counters: of packets that whoever follows
/// them never received word of, it has counted none as unseen. A host may refuse damaged
/// ones before a tap sees them.
fn unseen_pct(way: &WayAudit) -> Option<f64> {
    let followed = way.outside_error_us?.count;
    let delivered = (followed + way.unseen).max(way.delivered.saturating_sub(way.damaged));
    let unseen = delivered - followed;
    let is_share = unseen > FEW_UNSEEN || followed == 0;
    (unseen > 0 && is_share).then(|| 100.0 * unseen as f64 / delivered as f64)
}

/// A distribution that is large enough to be judged by itself.
fn judged(spread: Option<Spread>) -> Option<Spread> {
    spread.filter(|spread| spread.count >= JUDGED_ALONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Figures, LaneAudit};

    /// A spread of many packets that are all alike.
    fn all(value: f64) -> Spread {
        Spread {
            count: 1000,
            mean: value,
            p50: value,
            p99: value,
            p99_9: value,
            max: value,
        }
    }

    /// An audit of two lanes without any error, the second of which `change` changes
    /// downwards.
    fn audit_of(change: impl FnOnce(&mut WayAudit)) -> Audit {
        let calm = || LaneAudit {
            lane: "calm".to_owned(),
            up: way(),
            down: way(),
        };
        let mut changed = calm();
        changed.lane = "late".to_owned();
        change(&mut changed.down);
        Audit {
            valid: true,
            faults: Vec::new(),
            band: Band::default(),
            seconds: 60.0,
            device: "tun".to_owned(),
            waiting: "hybrid".to_owned(),
            precedence: "real-time".to_owned(),
            router_cpu_pct: 10.0,
            release_error_us: all(10.0),
            outside_error_us: Some(all(60.0)),
            wake_late_us: all(50.0),
            longest_absence_us: 900.0,
            asked: Figures::default(),
            realised: Figures::default(),
            lanes: vec![calm(), changed],
        }
    }

    fn way() -> WayAudit {
        let figures = Figures {
            delay_ms: all(20.0),
            ..Figures::default()
        };
        WayAudit {
            packets: 1000,
            delivered: 1000,
            release_error_us: all(10.0),
            outside_error_us: Some(all(60.0)),
            asked: figures,
            realised: figures,
            ..WayAudit::default()
        }
    }

    /// The one fault of an audit.
    fn fault(audit: &Audit) -> String {
        let mut faults = Band::default().faults(audit);
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults.remove(0)
    }

    #[test]
    fn what_is_within_the_band_has_no_fault() {
        assert_eq!(Band::default().faults(&audit_of(|_| {})), [""; 0]);
    }

    #[test]
    fn each_rule_is_broken_by_one_direction_of_one_lane() {
        type Change = fn(&mut WayAudit);
        let changes: [(Change, &str); 8] = [
            (|way| way.release_error_us.p50 = 101.0, "median release"),
            (
                |way| way.release_error_us.p99 = 1001.0,
                "99th percentile of the release",
            ),
            (
                |way| {
                    way.outside_error_us = Some(Spread {
                        p50: 301.0,
                        ..all(60.0)
                    });
                },
                "median error by the kernel's stamps",
            ),
            (
                |way| {
                    way.outside_error_us = Some(Spread {
                        p99: 2001.0,
                        ..all(60.0)
                    });
                },
                "99th percentile of the error by the kernel's stamps",
            ),
            (
                |way| {
                    way.outside_error_us = Some(Spread {
                        max: 10_001.0,
                        ..all(60.0)
                    });
                },
                "under way too long",
            ),
            (
                |way| way.unseen = 11,
                "share of packets that the kernel's stamps did not follow 1.09 %",
            ),
            (|way| way.realised.delay_ms.mean = 20.21, "mean delay"),
            (|way| way.realised.loss_pct = 0.02, "loss differs"),
        ];
        for (change, rule) in changes {
            let said = fault(&audit_of(change));
            assert!(said.starts_with("`late` down: "), "{said}");
            assert!(said.contains(rule), "{said}");
        }
    }

    #[test]
    fn an_absence_that_the_router_knows_of_is_a_fault_from_10_ms_on() {
        let mut audit = audit_of(|_| {});
        audit.longest_absence_us = 9_900.0;
        assert!(Band::default().faults(&audit).is_empty());
        audit.longest_absence_us = 10_100.0;
        assert!(fault(&audit).contains("the router was away for 10.10 ms"));
    }

    #[test]
    fn packets_of_a_wrong_length_are_a_fault() {
        assert!(fault(&audit_of(|way| way.malformed = 1)).contains("longer than the MTU"));
    }

    #[test]
    fn lanes_with_few_packets_are_judged_together() {
        let late = |audit: &mut Audit| {
            audit.release_error_us.p50 = 101.0;
            audit.release_error_us.p99 = 1001.0;
            audit.outside_error_us = Some(Spread {
                p99: 2001.0,
                ..all(60.0)
            });
        };
        let mut audit = audit_of(|way| {
            way.release_error_us = Spread {
                count: 199,
                ..all(5000.0)
            };
            way.realised.delay_ms = Spread {
                count: 199,
                ..all(25.0)
            };
        });
        assert!(Band::default().faults(&audit).is_empty());
        late(&mut audit);
        assert_eq!(Band::default().faults(&audit).len(), 3);
    }

    /// Of a direction that delivered `delivered` packets, what the rule makes of it when
    /// `followed` were followed and `unseen` were counted as not.
    fn unseen_of(delivered: u64, followed: u64, unseen: u64) -> Vec<String> {
        let audit = audit_of(|way| {
            way.delivered = delivered;
            way.unseen = unseen;
            way.outside_error_us = Some(Spread {
                count: followed,
                ..all(60.0)
            });
        });
        Band::default().faults(&audit)
    }

    #[test]
    fn a_direction_that_the_stamps_did_not_follow_is_a_fault_however_few_its_packets() {
        for (delivered, followed, unseen) in [(1000, 0, 1000), (1, 0, 1), (150, 1, 149)] {
            let faults = unseen_of(delivered, followed, unseen);
            assert!(faults[0].contains("did not follow"), "{faults:?}");
        }
    }

    #[test]
    fn packets_that_were_delivered_and_neither_followed_nor_counted_are_unseen() {
        for (delivered, followed) in [(1000, 0), (1000, 980), (7, 0)] {
            let faults = unseen_of(delivered, followed, 0);
            assert!(faults[0].contains("did not follow"), "{faults:?}");
        }
    }

    #[test]
    fn a_hundredth_or_two_packets_beside_others_may_be_unseen() {
        for (delivered, followed, unseen) in [(1000, 990, 10), (50, 48, 2), (3, 1, 2), (0, 0, 0)] {
            assert_eq!(unseen_of(delivered, followed, unseen), [""; 0]);
        }
    }

    #[test]
    fn damaged_packets_that_a_host_refused_are_not_missed() {
        let audit = audit_of(|way| {
            way.damaged = 100;
            way.outside_error_us = Some(Spread {
                count: 900,
                ..all(60.0)
            });
        });
        assert_eq!(Band::default().faults(&audit), [""; 0]);
    }

    #[test]
    fn without_taps_no_packet_is_missed() {
        let mut audit = audit_of(|_| {});
        audit.outside_error_us = None;
        for lane in &mut audit.lanes {
            lane.up.outside_error_us = None;
            lane.down.outside_error_us = None;
        }
        assert_eq!(Band::default().faults(&audit), [""; 0]);
    }

    #[test]
    fn the_worst_way_is_named_and_the_others_are_counted() {
        let mut audit = audit_of(|way| way.realised.loss_pct = 0.5);
        audit.lanes[0].up.realised.loss_pct = 0.1;
        let said = fault(&audit);
        assert!(said.starts_with("`late` down: "), "{said}");
        assert!(said.ends_with("(and in one other direction)"), "{said}");
    }
}
