//! A run as its live view sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lagometer_lab::live::RunWatch;
use lagometer_lab::{Resolved, RunOptions};
use lagometer_testbed::Testbed;
use lagometer_watch::{RunView, View};

use super::run::total_play;
use crate::live::{Live, Watched};
use crate::progress::Progress;

/// A run as it is shown while it is played: by a live view, or by a bar.
pub(super) struct Shown {
    played_ms: Arc<AtomicU64>,
    lanes: Option<Arc<RunWatch>>,
    live: Option<Live>,
    bar: Option<Progress>,
}

/// A run that is played.
struct Run {
    view: RunView,
    names: Vec<String>,
    lanes: Option<Arc<RunWatch>>,
    played_ms: Arc<AtomicU64>,
    total: Duration,
    began: Instant,
}

impl Shown {
    /// Shows the run from now on; by a live view where `is_live` asks for one and there is
    /// a terminal for it.
    pub(super) fn start(
        is_live: bool,
        resolved: &Resolved,
        options: &RunOptions,
        testbed: Testbed,
    ) -> Self {
        let is_real = matches!(testbed, Testbed::Emu | Testbed::Relay | Testbed::Net);
        let lanes: Option<Arc<RunWatch>> = is_real.then(Arc::default);
        let played_ms = Arc::new(AtomicU64::new(0));
        let total = total_play(resolved, options);
        let live = Live::start(is_live, || {
            let mut view = RunView::new(resolved, testbed.name(), &options.seeds);
            if testbed != Testbed::Net {
                view.know_link(resolved);
            }
            Run {
                view,
                names: resolved
                    .lanes
                    .iter()
                    .map(|lane| lane.name.clone())
                    .collect(),
                lanes: lanes.clone(),
                played_ms: Arc::clone(&played_ms),
                total,
                began: Instant::now(),
            }
        });
        let bar = live.is_none().then(|| Progress::new(total));
        Self {
            played_ms,
            lanes,
            live,
            bar,
        }
    }

    /// Where lanes that play in real time leave their figures.
    pub(super) fn lanes(&self) -> Option<Arc<RunWatch>> {
        self.lanes.clone()
    }

    /// So much more was played, of all lanes together.
    pub(super) fn played(&self, played: Duration) {
        let millis = u64::try_from(played.as_millis()).unwrap_or(u64::MAX);
        self.played_ms.fetch_add(millis, Ordering::Relaxed);
        if let Some(bar) = &self.bar {
            bar.played(played);
        }
    }

    /// The run is over.
    pub(super) fn finish(self) {
        drop(self.live);
        if let Some(bar) = self.bar {
            bar.finish();
        }
    }
}

impl Watched for Run {
    fn look(&mut self, show: &mut dyn FnMut(&dyn View)) {
        if let Some(lanes) = &self.lanes {
            self.view.look(lanes, &self.names);
        } else {
            let played = self.played_ms.load(Ordering::Relaxed) as f64 / 1e3;
            self.view.done = played / self.total.as_secs_f64().max(1e-9);
            let seconds = self.began.elapsed().as_secs_f64();
            self.view.speed = Some(played / seconds.max(1e-9));
        }
        show(&self.view);
    }
}
