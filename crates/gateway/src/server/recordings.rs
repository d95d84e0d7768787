//! What clients sent, written to files by a thread of its own: disks are slow.
//! What waits for it is bounded; what finds no room is counted and left out.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lagometer_limits::LineRate;
use lagometer_units::{create_new_private_file, create_private_folder};
use tracing::{info, warn};

use crate::core::Recording;

use super::journal::LINES_PER_S;

/// The most sessions of one number that may end in one millisecond.
const SAME_NAME: u32 = 1000;

/// Recordings that may wait for the disk, and their bytes; more are left out.
const WAITING: usize = 4096;
const WAITING_BYTES: usize = 64 << 20;

/// How long the gateway's end waits for the disk. Recordings end when clients go,
/// which at the end is all of them at once.
const FINISH_WITHIN: Duration = Duration::from_secs(10);

/// Hands recordings to the thread that writes them, and never waits for it.
#[derive(Clone, Debug)]
pub(super) struct RecordingWriter {
    sender: SyncSender<Recording>,
    backlog: Arc<Backlog>,
}

/// What waits for the disk, and what found no room.
#[derive(Debug, Default)]
struct Backlog {
    waiting_bytes: AtomicUsize,
    left_out: AtomicU64,
    /// The last recording was left out.
    is_full: AtomicBool,
}

/// The writing thread's end.
#[derive(Debug)]
struct Waiting {
    receiver: Receiver<Recording>,
    backlog: Arc<Backlog>,
}

/// The writing thread, for whoever waits for its end.
#[derive(Debug)]
pub(super) struct WriterThread {
    /// Nothing comes, until it is closed with the thread's end.
    ended: Receiver<()>,
    backlog: Arc<Backlog>,
}

/// Starts the writer. Its thread ends with the last handle. A folder that it has to make
/// is its owner's alone: recordings hold what players said.
pub(super) fn start(folder: PathBuf) -> io::Result<(RecordingWriter, WriterThread)> {
    create_private_folder(&folder)?;
    let (writer, waiting) = queue();
    let (ends, ended) = channel();
    let backlog = Arc::clone(&writer.backlog);
    std::thread::Builder::new()
        .name("recordings".into())
        .spawn(move || {
            write_all(&folder, &waiting);
            drop::<Sender<()>>(ends);
        })?;
    Ok((writer, WriterThread { ended, backlog }))
}

impl WriterThread {
    /// Waits until everything is written, once nobody is left who brings more,
    /// and says so where the disk takes too long.
    pub(super) fn finish(self) {
        if !self.ends_within(FINISH_WITHIN) {
            let bytes = self.backlog.waiting_bytes.load(Ordering::SeqCst);
            warn!(
                bytes,
                "recordings are lost: the disk takes too long over them"
            );
        }
    }

    fn ends_within(&self, at_most: Duration) -> bool {
        self.ended.recv_timeout(at_most) == Err(RecvTimeoutError::Disconnected)
    }
}

fn queue() -> (RecordingWriter, Waiting) {
    let (sender, receiver) = sync_channel(WAITING);
    let backlog = Arc::new(Backlog::default());
    let writer = RecordingWriter {
        sender,
        backlog: Arc::clone(&backlog),
    };
    (writer, Waiting { receiver, backlog })
}

impl RecordingWriter {
    /// Has a recording written, or leaves it out where the disk cannot keep up.
    /// That is said once, when it begins, and with the number when it ends.
    pub(super) fn keep(&self, recording: Recording) {
        let backlog = &*self.backlog;
        let bytes = recording.file.len();
        // What is added here the thread takes away, unless it does not get it.
        let before = backlog.waiting_bytes.fetch_add(bytes, Ordering::SeqCst);
        let fits = before == 0 || before.saturating_add(bytes) <= WAITING_BYTES;
        if fits && self.sender.try_send(recording).is_ok() {
            if backlog.is_full.swap(false, Ordering::SeqCst) {
                let left_out = self.left_out();
                info!(left_out, "recordings are written again");
            }
            return;
        }
        backlog.waiting_bytes.fetch_sub(bytes, Ordering::SeqCst);
        backlog.left_out.fetch_add(1, Ordering::SeqCst);
        if !backlog.is_full.swap(true, Ordering::SeqCst) {
            warn!("recordings are left out: the disk cannot keep up with them");
        }
    }

    /// How many recordings were left out since the start.
    pub(super) fn left_out(&self) -> u64 {
        self.backlog.left_out.load(Ordering::SeqCst)
    }

    /// The same later, without keeping the writer from its end.
    pub(super) fn left_out_counter(&self) -> LeftOut {
        LeftOut(Arc::clone(&self.backlog))
    }
}

/// How many recordings were left out.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut(Arc<Backlog>);

impl LeftOut {
    /// Since the start.
    pub(super) fn count(&self) -> u64 {
        self.0.left_out.load(Ordering::SeqCst)
    }
}

impl Waiting {
    /// The next to be written; none when nobody can bring more.
    fn next(&self) -> Option<Recording> {
        let recording = self.receiver.recv().ok()?;
        let bytes = recording.file.len();
        self.backlog
            .waiting_bytes
            .fetch_sub(bytes, Ordering::SeqCst);
        Some(recording)
    }
}

/// The thread's life.
fn write_all(folder: &Path, waiting: &Waiting) {
    let started = Instant::now();
    let mut recorded = LineRate::new(LINES_PER_S);
    let mut failed = LineRate::new(LINES_PER_S);
    while let Some(recording) = waiting.next() {
        let connection = recording.id.map_or(0, |id| id.0);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("session_{connection}_{}", now.as_millis());
        match write(folder, &name, &recording.file) {
            Ok(path) => {
                if let Some(left_out) = recorded.due(started.elapsed()) {
                    info!(connection, path = %path.display(), left_out, "recorded");
                }
            }
            Err(error) => {
                if let Some(left_out) = failed.due(started.elapsed()) {
                    warn!(name, %error, left_out, "a recording cannot be written");
                }
            }
        }
    }
}

/// Writes a file that only its owner may read, under a name that nobody has.
fn write(folder: &Path, name: &str, content: &[u8]) -> io::Result<PathBuf> {
    let (mut file, path) = create(folder, name)?;
    file.write_all(content)?;
    Ok(path)
}

fn create(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    for again in 0..SAME_NAME {
        let path = folder.join(match again {
            0 => format!("{name}.cpr"),
            again => format!("{name}_{again}.cpr"),
        });
        match create_new_private_file(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => return Ok((other?, path)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn recording(bytes: usize) -> Recording {
        Recording {
            id: None,
            file: vec![0; bytes],
        }
    }

    #[test]
    fn what_a_slow_disk_keeps_waiting_is_bounded_and_the_rest_is_counted() {
        let (writer, waiting) = queue();
        let one = WAITING_BYTES / 4;
        for _ in 0..6 {
            writer.keep(recording(one));
        }
        assert_eq!(writer.left_out(), 2);
        assert_eq!(waiting.next().unwrap().file.len(), one);
        writer.keep(recording(one));
        assert_eq!(writer.left_out(), 2);
        for _ in 0..4 {
            waiting.next().unwrap();
        }
        for _ in 0..WAITING + 3 {
            writer.keep(recording(1));
        }
        assert_eq!(writer.left_out_counter().count(), 5);
        // One that is longer than all that may wait is not lost for that.
        while waiting.backlog.waiting_bytes.load(Ordering::SeqCst) > 0 {
            waiting.next().unwrap();
        }
        writer.keep(recording(WAITING_BYTES + 1));
        assert_eq!(writer.left_out(), 5);
        assert_eq!(waiting.next().unwrap().file.len(), WAITING_BYTES + 1);
        drop(writer);
        assert_eq!(waiting.next(), None);
    }

    #[test]
    fn the_end_waits_until_all_is_written_and_not_while_more_may_come() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, thread) = start(folder.path().to_owned()).unwrap();
        for _ in 0..100 {
            writer.keep(recording(1000));
        }
        assert!(!thread.ends_within(Duration::from_millis(1)));
        drop(writer);
        thread.finish();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 100);
    }

    #[test]
    fn files_are_their_owners_and_none_takes_anothers_place() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..3)
            .map(|content| {
                let path = write(folder.path(), "session_0_7", &[content]).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), [content]);
                let mode = path.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
                path.file_name().unwrap().to_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(
            names,
            ["session_0_7.cpr", "session_0_7_1.cpr", "session_0_7_2.cpr"]
        );
    }
}
