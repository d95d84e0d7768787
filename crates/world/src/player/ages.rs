//! How old what a player sees is, whether its connection stands or not.
//!
//! A player that is cut off goes on seeing what it saw last. Were it left out
//! until it is back, a transport that drops its stalled players would show
//! younger views than one that keeps them.

use std::time::Duration;

use lagometer_units::Time;

use super::Player;
use crate::player::view::{Seen, View};
use crate::wire::ids::EntityKind;

impl Player {
    /// The player goes on as `earlier`, whose connection broke off: what that one
    /// saw is what this one sees until it is sent it anew, older and older.
    pub(crate) fn goes_on_as(&mut self, earlier: Self) {
        self.before = View::default();
        self.before.take_places(&earlier.view);
        // It may have broken off again before it was sent all.
        self.before.take_places(&earlier.before);
        self.before.forget(EntityKind::Pawn.of(self.number));
        self.windows = earlier.windows;
    }

    /// Its own pawn is announced, where there is one channel for all: after those of
    /// everybody who was there before, on the same connection. Whoever is not among
    /// them has gone in the meantime, which is not announced any more.
    pub(super) fn forget_who_is_not_announced(&mut self) {
        let Self { before, view, .. } = self;
        before.retain(|entity, _| view.seen(entity).is_some());
    }

    /// A cell says who is in it. Whoever was there and is not any more has gone, or will
    /// be announced where it is. `is_settled` where the cell is the player's own and it
    /// is in it: then it is shown all that it sees, and who was elsewhere is out of sight.
    pub(super) fn forget_who_left(&mut self, cell: u32, is_settled: bool) {
        let Self {
            before,
            view,
            around,
            scenario,
            ..
        } = self;
        let Some(space) = scenario.space else { return };
        before.retain(|entity, place| {
            let last = space.cell_at(place);
            let is_hidden = !last.is_some_and(|last| around.shows(last));
            view.seen(entity).is_some() || !(last == Some(cell) || is_settled && is_hidden)
        });
    }

    /// Calls `sample` with the tier and the age of the newest state of each
    /// entity that this player has at `now`, its own left out: whether its
    /// connection stands or not, and from before where it broke off and has
    /// received nothing newer since.
    pub fn ages(&self, now: Time, mut sample: impl FnMut(usize, Duration)) {
        let mut sample = |seen: Seen| {
            if let Some(place) = seen.place {
                let tier = seen.tier.unwrap_or_else(|| self.tier_by_distance(place));
                sample(tier, now.since(seen.at));
            }
        };
        for (_, seen) in self.others() {
            sample(seen);
        }
        for (entity, seen) in self.before.entities() {
            let own = self.pawn == Some(entity);
            let newer = self.view.seen(entity);
            let is_newer = newer.is_some_and(|newer| newer.place.is_some());
            if !own && !is_newer {
                sample(seen);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::sim::body::Body;
    use crate::sim::scenario::{BUILT_IN, Scenario};
    use crate::sim::vector::{Vector, Yaw};
    use crate::wire::messages::WorldUpdate;
    use crate::wire::replica::Replica;

    /// What one update says: of which of the others.
    type Announced = [bool; 3];

    fn player() -> Player {
        let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == "single").unwrap();
        let mut scenario = Scenario::parse("single", text).unwrap();
        scenario.players = 4;
        scenario.observers = 4;
        let clock = Rc::new(Cell::new(Time::ZERO));
        let mut player = Player::new(0, Arc::new(scenario), clock);
        player.pawn = Some(EntityKind::Pawn.of(0));
        player
    }

    /// GLOBAL's update as of `at`.
    fn update(at: Time, announced: Announced) -> Vec<u8> {
        let mut update = WorldUpdate::new(at.as_secs_f64());
        for (nth, announced) in (1..).zip(announced) {
            if announced {
                let place = Vector::on_ground(at.as_secs_f64(), f64::from(nth));
                let body = Body::standing(place, Yaw::new(0.0));
                let mut replica = Replica::default();
                update.push(EntityKind::Pawn.of(nth), replica.actor_changes(&body), None);
            }
        }
        update.encode().to_vec()
    }

    fn update_at(player: &mut Player, at: Time, announced: Announced) {
        player.receive_world(&update(at, announced), at).unwrap();
    }

    fn ages_ms(player: &Player, now: Time) -> Vec<u128> {
        let mut ages = Vec::new();
        player.ages(now, |_, age| ages.push((age.as_micros() + 500) / 1000));
        ages.sort_unstable();
        ages
    }

    #[test]
    fn an_update_makes_nobody_fresh_but_those_it_names() {
        let mut player = player();
        update_at(&mut player, Time::from_millis(100), [true, true, true]);
        update_at(&mut player, Time::from_millis(200), [true, false, true]);
        update_at(&mut player, Time::from_millis(300), [true, false, false]);
        assert_eq!(ages_ms(&player, Time::from_millis(400)), [100, 200, 300]);
    }

    #[test]
    fn one_that_is_back_goes_on_from_what_it_saw_until_it_is_sent_anew() {
        let mut player = player();
        update_at(&mut player, Time::from_millis(100), [true, true, true]);
        let mut back = self::player();
        back.pawn = None;
        back.goes_on_as(player);
        assert_eq!(ages_ms(&back, Time::from_millis(900)), [800, 800, 800]);
        update_at(&mut back, Time::from_millis(900), [true, false, false]);
        assert_eq!(ages_ms(&back, Time::from_millis(950)), [50, 850, 850]);
        // It breaks off again before it was sent all.
        let mut again = self::player();
        again.pawn = None;
        again.goes_on_as(back);
        assert_eq!(ages_ms(&again, Time::from_millis(1000)), [100, 900, 900]);
        // However long nothing comes, nobody is left out.
        let late = Time::from_millis(60_100);
        assert_eq!(ages_ms(&again, late), [59_200, 60_000, 60_000]);
        // Once everybody there is has been announced, the others are gone.
        again.view.learn(EntityKind::Pawn.of(2), late);
        again.forget_who_is_not_announced();
        assert_eq!(ages_ms(&again, late), [60_000]);
    }

    #[test]
    fn who_was_in_a_cell_is_seen_until_that_cell_says_otherwise() {
        let (_, text) = BUILT_IN
            .iter()
            .find(|(name, _)| *name == "spatial")
            .unwrap();
        let scenario = Arc::new(Scenario::parse("spatial", text).unwrap());
        let space = scenario.space.unwrap();
        let clock = Rc::new(Cell::new(Time::ZERO));
        let mut player = Player::new(0, Arc::clone(&scenario), clock);
        player.pawn = Some(EntityKind::Pawn.of(0));
        let side_cm = space.cell_m * 100.0;
        // Three beside each other in cells of their own.
        let places = [0.5, 1.5, 2.5].map(|cells| Vector::on_ground((cells - 1.5) * side_cm, 1.0));
        let cells = places.map(|place| space.cell_at(place).unwrap());
        for (nth, place) in (1..).zip(places) {
            let mut replica = Replica::default();
            let body = Body::standing(place, Yaw::new(0.0));
            let mut update = WorldUpdate::new(0.1);
            let pawn = EntityKind::Pawn.of(nth);
            update.push(pawn, replica.actor_changes(&body), None);
            let at = Time::from_millis(100);
            player.receive_world(update.encode(), at).unwrap();
        }
        let clock = Rc::new(Cell::new(Time::ZERO));
        let mut back = Player::new(0, scenario, clock);
        back.goes_on_as(player);
        let seen = |back: &Player| ages_ms(back, Time::from_millis(9_100)).len();
        back.around.show(cells[0]);
        back.around.show(cells[1]);
        assert_eq!(seen(&back), 3);
        back.forget_who_left(cells[0], false);
        assert_eq!(seen(&back), 2, "its cell has said that it is not there");
        back.forget_who_left(cells[0], true);
        assert_eq!(seen(&back), 1, "the third cell is out of sight");
        back.forget_who_left(cells[1], true);
        assert_eq!(seen(&back), 0);
    }

    proptest! {
        /// A transport that drops a stalled player shows no younger views than
        /// one that keeps it, at any instant and of anybody.
        #[test]
        fn dropping_a_stalled_player_never_flatters(
            announced in proptest::collection::vec(any::<[bool; 3]>(), 60),
            stalls_at in 1_usize..40,
            stalls_for in 1_usize..20,
            reconnects_for in 0_usize..20,
        ) {
            let stall = stalls_at..stalls_at + stalls_for;
            let gone = stalls_at..stall.end + reconnects_for;
            let (mut kept, mut dropped) = (player(), Some(player()));
            let mut cut_off = None;
            for (nth, mut announced) in announced.into_iter().enumerate() {
                if nth == 0 {
                    // Both have seen everybody.
                    announced = [true; 3];
                }
                let now = Time::from_millis(nth as u64 * 20);
                if !stall.contains(&nth) {
                    update_at(&mut kept, now, announced);
                }
                if gone.contains(&nth) {
                    cut_off = dropped.take().or(cut_off);
                } else {
                    let player = dropped.get_or_insert_with(|| {
                        let mut back = player();
                        back.goes_on_as(cut_off.take().unwrap());
                        back
                    });
                    update_at(player, now, announced);
                }
                let seen = dropped.as_ref().or(cut_off.as_ref()).unwrap();
                let (kept, dropped) = (ages_ms(&kept, now), ages_ms(seen, now));
                prop_assert_eq!((kept.len(), dropped.len()), (3, 3));
                for (dropped, kept) in dropped.iter().zip(&kept) {
                    prop_assert!(dropped >= kept);
                }
            }
        }
    }
}
