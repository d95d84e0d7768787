//! The progress bar on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how much of the play is done; silent where standard error is no
/// terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for `total` of virtual time, over all lanes and seeds.
    pub(crate) fn new(total: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(total.as_secs()),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        if let Ok(style) =
            ProgressStyle::with_template("playing {wide_bar} {percent:>3} %  {msg}  {eta} left")
        {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// `played` more of virtual time is done.
    pub(crate) fn played(&self, played: Duration) {
        self.bar.inc(played.as_secs());
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
