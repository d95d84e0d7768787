//! A world whose players are shared among several processes.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use lagometer_crew::{Coordinator, Error, Settings, join};
use lagometer_far::Secret;
use lagometer_world::real::Venue;
use lagometer_world::{Moment, Outcome, Scenario};

use super::address;
use crate::cli::{CrewArguments, WorldArguments};
use crate::failure::Failure;
use crate::far_end::{self, SECRET_VARIABLE};
use crate::interrupt;

/// Plays `scenario` on the gateway at `venue` with so many workers: processes
/// of this machine's own, or such as come from elsewhere.
pub(super) fn play(
    scenario: &Scenario,
    venue: &Venue,
    workers: u32,
    arguments: &WorldArguments,
    progress: &mut dyn FnMut(&Moment),
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    if workers > scenario.players {
        return Err(Failure::Input(format!(
            "{workers} workers have {} players to share: ask for fewer with `--workers`",
            scenario.players
        )));
    }
    let crew = &arguments.crew;
    let given = far_end::secret(&crew.secret)?;
    let is_new = given.is_none();
    let secret = given.unwrap_or_else(Secret::generate);
    let bind = match &crew.coordinate {
        Some(at) => address(at, "--coordinate")?,
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    let gateway = arguments.gateway.clone();
    let coordinator = Coordinator::start(Settings {
        bind,
        secret: &secret,
        scenario,
        gateway: gateway.unwrap_or_else(|| venue.clients.to_string()),
        workers,
    })?;
    let mut own = Processes(Vec::new());
    if crew.coordinate.is_some() {
        let at = coordinator.address();
        eprintln!("lagometer: waiting at {at} for {workers} workers");
        if is_new {
            eprintln!(
                "lagometer: the secret is {}; on the other machines: {SECRET_VARIABLE}={} \
                 lagometer world --join HOST:{}",
                secret.expose(),
                secret.expose(),
                at.port()
            );
        }
    } else {
        own.start(workers, coordinator.address(), &secret)?;
    }
    coordinator.gather(crew.wait.0, |_| {
        if stop.load(Ordering::Relaxed) {
            let why = "stopped before all workers had come";
            return Err(Failure::Environment(why.to_owned()));
        }
        own.check()
    })?;
    Ok(coordinator.play(venue, progress, stop)?)
}

/// Plays the part that the coordinator at `at` gives out.
pub(super) fn work(at: &str, crew: &CrewArguments) -> Result<ExitCode, Failure> {
    let secret = far_end::secret(&crew.secret)?.ok_or_else(|| {
        Failure::Input(format!(
            "`--join` needs the secret that the coordinator was started with or printed: put it \
             in a file and name it with `--secret FILE`, or set {SECRET_VARIABLE}"
        ))
    })?;
    let stop = interrupt::listen()?;
    let joined = join(at, &secret, crew.index, crew.wait.0, stop)?;
    let (nth, workers) = joined.place();
    let players = joined.players();
    eprintln!(
        "lagometer: worker {nth} of {workers}: {players} of {} players of `{}`",
        joined.scenario().players,
        joined.scenario().name
    );
    let clients = address(joined.gateway(), "the coordinator's --gateway")
        .inspect_err(|failure| joined.give_up(&failure.to_string()))?;
    let venue = Venue {
        clients,
        // The coordinator has them.
        servers: clients,
        metrics: None,
    };
    joined.play(&venue, stop)?;
    eprintln!("lagometer: worker {nth} of {workers}: played");
    Ok(ExitCode::SUCCESS)
}

/// Workers that are processes of this machine's own, and end with this.
struct Processes(Vec<Child>);

impl Processes {
    fn start(
        &mut self,
        workers: u32,
        coordinator: SocketAddr,
        secret: &Secret,
    ) -> Result<(), Failure> {
        let lacks = |why| Failure::Environment(format!("no process for a worker: {why}"));
        let program = std::env::current_exe().map_err(lacks)?;
        for nth in 0..workers {
            let child = Command::new(&program)
                .args(["world", "--join", &coordinator.to_string()])
                .args(["--index", &nth.to_string()])
                .env(SECRET_VARIABLE, secret.expose())
                // Ctrl-C is for this program, which then stops the workers.
                .process_group(0)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                // What goes wrong the coordinator is told.
                .stderr(Stdio::null())
                .spawn()
                .map_err(lacks)?;
            self.0.push(child);
        }
        Ok(())
    }

    /// Whether all are still there.
    fn check(&mut self) -> Result<(), Failure> {
        for (nth, child) in (1..).zip(&mut self.0) {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(Failure::Environment(format!(
                    "worker {nth} ended before the start with {status}"
                )));
            }
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that is done has told all it had to tell.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Far(error) => error.into(),
            Error::Missing { .. } => Self::Environment(format!(
                "{error}; start them with `lagometer world --join`, or wait longer with `--wait`"
            )),
            _ => Self::Environment(error.to_string()),
        }
    }
}
