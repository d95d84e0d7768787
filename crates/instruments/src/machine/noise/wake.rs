//! How long it takes to wake a thread.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::time::Instant;

use lagometer_results::NoiseQuantiles;

use super::{micros, quantiles};

/// From one thread to another on the same processor; `None` where threads
/// cannot be placed.
pub(super) fn same_core_us(times: usize) -> Option<NoiseQuantiles> {
    let (one, _) = processors()?;
    between(one, one, times)
}

/// From one thread to another on another processor; `None` where there is
/// only one, or threads cannot be placed.
pub(super) fn cross_core_us(times: usize) -> Option<NoiseQuantiles> {
    let (one, other) = processors()?;
    between(one, other?, times)
}

/// Half the time that a byte takes to another thread and back, both of which
/// sleep while they wait.
fn between(one: usize, other: usize, times: usize) -> Option<NoiseQuantiles> {
    let (asked, ask) = io::pipe().ok()?;
    let (answered, answer) = io::pipe().ok()?;
    let halves = std::thread::scope(|scope| {
        scope.spawn(move || {
            // Ends when the other side's pipe is closed.
            if place(other).is_ok() {
                while receive(&asked).is_ok_and(|bytes| bytes > 0) && send(&answer).is_ok() {}
            }
        });
        scope
            .spawn(move || {
                place(one)?;
                let mut halves = Vec::with_capacity(times);
                for _ in 0..times {
                    let began = Instant::now();
                    send(&ask)?;
                    receive(&answered)?;
                    halves.push(micros(began.elapsed()) / 2.0);
                }
                Ok::<_, io::Error>(halves)
            })
            .join()
    });
    halves.ok()?.ok().map(quantiles)
}

fn send(mut pipe: &PipeWriter) -> io::Result<usize> {
    pipe.write(&[0])
}

fn receive(mut pipe: &PipeReader) -> io::Result<usize> {
    pipe.read(&mut [0; 1])
}

/// The first two processors that this thread may use.
fn processors() -> Option<(usize, Option<usize>)> {
    let mut usable = lagometer_platform::processors().into_iter();
    Some((usable.next()?, usable.next()))
}

/// Keeps the calling thread on a processor.
fn place(cpu: usize) -> io::Result<()> {
    lagometer_platform::place_thread(&[cpu])
}
