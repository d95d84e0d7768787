//! The report as its readers meet it: text compared with checked-in files, the
//! page's structure, and the page at work in a browser.

mod browser;
mod golden;
mod nonsense;
mod page;
mod plot;
mod presets;
mod synthetic;
mod terminal;
