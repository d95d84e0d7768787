//! What a document says of itself in words: the experiment, the network, the
//! seeds, the limit its budget sets, and the command that plays it again.
//!
//! The experiment is kept in the document as it was resolved, whatever shape
//! it has; what is not found there is left out, never guessed.

use lagometer_results::{Document, ranking_limit_ms};
use serde_json::Value;

use crate::written;

/// What the document says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// The experiment's name, or the command where it has none.
    pub(crate) experiment: String,
    /// What the experiment plays, in one sentence.
    pub(crate) summary: Option<String>,
    /// The network's name, where there is one.
    pub(crate) network: Option<String>,
    /// `seed 1`, `seeds 1–5`.
    pub(crate) seeds: String,
    /// How the run was made, in a few words each.
    pub(crate) conditions: Vec<String>,
    /// The limit for "delivered within", in milliseconds.
    pub(crate) limit_ms: u32,
    /// The command line that plays the run again; none for what cannot be.
    pub(crate) replay: Option<String>,
}

impl About {
    /// Reads what `document` says of itself.
    pub(crate) fn of(document: &Document) -> Self {
        Self {
            experiment: name_of(&document.experiment).unwrap_or_else(|| {
                match document.command.as_str() {
                    "import" => "imported logs".to_owned(),
                    other => other.to_owned(),
                }
            }),
            summary: text_of(&document.experiment, "summary"),
            network: network_of(&document.experiment),
            seeds: seeds(document),
            conditions: conditions(document),
            limit_ms: ranking_limit_ms(document),
            replay: replay(document),
        }
    }

    /// Experiment and network: `pvp-500 on busy-wifi`.
    pub(crate) fn title(&self) -> String {
        match &self.network {
            Some(network) => format!("{} on {network}", self.experiment),
            None => self.experiment.clone(),
        }
    }

    /// One line: experiment, network, testbed, seeds.
    pub(crate) fn headline(&self) -> String {
        let mut parts = vec![self.title()];
        parts.extend(self.conditions.iter().cloned());
        parts.join(" · ")
    }
}

fn name_of(value: &Value) -> Option<String> {
    match value {
        Value::String(name) => Some(name.clone()),
        Value::Object(fields) => fields
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned),
        _ => None,
    }
    .filter(|name| !name.is_empty())
}

fn text_of(experiment: &Value, key: &str) -> Option<String> {
    experiment
        .get(key)?
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn network_of(experiment: &Value) -> Option<String> {
    ["network", "profile"]
        .iter()
        .find_map(|key| experiment.get(key))
        .and_then(name_of)
}

fn seeds(document: &Document) -> String {
    match document.seeds.as_slice() {
        [] => format!("seed {}", document.seed),
        [only] => format!("seed {only}"),
        [first, .., last] => {
            let consecutive = document
                .seeds
                .windows(2)
                .all(|pair| pair[0].checked_add(1) == Some(pair[1]));
            if consecutive {
                format!("seeds {first}–{last}")
            } else {
                format!("{} seeds from {first}", document.seeds.len())
            }
        }
    }
}

fn conditions(document: &Document) -> Vec<String> {
    let mut conditions = Vec::new();
    if let Some(testbed) = &document.testbed {
        conditions.push(match testbed.as_str() {
            "sim" => "virtual time (sim)".to_owned(),
            "emu" => "real sockets, emulated link (emu)".to_owned(),
            "net" => "real path (net)".to_owned(),
            "kernel" => format!("{} in virtual time (kernel)", kernel_of(document)),
            other => other.to_owned(),
        });
    }
    if document.testbed.is_some() {
        conditions.push(seeds(document));
    }
    if let Some(played) = played_s(document) {
        conditions.push(format!("{} of play", written::play_time(played)));
    }
    if document.partial {
        conditions.push("cut short".to_owned());
    }
    conditions
}

/// The guest's kernel and its tick, as the document has them.
fn kernel_of(document: &Document) -> String {
    let kernel = &document.experiment["kernel"];
    let version = kernel["version"].as_str().unwrap_or_default();
    match kernel["hz"].as_u64() {
        Some(hz) => format!("Linux {version} at {hz} Hz"),
        None => "Linux".to_owned(),
    }
}

/// Seconds of play for each seed, as far as the longest timeline goes.
pub(crate) fn played_s(document: &Document) -> Option<f64> {
    document
        .lanes
        .iter()
        .map(|lane| lane.timeline.step_s * lane.timeline.lost.len() as f64)
        .filter(|seconds| seconds.is_finite() && *seconds > 0.0)
        .reduce(f64::max)
}

fn replay(document: &Document) -> Option<String> {
    let testbed = document.testbed.as_deref()?;
    if document.command != "run" {
        return None;
    }
    let mut words = vec!["lagometer run".to_owned()];
    // Files have names of their own; what they say of themselves finds nothing again.
    let (experiment, network) = match &document.asked {
        Some(asked) => (Some(asked.experiment.clone()), asked.network.clone()),
        None => (
            name_of(&document.experiment),
            network_of(&document.experiment),
        ),
    };
    words.extend(experiment.map(|name| shell_word(&name)));
    match document.asked.as_ref().and_then(|asked| asked.to.as_ref()) {
        Some(to) => words.push(format!("--to {}", shell_word(to))),
        None => words.push(format!("--testbed {}", shell_word(testbed))),
    }
    if let Some(asked) = &document.asked {
        let mode = asked.emu_mode.as_ref();
        words.extend(mode.map(|mode| format!("--emu-mode {}", shell_word(mode))));
        words.extend(asked.ipv6.then(|| "--ipv6".to_owned()));
    }
    // A real path has a name here and none on a command line.
    if let Some(network) = network.filter(|_| testbed != "net") {
        words.push(format!("--network {}", shell_word(&network)));
    }
    if !document.lanes.is_empty() {
        let lanes: Vec<&str> = document
            .lanes
            .iter()
            .map(|lane| lane.lane.as_str())
            .collect();
        words.push(format!("--lanes {}", shell_word(&lanes.join(","))));
    }
    let length = ["for", "duration"]
        .iter()
        .find_map(|key| document.experiment.get(key)?.as_str());
    if let Some(length) = length {
        words.push(format!("--for {}", shell_word(&length.replace(' ', ""))));
    }
    let workload = document
        .experiment
        .get("workload")
        .and_then(Value::as_object);
    let mut workloads = workload.into_iter().flat_map(serde_json::Map::values);
    let tick = workloads.find_map(|workload| workload.get("tick")?.as_str());
    if let Some(tick) = tick {
        words.push(format!("--tick {}", shell_word(&tick.replace(' ', ""))));
    }
    words.push(format!("--seed {}", document.seed));
    words.push(format!("--seeds {}", document.seeds.len().max(1)));
    Some(words.join(" "))
}

/// `text` as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !text.is_empty() && text.chars().all(harmless) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use lagometer_results::{Asked, figures};
    use serde_json::json;

    use super::*;

    fn document(experiment: Value) -> Document {
        Document {
            testbed: Some("sim".to_owned()),
            seed: 3,
            seeds: vec![3],
            experiment,
            lanes: vec![
                figures(&[], &[], None).into_lane("kcp", "kcp"),
                figures(&[], &[], None).into_lane("it's own", "enet"),
            ],
            ..Document::empty("run")
        }
    }

    #[test]
    fn a_run_in_a_guest_names_its_kernel_and_tick() {
        let mut document = document(json!({}));
        document.testbed = Some("kernel".to_owned());
        document.experiment["kernel"] = json!({ "version": "6.1.192", "hz": 1000 });
        let said = conditions(&document).remove(0);
        assert_eq!(said, "Linux 6.1.192 at 1000 Hz in virtual time (kernel)");
    }

    #[test]
    fn the_command_plays_the_same_again() {
        let mut document = document(json!({
            "name": "pvp-500",
            "network": "busy wifi.toml",
            "for": "10 min",
            "workload": { "paced-echo": { "tick": "16 ms" } },
        }));
        assert_eq!(
            About::of(&document).replay.as_deref(),
            Some(
                "lagometer run pvp-500 --testbed sim --network 'busy wifi.toml' \
                 --lanes 'kcp,it'\\''s own' --for 10min --tick 16ms --seed 3 --seeds 1"
            )
        );
        document.seeds = vec![3, 4, 5];
        let about = About::of(&document);
        assert!(
            about
                .replay
                .is_some_and(|replay| replay.ends_with("--seed 3 --seeds 3"))
        );
        assert_eq!(about.seeds, "seeds 3–5");
    }

    #[test]
    fn of_files_the_command_names_the_files() {
        let mut document = document(json!({ "name": "duel", "network": "lan.toml" }));
        let mut replay = |experiment: &str, network: Option<&str>| {
            document.asked = Some(Asked {
                experiment: experiment.to_owned(),
                network: network.map(str::to_owned),
                to: None,
                emu_mode: None,
                ipv6: false,
            });
            About::of(&document).replay.unwrap()
        };
        // Its own network stands beside it, wherever the command is given.
        let own = replay("games/my duel.toml", None);
        assert!(own.starts_with("lagometer run 'games/my duel.toml' --testbed sim --lanes"));
        let other = replay("pvp-500", Some("nets/lan.toml"));
        assert!(other.starts_with("lagometer run pvp-500 --testbed sim --network nets/lan.toml "));
    }

    #[test]
    fn the_manner_of_an_emulated_network_is_in_the_command() {
        let mut document = document(json!({ "name": "duel" }));
        document.testbed = Some("emu".to_owned());
        let mut replay = |emu_mode: Option<&str>, ipv6| {
            document.asked = Some(Asked {
                experiment: "duel".to_owned(),
                network: None,
                to: None,
                emu_mode: emu_mode.map(str::to_owned),
                ipv6,
            });
            About::of(&document).replay.unwrap()
        };
        let proxied = replay(Some("proxy"), false);
        let start = "lagometer run duel --testbed emu --emu-mode proxy --lanes";
        assert!(proxied.starts_with(start), "{proxied}");
        let over_ipv6 = replay(None, true);
        let start = "lagometer run duel --testbed emu --ipv6 --lanes";
        assert!(over_ipv6.starts_with(start), "{over_ipv6}");
    }

    #[test]
    fn over_a_real_path_the_command_names_the_remote_end_and_no_network() {
        let mut document = document(json!({ "name": "duel", "network": "the path to ::1" }));
        document.testbed = Some("net".to_owned());
        let replay = |document: &Document| About::of(document).replay.unwrap();
        assert!(replay(&document).starts_with("lagometer run duel --testbed net --lanes"));
        document.asked = Some(Asked {
            experiment: "duel".to_owned(),
            network: None,
            to: Some("192.0.2.7:7700".to_owned()),
            emu_mode: None,
            ipv6: false,
        });
        assert!(replay(&document).starts_with("lagometer run duel --to 192.0.2.7:7700 --lanes"));
    }

    #[test]
    fn what_an_experiment_does_not_say_is_not_made_up() {
        let mut document = document(json!([1, 2]));
        document.command = "import".to_owned();
        document.testbed = None;
        let about = About::of(&document);
        assert_eq!(about.title(), "imported logs");
        assert_eq!(
            (about.network, about.summary, about.replay),
            (None, None, None)
        );
    }
}
