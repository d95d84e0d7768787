//! A gateway's process: started, pinned, watched through `/proc`, ended.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Resource;

use crate::BenchError;

/// How long a gateway may take until it accepts connections.
const START_AT_MOST: Duration = Duration::from_secs(10);

/// A gateway that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Gateway {
    child: Child,
}

/// What a process has used up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Seconds of processor time, the kernel's on its behalf included.
    pub(crate) cpu_s: f64,
    /// Resident memory in megabytes (10⁶ bytes).
    pub(crate) rss_mb: f64,
}

impl Gateway {
    /// Starts a shell command, its output into `log`, and waits until
    /// `address` accepts connections.
    ///
    /// # Errors
    ///
    /// When it does not start, or not in time.
    pub(crate) fn start(
        command: &str,
        log: &Path,
        address: SocketAddr,
    ) -> Result<Self, BenchError> {
        if TcpStream::connect(address).is_ok() {
            return Err(BenchError::Taken(address));
        }
        let output = File::create(log)?;
        let child = Command::new("sh")
            .args(["-c", &format!("exec {command}")])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let mut gateway = Self { child };
        let deadline = Instant::now() + START_AT_MOST;
        while TcpStream::connect(address).is_err() {
            if gateway.child.try_wait()?.is_some() || Instant::now() > deadline {
                return Err(BenchError::NotStarted {
                    command: command.to_owned(),
                    log: log.display().to_string(),
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(gateway)
    }

    /// How the process ended; `None` while it runs.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(crate) fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The process's id.
    #[must_use]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// Lets this process, and those it starts, have as many files open as they may.
///
/// # Errors
///
/// The system's.
pub(crate) fn raise_file_limit() -> std::io::Result<()> {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(Resource::Nofile, limit)?;
    Ok(())
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Usage {
    /// What the process has used so far, zero once it has ended.
    #[must_use]
    pub(crate) fn of(pid: u32) -> Self {
        Self::read(&format!("/proc/{pid}")).unwrap_or_default()
    }

    /// What this process has used so far.
    #[must_use]
    pub(crate) fn own() -> Self {
        Self::read("/proc/self").unwrap_or_default()
    }

    fn read(folder: &str) -> Option<Self> {
        let pages: u64 = fs::read_to_string(format!("{folder}/statm"))
            .ok()?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()?;
        Some(Self {
            cpu_s: scheduled_s(folder).or_else(|| ticked_s(folder))?,
            rss_mb: (pages * rustix::param::page_size() as u64) as f64 / 1e6,
        })
    }
}

/// Processor seconds of a process's threads that are there still, as the scheduler
/// counts them: to the nanosecond, where the counters of the process have steps of ten
/// milliseconds.
fn scheduled_s(folder: &str) -> Option<f64> {
    let mut sum_ns = 0;
    for thread in fs::read_dir(format!("{folder}/task")).ok()? {
        let stat = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum_ns += stat.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(sum_ns as f64 / 1e9)
}

/// The same by the process's counters.
fn ticked_s(folder: &str) -> Option<f64> {
    let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
    // The name in parentheses may hold blanks; fields are counted behind
    // it: utime is the 14th of all, stime the 15th.
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
