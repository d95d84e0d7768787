//! What a player's hour takes and costs, as the terminal and the page show it.

use std::fmt::Write as _;

use lagometer_results::{Money, PlayerCost};

use crate::written::{self, NOTHING};

/// Hours of players for which money is written: one is too little to be read.
const HOURS: f64 = 1000.0;

/// The columns: heading and unit, of lists by which all costs are reckoned.
pub(crate) fn headings(cost: &PlayerCost) -> Vec<(String, String)> {
    let heading = |heading: &str, unit: &str| (heading.to_owned(), unit.to_owned());
    let mut headings = vec![
        heading("up", "MB/h"),
        heading("down", "MB/h"),
        heading("players", "a core"),
    ];
    headings.extend(cost.money.iter().map(|money| {
        let unit = format!("{}/1000 h", money.currency);
        (money.prices.clone(), unit)
    }));
    headings
}

/// What stands in the columns.
pub(crate) fn cells(cost: &PlayerCost) -> Vec<String> {
    let players = cost.players_per_core;
    let mut cells = vec![
        megabytes(cost.up_bytes_per_hour),
        megabytes(cost.down_bytes_per_hour),
        players.map_or_else(|| NOTHING.to_owned(), |players| format!("{players:.0}")),
    ];
    cells.extend(cost.money.iter().map(|money| amount(money.per_hour)));
    cells
}

/// Bytes as megabytes, without the unit.
pub(crate) fn megabytes(bytes: f64) -> String {
    written::factor(bytes / 1e6)
}

/// What an hour costs, for a thousand of them and without the currency.
pub(crate) fn amount(per_hour: f64) -> String {
    format!("{:.3}", per_hour * HOURS)
}

/// What the columns say.
pub(crate) fn note(cost: &PlayerCost) -> String {
    let server = if cost.players_per_core.is_some() {
        "players a core: that a processor of the server's side carries by the time it used, for \
         the transport alone"
    } else {
        "players a core: not measured here, as virtual time has no processor"
    };
    let has_server = |money: &Money| money.server_per_hour.is_some();
    let is_any_with_server = cost.money.iter().any(has_server);
    let of = if is_any_with_server {
        "traffic and that time"
    } else {
        "traffic alone"
    };
    let list = |money: &Money| {
        let is_without = is_any_with_server && !has_server(money);
        list(money, if is_without { ", traffic alone" } else { "" })
    };
    let lists: Vec<String> = cost.money.iter().map(list).collect();
    let prices = match lists.as_slice() {
        [] => String::new(),
        lists => format!(
            " · money for 1000 hours of play, {of}: {}",
            lists.join(", ")
        ),
    };
    format!("a player's hour on the wire, headers included · {server}{prices}")
}

fn list(money: &Money, but: &str) -> String {
    format!(
        "{} of {} ({}){but}",
        money.prices, money.dated, money.source
    )
}

/// In one line, for where there is no table.
pub(crate) fn line(cost: &PlayerCost) -> String {
    let [up, down] = [cost.up_bytes_per_hour, cost.down_bytes_per_hour];
    let mut line = format!(
        "{} up and {} down",
        written::bytes(up as u64),
        written::bytes(down as u64)
    );
    if let Some(players) = cost.players_per_core {
        let _ = write!(line, ", {players:.0} players a core");
    }
    for money in &cost.money {
        let _ = write!(
            line,
            ", {} {} for 1000 hours by {}",
            amount(money.per_hour),
            money.currency,
            money.prices
        );
    }
    line
}
