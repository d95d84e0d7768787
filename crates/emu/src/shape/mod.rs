//! Any program behind a link: a command in the client host, its peer in the far
//! host, and the link between them.

mod listening;
mod processes;
mod signals;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use lagometer_link::{Link, Profile, Regime};
use nix::sys::signal::Signal;
use thiserror::Error;

use crate::address::LaneAddresses;
use crate::clock::Clock;
use crate::error::{Doing, Error};
use crate::network::{LaneSetup, Network, Outcome, Settings};
use crate::permission::Permission;
use processes::{Process, Processes};
use signals::Signals;

/// What is to run behind which link.
#[derive(Clone, Debug)]
pub struct Shape<'a> {
    /// How the link behaves; its impairments start when the command does.
    pub profile: &'a Profile,
    /// The seed of its impairments.
    pub seed: u64,
    /// For whom the impairments are the same.
    pub regime: Regime,
    /// How the network is made.
    pub settings: Settings,
    /// The command for the client host and its arguments.
    pub command: &'a [OsString],
    /// The command for the server host, run by `sh -c`.
    pub remote: Option<&'a OsStr>,
    /// How long the command waits for the far one to listen on any port.
    pub timeout: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Shaped {
    /// The near command's exit code; 128 and the signal's number where a
    /// signal ended it, as shells have it.
    pub exit_code: i32,
    /// How the far command ended, if it did so before the near one.
    pub remote_ended: Option<ExitStatus>,
    /// What the network did.
    pub network: Outcome,
}

/// Why a command could not be run behind a link.
#[derive(Debug, Error)]
pub enum ShapeError {
    /// The network could not be made, or broke.
    #[error(transparent)]
    Network(#[from] Error),
    /// A command could not be started.
    #[error("cannot start `{command}`: {source}")]
    CannotStart {
        /// The command.
        command: String,
        /// What the system said.
        source: io::Error,
    },
}

/// The variables by which both commands are told the addresses.
pub const VARIABLES: [&str; 4] = [
    "LAGOMETER_NEAR",
    "LAGOMETER_FAR",
    "LAGOMETER_NEAR_V6",
    "LAGOMETER_FAR_V6",
];

/// How long the far command has to end after it was asked to.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often is looked whether the far command listens.
const LOOK: Duration = Duration::from_millis(5);
/// Children are waited for by their signal; this is in case one is missed.
const CHECK: Duration = Duration::from_millis(500);

impl Shape<'_> {
    /// Runs the commands until the near one ends.
    ///
    /// To be called early in `main`, while the process has a single thread
    /// (see [`Permission::acquire`]). Signals that ask to end are passed on to
    /// the commands. The far command's output goes to standard error; when
    /// the near command has ended, it is ended too.
    ///
    /// # Errors
    ///
    /// [`ShapeError`], [`Error::Refused`] in it where the system permits no
    /// namespaces.
    pub fn run(&self) -> Result<Shaped, ShapeError> {
        Permission::acquire().map_err(Error::from)?;
        let signals = Signals::hold().doing("holding signals back")?;
        let processes = Processes::start()?;
        let clock = Clock::start();
        let mut network = Network::start(&self.settings, clock, vec![self.lane(clock)])?;
        let mut remote = self
            .remote
            .map(|remote| start_remote(remote, &processes, &network))
            .transpose()?;
        if let Some(remote) = &mut remote {
            self.await_listener(remote, &network)?;
        }
        network.begin(vec![self.lane(clock).link])?;
        let mut local = self.start_local(&processes, &network)?;
        let ended =
            attend(&signals, &mut local, remote.as_mut()).doing("waiting for the command")?;
        let remote_ended = match &mut remote {
            None => None,
            Some(remote) => remote.ended().doing("waiting for the far command")?,
        };
        if let Some(remote) = &mut remote {
            bid_farewell(&signals, remote).doing("waiting for the far command")?;
        }
        // What is left of them ends here, before the road they use does.
        drop((local, remote));
        drop(processes);
        Ok(Shaped {
            exit_code: exit_code(ended),
            remote_ended,
            network: network.stop()?,
        })
    }

    fn lane(&self, clock: Clock) -> LaneSetup {
        LaneSetup {
            name: "shape".to_owned(),
            link: Link::new(self.profile, self.seed, self.regime, clock.now()),
        }
    }

    fn start_local(&self, processes: &Processes, network: &Network) -> Result<Process, ShapeError> {
        let (program, arguments) = match self.command {
            [program, arguments @ ..] => (program.as_os_str(), arguments),
            [] => (OsStr::new(""), self.command),
        };
        let mut command = Command::new(program);
        command.args(arguments);
        tell_addresses(&mut command);
        processes
            .spawn(network.local(), command)?
            .map_err(|source| cannot_start(program, source))
    }

    /// Waits until the far command listens, ends, or timeout does.
    fn await_listener(&self, remote: &mut Process, network: &Network) -> Result<(), Error> {
        let deadline = Instant::now() + self.timeout;
        while Instant::now() < deadline {
            let has_ended = remote
                .ended()
                .doing("waiting for the far command")?
                .is_some();
            if has_ended || network.remote().run(listening::anybody)? {
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Starts the far command.
fn start_remote(
    remote: &OsStr,
    processes: &Processes,
    network: &Network,
) -> Result<Process, ShapeError> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(remote);
    command.stdin(Stdio::null()).stdout(io::stderr());
    tell_addresses(&mut command);
    processes
        .spawn(network.remote(), command)?
        .map_err(|source| cannot_start(remote, source))
}

/// Waits for the near command to end and passes signals on.
fn attend(
    signals: &Signals,
    local: &mut Process,
    mut remote: Option<&mut Process>,
) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = local.ended()? {
            return Ok(status);
        }
        let Some(received) = signals.next(CHECK)? else {
            continue;
        };
        // What the terminal sends, it has sent to the commands as well.
        if received.signal != Signal::SIGCHLD && !received.from_terminal {
            local.signal(received.signal);
            if let Some(remote) = &mut remote {
                remote.signal(received.signal);
            }
        }
    }
}

/// Asks the far command to end and gives it time to.
fn bid_farewell(signals: &Signals, remote: &mut Process) -> io::Result<()> {
    let deadline = Instant::now() + FAREWELL;
    remote.signal(Signal::SIGTERM);
    while remote.ended()?.is_none() {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            break;
        };
        signals.next(left.min(CHECK))?;
    }
    Ok(())
}

fn tell_addresses(command: &mut Command) {
    let addresses = LaneAddresses::of(0);
    let values = [
        addresses.local_v4.to_string(),
        addresses.remote_v4.to_string(),
        addresses.local_v6.to_string(),
        addresses.remote_v6.to_string(),
    ];
    command.envs(VARIABLES.into_iter().zip(values));
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}

fn cannot_start(command: &OsStr, source: io::Error) -> ShapeError {
    ShapeError::CannotStart {
        command: command.to_string_lossy().into_owned(),
        source,
    }
}
