//! `lagometer agree --testbed kernel`: the same experiment in `sim` and on a real
//! kernel in virtual time, message by message, over one network or several.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_guest::Kernel;
use lagometer_lab::{LaneRun, RunOptions, SeedRun, play};
use lagometer_stats::{MessageAgreement, MessageRecord, message_agreement};
use lagometer_testbed::Testbed;

use super::agree::ask;
use super::agree_packets;
use super::in_guest;
use super::in_guests::{self, Errand};
use super::named::resolved;
use crate::cli::AgreeArguments;
use crate::failure::Failure;
use crate::output::print;

/// By how much the round trips of a message may differ.
const TOLERANCE: Duration = Duration::from_millis(1);

/// The share of messages that must agree.
const NEEDED: f64 = 0.999;

/// What was found of a lane over one network.
struct Line {
    lane: String,
    found: MessageAgreement,
    /// Where its packets part, if it does not agree.
    parting: Option<String>,
}

/// Plays both over each network and prints a table; whether all lanes agree.
pub(super) fn agree(
    arguments: &AgreeArguments,
    networks: &[Option<&str>],
    stop: &AtomicBool,
) -> Result<bool, Failure> {
    let kernel = in_guest::kernel(&arguments.guest)?;
    let mut holds = true;
    print(&format!(
        "Messages that agree within {} ms, `sim` and Linux {}:\n",
        TOLERANCE.as_millis(),
        kernel.record().version
    ))?;
    for &network in networks {
        let (name, lines) = over(arguments, network, &kernel, stop)?;
        holds &= lines.iter().all(|line| line.found.share() >= NEEDED);
        print(&table(&name, &lines))?;
    }
    Ok(holds)
}

/// Plays both over one network.
fn over(
    arguments: &AgreeArguments,
    network: Option<&str>,
    kernel: &Kernel,
    stop: &AtomicBool,
) -> Result<(String, Vec<Line>), Failure> {
    let in_kernel = ask(arguments, network, Testbed::Kernel);
    let sim = resolved(&ask(arguments, network, Testbed::Sim))?;
    let sockets = resolved(&in_kernel)?;
    let options = RunOptions {
        seeds: vec![sim.plan.seed],
        threads: 1,
    };
    let virtual_time = play(&sim, &options, &|_| {}, stop);
    let errand = Errand {
        ask: &in_kernel,
        ipv6: false,
        is_logged: true,
        real_limit: arguments.guest.real_limit.duration(),
    };
    let found = in_guests::play(&errand, kernel, &options.seeds, 1, &|_| {}, stop)?;
    let names = |lanes: &[lagometer_lab::RunnableLane]| -> Vec<String> {
        lanes.iter().map(|lane| lane.name.clone()).collect()
    };
    let one = records(&names(&sim.lanes), &virtual_time)?;
    let other = records(&names(&sockets.lanes), &found.seeds)?;
    let mut lines = Vec::new();
    for (index, lane) in sim.lanes.iter().enumerate() {
        // Lanes that only one of them can play are not held against anything.
        let Some((one, other)) = one.get(&lane.name).zip(other.get(&lane.name)) else {
            continue;
        };
        let agreement = message_agreement(one, other, TOLERANCE);
        let is_of_kernel = |other: &lagometer_lab::RunnableLane| other.name == lane.name;
        let kernels = sockets.lanes.iter().position(is_of_kernel);
        let parting = agreement.first.zip(kernels).and_then(|(_, kernels)| {
            let one = agree_packets::of_sim(&sim, index, options.seeds[0]);
            let other = agree_packets::of_kernel(&found.packets, kernels)?;
            agree_packets::parting(&one, &other)
        });
        lines.push(Line {
            lane: lane.name.clone(),
            found: agreement,
            parting,
        });
    }
    Ok((sim.network.clone(), lines))
}

/// Every lane's messages, by its name.
fn records(
    names: &[String],
    seeds: &[SeedRun],
) -> Result<BTreeMap<String, Vec<MessageRecord>>, Failure> {
    let lanes = seeds.iter().flat_map(|seed| &seed.lanes);
    let records = names.iter().zip(lanes).map(|(name, run)| match run {
        LaneRun::Played(outcome) => Ok((name.clone(), outcome.records.clone())),
        LaneRun::Cut(..) => Err(Failure::Input(
            "stopped before both were played: nothing can be said".to_owned(),
        )),
        LaneRun::Panicked(why) | LaneRun::Unopened(why) => {
            Err(Failure::Environment(format!("{name}: {why}")))
        }
    });
    records.collect()
}

fn table(network: &str, lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let (lane, found) = (&line.lane, &line.found);
        let missed = found.messages - found.agreeing;
        let share = 100.0 * found.share();
        let _ = write!(
            text,
            "{network:18} {lane:14} {share:7.2} % of {:5}",
            found.messages
        );
        if let Some(first) = found.first {
            let [sim, kernel] = first.round_trips.map(in_words);
            let _ = write!(
                text,
                "  {missed} not, first {} at {:.3} s: {sim}, kernel {kernel}",
                first.number,
                first.intended.as_nanos() as f64 / 1e9,
            );
        }
        text.push('\n');
        text += line.parting.as_deref().unwrap_or_default();
    }
    text
}

fn in_words(round_trip: Option<Duration>) -> String {
    round_trip.map_or_else(
        || "lost".to_owned(),
        |round_trip| format!("{:.3} ms", round_trip.as_secs_f64() * 1e3),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lagometer_units::Time;

    #[test]
    fn a_lane_that_differs_is_told_with_its_first_message() {
        let record = |ms| MessageRecord {
            returned: Some(Time::from_millis(ms)),
            ..MessageRecord::due(Time::ZERO)
        };
        let found = message_agreement(&[record(50)], &[record(60)], TOLERANCE);
        let line = Line {
            lane: "kcp".to_owned(),
            found,
            parting: Some("the packets\n".to_owned()),
        };
        let text = table("loss-5", &[line]);
        assert!(text.contains("0.00 % of     1"), "{text}");
        let first = "1 not, first 0 at 0.000 s: 50.000 ms, kernel 60.000 ms";
        assert!(text.contains(first), "{text}");
        assert!(text.ends_with("\nthe packets\n"), "{text}");
    }
}
