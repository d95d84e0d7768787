//! The threads that UDT makes for one UDP socket, and what they cost.
//!
//! UDT makes a thread that collects closed sockets, and two for each UDP socket.
//! A new thread bears the name of the thread that made it (Linux, `clone(2)`),
//! so the calling thread takes a name of its own for as long as the call lasts,
//! and whatever bears it afterwards was made by the call.

use std::ffi::{CStr, CString};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::thread::{gettid, name, set_name};

use crate::udt::foreign;

/// The threads of one UDP socket.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    made: Mutex<Vec<Thread>>,
}

/// One thread, and the processor time it had used when it was last asked.
#[derive(Debug)]
pub(crate) struct Thread {
    id: i32,
    /// By which it is distinguished from a later thread with the same number.
    name: String,
    used: Duration,
}

impl Threads {
    /// Makes `call`, and counts the threads that it makes among these.
    pub(crate) fn of<E>(&self, call: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let made = made_by(call)?;
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(made);
        Ok(())
    }

    /// The processor time they have used. Of a thread that has ended, what it
    /// had used when this was last asked.
    pub(crate) fn cpu(&self) -> Duration {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in made.iter_mut().filter(|thread| thread.is_alive()) {
            if let Some(used) = foreign::thread_cpu(thread.id) {
                thread.used = used.max(thread.used);
            }
        }
        made.iter().map(|thread| thread.used).sum()
    }

    /// How many of them are alive.
    pub(crate) fn alive(&self) -> usize {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().filter(|thread| thread.is_alive()).count()
    }
}

impl Thread {
    fn is_alive(&self) -> bool {
        name_of(self.id).is_some_and(|name| name == self.name)
    }
}

/// Makes `call` and returns the threads that it made. They get the ordinary
/// scheduling policy: the calling thread may be a router under a real-time
/// policy, before which no thread of a transport's may stand.
pub(crate) fn made_by<E>(call: impl FnOnce() -> Result<(), E>) -> Result<Vec<Thread>, E> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // Linux keeps 15 bytes of a name.
    let call_number = CALLS.fetch_add(1, Ordering::Relaxed) % 100_000_000;
    let own_name = name().unwrap_or_default();
    let their_name = format!("udt-{call_number}");
    rename(&CString::new(their_name.clone()).unwrap_or_default());
    let outcome = call();
    rename(&own_name);
    outcome?;
    let caller = gettid().as_raw_nonzero().get();
    let made: Vec<Thread> = numbers()
        .into_iter()
        .filter(|&id| id != caller && name_of(id).is_some_and(|name| name == their_name))
        .map(|id| Thread {
            id,
            name: their_name.clone(),
            used: Duration::ZERO,
        })
        .collect();
    for thread in &made {
        foreign::make_ordinary(thread.id);
    }
    Ok(made)
}

/// Names the calling thread. Where the kernel refuses, no thread is found, and
/// what they cost stays unknown.
fn rename(name: &CStr) {
    let _ = set_name(name);
}

/// The numbers of this process's threads.
fn numbers() -> Vec<i32> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// What a thread of this process is called, nothing where it has ended.
fn name_of(thread: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}
