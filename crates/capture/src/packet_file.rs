//! A capture whose packets come in the order of their instants, as in virtual time:
//! whoever hands them over waits for the writer.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use lagometer_units::Time;

use crate::LogSummary;
use crate::pcapng;

/// Bytes that are written at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// A capture that is being written.
pub struct PacketFile<W> {
    out: W,
    chunk: Vec<u8>,
    chunk_packets: u64,
    packets: u64,
    missing: u64,
    failure: Option<io::Error>,
}

impl<W: Write> PacketFile<W> {
    /// Begins a capture of lanes of these names, with two interfaces each, into `out`.
    pub fn new<'n>(out: W, lanes: impl Iterator<Item = &'n str>) -> Self {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        pcapng::beginning(&mut chunk, lanes);
        Self {
            out,
            chunk,
            chunk_packets: 0,
            packets: 0,
            missing: 0,
            failure: None,
        }
    }

    /// Writes down that `packet` was seen on [`interface`](pcapng::interface_of) at `at`,
    /// counted from 1970, with a comment: its fate.
    pub fn packet(&mut self, interface: u32, at: Time, packet: &[u8], comment: fmt::Arguments<'_>) {
        if self.failure.is_some() {
            self.missing += 1;
            return;
        }
        pcapng::packet(&mut self.chunk, interface, at.as_nanos(), packet, comment);
        self.chunk_packets += 1;
        if self.chunk.len() >= CHUNK_BYTES {
            self.write_chunk();
        }
    }

    /// Writes what is left and says what became of the capture, which is called `path`.
    pub fn finish(mut self, path: &Path) -> LogSummary {
        self.write_chunk();
        if self.failure.is_none() {
            self.failure = self.out.flush().err();
        }
        LogSummary {
            path: path.to_owned(),
            packets: self.packets,
            missing: self.missing,
            failure: self.failure.map(|why| why.to_string()),
        }
    }

    fn write_chunk(&mut self) {
        let packets = std::mem::take(&mut self.chunk_packets);
        if self.failure.is_none() {
            self.failure = self.out.write_all(&self.chunk).err();
        }
        match self.failure {
            None => self.packets += packets,
            Some(_) => self.missing += packets,
        }
        self.chunk.clear();
    }
}

impl<W> fmt::Debug for PacketFile<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PacketFile")
            .field("packets", &self.packets)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logged_packets;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_writer_that_fails_is_reported_at_the_end() {
        let mut file = PacketFile::new(Full, ["a"].into_iter());
        let fate = format_args!("dropped: loss");
        file.packet(0, Time::from_millis(1), &vec![0; CHUNK_BYTES], fate);
        file.packet(0, Time::from_millis(3), b"x", fate);
        let end = file.finish(Path::new("x"));
        assert_eq!((end.packets, end.missing), (0, 2));
        assert!(end.failure.is_some());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut bytes = Vec::new();
        let mut file = PacketFile::new(&mut bytes, ["a", "b"].into_iter());
        file.packet(3, Time::from_nanos(7), b"x", format_args!("dropped: loss"));
        assert_eq!(file.finish(Path::new("x")).packets, 1);
        let read: Vec<_> = logged_packets(&bytes).collect();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].interface, read[0].epoch_ns), (3, 7));
        assert_eq!((read[0].bytes, read[0].fate), (&b"x"[..], "dropped: loss"));
    }
}
