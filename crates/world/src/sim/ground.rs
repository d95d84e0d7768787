//! The square the characters walk on, and what stands in their way.

mod grid;

use lagometer_units::Share;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sim::seed::derive;
use crate::sim::vector::Vector;

pub(crate) use grid::Grid;

const OBSTACLES: u64 = 10;
const PLACES: u64 = 11;

/// Attempts to find a free place before the ground is called too crowded.
const ATTEMPTS: u32 = 1_000;

/// What the ground is like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GroundPlan {
    /// The length of each side, metres.
    pub side_m: f64,
    /// The share of the ground that obstacles stand on, at most a half.
    pub built: Share,
    /// The shortest and longest side of an obstacle, metres.
    pub obstacle_m: [f64; 2],
}

/// A building: a box with sides along the axes, higher than anybody jumps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Obstacle {
    /// The corner with the smallest coordinates.
    pub low: Vector,
    /// The corner with the largest.
    pub high: Vector,
}

/// There is no room for another character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no free place was found for another character: the map is too small or too densely built")]
pub struct TooCrowded;

/// The ground with its obstacles, centred on the origin.
#[derive(Clone, Debug)]
pub struct Ground {
    half_side_cm: f64,
    obstacles: Vec<Obstacle>,
    /// Which obstacles touch each square of the grid.
    grid: Grid,
}

impl Obstacle {
    /// Whether a circle of `radius_cm` around `place` overlaps it.
    #[must_use]
    pub fn touches(&self, place: Vector, radius_cm: f64) -> bool {
        let nearest = Vector::on_ground(
            place.x.clamp(self.low.x, self.high.x),
            place.y.clamp(self.low.y, self.high.y),
        );
        nearest.ground_distance_squared(place) < radius_cm * radius_cm
    }
}

impl Ground {
    /// Builds the ground of `seed`. Obstacles may overlap, so somewhat less
    /// than the asked share is built on.
    #[must_use]
    pub fn new(plan: &GroundPlan, seed: u64) -> Self {
        let half_side_cm = plan.side_m * 50.0;
        let mut random = fastrand::Rng::with_seed(derive(seed, OBSTACLES, 0));
        let [shortest, longest] = plan.obstacle_m;
        let mut side = || 100.0 * (shortest + (longest - shortest) * random.f64());
        let mut random_places = fastrand::Rng::with_seed(derive(seed, OBSTACLES, 1));
        let mut wanted_cm2 = plan.side_m * plan.side_m * 1e4 * plan.built.fraction().min(0.5);
        let mut ground = Self {
            half_side_cm,
            obstacles: Vec::new(),
            grid: Grid::new(half_side_cm),
        };
        while wanted_cm2 > 0.0 {
            let (width, depth) = (side(), side());
            wanted_cm2 -= (width * depth).max(1.0);
            let low = Vector::on_ground(
                (random_places.f64() * 2.0 - 1.0) * half_side_cm,
                (random_places.f64() * 2.0 - 1.0) * half_side_cm,
            );
            let high = low + Vector::on_ground(width, depth);
            let index = ground.obstacles.len() as u32;
            ground.grid.put(index, low, high);
            ground.obstacles.push(Obstacle { low, high });
        }
        ground
    }

    /// Half the length of each side, centimetres; the ground reaches so far
    /// from the origin each way.
    #[must_use]
    pub fn half_side_cm(&self) -> f64 {
        self.half_side_cm
    }

    /// What stands on it.
    #[must_use]
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// Whether a character of `radius_cm` can stand at `place`.
    #[must_use]
    pub fn free(&self, place: Vector, radius_cm: f64) -> bool {
        let most = self.half_side_cm - radius_cm;
        place.x.abs() <= most
            && place.y.abs() <= most
            && !self
                .grid
                .near(place, radius_cm)
                .any(|index| self.obstacles[index as usize].touches(place, radius_cm))
    }

    /// A place where the character numbered `nth` may start: free of obstacles
    /// and of what `taken` refuses.
    ///
    /// # Errors
    ///
    /// [`TooCrowded`] where many attempts found none.
    pub fn starting_place(
        &self,
        seed: u64,
        nth: u32,
        radius_cm: f64,
        mut taken: impl FnMut(Vector) -> bool,
    ) -> Result<Vector, TooCrowded> {
        let mut random = fastrand::Rng::with_seed(derive(seed, PLACES, u64::from(nth)));
        let mut coordinate = || (random.f64() * 2.0 - 1.0) * self.half_side_cm;
        for _ in 0..ATTEMPTS {
            let place = Vector::on_ground(coordinate(), coordinate());
            if self.free(place, radius_cm) && !taken(place) {
                return Ok(place);
            }
        }
        Err(TooCrowded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(built: &str) -> GroundPlan {
        GroundPlan {
            side_m: 300.0,
            built: built.parse().unwrap(),
            obstacle_m: [2.0, 12.0],
        }
    }

    #[test]
    fn about_the_asked_share_is_built_on() {
        let ground = Ground::new(&plan("10 %"), 1);
        let tried = 20_000;
        let mut random = fastrand::Rng::with_seed(1);
        let hit = (0..tried)
            .filter(|_| {
                let mut coordinate = || (random.f64() * 2.0 - 1.0) * ground.half_side_cm();
                !ground.free(Vector::on_ground(coordinate(), coordinate()), 1.0)
            })
            .count();
        let share = hit as f64 / f64::from(tried);
        assert!((0.07..0.11).contains(&share), "{share}");
    }

    #[test]
    fn the_edge_is_a_wall() {
        let ground = Ground::new(&plan("0 %"), 1);
        assert!(ground.free(Vector::on_ground(14_958.0, 0.0), 42.0));
        assert!(!ground.free(Vector::on_ground(14_959.0, 0.0), 42.0));
        assert!(!ground.free(Vector::on_ground(0.0, -20_000.0), 42.0));
    }

    #[test]
    fn seeds_make_grounds() {
        assert_eq!(
            Ground::new(&plan("10 %"), 3).obstacles(),
            Ground::new(&plan("10 %"), 3).obstacles()
        );
        assert_ne!(
            Ground::new(&plan("10 %"), 3).obstacles(),
            Ground::new(&plan("10 %"), 4).obstacles()
        );
    }

    #[test]
    fn the_grid_forgets_no_obstacle() {
        let ground = Ground::new(&plan("20 %"), 5);
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..5_000 {
            let mut coordinate = || (random.f64() * 2.0 - 1.0) * 14_900.0;
            let place = Vector::on_ground(coordinate(), coordinate());
            let slow = ground
                .obstacles()
                .iter()
                .any(|obstacle| obstacle.touches(place, 42.0));
            assert_eq!(ground.free(place, 42.0), !slow);
        }
    }

    #[test]
    fn a_full_ground_is_said_so() {
        let ground = Ground::new(&plan("0 %"), 1);
        assert_eq!(ground.starting_place(1, 0, 42.0, |_| true), Err(TooCrowded));
    }
}
