//! Commands that run in hosts.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use lagometer_link::Link;
use lagometer_units::Clock;
use nix::sys::signal::Signal;

use super::processes::{Process, Processes};
use super::signals::Signals;
use super::taggers::Taggers;
use super::{
    CLIENT, FORMER_VARIABLES, Output, Shape, ShapeError, Shaped, Speaker, VARIABLES, listening,
};
use crate::address::LaneAddresses;
use crate::error::{Doing, Error};
use crate::network::Network;
use crate::permission::Permission;
use crate::settings::{LaneSetup, Settings};

/// How long the server command has to end after it was asked to.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often is looked whether the server command listens.
const LOOK: Duration = Duration::from_millis(5);
/// Children are waited for by their signal; this is in case one is missed.
const CHECK: Duration = Duration::from_millis(500);

impl Shape<'_> {
    /// Runs the commands until the clients have ended.
    pub(super) fn play(&self) -> Result<Shaped, ShapeError> {
        Permission::acquire().map_err(Error::from)?;
        let signals = Signals::hold().doing("holding signals back")?;
        let processes = Processes::start()?;
        let clock = Clock::start();
        let settings = Settings {
            local_host_each: true,
            ..self.settings.clone()
        };
        let mut network = Network::start(&settings, clock, self.lanes(clock))?;
        let mut taggers = Taggers::default();
        let mut remote = self
            .remote
            .map(|remote| self.start_remote(remote, &processes, &network, &mut taggers))
            .transpose()?;
        if let Some(remote) = &mut remote {
            self.await_listener(remote, &network)?;
        }
        network.begin(
            self.lanes(clock)
                .into_iter()
                .map(|lane| lane.link)
                .collect(),
        )?;
        let mut local = (0..self.clients.max(1))
            .map(|lane| self.start_local(lane, &processes, &network, &mut taggers))
            .collect::<Result<Vec<_>, ShapeError>>()?;
        let ended = attend(&signals, &mut local, remote.as_mut(), self.stop)
            .doing("waiting for the command")?;
        let remote_ended = match &mut remote {
            None => None,
            Some(remote) => remote.ended().doing("waiting for the server command")?,
        };
        if let Some(remote) = &mut remote {
            bid_farewell(&signals, remote).doing("waiting for the server command")?;
        }
        // What is left of them ends here, before the path they use does.
        drop((local, remote));
        drop(processes);
        taggers.finish();
        Ok(Shaped {
            exit_code: exit_code(&ended),
            remote_ended,
            network: network.stop()?,
        })
    }

    /// A lane for each client.
    fn lanes(&self, clock: Clock) -> Vec<LaneSetup> {
        let lane = |client: u8| LaneSetup {
            name: match self.clients {
                0 | 1 => "shape".to_owned(),
                _ => Speaker::Client(client + 1).to_string(),
            },
            link: Link::new(
                self.profile,
                self.seed.wrapping_add(client.into()),
                self.regime,
                clock.now(),
            )
            .into(),
        };
        (0..self.clients.max(1)).map(lane).collect()
    }

    /// Has what `command` will say tagged.
    fn tag(taggers: &mut Taggers, speaker: Speaker, command: &mut Command) -> Result<(), Error> {
        taggers
            .listen(speaker, command)
            .doing("listening to a command")
    }

    /// Starts the server command.
    fn start_remote(
        &self,
        remote: &OsStr,
        processes: &Processes,
        network: &Network,
        taggers: &mut Taggers,
    ) -> Result<Process, ShapeError> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(remote);
        command.stdin(Stdio::null());
        match self.output {
            Output::Inherited => {
                command.stdout(io::stderr());
            }
            Output::Tagged => Self::tag(taggers, Speaker::Server, &mut command)?,
        }
        set_addresses(&mut command, 0);
        processes
            .spawn(network.remote(), command)?
            .map_err(|source| cannot_start(remote, source))
    }

    fn start_local(
        &self,
        lane: u8,
        processes: &Processes,
        network: &Network,
        taggers: &mut Taggers,
    ) -> Result<Process, ShapeError> {
        let (program, arguments) = match self.command {
            [program, arguments @ ..] => (program.as_os_str(), arguments),
            [] => (OsStr::new(""), self.command),
        };
        let mut command = Command::new(program);
        command.args(arguments);
        if self.output == Output::Tagged {
            command.stdin(Stdio::null());
            Self::tag(taggers, Speaker::Client(lane + 1), &mut command)?;
        }
        set_addresses(&mut command, lane);
        command.env(CLIENT, (lane + 1).to_string());
        processes
            .spawn(network.local_of(lane), command)?
            .map_err(|source| cannot_start(program, source))
    }

    /// Waits until the server command listens or ends, at most for the timeout.
    fn await_listener(&self, remote: &mut Process, network: &Network) -> Result<(), Error> {
        let deadline = Instant::now() + self.timeout;
        while Instant::now() < deadline {
            let has_ended = remote
                .ended()
                .doing("waiting for the server command")?
                .is_some();
            if has_ended || network.remote().run(listening::anybody)? {
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Waits for all client commands to end and passes signals on.
fn attend(
    signals: &Signals,
    local: &mut [Process],
    mut remote: Option<&mut Process>,
    mut stop: Option<&Path>,
) -> io::Result<Vec<ExitStatus>> {
    loop {
        let ended = local
            .iter_mut()
            .map(Process::ended)
            .collect::<io::Result<Option<Vec<_>>>>()?;
        if let Some(ended) = ended {
            return Ok(ended);
        }
        let received = signals.next(CHECK)?;
        // What the terminal sends, it has sent to the commands as well.
        let passed_on = received
            .filter(|received| received.signal != Signal::SIGCHLD && !received.from_terminal)
            .map(|received| received.signal);
        let asked = stop.take_if(|stop| stop.exists()).map(|_| Signal::SIGTERM);
        if let Some(signal) = passed_on.or(asked) {
            for process in local.iter_mut().chain(remote.as_deref_mut()) {
                process.signal(signal);
            }
        }
    }
}

/// Asks the server command to end and gives it time to.
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

fn set_addresses(command: &mut Command, lane: u8) {
    let addresses = LaneAddresses::of(lane);
    let values = [
        addresses.local_v4.to_string(),
        addresses.remote_v4.to_string(),
        addresses.local_v6.to_string(),
        addresses.remote_v6.to_string(),
    ];
    command.envs(FORMER_VARIABLES.into_iter().zip(&values));
    command.envs(VARIABLES.into_iter().zip(&values));
}

/// The first code that is not 0.
fn exit_code(ended: &[ExitStatus]) -> i32 {
    let code = |status: &ExitStatus| {
        status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal))
            .unwrap_or(1)
    };
    ended.iter().map(code).find(|&code| code != 0).unwrap_or(0)
}

fn cannot_start(command: &OsStr, source: io::Error) -> ShapeError {
    ShapeError::CannotStart {
        command: command.to_string_lossy().into_owned(),
        source,
    }
}
