//! `lagometer serve`: the remote end of what another machine measures.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lagometer_platform::RESERVED_PORTS;
use lagometer_remote::{Error, Event, Limits, Secret, Server, ServerSettings};
use lagometer_watch::View;
use lagometer_watch::remote_end::RemoteEndView;

use crate::cli::ServeArguments;
use crate::failure::Failure;
use crate::interrupt;
use crate::live::{Live, Watched};
use crate::remote_end::{self, SECRET_VARIABLE};

/// Lines a second about unauthenticated peers; more are counted.
const LINES_PER_SECOND: u32 = 20;

/// Serves until Ctrl-C or a signal to end.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<ExitCode, Failure> {
    let given = remote_end::secret(&arguments.secret)?;
    let is_new = given.is_none();
    let secret = given.unwrap_or_else(Secret::generate);
    interrupt::listen()?;
    // Every local end takes a few. Where that fails, the remote end serves fewer.
    lagometer_platform::raise_open_files();
    let began = Instant::now();
    let seen = Arc::new(Mutex::new(RemoteEndView::new()));
    let server = start(arguments, &secret, &seen)?;
    note!("lagometer: serving at {}", server.address());
    let title = if is_new {
        format!(
            "serves at {}, {SECRET_VARIABLE}={}",
            server.address(),
            secret.expose()
        )
    } else {
        format!("serves at {}", server.address())
    };
    lock(&seen).call(&title);
    if is_new {
        note!(
            "lagometer: the secret is {}; on the other machine: \
             {SECRET_VARIABLE}={} lagometer run --to HOST:{}",
            secret.expose(),
            secret.expose(),
            server.address().port()
        );
    }
    let live = Live::start(arguments.live.live, || RemoteEnd {
        view: Arc::clone(&seen),
        began,
    });
    interrupt::wait();
    drop(live);
    let sessions = server.sessions();
    drop(server);
    note!("lagometer: served; {sessions} sessions were cut short");
    Ok(ExitCode::SUCCESS)
}

/// A remote end as its live view sees it.
struct RemoteEnd {
    view: Arc<Mutex<RemoteEndView>>,
    began: Instant,
}

impl Watched for RemoteEnd {
    fn look(&mut self, show: &mut dyn FnMut(&dyn View)) {
        let mut view = lock(&self.view);
        view.look(self.began.elapsed());
        show(view.board());
    }
}

fn lock(view: &Mutex<RemoteEndView>) -> MutexGuard<'_, RemoteEndView> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the view see what happens, at `now` since it began.
fn note_event(view: &mut RemoteEndView, now: Duration, event: &Event<'_>) {
    match event {
        Event::Joined { session, peer } => view.join(now, *session, &peer.to_string()),
        Event::TurnedAway { .. } | Event::CannotAccept { .. } => view.turn_away(),
        Event::Opened { session, service } => view.open(*session, service),
        Event::Closed {
            session, service, ..
        } => view.close(*session, service),
        Event::Left { session, .. } => view.leave(*session),
        _ => {}
    }
}

fn start(
    arguments: &ServeArguments,
    secret: &Secret,
    seen: &Arc<Mutex<RemoteEndView>>,
) -> Result<Server, Failure> {
    let settings = |bind| ServerSettings {
        bind,
        secret: secret.clone(),
        registry: remote_end::registry(),
        data_ports: arguments.data_ports.clone(),
        limits: Limits {
            sessions: arguments.max_sessions as usize,
            ..Limits::default()
        },
        on_event: watcher(Arc::clone(seen)),
    };
    Server::start(settings(arguments.bind))
        .or_else(|error| {
            // A machine without IPv6 has no such address.
            if arguments.bind.ip().is_unspecified() && arguments.bind.is_ipv6() {
                let bind = SocketAddr::from((Ipv4Addr::UNSPECIFIED, arguments.bind.port()));
                return Server::start(settings(bind));
            }
            Err(error)
        })
        .map_err(|error| {
            Failure::Environment(format!(
                "cannot serve at {}: {error}; {} with `--bind`",
                arguments.bind,
                mend(&error)
            ))
        })
}

/// What may help where there can be no remote end at an address.
fn mend(error: &Error) -> &'static str {
    match error {
        Error::System { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            RESERVED_PORTS
        }
        _ => "choose another",
    }
}

/// Writes what happens to standard error, one line each. A flood of unauthenticated connections
/// does not become a flood of lines.
fn watcher(seen: Arc<Mutex<RemoteEndView>>) -> Box<dyn Fn(&Event<'_>) + Send + Sync> {
    let began = Instant::now();
    let lines = Mutex::new(Lines {
        second: Instant::now(),
        written: 0,
        left_out: 0,
    });
    Box::new(move |event| {
        note_event(&mut lock(&seen), began.elapsed(), event);
        let is_unauthenticated =
            matches!(event, Event::TurnedAway { .. } | Event::CannotAccept { .. });
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left_out) = lines.room_for_one(is_unauthenticated) {
            if left_out > 0 {
                note!("lagometer: left-out lines={left_out}");
            }
            note!("lagometer: {event}");
        }
    })
}

/// Counts the lines about unauthenticated peers.
struct Lines {
    second: Instant,
    written: u32,
    left_out: u64,
}

impl Lines {
    /// Whether a line may be written, and how many were left out before it.
    fn room_for_one(&mut self, is_unauthenticated: bool) -> Option<u64> {
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.second = Instant::now();
            self.written = 0;
        }
        if is_unauthenticated {
            if self.written >= LINES_PER_SECOND {
                self.left_out += 1;
                return None;
            }
            self.written += 1;
        }
        Some(std::mem::take(&mut self.left_out))
    }
}
