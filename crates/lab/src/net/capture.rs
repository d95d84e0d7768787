//! A capture of the testbed `net`: the datagrams of lanes over UDP, as this end hands
//! them to its kernel and gets them from it; and the packets of lanes that the kernel or a
//! library makes, as they pass the device.
//!
//! What the path does with them is not seen from here: a packet's comment is `sent` or
//! `received`. Headers of datagrams are those that this end's addresses give; the path may have
//! changed them on the way.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lagometer_capture::pcapng::interface_of;
use lagometer_capture::{Conversation, Log, LogSummary, PacketSocket, UdpHeaders};
use lagometer_remote::Error;
use lagometer_socket::{BoxedConnection, DatagramTap, Opening};
use lagometer_units::{Clock, Time};

/// A capture that is being written.
pub(super) struct Capture {
    log: SharedLog,
    /// One for each lane whose packets are not this program's.
    sockets: Vec<PacketSocket>,
}

/// Lanes' threads share the log: each only writes into memory under its lock.
#[derive(Clone)]
struct SharedLog(Arc<Mutex<Option<Log>>>);

/// One lane's datagrams on their way into the capture.
struct Tap {
    log: SharedLog,
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
        Ok(Self {
            log: SharedLog(Arc::new(Mutex::new(Some(log)))),
            sockets: Vec::new(),
        })
    }

    /// Has the packets of a lane written that the kernel or a library makes, from its first
    /// on: before its connection is opened.
    ///
    /// # Errors
    ///
    /// As [`PacketSocket::start`].
    pub(super) fn listen(&mut self, lane: usize, opening: &Opening) -> io::Result<()> {
        let between = Conversation {
            local: opening.local,
            remote: opening.remote,
        };
        let log = self.log.clone();
        let socket = PacketSocket::start(between, move |packet| {
            log.write(
                lane,
                |log| log.instant(packet.at),
                packet.is_up,
                packet.bytes,
            );
        })?;
        self.sockets.push(socket);
        Ok(())
    }

    /// Has the datagrams of a lane written from now on.
    pub(super) fn watch(&self, lane: usize, client: &mut BoxedConnection, opening: &Opening) {
        let tap = Tap {
            log: self.log.clone(),
            lane,
            headers: UdpHeaders::new(opening.local, opening.remote),
        };
        client.show_datagrams_to(Box::new(tap));
    }

    /// Finishes the file.
    pub(super) fn finish(self) -> Option<LogSummary> {
        let missed = self.sockets.into_iter().map(PacketSocket::finish).sum();
        let mut log = lock(&self.log.0).take()?;
        log.missed(missed);
        Some(log.finish())
    }
}

impl DatagramTap for Tap {
    fn sent(&mut self, now: Time, datagram: &[u8]) {
        let packet = self.headers.packet(datagram);
        self.log.write(self.lane, |_| now, true, &packet);
    }

    fn received(&mut self, now: Time, datagram: &[u8]) {
        let packet = self.headers.reversed().packet(datagram);
        self.log.write(self.lane, |_| now, false, &packet);
    }
}

impl SharedLog {
    fn write(&self, lane: usize, at: impl FnOnce(&Log) -> Time, is_up: bool, packet: &[u8]) {
        let comment = if is_up { "sent" } else { "received" };
        if let Some(log) = &mut *lock(&self.0) {
            let interface = interface_of(lane, is_up);
            let at = at(log);
            log.packet(interface, at, packet, format_args!("{comment}"));
        }
    }
}

fn lock(log: &Mutex<Option<Log>>) -> MutexGuard<'_, Option<Log>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
