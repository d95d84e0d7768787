//! Live views: what a run, a world, a gateway or a remote end does now, drawn in a
//! terminal.
//!
//! A view is a model that is handed figures and the time, and a function that draws it
//! into a [`Buffer`](ratatui::buffer::Buffer) of any size; neither knows a terminal, a
//! clock or a thread. The [`Screen`] is the terminal: entered, drawn on, and given back
//! however the program ends.
//!
//! # Map
//!
//! - [`RunView`]: lanes side by side over what their link does
//! - [`Board`]: figures with their history, one below the other, and a table;
//!   [`world`], [`gateway`] and [`remote_end`] fill one
//! - `draw`: what views are drawn with
//! - `screen`: the terminal

mod board;
mod draw;
pub mod gateway;
mod history;
mod layout;
mod link;
pub mod remote_end;
mod run;
mod screen;
pub mod world;

pub use board::{Board, Row};
pub use draw::Theme;
pub use history::History;
pub use link::{LinkState, LinkView};
pub use run::{LaneView, RunView};
pub use screen::Screen;

/// How often views are drawn, and what one place in a history stands for: four times a
/// second.
pub const EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// Whatever can be drawn.
pub trait View {
    /// Draws it over all of `buffer`, which is empty. `notes` are the newest lines that
    /// were said meanwhile, the last one the newest.
    fn draw(&self, buffer: &mut ratatui::buffer::Buffer, theme: Theme, notes: &[String]);
}
