//! The pages of the data files that are built in: networks, experiments, and
//! scenarios of worlds, each as it is written.

use std::fmt::Write as _;

use lagometer_lab::Experiment;
use lagometer_world::Scenario;

use super::markdown::{cell, fenced};

/// Every network.
pub(super) fn networks() -> String {
    let mut text = "# Networks\n\n".to_owned();
    text.push_str(
        "The networks that are built in, with the sources of their figures. Each is played by its \
         name; a file of your own by its path:\n\n",
    );
    text.push_str(&fenced(
        "sh",
        "lagometer run --network satellite-leo\nlagometer run --network my-network.toml",
    ));
    for name in lagometer_link::catalogue::names() {
        let Some(source) = lagometer_link::catalogue::text(name) else {
            continue;
        };
        let summary = lagometer_link::catalogue::named(name);
        let summary = summary.as_ref().map_or("", |profile| profile.summary());
        section(&mut text, name, summary, source);
    }
    text
}

/// Every experiment, and every scenario of a world.
pub(super) fn experiments() -> String {
    let mut text = "# Experiments\n\n".to_owned();
    text.push_str(
        "The experiments that are built in. Copy one, change what you like, and play it by its \
         path:\n\n",
    );
    text.push_str(&fenced(
        "sh",
        "lagometer run pvp-50\nlagometer run my-experiment.toml",
    ));
    for name in lagometer_lab::catalogue::names() {
        let Some(source) = lagometer_lab::catalogue::text(name) else {
            continue;
        };
        let summary =
            Experiment::parse(name, source).map_or_else(|_| String::new(), |it| it.summary);
        section(&mut text, name, &summary, source);
    }
    text.push_str("\n# Scenarios of worlds\n\nWhat `lagometer world` plays.\n");
    for (name, source) in lagometer_world::BUILT_IN {
        let summary = Scenario::parse(name, source).map_or_else(|_| String::new(), |it| it.summary);
        section(&mut text, name, &summary, source);
    }
    text
}

fn section(text: &mut String, name: &str, summary: &str, source: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n## {name}\n\n{}.\n\n{}",
        cell(summary),
        fenced("toml", source)
    );
}
