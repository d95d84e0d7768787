//! How many connections are read on one thread without its being woken for
//! each word, and waited for while they set themselves up.

use std::thread;
use std::time::{Duration, Instant};

use lagometer_client::Handler;
use lagometer_client::swarm::Swarm;

use crate::BenchError;

/// What arrives is let gather for so long, and what is due is let be due: being
/// woken for each of thousands of messages a second costs more than they do, at
/// both ends.
pub(crate) const GATHER: Duration = Duration::from_millis(1);

/// Who drives many connections.
pub(crate) trait Driver {
    /// One of them.
    type Peer: Handler;

    /// How many of them are served at once.
    const AT_ONCE: usize;

    /// All of them.
    fn swarm(&mut self) -> &mut Swarm<Self::Peer>;

    /// [`receive`] for all of them.
    ///
    /// # Errors
    ///
    /// The system's.
    fn receive(&mut self, began: Instant, until: Instant) -> Result<(), BenchError> {
        receive(self.swarm(), Self::AT_ONCE, began, until)
    }

    /// Reads from everyone until something is so, for `at_most` so long.
    ///
    /// # Errors
    ///
    /// When it took too long, or a connection ended.
    fn wait(
        &mut self,
        what: &'static str,
        at_most: Duration,
        mut is_so: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), BenchError> {
        let deadline = Instant::now() + at_most;
        while !is_so(self) {
            if let Some((_, _, reason)) = self.swarm().take_ended() {
                return Err(BenchError::Ended { what, reason });
            }
            let now = Instant::now();
            if now > deadline {
                return Err(BenchError::TooSlow(what));
            }
            self.receive(now, deadline)?;
        }
        Ok(())
    }
}

/// Reads from those who have sent something, `at_once` at most, and rests for what is
/// left of [`GATHER`] since `began`, but not beyond `until` and not while more
/// wait to be read.
///
/// # Errors
///
/// The system's.
pub(crate) fn receive<H: Handler>(
    swarm: &mut Swarm<H>,
    at_once: usize,
    began: Instant,
    until: Instant,
) -> Result<(), BenchError> {
    if swarm.poll(Duration::ZERO)? < at_once {
        let rested = (began + GATHER).min(until);
        thread::sleep(rested.saturating_duration_since(Instant::now()));
    }
    Ok(())
}
