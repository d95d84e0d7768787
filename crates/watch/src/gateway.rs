//! A gateway: who is connected, what passes, and where it waits.

use std::time::Duration;

use lagometer_gateway::server::Glance;

use crate::draw::{clock, number};
use crate::world::unit;
use crate::{Board, Row};

/// A gateway that is watched.
pub struct GatewayView {
    board: Board,
    /// The last look, and when it was.
    before: Option<(Duration, Glance)>,
}

const PLAYERS: usize = 0;
const SERVERS: usize = 1;
const CHANNELS: usize = 2;
const IN: usize = 3;
const OUT: usize = 4;
const SENT: usize = 5;
const WAITING: usize = 6;
const SLOW: usize = 7;
const MERGED: usize = 8;
const LATE: usize = 9;

/// The rows, in their order.
const ROWS: [&str; 10] = [
    "players",
    "game servers",
    "channels",
    "messages in",
    "messages out",
    "sent",
    "waits to be sent",
    "became slow readers",
    "merged for them",
    "ticks late",
];

impl GatewayView {
    /// Of a gateway at these addresses.
    #[must_use]
    pub fn new(servers: &str, clients: &str) -> Self {
        Self {
            board: Board {
                title: format!("gateway: players at {clients}, game servers at {servers}"),
                state: "beginning".to_owned(),
                done: None,
                rows: ROWS.map(Row::named).to_vec(),
                table: Vec::new(),
                ends: "Ctrl-C lets everyone go and ends it",
            },
            before: None,
        }
    }

    /// Takes in a look at `now`, counted from the gateway's start.
    pub fn note(&mut self, now: Duration, glance: Glance) {
        let (then, before) = self.before.take().unwrap_or((now, glance.clone()));
        let seconds = now.saturating_sub(then).as_secs_f64();
        let rate = |now: u64, before: u64| {
            if seconds > 0.0 {
                now.saturating_sub(before) as f64 / seconds
            } else {
                0.0
            }
        };
        self.board.state = format!("runs for {}", clock(now));
        let waiting: u64 = glance.loops.iter().map(|it| it.waiting_bytes).sum();
        let merged = rate(glance.updates_merged, before.updates_merged);
        let slow = rate(glance.slow_readers, before.slow_readers);
        let late = late_share(&glance, &before);
        let per_s = |value: f64| format!("{}/s", number(value));
        let figures: [(usize, f64, String, bool); 10] = [
            (
                PLAYERS,
                glance.players as f64,
                glance.players.to_string(),
                false,
            ),
            (
                SERVERS,
                glance.servers as f64,
                glance.servers.to_string(),
                glance.servers == 0,
            ),
            (
                CHANNELS,
                glance.channels as f64,
                glance.channels.to_string(),
                false,
            ),
            of_rate(IN, rate(glance.messages_in, before.messages_in), per_s),
            of_rate(OUT, rate(glance.messages_out, before.messages_out), per_s),
            of_rate(SENT, rate(glance.bytes_out, before.bytes_out), |it| {
                format!("{}B/s", unit(it))
            }),
            (
                WAITING,
                waiting as f64,
                format!("{}B", unit(waiting as f64)),
                false,
            ),
            (
                SLOW,
                slow,
                format!("{} in all", glance.slow_readers),
                slow > 0.0,
            ),
            of_rate(MERGED, merged, per_s),
            (LATE, late, format!("{:.1} %", late * 100.0), late > 0.01),
        ];
        for (row, value, written, is_bad) in figures {
            self.board.rows[row].note(Some(value), written, is_bad);
        }
        self.board.table = table(&glance, &before, seconds);
        self.before = Some((now, glance));
    }

    /// The gateway did not answer: it hangs.
    pub fn note_hanging(&mut self, why: &str) {
        why.clone_into(&mut self.board.state);
    }

    /// What is drawn.
    #[must_use]
    pub const fn board(&self) -> &Board {
        &self.board
    }
}

fn of_rate(row: usize, value: f64, written: impl Fn(f64) -> String) -> (usize, f64, String, bool) {
    (row, value, written(value), false)
}

/// The share of the ticks since the last look that came more than 10 ms late.
fn late_share(glance: &Glance, before: &Glance) -> f64 {
    let ticks = glance.ticks.saturating_sub(before.ticks);
    let late = glance.late_ticks.saturating_sub(before.late_ticks);
    if ticks == 0 {
        0.0
    } else {
        late as f64 / ticks as f64
    }
}

/// The threads of the gateway: how busy, and what waits before and behind them.
fn table(glance: &Glance, before: &Glance, seconds: f64) -> Vec<Vec<String>> {
    let heads = ["thread", "connections", "busy", "queue", "waits to be sent"];
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    for now in &glance.loops {
        let then = before.loops.iter().find(|then| then.name == now.name);
        let busy = then.map_or(Duration::ZERO, |then| now.busy.saturating_sub(then.busy));
        let share = if seconds > 0.0 {
            busy.as_secs_f64() / seconds
        } else {
            0.0
        };
        table.push(vec![
            now.name.clone(),
            now.connections
                .map_or_else(String::new, |it| it.to_string()),
            format!("{:.0} %", share * 100.0),
            now.queued.to_string(),
            format!("{}B", unit(now.waiting_bytes as f64)),
        ]);
    }
    table
}
