//! One end of a recording: sends probes on time and notes those that come.

use std::io;
use std::net::UdpSocket;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lagometer_units::{Clock, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::record::fates::Arrival;
use crate::record::probe::{LEAST_BYTES, Probe, TRAIN_BYTES, TRAIN_LENGTH};
use crate::record::rate::TrainArrival;

/// From one train to the next.
const TRAIN_EVERY: Duration = Duration::from_secs(1);

/// The longest it waits before it looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Packets taken in before others are sent.
const BATCH: usize = 64;

/// What one end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Score {
    /// From one probe to the next.
    pub(crate) every: Duration,
    /// The bytes of a probe, UDP and IP headers not counted.
    pub(crate) bytes: usize,
    /// For how long probes are sent.
    pub(crate) lasts: Duration,
    /// Whether trains are sent too.
    pub(crate) trains: bool,
}

/// What one end sent and received, by its own clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Played {
    /// When each probe left.
    pub(crate) sent: Vec<Time>,
    /// The other end's probes as they came, with when they say they left.
    pub(crate) received: Vec<Arrival>,
    /// The packets of its trains.
    pub(crate) trains: Vec<TrainArrival>,
}

impl Score {
    /// How many probes that are.
    pub(crate) fn probes(&self) -> usize {
        let every = self.every.as_nanos().max(1);
        usize::try_from(self.lasts.as_nanos().div_ceil(every)).unwrap_or(usize::MAX)
    }

    /// Plays it over `socket`, which is connected, and goes on listening until
    /// `is_over` says so, which is given whether all has been sent. What happens
    /// is noted in `played` at once, so that others can read it meanwhile.
    pub(crate) fn play(
        &self,
        socket: &UdpSocket,
        clock: Clock,
        played: &Mutex<Played>,
        mut is_over: impl FnMut(bool) -> bool,
    ) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let start = clock.now();
        let (probes, mut sent, mut trains_sent) = (self.probes(), 0_usize, 0_u32);
        // Twice what a well-behaved peer sends; more is not kept.
        let most = probes.saturating_mul(2);
        let mut packet = vec![0xA5; self.bytes.max(TRAIN_BYTES)];
        let mut incoming = [0; 2048];
        loop {
            for _ in 0..BATCH {
                let Ok(length) = socket.recv(&mut incoming) else {
                    break;
                };
                let at = clock.now();
                Played::within(played).note(&incoming[..length], at, most);
            }
            let all_sent = sent >= probes;
            if is_over(all_sent) {
                return Ok(());
            }
            let now = clock.now();
            let due = start + self.every * u32::try_from(sent).unwrap_or(u32::MAX);
            if !all_sent && due <= now {
                let probe = Probe::Lone {
                    number: sent as u32,
                    sent_at: now.as_nanos(),
                };
                let bytes = self.bytes.max(LEAST_BYTES);
                probe.write(&mut packet[..bytes]);
                // One that finds no room is lost, as on the path.
                let _ = socket.send(&packet[..bytes]);
                Played::within(played).sent.push(now);
                sent += 1;
                continue;
            }
            // Trains leave between two probes.
            let train_due = start + self.every / 2 + TRAIN_EVERY * trains_sent;
            if self.trains && !all_sent && train_due <= now {
                for place in 0..TRAIN_LENGTH {
                    let train = trains_sent;
                    Probe::OfTrain { train, place }.write(&mut packet);
                    let _ = socket.send(&packet[..TRAIN_BYTES]);
                }
                trains_sent += 1;
                continue;
            }
            let wait = if all_sent {
                LOOK
            } else {
                due.since(now).min(LOOK)
            };
            wait_readable(socket, wait)?;
        }
    }
}

impl Played {
    /// What was noted so far. A list is whole after each of its entries, so
    /// that a thread that broke while it held it has left nothing half done.
    pub(crate) fn within(shared: &Mutex<Self>) -> MutexGuard<'_, Self> {
        shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&mut self, packet: &[u8], at: Time, most: usize) {
        match Probe::read(packet) {
            Some(Probe::Lone { number, .. }) if self.received.len() < most => {
                self.received.push(Arrival { number, at });
            }
            Some(Probe::OfTrain { train, place }) if self.trains.len() < most => {
                self.trains.push(TrainArrival { train, place, at });
            }
            _ => {}
        }
    }
}

fn wait_readable(socket: &UdpSocket, span: Duration) -> io::Result<()> {
    // Longer than can be said is forever.
    let timeout = Timespec::try_from(span).ok();
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
