//! `lagometer agree --testbed kernel,emu`: the same experiment in `sim`, on a real
//! kernel in virtual time and over real sockets in real time, side by side.
//!
//! The two that are exact are held against each other message by message. What real
//! time adds is shown by the same share, for the eye: a thread that wakes late sends a
//! packet in the next millisecond, where its coin is another. Held to anything it is by
//! equivalence over seeds, as without a kernel, where there are enough of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use lagometer_lab::emu::EmuOptions;
use lagometer_lab::{RunContext, assemble};
use lagometer_results::{
    Agreement, Audit, ExactFigures, LaneAgreement, Margins, MessageAgreement, MessageRecord,
    agreement, message_agreement,
};
use lagometer_stats::{EquivalenceFinding, FEWEST_EQUIVALENCE_SEEDS};
use lagometer_testbed::Testbed;

use super::agree::{TRIES, ask};
use super::agree_messages::{Both, Played, SEEDS, TOLERANCE, played, stopped};
use super::agree_table::{Row, notes, seeds_in_words};
use super::named::resolved;
use super::{emulated, in_guest};
use crate::cli::AgreeArguments;
use crate::failure::Failure;
use crate::output::print;

/// Plays all three over each network and prints a table; whether all lanes agree.
pub(super) fn agree(
    arguments: &AgreeArguments,
    networks: &[Option<&str>],
    stop: &AtomicBool,
) -> Result<bool, Failure> {
    let kernel = in_guest::kernel(&arguments.guest)?;
    print(&headings(
        &kernel.record().version,
        arguments.seeds.unwrap_or(SEEDS),
        &arguments.duration.to_string(),
    ))?;
    let mut holds = true;
    let mut differences = String::new();
    for &network in networks {
        let both = played(arguments, network, &kernel, SEEDS, stop)?;
        let rows = both.rows()?;
        let (emu, audit) = emulated_too(arguments, network, &both, stop)?;
        let mut besides = Vec::new();
        for row in &rows {
            besides.push(beside(&both, &emu, &row.lane)?);
        }
        let judged = Judged::of(both, emu, audit);
        for (row, beside) in rows.iter().zip(&besides) {
            let verdict = judged.verdict(row);
            holds &= row.beyond.is_empty() && verdict.holds;
            print(&line(&cells(row, beside.as_ref(), &verdict.words)))?;
            differences += &notes(row);
        }
    }
    if !differences.is_empty() {
        print(&format!("\nWhat differs first:\n{differences}"))?;
    }
    Ok(holds)
}

/// Plays the same seeds in real time.
fn emulated_too(
    arguments: &AgreeArguments,
    network: Option<&str>,
    both: &Both,
    stop: &AtomicBool,
) -> Result<(Played, Option<Audit>), Failure> {
    let what = resolved(&ask(arguments, network, Testbed::Emu))?;
    let options = EmuOptions {
        testbed: Testbed::Emu,
        seeds: both.seeds.clone(),
        ipv6: false,
        pcap: None,
        tries: TRIES,
        watch: None,
    };
    note!("lagometer: playing over `{}` in real time", what.network);
    let found = emulated::play(&what, &options, &|_| {}, stop)?;
    let runs = found.seeds;
    if runs.len() != both.seeds.len() {
        return Err(stopped());
    }
    Ok((Played { what, runs }, found.audit))
}

/// A lane in real time beside both that are exact.
struct Beside {
    figures: ExactFigures,
    with_sim: MessageAgreement,
    with_kernel: MessageAgreement,
}

/// What real time made of a lane; nothing if it is not played there.
fn beside(both: &Both, emu: &Played, lane: &str) -> Result<Option<Beside>, Failure> {
    let (sim, kernel) = (both.sim.records(lane)?, both.kernel.records(lane)?);
    let (Some(sim), Some(kernel), Some(emu)) = (sim, kernel, emu.records(lane)?) else {
        return Ok(None);
    };
    let all = emu.iter().flat_map(|records| records.iter());
    Ok(Some(Beside {
        figures: ExactFigures::of(all),
        with_sim: all_seeds(&sim, &emu),
        with_kernel: all_seeds(&kernel, &emu),
    }))
}

fn all_seeds(ones: &[&[MessageRecord]], others: &[&[MessageRecord]]) -> MessageAgreement {
    let mut found = MessageAgreement::default();
    for (one, other) in ones.iter().zip(others) {
        found.add(&message_agreement(one, other, TOLERANCE));
    }
    found
}

/// What is shown of real time, lane by lane.
struct Judged {
    /// Why nothing is: the emulator was outside its band.
    invalid: Option<String>,
    /// Whether the machine is too noisy for anything to be shown.
    is_too_noisy: bool,
    seeds: usize,
    findings: BTreeMap<String, EquivalenceFinding>,
}

/// What is said of a lane in real time.
struct Verdict {
    holds: bool,
    words: String,
}

impl Judged {
    fn of(both: Both, emu: Played, audit: Option<Audit>) -> Self {
        let seeds = both.seeds;
        let document = |played: Played, testbed, host, audit| {
            let context = RunContext {
                started: SystemTime::now(),
                wall: Duration::ZERO,
                host,
                testbed: Some(testbed),
                audit,
            };
            assemble(&played.what, &seeds, played.runs, context)
        };
        let sim = document(
            both.sim,
            Testbed::Sim,
            lagometer_instruments::machine::named(),
            None,
        );
        let emu = document(
            emu,
            Testbed::Emu,
            lagometer_instruments::machine::examined(),
            audit,
        );
        Self::from_agreement(&agreement(&sim, &emu, Margins::default()), seeds.len())
    }

    fn from_agreement(found: &Agreement, seeds: usize) -> Self {
        let lanes = found.lanes.iter();
        let finding = |lane: &LaneAgreement| {
            if found.is_too_noisy() {
                EquivalenceFinding::Undecided
            } else {
                lane.finding()
            }
        };
        Self {
            invalid: found.invalid.clone(),
            is_too_noisy: found.is_too_noisy(),
            seeds,
            findings: lanes.map(|it| (it.lane.clone(), finding(it))).collect(),
        }
    }

    /// With too few seeds nothing is called equal, and nothing is held to be.
    fn verdict(&self, row: &Row) -> Verdict {
        let (holds, words) = match (&self.invalid, self.findings.get(&row.lane)) {
            (Some(why), _) => (false, format!("NOT VALID: {why}")),
            (None, None) => (true, "not played".to_owned()),
            (None, Some(EquivalenceFinding::Different)) => (false, "NO: differs".to_owned()),
            (None, Some(_)) if self.seeds < FEWEST_EQUIVALENCE_SEEDS => {
                (true, format!("wants {FEWEST_EQUIVALENCE_SEEDS} seeds"))
            }
            (None, Some(EquivalenceFinding::Equivalent)) => (true, "equal".to_owned()),
            (None, Some(EquivalenceFinding::Undecided)) if self.is_too_noisy => {
                (false, "NO: not decided, noise".to_owned())
            }
            (None, Some(EquivalenceFinding::Undecided)) => (false, "NO: not decided".to_owned()),
        };
        Verdict { holds, words }
    }
}

const COLUMNS: usize = 9;

/// What stands above the rows.
fn headings(version: &str, seeds: u32, each: &str) -> String {
    let names: [&str; COLUMNS] = [
        "network",
        "lane",
        "p50 ms",
        "p99 ms",
        "sim = kernel",
        "sim = emu",
        "kernel = emu",
        "sim and kernel agree",
        "emu, by equivalence",
    ];
    format!(
        "`sim` / Linux {version} in virtual time / `emu` on this machine, {} of {each}; the share \
         of messages whose round trips are the same within {} ms:\n\n{}{}",
        seeds_in_words(seeds),
        TOLERANCE.as_millis(),
        line(&names.map(str::to_owned)),
        "| --- ".repeat(COLUMNS) + "|\n"
    )
}

fn cells(row: &Row, beside: Option<&Beside>, verdict: &str) -> [String; COLUMNS] {
    let [sim, kernel] = &row.figures;
    let quantile = |nth: usize| {
        let of = |figures: &ExactFigures| in_ms(figures.quantiles_ms[nth]);
        let emu = beside.map_or_else(|| "-".to_owned(), |it| of(&it.figures));
        format!("{} / {} / {emu}", of(sim), of(kernel))
    };
    let share = |messages: &MessageAgreement| format!("{:.2} %", 100.0 * messages.share());
    let with = |which: fn(&Beside) -> &MessageAgreement| {
        beside.map_or_else(|| "-".to_owned(), |it| share(which(it)))
    };
    [
        row.network.clone(),
        row.lane.clone(),
        quantile(0),
        quantile(1),
        share(&row.messages),
        with(|it| &it.with_sim),
        with(|it| &it.with_kernel),
        row.verdict(),
        verdict.to_owned(),
    ]
}

fn line(cells: &[String; COLUMNS]) -> String {
    const WIDTHS: [usize; COLUMNS] = [16, 9, 24, 27, 12, 9, 12, 20, 19];
    let mut text = String::new();
    for (cell, width) in cells.iter().zip(WIDTHS) {
        let _ = write!(text, "| {cell:width$} ");
    }
    text + "|\n"
}

fn in_ms(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(ms) if ms.is_finite() => format!("{ms:.1}"),
        Some(_) => "lost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use lagometer_units::Time;

    use super::*;

    fn records(round_trips_ms: [u64; 2]) -> Vec<MessageRecord> {
        let record = |ms| MessageRecord {
            returned: Some(Time::from_millis(ms)),
            ..MessageRecord::due(Time::ZERO)
        };
        round_trips_ms.map(record).to_vec()
    }

    fn row() -> Row {
        let (one, other) = (records([50, 100]), records([50, 100]));
        Row {
            network: "loss-5".to_owned(),
            lane: "kcp".to_owned(),
            figures: [ExactFigures::of(&one), ExactFigures::of(&other)],
            messages: message_agreement(&one, &other, TOLERANCE),
            beyond: Vec::new(),
            first: None,
        }
    }

    fn judged(seeds: usize, finding: EquivalenceFinding, invalid: Option<&str>) -> Verdict {
        let judged = Judged {
            invalid: invalid.map(str::to_owned),
            is_too_noisy: false,
            seeds,
            findings: [("kcp".to_owned(), finding)].into(),
        };
        judged.verdict(&row())
    }

    #[test]
    fn a_row_has_all_three_and_its_columns_are_those_of_the_heading() {
        let (exact, real) = (records([50, 100]), records([50, 130]));
        let beside = Beside {
            figures: ExactFigures::of(&real),
            with_sim: all_seeds(&[&exact, &exact], &[&exact, &real]),
            with_kernel: all_seeds(&[&exact], &[&real]),
        };
        let text = line(&cells(&row(), Some(&beside), "equal"));
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        assert_eq!(cells[1..3], ["loss-5", "kcp"]);
        assert_eq!(cells[3..5], ["50.0 / 50.0 / 50.0", "100.0 / 100.0 / 130.0"]);
        assert_eq!(cells[5..8], ["100.00 %", "75.00 %", "50.00 %"]);
        assert_eq!(cells[8..10], ["yes", "equal"]);
        let heading = headings("6.1.1", 1, "20s");
        let columns = |text: &str| text.matches('|').count();
        for line in heading.lines().skip(2) {
            assert_eq!(columns(line), columns(&text), "{line}");
        }
    }

    #[test]
    fn a_lane_that_real_time_does_not_play_has_empty_cells() {
        let cells = cells(&row(), None, "not played");
        assert_eq!(cells[5..7], ["-", "-"]);
        assert!(cells[2].ends_with("/ -"), "{}", cells[2]);
    }

    #[test]
    fn real_time_is_held_to_be_equal_with_enough_seeds_alone_and_never_if_it_is_not_valid() {
        use EquivalenceFinding::{Different, Equivalent, Undecided};
        for (seeds, finding, holds) in [
            (20, Equivalent, true),
            (20, Undecided, false),
            (20, Different, false),
            (1, Undecided, true),
            (1, Equivalent, true),
        ] {
            let verdict = judged(seeds, finding, None);
            assert_eq!(
                verdict.holds, holds,
                "{seeds} {finding:?}: {}",
                verdict.words
            );
            assert_eq!(
                verdict.words == "equal",
                seeds == 20 && finding == Equivalent
            );
        }
        let verdict = judged(20, Equivalent, Some("late"));
        assert!(!verdict.holds && verdict.words.contains("late"));
    }

    #[test]
    fn a_machine_that_is_too_noisy_decides_nothing_whatever_a_lane_did() {
        let found = |noise_ms, seeds| {
            let agreement = Agreement {
                testbeds: ["sim", "emu"].map(str::to_owned),
                margins: Margins::default(),
                seeds,
                messages_of_a_seed: 40,
                noise_ms,
                bearable_noise_ms: 1.0,
                invalid: None,
                lanes: vec![LaneAgreement {
                    lane: "kcp".to_owned(),
                    audited_ms: [None; 2],
                    figures: Vec::new(),
                    overhead: [None; 2],
                    failure: Some("gone".to_owned()),
                }],
            };
            Judged::from_agreement(&agreement, seeds).verdict(&row())
        };
        assert_eq!(found(0.4, 20).words, "NO: differs");
        let verdict = found(1.1, 20);
        assert!(!verdict.holds && verdict.words.contains("noise"));
        assert!(found(1.1, 1).holds, "with few seeds nothing is judged");
    }
}
