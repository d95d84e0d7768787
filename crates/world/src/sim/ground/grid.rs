//! A grid of squares that remembers what touches each of them.

use crate::sim::vector::Vector;

/// The side of a square. Some characters' widths: few share a square, and few
/// squares are looked into.
const SQUARE_CM: f64 = 400.0;

/// Things by the squares they touch.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    half_side_cm: f64,
    columns: usize,
    squares: Vec<Vec<u32>>,
}

impl Grid {
    pub(crate) fn new(half_side_cm: f64) -> Self {
        let columns = ((2.0 * half_side_cm / SQUARE_CM).ceil() as usize).max(1);
        Self {
            half_side_cm,
            columns,
            squares: vec![Vec::new(); columns * columns],
        }
    }

    /// Remembers `index` in every square that the box touches.
    pub(crate) fn put(&mut self, index: u32, low: Vector, high: Vector) {
        let (from, to) = (self.square(low), self.square(high));
        for row in from.1..=to.1 {
            for column in from.0..=to.0 {
                self.squares[row * self.columns + column].push(index);
            }
        }
    }

    /// Forgets everything, and keeps the room.
    pub(crate) fn clear(&mut self) {
        for square in &mut self.squares {
            square.clear();
        }
    }

    /// Whatever touches the squares within `radius_cm` of `place`; some of it
    /// more than once.
    pub(crate) fn near(&self, place: Vector, radius_cm: f64) -> impl Iterator<Item = u32> + '_ {
        let reach = Vector::on_ground(radius_cm, radius_cm);
        let (from, to) = (self.square(place - reach), self.square(place + reach));
        (from.1..=to.1).flat_map(move |row| {
            let row = &self.squares[row * self.columns..(row + 1) * self.columns];
            row[from.0..=to.0].iter().flatten().copied()
        })
    }

    /// The square that `place` lies in, the nearest for what lies outside.
    fn square(&self, place: Vector) -> (usize, usize) {
        let index = |coordinate: f64| {
            // A negative number becomes 0 in the conversion.
            let index = ((coordinate + self.half_side_cm) / SQUARE_CM) as usize;
            index.min(self.columns - 1)
        };
        (index(place.x), index(place.y))
    }
}
