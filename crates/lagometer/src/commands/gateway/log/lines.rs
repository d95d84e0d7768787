//! Log lines on their way to a file or to standard error.
//!
//! The threads that log hand a line over and go on; a thread of the log's own
//! writes it. A reader that is slow, or has gone away, costs lines of the log and
//! nothing else: what finds no room is counted and left out, and what cannot be
//! written is passed over.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tracing::warn;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait to be written.
const WAITING_LINES: usize = 8192;

/// How long the end of the program waits for the last lines.
const FLUSH_AT_MOST: Duration = Duration::from_secs(1);

/// After so long a full queue is looked at again.
const ROOM_AGAIN: Duration = Duration::from_millis(1);

/// Takes lines; clones share one queue and one writing thread.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    queue: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// All lines before this one are written.
    Flush(SyncSender<()>),
}

impl Lines {
    /// Starts the thread that writes lines to `sink`.
    pub(super) fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, entries) = sync_channel(WAITING_LINES);
        let lines = Self {
            queue,
            dropped: Arc::default(),
        };
        let dropped = Arc::clone(&lines.dropped);
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_all(&entries, sink, &dropped))?;
        Ok(lines)
    }

    /// Waits until the lines so far are written, but no longer than
    /// [`FLUSH_AT_MOST`] for room in the queue and the writing together.
    pub(super) fn flush(&self) {
        let until = Instant::now() + FLUSH_AT_MOST;
        let (done, is_done) = sync_channel(1);
        let mut entry = Entry::Flush(done);
        // The queue cannot be waited for with a limit, so it is asked again.
        while let Err(TrySendError::Full(refused)) = self.queue.try_send(entry) {
            if Instant::now() >= until {
                return;
            }
            entry = refused;
            std::thread::sleep(ROOM_AGAIN);
        }
        let _ = is_done.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// Writes until nobody is left who could log.
fn write_all(entries: &Receiver<Entry>, mut sink: impl Write, dropped: &AtomicU64) {
    for entry in entries {
        match entry {
            // A reader that is gone is no reason to end, nor to complain to
            // anybody: nobody would read it.
            Entry::Line(line) => {
                let _ = sink.write_all(&line).and_then(|()| sink.flush());
            }
            Entry::Flush(done) => {
                let _ = done.try_send(());
            }
        }
        let lines = dropped.swap(0, Ordering::Relaxed);
        if lines > 0 {
            warn!(lines, "log lines were dropped: the log is read too slowly");
        }
    }
}

/// One line being written by the subscriber, in one piece.
impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Entry::Line(line.to_owned())) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    /// A sink that writes only when it is let, and keeps what it wrote.
    struct Gated {
        let_go: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Once the gate is gone it stands open.
            let _ = self.let_go.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_sink_that_blocks_holds_nobody_up_and_what_waited_comes_in_order() {
        let (gate, let_go) = channel();
        let written = Arc::default();
        let sink = Gated {
            let_go,
            written: Arc::clone(&written),
        };
        let mut lines = Lines::start(sink).unwrap();
        // One more than waits may be in the writer's hands.
        for line in 0..WAITING_LINES + 100 {
            lines.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        assert!(lines.dropped.load(Ordering::Relaxed) >= 99);
        drop(gate);
        lines.queue.send(Entry::Line(b"last\n".to_vec())).unwrap();
        lines.flush();
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let first: Vec<&str> = text.lines().take(3).collect();
        assert_eq!(first, ["0", "1", "2"]);
        assert!(text.ends_with("last\n"), "{}", text.len());
    }

    #[test]
    fn a_sink_that_fails_is_written_to_again() {
        struct Broken(Arc<AtomicU64>);
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.0.fetch_add(1, Ordering::Relaxed);
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let tries = Arc::default();
        let mut lines = Lines::start(Broken(Arc::clone(&tries))).unwrap();
        for _ in 0..3 {
            lines.write_all(b"x\n").unwrap();
        }
        lines.flush();
        assert_eq!(tries.load(Ordering::Relaxed), 3);
    }
}
