//! Who is not let in: failed logins, and whom they bar for a time.
//!
//! A failure says little about who is behind it. A wrong token for a name may
//! be somebody else's guess, so it bars the name at that address and nowhere
//! else: nobody locks another out. A family, a school or a mobile network
//! shares one address, so an address may fail more often the more clients play
//! from it, and whoever is let in stays. Nothing here concerns game servers.
//!
//! All of it is bounded and passes: names are remembered only where failures
//! count at all, the oldest are forgotten first, and bars end by themselves.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use lagometer_limits::source_prefix;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

/// The most failures, and the most bars, that are remembered.
const REMEMBERED: usize = 16_384;

/// Failures and bars.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::core::channels) struct Admission {
    failures: Remembered<Failures>,
    barred: Remembered<Time>,
    /// Clients that are let in, by where they come from.
    playing: BTreeMap<IpAddr, u32>,
}

/// Whose failures they are. Addresses are those of source prefixes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::core::channels) enum Suspect {
    /// Everyone who comes from there and is not let in yet.
    Address(IpAddr),
    /// Whoever claims to be a player, from there.
    Player(Box<str>, Option<IpAddr>),
}

impl Suspect {
    pub(in crate::core::channels) fn player(name: &str, address: Option<IpAddr>) -> Self {
        Self::Player(name.into(), address.map(source_prefix))
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Failures {
    count: u32,
    until: Time,
}

impl Admission {
    pub(in crate::core::channels) fn bars(
        &self,
        now: Time,
        player: &str,
        address: Option<IpAddr>,
    ) -> bool {
        let holds = |suspect: &Suspect| {
            let until = self.barred.by_key.get(suspect);
            until.is_some_and(|&until| now < until)
        };
        !self.barred.by_key.is_empty()
            && (holds(&Suspect::player(player, address))
                || address.is_some_and(|it| holds(&Suspect::Address(source_prefix(it)))))
    }

    /// Counts a failed login. Returns until when the suspect is barred, if this
    /// one was too many: more than `most`, for an address so many more for each
    /// client that plays from there. With `most` at 0 nothing is remembered.
    pub(in crate::core::channels) fn failed(
        &mut self,
        now: Time,
        suspect: Suspect,
        most: u32,
        barred_for: Duration,
    ) -> Option<Time> {
        if most == 0 {
            return None;
        }
        let most = match &suspect {
            Suspect::Address(address) => {
                let playing = self.playing.get(address).copied().unwrap_or(0);
                most.saturating_mul(playing.saturating_add(1))
            }
            Suspect::Player(..) => most,
        };
        let until = now + barred_for;
        let fresh = Failures { count: 0, until };
        let failures = self.failures.entry(suspect.clone(), fresh);
        if failures.until <= now {
            *failures = fresh;
        }
        failures.count += 1;
        (failures.count >= most).then(|| self.bar(suspect, until))
    }

    /// Bars a suspect. Returns until when.
    pub(in crate::core::channels) fn bar(&mut self, suspect: Suspect, until: Time) -> Time {
        self.failures.by_key.remove(&suspect);
        *self.barred.entry(suspect, until) = until;
        until
    }

    /// The source prefixes that are barred, and until when.
    pub(in crate::core::channels) fn barred_addresses(
        &self,
        now: Time,
    ) -> impl Iterator<Item = (IpAddr, Time)> {
        let barred = self.barred.by_key.iter();
        barred.filter_map(move |(suspect, &until)| match suspect {
            Suspect::Address(address) if now < until => Some((*address, until)),
            _ => None,
        })
    }

    /// A client was let in.
    pub(in crate::core::channels) fn came(&mut self, address: Option<IpAddr>) {
        if let Some(address) = address {
            *self.playing.entry(source_prefix(address)).or_default() += 1;
        }
    }

    /// Whether these are the clients that are let in.
    pub(in crate::core::channels) fn are_playing(
        &self,
        clients: &BTreeMap<Option<IpAddr>, u32>,
    ) -> bool {
        let here = self.playing.iter().map(|(&at, &count)| (Some(at), count));
        here.eq(clients.iter().map(|(&at, &count)| (at, count)))
    }

    /// … and is gone.
    pub(in crate::core::channels) fn went(&mut self, address: Option<IpAddr>) {
        if let Some(address) = address.map(source_prefix)
            && let Some(playing) = self.playing.get_mut(&address)
        {
            *playing -= 1;
            if *playing == 0 {
                self.playing.remove(&address);
            }
        }
    }
}

/// What is remembered of suspects, [`REMEMBERED`] at most: the oldest goes.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered<V> {
    by_key: BTreeMap<Suspect, V>,
    /// In the order they were first remembered; may name some that are not any
    /// more.
    order: VecDeque<Suspect>,
}

impl<V> Default for Remembered<V> {
    fn default() -> Self {
        Self {
            by_key: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<V> Remembered<V> {
    fn entry(&mut self, suspect: Suspect, fresh: V) -> &mut V {
        if !self.by_key.contains_key(&suspect) {
            while self.order.len() >= REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_key.remove(&oldest);
            }
            self.order.push_back(suspect.clone());
        }
        self.by_key.entry(suspect).or_insert(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn names_of_failed_logins_are_not_kept_where_failures_do_not_count() {
        let mut admission = Admission::default();
        for number in 0..1000 {
            let suspect = Suspect::player(&number.to_string(), None);
            assert_eq!(admission.failed(Time::ZERO, suspect, 0, MINUTE), None);
        }
        assert!(admission.failures.by_key.is_empty() && admission.failures.order.is_empty());
    }

    #[test]
    fn a_flood_of_names_is_remembered_up_to_a_number_and_bars_nobody() {
        let mut admission = Admission::default();
        for number in 0..3 * REMEMBERED {
            let suspect = Suspect::player(&number.to_string(), Some(address(1)));
            assert_eq!(admission.failed(Time::ZERO, suspect, 5, MINUTE), None);
        }
        assert_eq!(admission.failures.by_key.len(), REMEMBERED);
        assert_eq!(admission.failures.order.len(), REMEMBERED);
    }

    #[test]
    fn guessing_at_a_name_bars_it_where_the_guesses_come_from_and_only_for_a_time() {
        let mut admission = Admission::default();
        let (here, there) = (Some(address(1)), Some(address(2)));
        let suspect = || Suspect::player("victim", here);
        assert_eq!(admission.failed(Time::ZERO, suspect(), 2, MINUTE), None);
        let until = admission.failed(Time::ZERO, suspect(), 2, MINUTE);
        assert_eq!(until, Some(Time::ZERO + MINUTE));
        assert!(admission.bars(Time::ZERO, "victim", here));
        assert!(!admission.bars(Time::ZERO, "victim", there));
        assert!(!admission.bars(Time::ZERO, "neighbour", here));
        assert!(!admission.bars(Time::ZERO + MINUTE, "victim", here));
        // What failed long ago does not count.
        assert_eq!(admission.failed(Time::ZERO, suspect(), 2, MINUTE), None);
        let later = Time::ZERO + 2 * MINUTE;
        assert_eq!(admission.failed(later, suspect(), 2, MINUTE), None);
    }

    #[test]
    fn an_address_that_many_play_from_may_fail_more_often() {
        let mut admission = Admission::default();
        let school = address(9);
        for _ in 0..3 {
            admission.came(Some(school));
        }
        let mut fail = || admission.failed(Time::ZERO, Suspect::Address(school), 2, MINUTE);
        let barred = (1..100).find(|_| fail().is_some());
        assert_eq!(barred, Some(8), "two for each of three and two");
        for _ in 0..3 {
            admission.went(Some(school));
        }
        assert!(admission.playing.is_empty());
    }
}
