//! The main table: one row for each lane, the columns a game engineer cares
//! for first, more of them on a wider terminal.

use lagometer_results::{Decision, Document, Game, Lane, ResampleUnit, Resamples};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, fit, printable, wrap};
use crate::about::About;
use crate::figure::{Figure, Spread};
use crate::ranking::{self, Group};
use crate::written::{self, NOTHING};

/// Columns a lane's name may take.
const WIDEST_NAME: usize = 28;

/// Digits of an interval whose ends are written.
const MOST_DIGITS: u8 = 2;

/// How many columns of a name stand on one line, and how many digits of an interval are
/// written, where the table would be too wide: the first of these that fits, else the last.
const NARROWER: [(usize, u8); 3] = [(19, MOST_DIGITS), (19, 1), (14, 1)];

/// Appends the table of the measured lanes to `out`.
pub(crate) fn render(
    document: &Document,
    about: &About,
    paint: Paint,
    room: usize,
    out: &mut String,
) {
    let groups = ranking::groups(document, about.limit_ms);
    if groups.is_empty() {
        line_of(out, "No lane was measured.");
        return;
    }
    let figures = columns_that_fit(document, &groups, about.limit_ms, room);
    let mut table = grid(document, &groups, &figures, MOST_DIGITS);
    for (widest_name, digits) in NARROWER {
        if table.width() > room {
            table = grid(document, &groups, &figures, digits);
            fold_names(&mut table, widest_name);
        }
    }
    table.render(paint, out);
    for note in footnotes(&groups, &figures) {
        for line in wrap(&note, room) {
            line_of(out, &paint.apply(Style::Dim, &line));
        }
    }
}

/// The figures always shown, in the order of the columns.
fn essential(limit_ms: u32, groups: &[Group<'_>]) -> Vec<Figure> {
    if let Some(game) = game_of(groups) {
        let of_view = match game.rollback_frames {
            Some(_) => vec![Figure::RollbackStalled, Figure::Rollback],
            None => vec![
                Figure::InterpolationNeeded,
                Figure::ViewFreezes,
                Figure::ViewFrozen,
            ],
        };
        let others = [
            Figure::InputAge,
            Figure::Event,
            Figure::P99,
            Figure::Overhead,
        ];
        return of_view.into_iter().chain(others).collect();
    }
    let [lag, longest, recovery] = lag_figures(groups);
    vec![
        Figure::Within(limit_ms),
        Figure::P50,
        Figure::P99,
        Figure::Worst,
        lag,
        longest,
        recovery,
        Figure::Overhead,
    ]
}

/// What a player felt of the first lane, where lanes carried a game.
fn game_of<'a>(groups: &[Group<'a>]) -> Option<&'a Game> {
    let mut lanes = groups.iter().flat_map(|group| &group.lanes);
    lanes.find_map(|lane| lane.game.as_ref())
}

/// The figures of lag that are shown: those by the experiment's threshold, or
/// episodes where the document is of a time that knew no other.
pub(crate) fn lag_figures(groups: &[Group<'_>]) -> [Figure; 3] {
    let mut lanes = groups.iter().flat_map(|group| &group.lanes);
    if lanes.any(|lane| lane.lag.is_some()) {
        [Figure::Lag, Figure::LongestFreeze, Figure::RecoveryFirst]
    } else {
        [Figure::Episodes, Figure::LongestEpisode, Figure::Recovery]
    }
}

/// Figures a wider terminal adds, the most wanted first, each with the
/// essential one it stands before.
const EXTRA: [(Figure, Figure); 7] = [
    (Figure::P99_9, Figure::Worst),
    (Figure::RecoveryLast, Figure::Overhead),
    (Figure::Freezes, Figure::LongestFreeze),
    (Figure::Lost, Figure::P50),
    (Figure::P90, Figure::P99),
    (Figure::HeadOfLine, Figure::Overhead),
    (Figure::Cpu, Figure::Overhead),
];

/// The same of a game's figures.
const EXTRA_OF_GAMES: [(Figure, Figure); 5] = [
    (Figure::VoiceLate, Figure::P99),
    (Figure::P50, Figure::P99),
    (Figure::ViewAge, Figure::InputAge),
    (Figure::Lost, Figure::Overhead),
    (Figure::Cpu, Figure::Overhead),
];

fn columns_that_fit(
    document: &Document,
    groups: &[Group<'_>],
    limit_ms: u32,
    room: usize,
) -> Vec<Figure> {
    let known = |figure: Figure| {
        groups
            .iter()
            .flat_map(|group| &group.lanes)
            .any(|lane| figure.of(lane).is_some())
    };
    let mut figures: Vec<Figure> = essential(limit_ms, groups)
        .into_iter()
        .filter(|&figure| known(figure))
        .collect();
    let extras = match game_of(groups) {
        Some(_) => &EXTRA_OF_GAMES[..],
        None => &EXTRA[..],
    };
    for &(extra, before) in extras {
        let mut wider = figures.clone();
        let place = wider
            .iter()
            .position(|&each| each == before)
            .unwrap_or(wider.len());
        wider.insert(place, extra);
        if known(extra) && grid(document, groups, &wider, MOST_DIGITS).width() <= room {
            figures = wider;
        }
    }
    figures
}

/// The heading of a figure's column. CPU time is taken from that of a lane's threads
/// alone, which is all that is known where the kernel's share is not known.
fn heading(figure: Figure, groups: &[Group<'_>]) -> String {
    if figure == Figure::Cpu && is_of_threads_alone(groups) {
        "thread cpu".to_owned()
    } else {
        figure.heading()
    }
}

/// Whether CPU times of any lane are without what the kernel does beside its threads.
fn is_of_threads_alone(groups: &[Group<'_>]) -> bool {
    let mut lanes = groups.iter().flat_map(|group| &group.lanes);
    lanes.any(|lane| lane.cpu_ns_per_message.is_some() && lane.kernel_cpu_ns_per_message.is_none())
}

fn grid(document: &Document, groups: &[Group<'_>], figures: &[Figure], digits: u8) -> Grid {
    let mut columns = vec![Column::words("lane")];
    columns.extend(
        figures
            .iter()
            .map(|&figure| Column::numbers(heading(figure, groups), figure.unit_label())),
    );
    let mut rows = Vec::new();
    let best = ranking::best(document, groups, figures);
    for (group, best) in groups.iter().zip(best) {
        if let Some(label) = group.label {
            rows.push(Row::Label(label.to_owned(), Style::Dim));
        }
        for (lane, best) in group.lanes.iter().zip(best) {
            let mut cells = vec![name(lane)];
            cells.extend(
                figures
                    .iter()
                    .zip(best)
                    .map(|(&figure, is_best)| cell(document, lane, figure, is_best)),
            );
            rows.push(Row::Cells(cells));
            if figures.iter().any(|figure| figure.spread(lane).is_some()) {
                let mut spreads = vec![Cell::default()];
                spreads.extend(figures.iter().map(|figure| {
                    let spread = figure
                        .spread(lane)
                        .map(|spread| figure.written_interval(spread, digits));
                    Cell::new(spread.unwrap_or_default(), Style::Dim)
                }));
                rows.push(Row::Cells(spreads));
            }
        }
    }
    Grid { columns, rows }
}

/// Has long names go on from a hyphen on: beside the spreads where these are shown,
/// otherwise in a line of their own.
fn fold_names(table: &mut Grid, widest: usize) {
    for index in 0..table.rows.len() {
        let Some(rest) = name_of(&mut table.rows, index).and_then(|name| cut(name, widest)) else {
            continue;
        };
        match name_of(&mut table.rows, index + 1) {
            Some(below) if below.text.is_empty() => below.text = rest,
            _ => {
                if let Some(name) = name_of(&mut table.rows, index) {
                    name.text = format!("{}\n{rest}", name.text);
                }
            }
        }
    }
}

/// The first cell of a row.
fn name_of(rows: &mut [Row], index: usize) -> Option<&mut Cell> {
    match rows.get_mut(index)? {
        Row::Cells(cells) => cells.first_mut(),
        Row::Label(..) => None,
    }
}

/// Takes from a long name what does not fit after one of its hyphens.
fn cut(name: &mut Cell, widest: usize) -> Option<String> {
    if name.width() <= widest {
        return None;
    }
    let mut after_hyphens = name.text.rmatch_indices('-').map(|(at, _)| at + 1);
    let fitting = after_hyphens.find(|&at| at <= widest)?;
    Some(name.text.split_off(fitting))
}

fn name(lane: &Lane) -> Cell {
    let mark = if lane.failure.is_some() { "†" } else { "" };
    let name = fit(&printable(&lane.lane), WIDEST_NAME);
    let style = if lane.failure.is_some() {
        Style::Bad
    } else {
        Style::Plain
    };
    Cell::new(format!("{name}{mark}"), style)
}

fn cell(document: &Document, lane: &Lane, figure: Figure, is_best: bool) -> Cell {
    let Some(text) = figure.written_of(lane) else {
        return Cell::new(NOTHING, Style::Dim);
    };
    let budget = document
        .budgets
        .iter()
        .find(|budget| budget.lane == lane.lane && Figure::named(&budget.metric) == Some(figure));
    let style = match budget {
        Some(budget) if budget.decision == Decision::Met => Style::Good,
        Some(budget) if budget.decision == Decision::Missed => Style::Bad,
        Some(_) => Style::Notice,
        None if is_best => Style::Bold,
        None => Style::Plain,
    };
    Cell::new(text, style)
}

/// That the ends of some intervals are written, where they are.
pub(crate) fn or_its_ends<'a>(
    mut lanes: impl Iterator<Item = &'a Lane>,
    figures: &[Figure],
) -> &'static str {
    let is_of_ends =
        |lane: &Lane, figure: &Figure| matches!(figure.spread(lane), Some(Spread::Ends(..)));
    if lanes.any(|lane| figures.iter().any(|figure| is_of_ends(lane, figure))) {
        ", or its ends where ± would pass what can be"
    } else {
        ""
    }
}

/// What intervals rest on: `20 seeds of 30 s`.
pub(crate) fn intervals_from(drawn: &Resamples) -> String {
    let unit = match drawn.unit {
        ResampleUnit::Seed => "seeds",
        ResampleUnit::Stretch => "stretches",
    };
    format!(
        "{} {unit} of {}",
        drawn.blocks,
        written::play_time(drawn.block_s)
    )
}

/// What a game's columns say, and how its streams were laid on each transport.
fn notes_on_games(game: &Game, groups: &[Group<'_>]) -> [String; 2] {
    let view = if game.rollback_frames.is_some() {
        "stalled: inputs for which the game had to wait · rollback: frames played again, p99"
            .to_owned()
    } else {
        format!(
            "needs: interpolation delay for one freeze a minute · freezes, frozen: of the view with \
             {} ms of it",
            written::milliseconds(game.interpolation_ms)
        )
    };
    let mut offers: Vec<(&str, Vec<String>)> = Vec::new();
    for lane in groups.iter().flat_map(|group| &group.lanes) {
        let streams = lane.game.as_ref().map_or("", |game| &game.streams);
        match offers.iter_mut().find(|(offer, _)| *offer == streams) {
            Some((_, lanes)) => lanes.push(printable(&lane.lane)),
            None => offers.push((streams, vec![printable(&lane.lane)])),
        }
    }
    let streams = offers
        .into_iter()
        .map(|(offer, lanes)| format!("{offer}: {}", lanes.join(", ")));
    [
        format!(
            "{view} · input age: at the server's steps, p99 · events: both ways, p99 · p99: from an \
             input to the first snapshot that shows it · wire: bytes on the wire over payload bytes"
        ),
        format!("streams on {}", streams.collect::<Vec<_>>().join(" · ")),
    ]
}

fn footnotes(groups: &[Group<'_>], figures: &[Figure]) -> Vec<String> {
    let mut notes = Vec::new();
    let lanes = || groups.iter().flat_map(|group| group.lanes.iter().copied());
    if let Some(drawn) =
        lanes().find_map(|lane| lane.resamples.as_ref().filter(|drawn| drawn.suffice()))
    {
        notes.push(format!(
            "± half the 95 % interval{}, from {}",
            or_its_ends(lanes(), figures),
            intervals_from(drawn)
        ));
    }
    if let Some(game) = game_of(groups) {
        notes.extend(notes_on_games(game, groups));
    } else if let Some(lag) = lanes().find_map(|lane| lane.lag.as_ref()) {
        notes.push(format!(
            "lag: seconds a minute in which nothing newer came for more than {} ms · freeze: the \
             longest · recovery: worst, to its end from that of the first disturbance it met · \
             wire: bytes on the wire over payload bytes",
            written::milliseconds(lag.threshold_ms)
        ));
    } else if figures.contains(&Figure::Episodes) {
        notes.push(
            "episodes: above max(3 × median, 100 ms) · wire: bytes on the wire over payload bytes"
                .to_owned(),
        );
    }
    for lane in lanes() {
        if let Some(failure) = &lane.failure {
            notes.push(format!(
                "† {}: {}",
                printable(&lane.lane),
                printable(failure)
            ));
        }
    }
    notes
}
