//! The order of things in a game's turn: one, for virtual time and for sockets.
//!
//! A game loop takes in everything that has come, lets the game act on it, and
//! then puts out what is to leave. So what the game answers at once and the
//! acknowledgement of what it answers can share a datagram, whatever carries it.

use lagometer_units::Time;

/// A connection's side with what is beneath it: sockets, or a link in virtual
/// time.
pub trait Driven {
    /// Takes in everything that has come by `now`, then attends to a deadline
    /// that has. Nothing is put on the wire.
    fn take_in(&mut self, now: Time);

    /// Puts on the wire what waits to leave. What a transport that sends by
    /// itself has sent meanwhile is none of it.
    fn put_out(&mut self, now: Time);
}

/// A game's turn: `side` takes in what has come, `act` has the game act and
/// returns whether it sent or received anything, and `side` puts out what waits;
/// again until the game has nothing more to do, since room may have come up for
/// what was refused.
///
/// `now` is asked before each round, and again when all that has come is taken in:
/// what a library does to a message before the game has it, decrypting and putting in
/// order, counts as part of the message's way. Returns when the game acted last.
pub fn turn<D: Driven + ?Sized>(
    side: &mut D,
    mut now: impl FnMut() -> Time,
    mut act: impl FnMut(&mut D, Time) -> bool,
) -> Time {
    loop {
        side.take_in(now());
        let at = now();
        let was_busy = act(side, at);
        side.put_out(at);
        if !was_busy {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorded(Vec<String>);

    impl Driven for Recorded {
        fn take_in(&mut self, now: Time) {
            self.0.push(format!("in {}", now.as_nanos()));
        }

        fn put_out(&mut self, now: Time) {
            self.0.push(format!("out {}", now.as_nanos()));
        }
    }

    #[test]
    fn the_game_acts_between_what_comes_and_what_leaves_until_it_is_idle() {
        let mut side = Recorded::default();
        let mut clock = 0;
        let now = || {
            clock += 1;
            Time::from_nanos(clock)
        };
        let last = turn(&mut side, now, |side, at| {
            side.0.push(format!("act {}", at.as_nanos()));
            at < Time::from_nanos(4)
        });
        assert_eq!(last, Time::from_nanos(4));
        // What taking in costs has passed when the game acts.
        let order = ["in 1", "act 2", "out 2", "in 3", "act 4", "out 4"];
        assert_eq!(side.0, order);
    }
}
