//! A thread that waits in UDT's receiving call.
//!
//! UDT has no file that `poll` could wait on, and its own epoll keeps time in
//! steps of ten milliseconds. Its receiving call, though, wakes at once. So a
//! thread waits there, hands on what it gets, and signals an eventfd.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, mpsc::TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lagometer_native::udt::{Kind, Mode, Socket};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};

/// What has been received, and the thread that receives.
#[derive(Debug)]
pub(super) struct Inbox {
    socket: Arc<Socket>,
    pieces: Receiver<Vec<u8>>,
    waker: Arc<OwnedFd>,
    cpu_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// Pieces that wait to be taken out at most. Beyond them UDT's own buffer
/// fills, and then the peer is held back.
const PIECES: usize = 256;

impl Inbox {
    /// Begins to receive from `socket`, whose receiving waits, in pieces of at
    /// most `largest` bytes.
    pub(super) fn open(socket: Arc<Socket>, mode: Mode, largest: usize) -> io::Result<Self> {
        let waker = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let cpu_ns = Arc::new(AtomicU64::new(0));
        let (sender, pieces) = sync_channel(PIECES);
        let receiving = Receiving {
            socket: Arc::clone(&socket),
            mode,
            pieces: sender,
            waker: Arc::clone(&waker),
            cpu_ns: Arc::clone(&cpu_ns),
        };
        let thread = thread::Builder::new()
            .name("udt inbox".to_owned())
            .spawn(move || receiving.run(largest))?;
        Ok(Self {
            socket,
            pieces,
            waker,
            cpu_ns,
            thread: Some(thread),
        })
    }

    /// The next piece, if there is one.
    ///
    /// # Errors
    ///
    /// [`Ended`] when the connection is gone and everything was taken out.
    pub(super) fn take(&mut self) -> Result<Option<Vec<u8>>, Ended> {
        match self.pieces.try_recv() {
            Ok(piece) => Ok(Some(piece)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Ended),
        }
    }

    /// Silences the waker, before one looks for pieces: what comes later rings
    /// again.
    pub(super) fn hush(&self) {
        // That it has not rung is no failure.
        let _ = rustix::io::read(&*self.waker, &mut [0; 8]);
    }

    /// What becomes readable when there is something to take.
    pub(super) fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// The processor time of the thread, as of its last piece.
    pub(super) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns.load(Ordering::Relaxed))
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Sends the thread back from UDT, or from a channel nobody empties.
        self.socket.close();
        while self.pieces.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // It panics nowhere; and if it did, this is no place to do so, too.
            let _ = thread.join();
        }
    }
}

/// The connection is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended;

struct Receiving {
    socket: Arc<Socket>,
    mode: Mode,
    pieces: SyncSender<Vec<u8>>,
    waker: Arc<OwnedFd>,
    cpu_ns: Arc<AtomicU64>,
}

impl Receiving {
    fn run(self, largest: usize) {
        let mut buffer = vec![0; largest];
        loop {
            let received = match self.mode {
                Mode::Messages => self.socket.receive_message(&mut buffer),
                Mode::Stream => self.socket.receive(&mut buffer),
            };
            match received {
                Ok(length) => {
                    if self.pieces.send(buffer[..length].to_vec()).is_err() {
                        break;
                    }
                }
                Err(error) if matches!(error.kind(), Kind::WouldBlock | Kind::TimedOut) => {
                    // It was asked to wait; be gentle should it not.
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => break,
            }
            self.ring();
        }
        // The channel ends with this; whoever sleeps on the waker should see it.
        drop(self.pieces);
        ring(&self.waker);
    }

    fn ring(&self) {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        let used_ns = used.tv_sec.cast_unsigned() * 1_000_000_000 + used.tv_nsec.cast_unsigned();
        self.cpu_ns.store(used_ns, Ordering::Relaxed);
        ring(&self.waker);
    }
}

fn ring(waker: &OwnedFd) {
    // Its counter full, it rings already.
    let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
}
