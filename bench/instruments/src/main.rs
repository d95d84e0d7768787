//! Lagometer's instruments against what else there is and against the raw
//! system calls that bound them.
//!
//! Everything is measured in one run and in turn, so that what the machine
//! does to one it does to all; medians are compared, and the spread is shown.
//!
//! ```text
//! cargo build --release -p lagometer
//! cargo run --release -p lagometer-instruments-bench -- --rows echo --repetitions 5
//! ```
//!
//! The peers come from Debian: `apt-get install qperf sockperf iperf3
//! libasio-dev g++ util-linux`; KCP's reference comes with a crate. A row is added
//! in [`rows`].

mod command;
mod contest;
mod peers;
mod raw;
mod rows;
mod shown;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::command::Placement;

/// What is asked for.
#[derive(Debug, Parser)]
#[command(about, max_term_width = 100)]
struct Arguments {
    /// Only rows whose name starts with one of these, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    rows: Vec<String>,
    /// How often each is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: u32,
    /// How long each measures, in seconds
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// The binary to measure; beside this program by default
    #[arg(long, value_name = "PATH")]
    lagometer: Option<PathBuf>,
    /// List the rows and leave
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let bench = command::Bench {
        lagometer: arguments.lagometer.clone().unwrap_or_else(beside),
        seconds: arguments.seconds,
    };
    let rows: Vec<contest::Row> = rows::all()
        .into_iter()
        .filter(|row| {
            let named = |name: &String| row.name.starts_with(name.as_str());
            arguments.rows.is_empty() || arguments.rows.iter().any(named)
        })
        .collect();
    if arguments.list {
        for row in &rows {
            println!("{}", row.name);
        }
        return ExitCode::SUCCESS;
    }
    println!(
        "{}",
        shown::heading(arguments.repetitions, arguments.seconds)
    );
    let mut reached = true;
    for row in &rows {
        let result = contest::hold(row, &bench, arguments.repetitions);
        reached &= result.is_reached();
        println!("{}", shown::lines(row, &result));
    }
    ExitCode::from(u8::from(!reached))
}

/// The binary that was built with this program.
fn beside() -> PathBuf {
    std::env::current_exe().map_or_else(
        |_| PathBuf::from("lagometer"),
        |path| path.with_file_name("lagometer"),
    )
}

/// The placements that are compared.
const PLACEMENTS: [(&str, Placement); 2] = [("same", Placement::Same), ("cross", Placement::Cross)];
