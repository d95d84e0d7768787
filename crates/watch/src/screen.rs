//! The terminal that views are drawn on: standard error's, so that results go on to
//! standard output as ever.
//!
//! Views are on the terminal's alternate screen, which is left when the screen is dropped, on
//! a panic, and by [`Screen::restore`] before a program ends at once; not where a signal
//! kills it (`SIGQUIT`, `SIGKILL`: `reset` mends the terminal). What was there before is then
//! there again. Keys are the terminal's, so that Ctrl-C reaches the program as a signal; they
//! are only not echoed.

use std::io::{self, IsTerminal as _, Stderr, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use lagometer_platform::set_echo;
use ratatui::Terminal;
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};

use crate::{Theme, View};

/// Whether the alternate screen is on: there is one for the process.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// Whether the terminal was set to show nothing of what is typed.
static IS_HUSHED: AtomicBool = AtomicBool::new(false);

/// A terminal that shows views.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    theme: Theme,
}

impl Screen {
    /// Whether there is a terminal that can show views: standard error is one, it is not
    /// said to be dumb, and no service for continuous integration runs the program.
    #[must_use]
    pub fn is_possible() -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        io::stderr().is_terminal() && !is_set("CI") && !is_dumb
    }

    /// Takes the terminal.
    ///
    /// # Errors
    ///
    /// The system's, when it cannot be written to or has no size.
    pub fn enter(theme: Theme) -> io::Result<Self> {
        let terminal = Terminal::new(CrosstermBackend::new(io::stderr()))?;
        terminal.backend().size()?;
        restore_when_panicking();
        IS_ON.store(true, Ordering::SeqCst);
        let screen = Self { terminal, theme };
        IS_HUSHED.store(set_echo(false), Ordering::SeqCst);
        execute!(io::stderr(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Draws a view over all of the terminal, whatever its size is by now.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn draw(&mut self, view: &dyn View, notes: &[String]) -> io::Result<()> {
        if !IS_ON.load(Ordering::SeqCst) {
            return Ok(());
        }
        let theme = self.theme;
        self.terminal
            .draw(|frame| view.draw(frame.buffer_mut(), theme, notes))?;
        Ok(())
    }

    /// Gives the terminal back, from whichever thread, if it is taken. Nothing else must
    /// be drawn.
    pub fn restore() {
        if IS_ON.swap(false, Ordering::SeqCst) {
            // There is nobody to report it to.
            let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
            let _ = io::stderr().flush();
            if IS_HUSHED.swap(false, Ordering::SeqCst) {
                let _ = set_echo(true);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        Self::restore();
    }
}

/// What a panic says is seen on the terminal as it was before.
fn restore_when_panicking() {
    static IS_SET: AtomicBool = AtomicBool::new(false);
    if IS_SET.swap(true, Ordering::SeqCst) {
        return;
    }
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        Screen::restore();
        before(what);
    }));
}
