//! Places, speeds and headings, in the engine's units.

use std::ops::{Add, Mul, Sub};

/// A place in centimetres or a speed in centimetres per second. `z` is up, as
/// in the engine whose messages the world speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vector {
    /// East.
    pub x: f64,
    /// North.
    pub y: f64,
    /// Up.
    pub z: f64,
}

impl Vector {
    /// A place on the ground.
    #[must_use]
    pub const fn on_ground(x: f64, y: f64) -> Self {
        Self { x, y, z: 0.0 }
    }

    /// The square of the distance to `other`, heights left out.
    #[must_use]
    pub fn ground_distance_squared(self, other: Self) -> f64 {
        let between = self - other;
        between.x * between.x + between.y * between.y
    }
}

impl Add for Vector {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            x: self.x + other.x,
            y: self.y + other.y,
            z: self.z + other.z,
        }
    }
}

impl Sub for Vector {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

impl Mul<f64> for Vector {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self {
            x: self.x * factor,
            y: self.y * factor,
            z: self.z * factor,
        }
    }
}

/// A heading: whole quarter turns from a first direction.
///
/// Characters turn by quarters only, so a heading is exact however often it
/// turns, and a mind's turns may be counted and sent instead of an angle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yaw {
    /// Degrees at which this character counts no quarters, 0 to 90.
    first_degrees: f64,
    cosine: f64,
    sine: f64,
    quarters: u8,
}

impl Yaw {
    /// The heading of `degrees` from east towards north.
    #[must_use]
    pub fn new(degrees: f64) -> Self {
        let radians = degrees.to_radians();
        Self {
            first_degrees: degrees,
            // Not the platform's, which differ in the last bit.
            cosine: libm::cos(radians),
            sine: libm::sin(radians),
            quarters: 0,
        }
    }

    /// Turns by `quarters` of a circle, anticlockwise where positive.
    pub fn turn(&mut self, quarters: i32) {
        self.quarters = (i32::from(self.quarters) + quarters).rem_euclid(4) as u8;
    }

    /// The unit vector this heading points along.
    #[must_use]
    pub fn direction(self) -> Vector {
        let (x, y) = (self.cosine, self.sine);
        match self.quarters {
            0 => Vector::on_ground(x, y),
            1 => Vector::on_ground(-y, x),
            2 => Vector::on_ground(-x, -y),
            _ => Vector::on_ground(y, -x),
        }
    }

    /// The heading in degrees, from 0 up to, not including, 360 where the
    /// first was.
    #[must_use]
    pub fn degrees(self) -> f64 {
        let degrees = self.first_degrees + 90.0 * f64::from(self.quarters);
        if degrees < 360.0 {
            degrees
        } else {
            degrees - 360.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_quarters_are_a_circle() {
        let mut yaw = Yaw::new(33.0);
        let before = yaw.direction();
        for _ in 0..4 {
            yaw.turn(1);
        }
        assert_eq!(yaw.direction(), before);
        yaw.turn(-1);
        yaw.turn(3);
        assert_eq!(yaw.direction(), before * -1.0);
    }

    #[test]
    fn degrees_and_direction_agree() {
        let mut yaw = Yaw::new(300.0);
        for _ in 0..4 {
            let radians = yaw.degrees().to_radians();
            assert!((0.0..360.0).contains(&yaw.degrees()));
            assert!((yaw.direction().x - radians.cos()).abs() < 1e-12);
            assert!((yaw.direction().y - radians.sin()).abs() < 1e-12);
            yaw.turn(1);
        }
    }
}
