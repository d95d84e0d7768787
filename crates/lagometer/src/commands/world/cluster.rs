//! A world whose players or game servers are shared among several processes.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lagometer_cluster::{Coordinator, Error, Event, Settings, join};
use lagometer_remote::Secret;
use lagometer_world::real::Venue;
use lagometer_world::{Moment, Outcome, Scenario, Server};

use super::address::{SERVERS_PORT, address, addresses};
use super::meeting::{Meeting, Way};
use crate::cli::{ClusterArguments, WorldArguments};
use crate::failure::Failure;
use crate::interrupt;
use crate::remote_end::{self, SECRET_VARIABLE};

/// How long workers of our own may take to leave the gateway.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Where a worker over NATS is said to be.
const OVER: &str = "over NATS";

/// How often it is looked whether they have.
const POLL: Duration = Duration::from_millis(10);

/// Plays `scenario` on the gateway at `venue` with the workers that are asked
/// for: processes of this machine's own, or such as come from elsewhere.
pub(super) fn play(
    scenario: &Scenario,
    venue: &Venue,
    arguments: &WorldArguments,
    progress: &mut dyn FnMut(&Moment),
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    let cluster = &arguments.cluster;
    let (workers, server_workers) = (
        cluster.workers.unwrap_or(0),
        cluster.server_workers.unwrap_or(0),
    );
    if workers > scenario.players {
        return Err(Failure::Input(format!(
            "{workers} workers have {} players to share: ask for fewer with `--workers`",
            scenario.players
        )));
    }
    let given = remote_end::secret(&cluster.secret)?;
    let is_new = given.is_none();
    let secret = given.unwrap_or_else(Secret::generate);
    let bind = match &cluster.coordinate {
        Some(at) => address(at, "--coordinate")?,
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    let [gateway, servers] = as_passed_on(arguments, venue);
    let coordinator = Coordinator::start(Settings {
        bind,
        secret: &secret,
        scenario,
        gateway,
        servers,
        workers,
        server_workers,
        timeout: cluster.wait.0,
    })
    .map_err(|error| not_shared(error, scenario))?;
    let all = workers + server_workers;
    let meeting = Meeting::at(coordinator, cluster, all, &secret, stop)?;
    let coordinator = &meeting.coordinator;
    let mut own = None;
    if !meeting.invite(cluster, all, is_new.then_some(&secret)) {
        own = Some(Processes::start(all, coordinator.address(), &secret)?);
    }
    coordinator.gather(|_| {
        if stop.load(Ordering::Relaxed) {
            let why = "stopped before all workers had come";
            return Err(Failure::Environment(why.to_owned()));
        }
        own.as_mut().map_or(Ok(()), Processes::check)
    })?;
    let mut mend = |event| report_and_mend(event, workers, own.as_mut());
    let mut outcome = coordinator.play(venue, progress, &mut mend, stop)?;
    if let Some(own) = &mut own {
        own.let_end();
    }
    if meeting.is_over_nats() {
        // The first is this one.
        for process in outcome.processes.iter_mut().skip(1) {
            OVER.clone_into(&mut process.at);
        }
    }
    Ok(outcome)
}

/// Says what to ask for where there are fewer game servers than workers for
/// them.
fn not_shared(error: Error, scenario: &Scenario) -> Failure {
    match error {
        Error::TooFewServers { shared: 0, .. } => Failure::Input(format!(
            "`{}` has one game server and nothing to share: leave out `--server-workers`, or play \
             `spatial`",
            scenario.name
        )),
        Error::TooFewServers { .. } => {
            Failure::Input(format!("{error}: ask for fewer with `--server-workers`"))
        }
        error => error.into(),
    }
}

/// The gateway's addresses for players and for game servers, as workers are to
/// find it: as written, since names may lead elsewhere where they are.
fn as_passed_on(arguments: &WorldArguments, venue: &Venue) -> [String; 2] {
    let Some(gateway) = &arguments.gateway else {
        return [venue.players_place(), venue.servers.to_string()];
    };
    let servers = arguments.servers.clone().unwrap_or_else(|| {
        let first = gateway.split(',').next().unwrap_or(gateway);
        let host = first.rsplit_once(':').map_or(first, |(host, _)| host);
        format!("{host}:{SERVERS_PORT}")
    });
    [gateway.clone(), servers]
}

/// Says what became of a worker, of whom the first `with_players` have players
/// and the others game servers, and starts another in its place where it was a
/// process of our `own`.
fn report_and_mend(event: Event, with_players: u32, own: Option<&mut Processes>) {
    let (Event::Missing { index, .. } | Event::Back { index }) = event;
    let worker = index + 1;
    let (what, are_back) = if index < with_players {
        ("players", "players log in again")
    } else {
        ("game servers", "game servers are back")
    };
    match (event, own) {
        (Event::Missing { attempt: 0, .. }, None) => note!(
            "lagometer: worker {worker} is gone, and its {what} with it: waiting for another to \
             `--join`"
        ),
        (Event::Missing { .. }, None) => {}
        (Event::Missing { attempt, .. }, Some(own)) => match own.replace(index, attempt) {
            Ok(None) => {}
            Ok(Some(process)) => note!(
                "lagometer: worker {worker} is gone, and its {what} with it: process {process} \
                 takes its place"
            ),
            // It is tried again until the timeout.
            Err(failure) => note!("lagometer: worker {worker} is gone: {failure}"),
        },
        (Event::Back { .. }, _) => note!("lagometer: worker {worker}: its {are_back}"),
    }
}

/// Plays the shard that the coordinator at `at` gives out.
pub(super) fn work(at: &str, cluster: &ClusterArguments) -> Result<ExitCode, Failure> {
    let secret = remote_end::secret(&cluster.secret)?.ok_or_else(|| {
        Failure::Input(format!(
            "`--join` needs the secret that the coordinator was started with or printed: put it \
             in a file and name it with `--secret FILE`, or set {SECRET_VARIABLE}"
        ))
    })?;
    let stop = interrupt::listen()?;
    let way = Way::find(at, cluster, &secret, stop)?;
    let joined = join(&way.address, &secret, cluster.index, cluster.wait.0, stop);
    let joined = joined.map_err(|error| way.failure(error))?;
    let (nth, workers) = joined.place();
    let name = &joined.scenario().name;
    match joined.servers() {
        0 => note!(
            "lagometer: worker {nth} of {workers}: {} of {} players of `{name}`",
            joined.players(),
            joined.scenario().players,
        ),
        servers => note!(
            "lagometer: worker {nth} of {workers}: {servers} of {} game servers of `{name}`",
            Server::count(joined.scenario()),
        ),
    }
    let clients = addresses(joined.gateway(), "the coordinator's --gateway");
    let servers = address(joined.gateway_for_servers(), "the coordinator's --servers");
    let give_up = |failure: &Failure| joined.give_up(&failure.to_string());
    let venue = Venue {
        clients: clients.inspect_err(give_up)?,
        servers: servers.inspect_err(give_up)?,
        metrics: None,
    };
    let played = joined.play(&venue, stop);
    played.map_err(|error| way.failure(error))?;
    note!("lagometer: worker {nth} of {workers}: played");
    Ok(ExitCode::SUCCESS)
}

/// Workers that are processes of this machine's own, and end with this.
struct Processes {
    program: PathBuf,
    coordinator: SocketAddr,
    secret: Secret,
    /// By the workers' numbers.
    children: Vec<Child>,
}

impl Processes {
    fn start(workers: u32, coordinator: SocketAddr, secret: &Secret) -> Result<Self, Failure> {
        let mut own = Self {
            program: std::env::current_exe().map_err(|why| no_process(&why))?,
            coordinator,
            secret: secret.clone(),
            children: Vec::new(),
        };
        for index in 0..workers {
            let child = own.spawn(index)?;
            own.children.push(child);
        }
        Ok(own)
    }

    fn spawn(&self, index: u32) -> Result<Child, Failure> {
        Command::new(&self.program)
            .args(["world", "--join", &self.coordinator.to_string()])
            .args(["--index", &index.to_string()])
            .env(SECRET_VARIABLE, self.secret.expose())
            // Ctrl-C is for this program, which then stops the workers.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // What goes wrong is reported to the coordinator.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|why| no_process(&why))
    }

    /// Starts another worker in the place of a lost one, and returns its
    /// process. At a later attempt one that is on its way is left alone.
    fn replace(&mut self, index: u32, attempt: u32) -> Result<Option<u32>, Failure> {
        let child = &mut self.children[index as usize];
        if attempt > 0 && matches!(child.try_wait(), Ok(None)) {
            return Ok(None);
        }
        // It may hang, and have been silent for too long.
        let _ = child.kill();
        let _ = child.wait();
        let child = self.spawn(index)?;
        let process = child.id();
        self.children[index as usize] = child;
        Ok(Some(process))
    }

    /// Gives those that have reported everything the time to take away
    /// what they made on the gateway.
    fn let_end(&mut self) {
        let began = Instant::now();
        while began.elapsed() < ENDS_WITHIN {
            let is_over = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
            if self.children.iter_mut().all(is_over) {
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Whether all are still there.
    fn check(&mut self) -> Result<(), Failure> {
        for (nth, child) in (1..).zip(&mut self.children) {
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
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn no_process(why: &std::io::Error) -> Failure {
    Failure::Environment(format!("no process for a worker: {why}"))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Remote(error) => error.into(),
            Error::Missing { .. } => Self::Environment(format!(
                "{error}; start them with `lagometer world --join` and HOST:PORT or `--nats`, or wait \
                 longer with `--wait`"
            )),
            _ => Self::Environment(error.to_string()),
        }
    }
}
