//! The thread that reads the taps.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Outside, OutsideClock, RouterEvent, fingerprint};
use crate::host::Side;
use crate::sys::tap::{Tap, Tapped};

/// A host's tap, and the lane of each of its devices, by the device's index.
#[derive(Debug)]
pub(crate) struct Tapping {
    pub(crate) tap: Tap,
    pub(crate) side: Side,
    pub(crate) lanes: BTreeMap<u32, u8>,
}

/// Taps that are being read.
#[derive(Debug)]
pub(crate) struct Watch {
    thread: JoinHandle<Vec<Outside>>,
    lanes: usize,
}

/// How often taps are read. Their packets have been stamped, and wait.
const READ_EVERY: Duration = Duration::from_millis(20);

impl Watch {
    /// Starts reading the taps of hosts with `lanes` lanes. What is returned with it
    /// takes what the router did; when nobody has it any more the watch is over.
    pub(crate) fn start(
        taps: Vec<Tapping>,
        lanes: usize,
    ) -> io::Result<(Self, Sender<RouterEvent>)> {
        let (events, received) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || read_all(taps, lanes, &received))?;
        Ok((Self { thread, lanes }, events))
    }

    /// What was found of each way; of each that nothing was seen, if the thread panicked.
    /// Waits for the router's end.
    pub(crate) fn finish(self) -> Vec<Outside> {
        let nothing = || (0..self.lanes * 2).map(|_| Outside::new()).collect();
        self.thread.join().unwrap_or_else(|_| nothing())
    }
}

fn read_all(mut taps: Vec<Tapping>, lanes: usize, events: &Receiver<RouterEvent>) -> Vec<Outside> {
    let mut clock = OutsideClock::new(lanes * 2);
    loop {
        // What the router did before what passed: a packet is stamped before the router
        // has it, so every event taken here has its packet by then.
        let is_over = loop {
            match events.try_recv() {
                Ok(event) => clock.note(event),
                Err(TryRecvError::Empty) => break false,
                Err(TryRecvError::Disconnected) => break true,
            }
        };
        for tapping in &mut taps {
            while let Some(tapped) = tapping.tap.read() {
                tapping.see(&tapped, &mut clock);
            }
        }
        clock.settle();
        if is_over {
            return clock.findings();
        }
        thread::sleep(READ_EVERY);
    }
}

impl Tapping {
    fn see(&self, tapped: &Tapped, clock: &mut OutsideClock) {
        let Some(&lane) = self.lanes.get(&tapped.device) else {
            return;
        };
        let fingerprint = fingerprint(tapped.head.bytes(), tapped.length);
        let way = |from: Side| usize::from(lane) * 2 + usize::from(from == Side::Remote);
        match (tapped.is_outgoing, self.side) {
            (true, from) => clock.sent(way(from), fingerprint, tapped.at_ns),
            (false, Side::Remote) => clock.arrived(way(Side::Local), fingerprint, tapped.at_ns),
            (false, Side::Local) => clock.arrived(way(Side::Remote), fingerprint, tapped.at_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_watch_that_panicked_every_way_has_seen_nothing() {
        let watch = Watch {
            thread: thread::spawn(|| panic!("of the test")),
            lanes: 2,
        };
        let found = watch.finish();
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|way| way.error.in_micros().count == 0));
    }
}
