//! Live views: a thread that looks at what a command does and draws it on the terminal,
//! and the lines that are said meanwhile.
//!
//! A view is drawn only where it is asked for and can be. While it is on, lines for
//! standard error are shown at its foot; when it is over, all of them are written, so
//! that what is left on the terminal is what would be there without.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use lagometer_watch::{EVERY, Screen, Theme, View};

/// Lines that are kept while a view is on; more are counted.
const KEPT: usize = 1000;

/// Lines that a view shows.
const SHOWN: usize = 2;

/// What was said while a view is on; none while none is.
static SAID: Mutex<Option<Kept>> = Mutex::new(None);

#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    left_out: u64,
}

/// Something that can be looked at.
pub(crate) trait Watched: Send {
    /// Looks at it and shows what there is.
    fn look(&mut self, show: &mut dyn FnMut(&dyn View));
}

/// A view that is on, until it is dropped.
pub(crate) struct Live {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Shows what `watched` makes, if that `is_asked` for and there is a terminal for it;
    /// none where there is not.
    pub(crate) fn start<W: Watched + 'static>(
        is_asked: bool,
        watched: impl FnOnce() -> W,
    ) -> Option<Self> {
        if !is_asked || !Screen::is_possible() {
            return None;
        }
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let theme = Theme {
            has_colours: !no_color,
        };
        *said() = Some(Kept::default());
        let Ok(screen) = Screen::enter(theme) else {
            write_kept();
            return None;
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut watched, over) = (watched(), Arc::clone(&is_over));
        let thread = thread::Builder::new()
            .name("live-view".to_owned())
            .spawn(move || {
                show(screen, &mut watched, &over);
                write_kept();
            });
        let Ok(thread) = thread else {
            give_back();
            return None;
        };
        Some(Self {
            is_over,
            thread: Some(thread),
        })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        // The thread may have ended by a panic.
        give_back();
    }
}

/// Looks and draws until it is over, or the terminal is gone.
fn show(mut screen: Screen, watched: &mut dyn Watched, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        let looked_at = Instant::now();
        let mut drawn = Ok(());
        watched.look(&mut |view| drawn = screen.draw(view, &newest()));
        if drawn.is_err() {
            return;
        }
        while !is_over.load(Ordering::SeqCst) && looked_at.elapsed() < EVERY {
            thread::park_timeout(EVERY.saturating_sub(looked_at.elapsed()));
        }
    }
}

/// Says a line on standard error, or on the view in its place.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let mut said = said();
    match &mut *said {
        Some(kept) => kept.add(&line.to_string()),
        None => {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

/// Gives the terminal back at once: the program is about to end.
pub(crate) fn give_back() {
    Screen::restore();
    write_kept();
}

/// Standard error as others' logs may have it.
pub(crate) struct Said;

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut said = said();
        let Some(kept) = &mut *said else {
            return io::stderr().write(bytes);
        };
        String::from_utf8_lossy(bytes)
            .lines()
            .for_each(|line| kept.add(line));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl Kept {
    fn add(&mut self, line: &str) {
        if self.lines.len() == KEPT {
            self.lines.pop_front();
            self.left_out += 1;
        }
        self.lines.push_back(line.to_owned());
    }
}

/// The newest lines that were said.
fn newest() -> Vec<String> {
    let said = said();
    let lines = said.as_ref().map(|kept| &kept.lines);
    let newest = lines
        .into_iter()
        .flat_map(|lines| lines.iter().rev().take(SHOWN));
    let mut newest: Vec<String> = newest.map(|line| plain(line)).collect();
    newest.reverse();
    newest
}

/// Without the codes that colour it.
fn plain(line: &str) -> String {
    console::strip_ansi_codes(line).into_owned()
}

/// Writes what was said while the view was on, and has lines written at once again.
fn write_kept() {
    let Some(kept) = said().take() else { return };
    let mut stderr = io::stderr().lock();
    if kept.left_out > 0 {
        let _ = writeln!(
            stderr,
            "lagometer: {} earlier lines are left out",
            kept.left_out
        );
    }
    for line in kept.lines {
        let _ = writeln!(stderr, "{line}");
    }
}

fn said() -> MutexGuard<'static, Option<Kept>> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}
