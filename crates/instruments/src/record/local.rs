//! The local end's part of a recording, and what comes of both.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use lagometer_link::trace::{BadRecording, Recording};
use lagometer_remote::{Error, Line, Probe as ClockProbe, Remote};
use lagometer_units::Time;
use serde_json::Value;
use thiserror::Error;

use crate::record::fates::{Arrival, Way};
use crate::record::gathered::Gathered;
use crate::record::player::Played;
use crate::record::rate::bits_per_second;
use crate::record::service::Request;
use crate::record::trace::recording;

/// How long probes on their way are waited for at the end.
const GRACE: Duration = Duration::from_secs(2);

/// How a path is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// From one probe to the next, in each direction; at least 200 µs.
    pub every: Duration,
    /// The bytes of a probe without headers; 16 to 1200.
    pub bytes: usize,
    /// For how long.
    pub lasts: Duration,
    /// Whether trains are sent each second to find the rate.
    pub trains: bool,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// For how long.
    pub lasts: Duration,
    /// To the remote end.
    pub up: Way,
    /// From it.
    pub down: Way,
    /// How the two clocks stood, which every delay of one direction rests on.
    pub clocks: Line,
    /// Why it ended before its time, if it did.
    pub cut_short: Option<String>,
}

/// Why nothing was recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The remote end.
    #[error(transparent)]
    Remote(#[from] Error),
    /// A socket.
    #[error("recording: {0}")]
    Socket(#[from] io::Error),
    /// The remote end's answers make no sense.
    #[error("the remote end's answer is not understood")]
    NotUnderstood,
    /// Nothing to write.
    #[error("{0}: is a firewall in the way of UDP, or was it too short?")]
    Nothing(#[source] BadRecording),
}

impl Recorded {
    /// The trace of it, which the link model plays.
    ///
    /// # Errors
    ///
    /// [`RecordError::Nothing`] if nothing came through in a direction.
    pub fn trace(&self) -> Result<Recording, RecordError> {
        recording(self.lasts, &self.up, &self.down).map_err(RecordError::Nothing)
    }
}

/// Records the path to `remote`, which must serve
/// [`RecordService`](crate::record::RecordService), until it is done or `is_stopped`
/// says so.
///
/// # Errors
///
/// [`RecordError`]. What was recorded until it is stopped, or the remote end dies,
/// is kept.
pub fn record(
    remote: &Remote,
    settings: &Settings,
    is_stopped: impl Fn() -> bool,
) -> Result<Recorded, RecordError> {
    let request = Request {
        every_us: u64::try_from(settings.every.as_micros()).unwrap_or(u64::MAX),
        bytes: settings.bytes,
        lasts_ms: u64::try_from(settings.lasts.as_millis()).unwrap_or(u64::MAX),
        trains: settings.trains,
    };
    let score = request.score().map_err(|refusal| Error::Refused {
        service: "record".to_owned(),
        why: refusal.to_string(),
    })?;
    let job = remote.open(
        "record",
        &serde_json::to_value(request).unwrap_or(Value::Null),
    )?;
    let socket = job.udp(job.port("port")?)?;
    let clock = remote.clock();
    let mine = Mutex::new(Played::default());
    let mut theirs = Gathered::default();
    let (over, end) = mpsc::channel();
    let mut all_sent_at = None;
    let mut stopped = false;
    thread::scope(|scope| {
        let (theirs, job) = (&mut theirs, &job);
        let gatherer = scope.spawn(move || theirs.grow(job, clock, &end));
        let played = score.play(&socket, clock, &mine, |all_sent| {
            if is_stopped() || remote.gone().is_some() {
                stopped = !all_sent;
                return true;
            }
            let now = clock.now();
            all_sent && now.since(*all_sent_at.get_or_insert(now)) >= GRACE
        });
        drop(over);
        // A gatherer that broke has said so, and what it gathered is whole up
        // to its last entry.
        let _ = gatherer.join();
        played
    })?;
    let mine = mine.into_inner().unwrap_or_else(PoisonError::into_inner);
    let start = *mine.sent.first().ok_or(RecordError::NotUnderstood)?;
    let cut_short = match theirs.finish(&job, clock) {
        Ok(()) if stopped => Some("it was stopped".to_owned()),
        Ok(()) => None,
        // What it had sent before is worth keeping.
        Err(RecordError::Remote(error)) if theirs.whole_until > start + GRACE => {
            Some(error.to_string())
        }
        Err(error) => return Err(error),
    };
    sharpen(remote, &mine, &theirs.played);
    let clocks = remote.offset().ok_or(RecordError::NotUnderstood)?;
    let lasts = if cut_short.is_some() {
        // What left within the last moments had no time to come.
        theirs.whole_until.since(start).saturating_sub(GRACE)
    } else {
        settings.lasts
    };
    let [up, down] = both_ways(&mine, &theirs.played, &clocks, start, lasts);
    Ok(Recorded {
        lasts,
        up,
        down,
        clocks,
        cut_short,
    })
}

/// Brings both ends' notes into the local end's time, counted from the start.
fn both_ways(
    mine: &Played,
    theirs: &Played,
    clocks: &Line,
    start: Time,
    lasts: Duration,
) -> [Way; 2] {
    let remote_arrivals: Vec<Arrival> = theirs
        .received
        .iter()
        .map(|arrival| Arrival {
            number: arrival.number,
            at: clocks.to_local(arrival.at),
        })
        .collect();
    let sent_remote: Vec<Time> = theirs.sent.iter().map(|&at| clocks.to_local(at)).collect();
    let mut up = Way::of(&mine.sent, &remote_arrivals);
    let mut down = Way::of(&sent_remote, &mine.received);
    for way in [&mut up, &mut down] {
        // The remote end may have begun a little before.
        way.fates
            .retain(|fate| fate.sent >= start && fate.sent < start + lasts);
        for fate in &mut way.fates {
            fate.sent = Time::ZERO + fate.sent.since(start);
        }
    }
    up.rate_bits_per_second = bits_per_second(&theirs.trains);
    down.rate_bits_per_second = bits_per_second(&mine.trains);
    [up, down]
}

/// Takes what the probes show of the clocks too: the quickest up and the quickest
/// down of each second bound the offset as one exchange would.
fn sharpen(remote: &Remote, mine: &Played, theirs: &Played) {
    const WINDOW: u64 = 1_000_000_000;
    let apart = |one: Time, other: Time| i128::from(one.as_nanos()) - i128::from(other.as_nanos());
    let ups = theirs.received.iter().filter_map(|arrival| {
        let sent = *mine.sent.get(arrival.number as usize)?;
        Some((sent, arrival.at, apart(arrival.at, sent)))
    });
    let downs: Vec<(Time, Time, i128)> = mine
        .received
        .iter()
        .filter_map(|arrival| {
            let sent = *theirs.sent.get(arrival.number as usize)?;
            Some((sent, arrival.at, apart(arrival.at, sent)))
        })
        .collect();
    let mut best_up = std::collections::BTreeMap::<u64, (Time, Time, i128)>::new();
    for up in ups {
        let best = best_up.entry(up.0.as_nanos() / WINDOW).or_insert(up);
        if up.2 < best.2 {
            *best = up;
        }
    }
    for (window, up) in best_up {
        let best_down = downs
            .iter()
            .filter(|down| down.1.as_nanos() / WINDOW == window && down.1 > up.0 && down.0 >= up.1)
            .min_by_key(|down| down.2);
        if let Some(down) = best_down {
            remote.add_probe(ClockProbe {
                sent: up.0,
                received: up.1,
                answered: down.0,
                returned: down.1,
            });
        }
    }
}
