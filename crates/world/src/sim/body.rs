//! How one character moves: walking, accelerating, jumping, falling.

use serde::{Deserialize, Serialize};

use crate::sim::vector::{Vector, Yaw};

/// How characters move. The defaults are those of the engine whose servers the
/// published tests ran: walking speed, acceleration, jump and gravity of its
/// standard character.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Movement {
    /// Walking speed, centimetres per second.
    pub walk_cm_per_s: f64,
    /// How fast walking speed is reached, centimetres per second squared.
    pub acceleration_cm_per_s2: f64,
    /// Speed upwards at take-off, centimetres per second.
    pub jump_cm_per_s: f64,
    /// How fast it falls, centimetres per second squared.
    pub gravity_cm_per_s2: f64,
    /// Half the width of a character, centimetres.
    pub radius_cm: f64,
}

impl Default for Movement {
    fn default() -> Self {
        Self {
            walk_cm_per_s: 600.0,
            acceleration_cm_per_s2: 2048.0,
            jump_cm_per_s: 420.0,
            gravity_cm_per_s2: 980.0,
            radius_cm: 42.0,
        }
    }
}

/// One character.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// The position of its feet, in centimetres.
    pub place: Vector,
    /// The velocity, in centimetres per second.
    pub speed: Vector,
    /// The direction in which it faces and walks.
    pub yaw: Yaw,
}

/// Where a character wants to be after a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The position of its feet, in centimetres.
    pub place: Vector,
    /// The speed it has there.
    pub speed: Vector,
}

impl Body {
    /// A character that stands at `place` and faces `yaw`.
    #[must_use]
    pub fn standing(place: Vector, yaw: Yaw) -> Self {
        Self {
            place,
            speed: Vector::default(),
            yaw,
        }
    }

    /// Takes off, unless it is in the air.
    pub fn jump(&mut self, movement: &Movement) {
        if !self.airborne() {
            self.speed.z = movement.jump_cm_per_s;
        }
    }

    /// Whether it is above the ground or about to be.
    #[must_use]
    pub fn airborne(&self) -> bool {
        self.place.z > 0.0 || self.speed.z > 0.0
    }

    /// Where it would be after `seconds` if nothing stood in its way. In the
    /// air it keeps its course; on the ground it accelerates towards walking
    /// speed where it faces.
    #[must_use]
    pub fn step(&self, movement: &Movement, seconds: f64) -> Step {
        let mut speed = self.speed;
        let mut place = self.place;
        if self.airborne() {
            // Half before, half after: exact for constant gravity, so the
            // height of a jump does not depend on the frame rate.
            place.z += speed.z * seconds - 0.5 * movement.gravity_cm_per_s2 * seconds * seconds;
            speed.z -= movement.gravity_cm_per_s2 * seconds;
            if place.z <= 0.0 {
                place.z = 0.0;
                speed.z = 0.0;
            }
        } else {
            let wanted = self.yaw.direction() * movement.walk_cm_per_s;
            let change = wanted - speed;
            let size = (change.x * change.x + change.y * change.y).sqrt();
            let most = movement.acceleration_cm_per_s2 * seconds;
            speed = if size <= most {
                wanted
            } else {
                speed + change * (most / size)
            };
        }
        place.x += speed.x * seconds;
        place.y += speed.y * seconds;
        Step { place, speed }
    }

    /// Goes where [`Body::step`] said.
    pub fn go(&mut self, step: Step) {
        self.place = step.place;
        self.speed = step.speed;
    }

    /// Stops before what stands in the way and turns round; a jump goes on
    /// upwards and downwards.
    pub fn turn_round(&mut self, step: Step) {
        self.place.z = step.place.z;
        self.speed = Vector {
            x: 0.0,
            y: 0.0,
            z: step.speed.z,
        };
        self.yaw.turn(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME_S: f64 = 1.0 / 30.0;

    fn walk(body: &mut Body, frames: u32) -> Vec<Vector> {
        let movement = Movement::default();
        (0..frames)
            .map(|_| {
                body.go(body.step(&movement, FRAME_S));
                body.place
            })
            .collect()
    }

    #[test]
    fn it_reaches_walking_speed_and_keeps_it() {
        let mut body = Body::standing(Vector::default(), Yaw::new(0.0));
        walk(&mut body, 30);
        let start = body.place.x;
        walk(&mut body, 300);
        assert!((body.place.x - start - 6000.0).abs() < 1e-6);
        assert!(body.place.y.abs() < 1e-6);
    }

    #[test]
    fn a_jump_is_as_long_and_high_as_published() {
        let movement = Movement::default();
        let mut body = Body::standing(Vector::default(), Yaw::new(0.0));
        body.jump(&movement);
        let heights = walk(&mut body, 60);
        let airborne = heights.iter().filter(|place| place.z > 0.0).count();
        // 0.86 s in the air at 30 frames a second, some 90 cm high.
        assert!((24..=26).contains(&airborne), "{airborne}");
        let highest = heights.iter().map(|place| place.z).fold(0.0, f64::max);
        assert!((89.0..=90.1).contains(&highest), "{highest}");
    }

    #[test]
    fn no_second_jump_in_the_air() {
        let movement = Movement::default();
        let mut body = Body::standing(Vector::default(), Yaw::new(0.0));
        body.jump(&movement);
        walk(&mut body, 5);
        let before = body.speed;
        body.jump(&movement);
        assert_eq!(body.speed, before);
    }
}
