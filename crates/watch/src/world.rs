//! A world: who plays, how old what they see is, and what it costs.

use lagometer_world::{Moment, Scenario};

use crate::draw::{clock, number};
use crate::{Board, Row};

/// A world that is watched.
pub struct WorldView {
    players_asked: u32,
    /// From the first player's coming to the end, seconds.
    lasts_s: f64,
    board: Board,
}

const PLAYERS: usize = 0;
const AGE: usize = 1;
const OLDEST: usize = 2;
const UPDATES: usize = 3;
const BYTES: usize = 4;
const FRAMES: usize = 5;
const LATE: usize = 6;
const TICKS: usize = 7;
const CPU: usize = 8;

/// The rows, in their order.
const ROWS: [&str; 9] = [
    "players",
    "seen, median age",
    "seen, 99th age",
    "updates",
    "received",
    "server's frames",
    "frame late",
    "gateway's tick",
    "generator",
];

/// A frame later than this is a server that cannot keep up, milliseconds.
const LATE_FRAME_MS: f64 = 10.0;

impl WorldView {
    /// Of a world that begins.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let joins = scenario.join_every.duration() * scenario.players;
        Self {
            players_asked: scenario.players,
            lasts_s: (joins + scenario.duration.duration()).as_secs_f64(),
            board: Board {
                title: format!("{}: {} players", scenario.name, scenario.players),
                state: "beginning".to_owned(),
                done: Some(0.0),
                rows: ROWS.map(Row::named).to_vec(),
                table: Vec::new(),
                ends: "Ctrl-C ends it and shows what was found",
            },
        }
    }

    /// Takes in a moment.
    pub fn note(&mut self, moment: &Moment) {
        let asked = f64::from(self.players_asked);
        let players = f64::from(moment.world.players);
        self.board.state = format!(
            "{} of {}",
            clock(std::time::Duration::from_secs_f64(
                moment.world.at_s.max(0.0)
            )),
            clock(std::time::Duration::from_secs_f64(self.lasts_s))
        );
        self.board.done = Some(moment.world.at_s / self.lasts_s.max(1e-9));
        let millis =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.0} ms"));
        let ticks = moment.gateway_ticks.as_ref();
        let longest = ticks.and_then(|ticks| ticks.longest_ms);
        let cpu = moment.world.generator_cpu_pct;
        let figures: [(usize, Option<f64>, String, bool); 9] = [
            (
                PLAYERS,
                Some(players),
                format!("{players:.0} of {asked:.0}"),
                false,
            ),
            (
                AGE,
                moment.world.age_p50_ms,
                millis(moment.world.age_p50_ms),
                false,
            ),
            (
                OLDEST,
                moment.world.age_p99_ms,
                millis(moment.world.age_p99_ms),
                false,
            ),
            (
                UPDATES,
                Some(moment.world.updates_per_s),
                format!("{}/s", number(moment.world.updates_per_s)),
                false,
            ),
            (
                BYTES,
                Some(moment.world.bytes_per_s),
                format!("{}B/s", unit(moment.world.bytes_per_s)),
                false,
            ),
            (
                FRAMES,
                Some(moment.world.frames_per_s),
                format!("{:.1}/s", moment.world.frames_per_s),
                false,
            ),
            (
                LATE,
                Some(moment.world.frame_late_ms),
                format!("{:.1} ms", moment.world.frame_late_ms),
                moment.world.frame_late_ms > LATE_FRAME_MS,
            ),
            (
                TICKS,
                longest,
                longest.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.2} ms")),
                ticks
                    .and_then(|ticks| ticks.late_pct)
                    .is_some_and(|late| late > 1.0),
            ),
            (
                CPU,
                cpu,
                cpu.map_or_else(|| "–".to_owned(), |pct| format!("{pct:.0} % CPU")),
                false,
            ),
        ];
        for (row, value, written, is_bad) in figures {
            self.board.rows[row].note(value, written, is_bad);
        }
    }

    /// What is drawn.
    #[must_use]
    pub const fn board(&self) -> &Board {
        &self.board
    }
}

/// A number in front of a unit: with a space where it has no prefix of its own.
pub(crate) fn unit(value: f64) -> String {
    let text = number(value);
    if text.ends_with(char::is_alphabetic) {
        return text;
    }
    text + " "
}
