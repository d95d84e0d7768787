//! A capture of the testbed `net`: the datagrams of lanes over UDP, as this end hands
//! them to its kernel and gets them from it.
//!
//! What the path does with them is not seen from here: a packet's comment is `sent` or
//! `received`. Headers are those that this end's addresses give; the path may have
//! changed them on the way.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lagometer_capture::pcapng::interface_of;
use lagometer_capture::{Log, LogSummary, UdpHeaders};
use lagometer_remote::Error;
use lagometer_socket::{BoxedConnection, DatagramTap, Opening};
use lagometer_units::{Clock, Time};

/// A capture that is being written. Lanes' threads share it: each only writes into
/// memory under its lock.
pub(super) struct Capture(Arc<Mutex<Option<Log>>>);

/// One lane's datagrams on their way into the capture.
struct Tap {
    log: Arc<Mutex<Option<Log>>>,
    lane: usize,
    headers: UdpHeaders,
}

impl Capture {
    /// Starts a capture at `path` of lanes of these names.
    pub(super) fn start<'a>(
        path: &Path,
        clock: Clock,
        lanes: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        let log = Log::start(path, clock, lanes).map_err(|source| Error::System {
            doing: "writing the log of packets",
            source,
        })?;
        Ok(Self(Arc::new(Mutex::new(Some(log)))))
    }

    /// Has the datagrams of a lane written from now on.
    pub(super) fn watch(&self, lane: usize, client: &mut BoxedConnection, opening: &Opening) {
        let tap = Tap {
            log: Arc::clone(&self.0),
            lane,
            headers: UdpHeaders::new(opening.local, opening.remote),
        };
        // What the kernel or a library packs out of sight is not in the capture.
        client.show_datagrams_to(Box::new(tap));
    }

    /// Finishes the file.
    pub(super) fn finish(self) -> Option<LogSummary> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        log.map(Log::finish)
    }
}

impl DatagramTap for Tap {
    fn sent(&mut self, now: Time, datagram: &[u8]) {
        self.write(now, true, &self.headers.packet(datagram));
    }

    fn received(&mut self, now: Time, datagram: &[u8]) {
        self.write(now, false, &self.headers.reversed().packet(datagram));
    }
}

impl Tap {
    fn write(&self, now: Time, is_up: bool, packet: &[u8]) {
        let comment = if is_up { "sent" } else { "received" };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = &mut *log {
            let interface = interface_of(self.lane, is_up);
            log.packet(interface, now, packet, format_args!("{comment}"));
        }
    }
}
