//! One bandwidth cell: the local end sends, the remote end takes and checks.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_remote::{Remote, RemoteJob};
use lagometer_results::Cell;
use lagometer_socket::tcp::{congestion, set_congestion};
use serde_json::json;

use super::Test;
use super::receive_tracker::Found;
use super::send::{self, Sent};
use super::service::{Request, SERVICE};
use crate::echo::Transport;
use crate::error::Error;
use crate::payload::{Payload, ROTATION, fresh_key};
use crate::placement::{Spot, pin_this_thread};
use crate::wire::Unblock;

/// How often the watching thread looks.
const LOOK: Duration = Duration::from_millis(25);

/// How long after its time a sender may still be blocked before it is freed.
const BLOCKED: Duration = Duration::from_secs(5);

/// What one cell measures.
pub(super) struct Settings<'a> {
    pub(super) test: Test,
    pub(super) size: usize,
    pub(super) spot: Spot,
    pub(super) span: Duration,
    pub(super) congestion: Option<&'a str>,
}

/// Measures the cell; with it the congestion control, over TCP. `go_on` says
/// whether to.
pub(super) fn measure(
    remote: &Remote,
    settings: &Settings<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(Cell, Option<String>), Error> {
    let Settings { test, size, .. } = *settings;
    let together = match test {
        Test::UdpBwBatched => send::batch(size),
        Test::TcpBwBatched => send::write_batch(size),
        _ => 1,
    };
    let rotation = if together > 1 { together } else { ROTATION };
    let payload = Payload::with_rotation(fresh_key(), size, rotation);
    let request = Request {
        transport: test.transport(),
        size,
        key: payload.key(),
        rotation,
        batched: test.is_batched(),
        cpu: settings.spot.remote,
    };
    let job = remote.open(SERVICE, &json!(request))?;
    let (sent, congestion) = match test.transport() {
        Transport::Udp => (over_udp(&job, settings, payload, go_on)?, None),
        Transport::Tcp => over_tcp(&job, settings, payload, together, go_on)?,
    };
    let found: Found =
        serde_json::from_value(job.finish()?).map_err(|bad| lagometer_remote::Error::Gone {
            why: format!("its report cannot be read: {bad}"),
        })?;
    Ok((cell(test, size, &sent, found), congestion))
}

fn over_udp(
    job: &RemoteJob,
    settings: &Settings<'_>,
    mut payload: Payload,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Sent, Error> {
    let socket = job.udp(job.port("port")?)?;
    let unblock = Unblock::default();
    unblock.udp(&socket).map_err(system)?;
    let span = settings.span;
    let batched = settings.test.is_batched();
    watched(settings, &unblock, go_on, move |over| {
        if batched {
            send::batches(socket, &payload, span, over)
        } else {
            send::datagrams(&socket, &mut payload, span, over)
        }
    })
}

fn over_tcp(
    job: &RemoteJob,
    settings: &Settings<'_>,
    mut payload: Payload,
    together: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(Sent, Option<String>), Error> {
    let stream = job.tcp(job.port("port")?)?;
    if let Some(name) = settings.congestion {
        set_congestion(&stream, name).map_err(|why| {
            Error::Settings(format!(
                "--congestion {name}: {why}; on Linux \
                 /proc/sys/net/ipv4/tcp_available_congestion_control lists what there is, \
                 elsewhere leave it out"
            ))
        })?;
    }
    let congestion = congestion(&stream);
    let unblock = Unblock::default();
    unblock.tcp(&stream).map_err(system)?;
    let span = settings.span;
    let sent = watched(settings, &unblock, go_on, move |over| {
        let sent = send::stream(&stream, &mut payload, together, span, over)?;
        delivered(&stream, span);
        Ok(sent)
    })?;
    Ok((sent, congestion))
}

/// Ends the stream and waits until the remote end has read it all.
fn delivered(mut stream: &TcpStream, span: Duration) {
    use std::io::Read as _;
    // A remote end that does not close reports what it found later.
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(BLOCKED.max(span)));
    let _ = stream.read(&mut [0; 1]);
}

/// Runs `sending` on a thread of its own, where it is to run, and frees it
/// where it stays blocked or is not to go on.
fn watched(
    settings: &Settings<'_>,
    unblock: &Unblock,
    go_on: &mut dyn FnMut() -> bool,
    sending: impl FnOnce(&AtomicBool) -> io::Result<Sent> + Send,
) -> Result<Sent, Error> {
    let over = AtomicBool::new(false);
    let watcher = thread::current();
    thread::scope(|scope| {
        let over = &over;
        let local = settings.spot.local;
        let began = Instant::now();
        let sending = thread::Builder::new()
            .name("sweep-local".to_owned())
            .spawn_scoped(scope, move || {
                let sent = pin_this_thread(local).and_then(|()| sending(over));
                watcher.unpark();
                sent
            })
            .map_err(system)?;
        while !sending.is_finished() {
            thread::park_timeout(LOOK);
            if !go_on() {
                over.store(true, Ordering::Relaxed);
            }
            if began.elapsed() >= settings.span + BLOCKED {
                over.store(true, Ordering::Relaxed);
                unblock.now();
            }
        }
        sending
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(system)
    })
}

fn system(why: io::Error) -> Error {
    Error::System("sending", why)
}

/// The cell as the document has it.
fn cell(test: Test, size: usize, sent: &Sent, found: Found) -> Cell {
    let mbit = |messages: u64, seconds: f64| {
        let bits = messages as f64 * size as f64 * 8.0;
        (seconds > 0.0).then(|| bits / seconds / 1e6)
    };
    let sending_s = sent.span.as_secs_f64();
    // What arrived within less than the sending took did not come faster than
    // it was sent; the first message's way is not part of the rate either.
    let receiving_s = (found.span_ns as f64 / 1e9).max(sending_s);
    Cell {
        test: test.name().to_owned(),
        size_bytes: size as u32,
        method: sent.method.clone(),
        send_mbit_per_s: mbit(sent.messages, sending_s),
        recv_mbit_per_s: mbit(found.received, receiving_s),
        sent: sent.messages,
        received: found.received,
        lost: sent.messages.saturating_sub(found.received),
        disordered: found.disordered,
        corrupt: found.corrupt,
        ..Cell::default()
    }
}
