//! What servers claim, held against each other.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lagometer_stats::Distribution;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use super::{Authority, Claim, Loss, Report};
use crate::sim::crowd::EntityId;

/// A flight that takes longer is no handover under way any more: the character
/// is nobody's. Some frames of a server whose machine is busy.
pub const LONGEST_FLIGHT: Duration = Duration::from_secs(1);

/// What the claims of all servers come to.
///
/// Servers may be in several processes, and what they claim comes late and not
/// in order. It is judged in the order of its instants, once all have reported
/// that time.
#[derive(Clone, Debug)]
pub struct AuthorityChecker {
    /// What is not judged yet, in its order.
    pending: VecDeque<Word>,
    /// How far two of the clocks may be apart.
    slack: Duration,
    /// What is judged from then on counts, once that time has come.
    counts_from: Option<Time>,
    held: BTreeMap<EntityId, Holding>,
    flights: Distribution,
    sums: AuthoritySums,
}

/// Sums of a [`AuthorityChecker`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthoritySums {
    /// Handovers begun: a server let go of a character for another.
    pub begun: u64,
    /// Handovers completed: another took it up.
    pub completed: u64,
    /// Times a server took up what another still simulated.
    pub doubled: u64,
    /// Times a character was nobody's for longer than a handover may fly.
    pub orphaned: u64,
}

/// Something that a server says, or that is said of it.
#[derive(Clone, Copy, Debug)]
enum Word {
    Claim(Claim),
    Loss(Loss),
}

impl Word {
    const fn at(&self) -> Time {
        match self {
            Self::Claim(claim) => claim.at,
            Self::Loss(loss) => loss.at,
        }
    }

    /// Words of one instant: who lets go before who takes up, and who breaks
    /// off last.
    fn order(&self) -> (Time, bool, Authority, EntityId, u32) {
        match self {
            Self::Claim(claim) => (claim.at, false, claim.what, claim.entity, claim.server),
            Self::Loss(loss) => (loss.at, true, Authority::Lost, EntityId(0), loss.server),
        }
    }
}

/// Who has a character.
#[derive(Clone, Debug)]
enum Holding {
    /// One server, or by mistake several.
    By(Vec<u32>),
    /// Nobody since then: handed over, or its server broke off.
    Nobody { since: Time, handed_over: bool },
}

impl Default for AuthorityChecker {
    fn default() -> Self {
        Self {
            pending: VecDeque::new(),
            slack: Duration::ZERO,
            counts_from: None,
            held: BTreeMap::new(),
            flights: Distribution::new(),
            sums: AuthoritySums::default(),
        }
    }
}

impl AuthorityChecker {
    /// Takes what all servers say, and judges as much of it as all have reported
    /// of: what lies before the report's instant by more than two of their
    /// clocks may be apart.
    pub fn take(&mut self, report: Report) {
        let Report {
            until,
            claims,
            losses,
        } = report;
        for claim in &claims {
            self.slack = self.slack.max(claim.within * 2);
        }
        self.pending.extend(claims.into_iter().map(Word::Claim));
        self.pending.extend(losses.into_iter().map(Word::Loss));
        self.pending.make_contiguous().sort_by_key(Word::order);
        let slack = self.slack;
        self.judge(|at| at + slack < until);
        if self.counts_from.is_some_and(|from| from + slack < until) {
            self.count_anew();
        }
    }

    /// Judges all that was said: nothing more will be.
    pub fn settle(&mut self) {
        self.judge(|_| true);
        if self.counts_from.is_some() {
            self.count_anew();
        }
    }

    /// Counts anew what happens from `at` on; who has what stays known, and
    /// handovers under way then count as begun.
    pub fn count_from(&mut self, at: Time) {
        self.counts_from = Some(at);
    }

    /// What was counted.
    #[must_use]
    pub fn sums(&self) -> AuthoritySums {
        self.sums
    }

    /// How long handovers took, from the old server's last frame to when the
    /// new one had the character.
    #[must_use]
    pub fn flights(&self) -> &Distribution {
        &self.flights
    }

    /// Characters that nobody has at `now`, those in a handover's flight left
    /// out.
    #[must_use]
    pub fn orphans(&self, now: Time) -> usize {
        let is_orphan = |holding: &Holding| match holding {
            Holding::By(by) => by.is_empty(),
            Holding::Nobody { since, .. } => now.since(*since) > LONGEST_FLIGHT,
        };
        self.held.values().filter(|held| is_orphan(held)).count()
    }

    fn judge(&mut self, is_due: impl Fn(Time) -> bool) {
        while self.pending.front().is_some_and(|word| is_due(word.at()))
            && let Some(word) = self.pending.pop_front()
        {
            if self.counts_from.is_some_and(|from| word.at() >= from) {
                self.count_anew();
            }
            match word {
                Word::Loss(loss) => self.lose(loss),
                Word::Claim(claim) => {
                    if claim.what == Authority::Took {
                        self.let_go_before(&claim);
                    }
                    self.note(&claim);
                }
            }
        }
    }

    /// By clocks that are not quite one a server may seem to take up what
    /// another lets go of a little later. What they may be off decides, and
    /// nothing more.
    fn let_go_before(&mut self, taken: &Claim) {
        let lets_go = |held: &BTreeMap<EntityId, Holding>, word: &Word| match word {
            Word::Claim(claim) => {
                let is_holder = matches!(
                    held.get(&taken.entity),
                    Some(Holding::By(by)) if by.contains(&claim.server)
                );
                claim.entity == taken.entity
                    && claim.server != taken.server
                    && claim.what != Authority::Took
                    && claim.at <= taken.at + taken.within + claim.within
                    && is_holder
            }
            Word::Loss(_) => false,
        };
        while let Some(nth) = self.pending.iter().position(|it| lets_go(&self.held, it)) {
            if let Some(Word::Claim(claim)) = self.pending.remove(nth) {
                self.note(&claim);
            }
        }
    }

    fn count_anew(&mut self) {
        let under_way = |holding: &&Holding| {
            matches!(
                holding,
                Holding::Nobody {
                    handed_over: true,
                    ..
                }
            )
        };
        self.counts_from = None;
        self.flights = Distribution::new();
        self.sums = AuthoritySums {
            begun: self.held.values().filter(under_way).count() as u64,
            ..AuthoritySums::default()
        };
    }

    /// Nobody has what a server had that has broken off.
    fn lose(&mut self, Loss { at, server }: Loss) {
        let had: Vec<EntityId> = self
            .held
            .iter()
            .filter(|(_, holding)| matches!(holding, Holding::By(by) if by.contains(&server)))
            .map(|(&entity, _)| entity)
            .collect();
        for entity in had {
            self.note(&Claim {
                at,
                within: Duration::ZERO,
                entity,
                server,
                what: Authority::Lost,
            });
        }
    }

    fn note(&mut self, claim: &Claim) {
        let Claim {
            at, entity, server, ..
        } = *claim;
        match claim.what {
            Authority::Took => {
                let taken = Holding::By(vec![server]);
                match self.held.insert(entity, taken) {
                    None => {}
                    Some(Holding::Nobody { since, handed_over }) => {
                        let flight = at.since(since);
                        self.sums.orphaned += u64::from(flight > LONGEST_FLIGHT);
                        if handed_over {
                            self.sums.completed += 1;
                            self.flights.record(flight);
                        }
                    }
                    Some(Holding::By(mut others)) => {
                        others.retain(|&other| other != server);
                        self.sums.doubled += u64::from(!others.is_empty());
                        others.push(server);
                        self.held.insert(entity, Holding::By(others));
                    }
                }
            }
            Authority::Gave | Authority::Lost | Authority::Dropped => {
                let Some(Holding::By(by)) = self.held.get_mut(&entity) else {
                    return;
                };
                by.retain(|&holder| holder != server);
                if !by.is_empty() {
                    return;
                }
                if claim.what == Authority::Dropped {
                    self.held.remove(&entity);
                    return;
                }
                let handed_over = claim.what == Authority::Gave;
                self.sums.begun += u64::from(handed_over);
                let since = at;
                self.held
                    .insert(entity, Holding::Nobody { since, handed_over });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAWN: EntityId = EntityId(0x8_0000);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn claim(ms: u64, server: u32, what: Authority) -> Claim {
        Claim {
            at: at(ms),
            within: Duration::ZERO,
            entity: PAWN,
            server,
            what,
        }
    }

    /// What is said of the time before so many milliseconds.
    fn said(until_ms: u64, claims: Vec<Claim>) -> Report {
        Report {
            until: at(until_ms),
            claims,
            losses: Vec::new(),
        }
    }

    #[test]
    fn a_handover_is_begun_flies_and_is_completed() {
        let mut checker = AuthorityChecker::default();
        // In whatever order the servers are asked.
        checker.take(said(
            200,
            vec![
                claim(140, 2, Authority::Took),
                claim(0, 1, Authority::Took),
                claim(100, 1, Authority::Gave),
            ],
        ));
        let sums = checker.sums();
        assert_eq!((sums.begun, sums.completed), (1, 1));
        assert_eq!((sums.doubled, sums.orphaned), (0, 0));
        let flight = checker.flights().max().as_millis();
        assert!((40..=41).contains(&flight), "{flight}");
        assert_eq!(checker.orphans(at(9_999)), 0);
    }

    #[test]
    fn two_servers_at_once_are_one_too_many() {
        let mut checker = AuthorityChecker::default();
        checker.take(said(10, vec![claim(0, 1, Authority::Took)]));
        checker.take(said(51, vec![claim(50, 2, Authority::Took)]));
        checker.take(said(61, vec![claim(60, 1, Authority::Gave)]));
        assert_eq!(checker.sums().doubled, 1);
        // The second still has it.
        assert_eq!(checker.sums().begun, 0);
        assert_eq!(checker.orphans(at(9_999)), 0);
    }

    #[test]
    fn nothing_is_judged_before_all_have_reported_it() {
        let mut checker = AuthorityChecker::default();
        checker.take(said(10, vec![claim(0, 1, Authority::Took)]));
        // Another process has reported more than the one that lets go.
        checker.take(said(90, vec![claim(140, 2, Authority::Took)]));
        assert_eq!(checker.sums(), AuthoritySums::default());
        checker.take(said(200, vec![claim(100, 1, Authority::Gave)]));
        let sums = checker.sums();
        assert_eq!((sums.begun, sums.completed, sums.doubled), (1, 1, 0));
    }

    #[test]
    fn clocks_may_be_off_by_what_they_say_and_no_more() {
        let taken_before_given = |apart_ms: u64, [gives, takes]: [u64; 2]| {
            let within = |claim: Claim, ms| Claim {
                within: Duration::from_millis(ms),
                ..claim
            };
            let mut checker = AuthorityChecker::default();
            checker.take(said(50, vec![within(claim(0, 1, Authority::Took), gives)]));
            checker.take(said(
                999,
                vec![
                    within(claim(100, 2, Authority::Took), takes),
                    within(claim(100 + apart_ms, 1, Authority::Gave), gives),
                ],
            ));
            checker.sums()
        };
        let good = taken_before_given(5, [2, 3]);
        assert_eq!((good.begun, good.completed, good.doubled), (1, 1, 0));
        assert_eq!(taken_before_given(6, [2, 3]).doubled, 1);
        assert_eq!(taken_before_given(1, [0, 0]).doubled, 1);
    }

    #[test]
    fn what_nobody_takes_up_is_an_orphan() {
        let mut checker = AuthorityChecker::default();
        checker.take(said(
            110,
            vec![claim(0, 1, Authority::Took), claim(100, 1, Authority::Gave)],
        ));
        assert_eq!(checker.orphans(at(1_000)), 0, "it may still fly");
        assert_eq!(checker.orphans(at(1_101)), 1);
        checker.take(said(2_001, vec![claim(2_000, 2, Authority::Took)]));
        assert_eq!(checker.orphans(at(9_999)), 0);
        assert_eq!(checker.sums().orphaned, 1);
    }

    #[test]
    fn a_handover_under_way_is_counted_whole() {
        let mut checker = AuthorityChecker::default();
        checker.take(said(
            90,
            vec![claim(0, 1, Authority::Took), claim(50, 1, Authority::Gave)],
        ));
        checker.count_from(at(100));
        // It was reported later than it happened.
        checker.take(said(
            130,
            vec![
                claim(80, 2, Authority::Took),
                claim(90, 2, Authority::Gave),
                claim(120, 1, Authority::Took),
            ],
        ));
        assert_eq!((checker.sums().begun, checker.sums().completed), (1, 1));
    }

    #[test]
    fn who_breaks_off_has_nothing_and_who_leaves_is_nobodys() {
        let mut checker = AuthorityChecker::default();
        checker.take(said(5, vec![claim(0, 1, Authority::Took)]));
        let (at_10, server) = (at(10), 1);
        checker.take(Report {
            until: at(11),
            losses: vec![Loss { at: at_10, server }],
            ..Report::default()
        });
        assert_eq!(checker.orphans(at(2_000)), 1);
        checker.take(said(501, vec![claim(500, 1, Authority::Took)]));
        let sums = checker.sums();
        assert_eq!((sums.begun, sums.doubled), (0, 0), "no handover");
        checker.take(said(601, vec![claim(600, 1, Authority::Dropped)]));
        assert_eq!(checker.orphans(at(9_999)), 0);
    }

    #[test]
    fn the_end_judges_what_is_left() {
        let mut checker = AuthorityChecker::default();
        checker.take(said(
            1,
            vec![claim(1, 1, Authority::Took), claim(2, 2, Authority::Took)],
        ));
        assert_eq!(checker.sums().doubled, 0);
        checker.settle();
        assert_eq!(checker.sums().doubled, 1);
    }

    proptest! {
        /// A character goes round; however the processes' reports are cut, the
        /// same comes of it.
        #[test]
        fn the_same_comes_of_it_however_it_is_reported(
            steps in prop::collection::vec((1_u64..400, 1_u64..400), 1..20),
            cuts in prop::collection::vec(0_u64..8_000, 0..12),
        ) {
            let mut claims = vec![claim(0, 0, Authority::Took)];
            let (mut ms, mut holder) = (0, 0);
            for (stay_ms, fly_ms) in steps {
                ms += stay_ms;
                claims.push(claim(ms, holder, Authority::Gave));
                ms += fly_ms;
                holder = (holder + 1) % 3;
                claims.push(claim(ms, holder, Authority::Took));
            }
            let mut whole = AuthorityChecker::default();
            whole.take(said(ms + 1, claims.clone()));
            let mut cut = AuthorityChecker::default();
            let mut cuts = cuts;
            cuts.sort_unstable();
            cuts.push(ms + 1);
            let mut reported = 0;
            for until_ms in cuts {
                let more = claims.iter().filter(|claim| {
                    // One of the three reports ahead of the others.
                    let ahead_ms = if claim.server == 1 { 700 } else { 0 };
                    (at(reported)..at(until_ms)).contains(&(claim.at - Duration::from_millis(ahead_ms)))
                });
                let more = more.copied().collect();
                cut.take(said(until_ms, more));
                reported = until_ms;
            }
            cut.settle();
            prop_assert_eq!(cut.sums(), whole.sums());
            prop_assert_eq!(whole.sums().doubled, 0);
        }
    }
}
