//! Which candidates a round holds.

use super::{PARENTS, Play, Search};
use crate::space::Candidate;

/// So often a candidate is drawn anew where the one drawn is known or cannot be
/// played, before the round goes without it: small spaces are soon exhausted.
const TRIES: usize = 50;

impl<P: Play> Search<'_, P> {
    /// Every start, then points that fill the space, `count` altogether but at least
    /// the starts.
    pub(super) fn first(&mut self, count: usize) -> Vec<Candidate> {
        let mut round = Vec::new();
        for start in 0..self.space.starts().len() {
            let candidate = self.space.start(start);
            self.take(candidate, &mut round);
        }
        let wanted = count.saturating_sub(round.len());
        let filling = self.filling(wanted);
        for positions in filling {
            let mut candidate = self.space.at(0, &positions);
            for _ in 0..TRIES {
                if self.take(candidate, &mut round) {
                    break;
                }
                candidate = self.anywhere();
            }
        }
        round
    }

    /// `count` children of the best, whose settings move by `step` of their range.
    pub(super) fn children(&mut self, count: usize, step: f64) -> Vec<Candidate> {
        let mut parents = self.ranked();
        parents.truncate(PARENTS);
        let mut round = Vec::new();
        for _ in 0..count {
            for attempt in 0..TRIES {
                let candidate = if attempt < TRIES / 2 {
                    self.child(&parents, step)
                } else {
                    self.anywhere()
                };
                if self.take(candidate, &mut round) {
                    break;
                }
            }
        }
        round
    }

    /// Takes a candidate into a round, unless it is known or cannot be played.
    fn take(&mut self, candidate: Candidate, round: &mut Vec<Candidate>) -> bool {
        // The lane as it is is what everything is held against.
        let is_first = self.known.is_empty();
        let fits = is_first || self.play.accepts(&candidate);
        let is_new = fits && self.known.insert(self.space.key(&candidate));
        if is_new {
            round.push(candidate);
        }
        is_new
    }

    /// Positions of `count` points: along every setting one in each of `count` equal
    /// parts of its range.
    fn filling(&mut self, count: usize) -> Vec<Vec<f64>> {
        let settings = self.space.tunables().len();
        let mut points = vec![vec![0.0; settings]; count];
        for setting in 0..settings {
            let mut parts: Vec<usize> = (0..count).collect();
            self.random.shuffle(&mut parts);
            for (point, part) in points.iter_mut().zip(parts) {
                point[setting] = (part as f64 + self.random.f64()) / count as f64;
            }
        }
        points
    }

    fn anywhere(&mut self) -> Candidate {
        let settings = self.space.tunables().len();
        let positions: Vec<f64> = (0..settings).map(|_| self.random.f64()).collect();
        self.space.at(0, &positions)
    }

    /// A child of two of the parents, the better ones more often.
    fn child(&mut self, parents: &[usize], step: f64) -> Candidate {
        let mut pick = || {
            let (one, other) = (
                self.random.usize(..parents.len()),
                self.random.usize(..parents.len()),
            );
            parents[one.min(other)]
        };
        let (first, second) = (pick(), pick());
        let mut child = self.trials[first].candidate.clone();
        let settings = self.space.tunables().len();
        if settings == 0 {
            return child;
        }
        let moved = self.random.usize(..settings);
        for setting in 0..settings {
            if self.random.f64() < 0.3 {
                let other = &self.trials[second].candidate;
                if let Some(value) = self.space.value(other, setting).cloned() {
                    child = self.space.with(&child, setting, value);
                }
            }
            if setting == moved || self.random.f64() < 1.0 / settings as f64 {
                child = self.moved(&child, setting, step);
            }
        }
        child
    }

    /// `candidate` with one setting moved by about `step` of its range; one without
    /// an order is drawn anew.
    fn moved(&mut self, candidate: &Candidate, setting: usize, step: f64) -> Candidate {
        let range = self.space.tunables()[setting].range;
        let position = if range.is_ordered() {
            // About normal: the sum of four evenly drawn, of variance 1/3.
            let sum: f64 = (0..4).map(|_| self.random.f64() - 0.5).sum();
            let at = self.space.position(candidate, setting) + step * sum * 3.0_f64.sqrt();
            // What would leave the range is thrown back into it.
            if at < 0.0 {
                -at
            } else if at > 1.0 {
                2.0 - at
            } else {
                at
            }
        } else {
            self.random.f64()
        };
        self.space.with(candidate, setting, range.at(position))
    }
}
