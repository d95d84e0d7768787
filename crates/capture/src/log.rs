//! The log of packets in real time, with their fates, as a pcapng file that Wireshark
//! opens.
//!
//! Who passes packets on must not wait for a disk: it only writes into memory, and a
//! thread of its own writes that to the file. If the disk cannot keep up, the
//! log has gaps, which are counted; the network has none.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lagometer_units::{Clock, Time, create_private_file};
use serde::{Deserialize, Serialize};

use crate::pcapng;

/// How many bytes are handed to the writing thread at a time.
const CHUNK_BYTES: usize = 128 * 1024;
/// Room for one more packet of any size after a chunk is nearly full.
const CHUNK_ROOM: usize = CHUNK_BYTES + 70 * 1024;
/// After how long a chunk is handed over though it is not full.
const CHUNK_AGE: Duration = Duration::from_millis(200);
/// How many chunks there are: 6 MiB, or a quarter of a second at 200 Mbit/s.
const CHUNKS: usize = 32;

/// A log that is being written.
#[derive(Debug)]
pub struct Log {
    /// The instant [`Time::ZERO`] on the calendar, in nanoseconds.
    origin_ns: u64,
    chunk: Vec<u8>,
    chunk_began: Time,
    chunk_packets: u64,
    full: SyncSender<Chunk>,
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<Written>,
    path: PathBuf,
    /// Packets that were handed to the writing thread.
    packets: u64,
    missing: u64,
}

/// Blocks of a file, and how many packets are in them.
type Chunk = (Vec<u8>, u64);

/// What the writing thread did.
#[derive(Debug)]
struct Written {
    packets: u64,
    failure: Option<io::Error>,
}

/// What became of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSummary {
    /// The file of the log.
    pub path: PathBuf,
    /// Packets in it.
    pub packets: u64,
    /// Packets that are not: the disk or this program did not keep up, or the disk had failed.
    pub missing: u64,
    /// Why writing ended early, if it did.
    pub failure: Option<String>,
}

impl Log {
    /// Starts a log at `path`, replacing what is there, of lanes called
    /// `lanes`, with two interfaces each.
    ///
    /// # Errors
    ///
    /// The system's, about the file or the thread that writes it.
    pub fn start<'a>(
        path: &Path,
        clock: Clock,
        lanes: impl Iterator<Item = &'a str>,
    ) -> io::Result<Self> {
        let mut file = create_private_file(path)?;
        let mut chunk = Vec::with_capacity(CHUNK_ROOM);
        pcapng::beginning(&mut chunk, lanes);
        let (full, to_write) = mpsc::sync_channel::<Chunk>(CHUNKS);
        let (written, empty) = mpsc::sync_channel(CHUNKS);
        for _ in 1..CHUNKS {
            // There is room for all of them.
            let _ = written.try_send(Vec::with_capacity(CHUNK_ROOM));
        }
        let writer = thread::Builder::new()
            .name("packet-log".to_owned())
            .spawn(move || {
                let mut packets = 0;
                let mut failure = None;
                for (mut chunk, of_chunk) in to_write {
                    failure = file.write_all(&chunk).err();
                    if failure.is_some() {
                        break;
                    }
                    packets += of_chunk;
                    chunk.clear();
                    let _ = written.try_send(chunk);
                }
                let failure = failure.or_else(|| file.flush().err());
                Written { packets, failure }
            })?;
        let today = SystemTime::now().duration_since(UNIX_EPOCH);
        let origin = today.unwrap_or_default().as_nanos() as u64;
        Ok(Self {
            origin_ns: origin.saturating_sub(clock.now().as_nanos()),
            chunk,
            chunk_began: Time::ZERO,
            chunk_packets: 0,
            full,
            empty,
            writer,
            path: path.to_owned(),
            packets: 0,
            missing: 0,
        })
    }

    /// The instant at which the machine's clock showed `at`, if nobody has set it since the
    /// log was started.
    #[must_use]
    pub fn instant(&self, at: SystemTime) -> Time {
        let since_1970 = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_nanos((since_1970.as_nanos() as u64).saturating_sub(self.origin_ns))
    }

    /// Writes down that `packet` was seen on [`interface`](pcapng::interface_of) at `now`,
    /// with a comment: its fate.
    pub fn packet(
        &mut self,
        interface: u32,
        now: Time,
        packet: &[u8],
        comment: fmt::Arguments<'_>,
    ) {
        if self.chunk_packets == 0 {
            self.chunk_began = now;
        }
        pcapng::packet(
            &mut self.chunk,
            interface,
            self.origin_ns + now.as_nanos(),
            packet,
            comment,
        );
        self.chunk_packets += 1;
        if self.chunk.len() >= CHUNK_BYTES || now.since(self.chunk_began) >= CHUNK_AGE {
            self.hand_over();
        }
    }

    /// Counts packets of which nobody knows more than that they passed.
    pub fn missed(&mut self, packets: u64) {
        self.missing += packets;
    }

    /// Finishes the file.
    #[must_use]
    pub fn finish(mut self) -> LogSummary {
        self.hand_over();
        drop(self.full);
        let (written, failure) = match self.writer.join() {
            Ok(Written { packets, failure }) => (packets, failure.map(|why| why.to_string())),
            Err(_) => (0, Some("the writing thread panicked".to_owned())),
        };
        LogSummary {
            path: self.path,
            packets: written,
            missing: self.missing + (self.packets - written),
            failure,
        }
    }

    /// Hands the chunk to the writing thread and goes on with another. If
    /// there is none, or the thread has given up, its packets are missing.
    fn hand_over(&mut self) {
        let packets = std::mem::take(&mut self.chunk_packets);
        if let Ok(empty) = self.empty.try_recv() {
            let chunk = std::mem::replace(&mut self.chunk, empty);
            match self.full.try_send((chunk, packets)) {
                Ok(()) => {
                    self.packets += packets;
                    return;
                }
                Err(TrySendError::Full((chunk, _)) | TrySendError::Disconnected((chunk, _))) => {
                    self.chunk = chunk;
                }
            }
        }
        self.chunk.clear();
        self.missing += packets;
    }
}
