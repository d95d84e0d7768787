//! Experiments and networks that a user names: built in, or in a file.

use std::fs;
use std::path::{Path, PathBuf};

use lagometer_lab::{Experiment, Resolved, catalogue, resolve};
use lagometer_link::Profile;
use lagometer_results::Asked;
use lagometer_testbed::Testbed;
use lagometer_transport::PresetKind;
use lagometer_units::{MOST_DATA, Span, read_file, suggest};

use super::over_net;
use crate::cli::EMU_MODE_RELAY;
use crate::failure::{Failure, read};

/// What a user asks to be played.
pub(crate) struct Ask<'a> {
    /// An experiment's name or file.
    pub(crate) experiment: &'a str,
    /// Another network than the experiment's.
    pub(crate) network: Option<&'a str>,
    /// Another duration.
    pub(crate) duration: Option<Span>,
    /// A game's tick.
    pub(crate) tick: Option<Span>,
    /// Another seed.
    pub(crate) seed: Option<u64>,
    /// Only these lanes; all of the experiment's where empty.
    pub(crate) lanes: &'a [String],
    /// With these presets of each; as the experiment has it where empty, but where
    /// time is real with its first alone.
    pub(crate) presets: &'a [PresetKind],
    /// Where it is to be played.
    pub(crate) testbed: Testbed,
    /// The remote end of a real path, where one was named.
    pub(crate) to: Option<&'a str>,
}

impl Ask<'_> {
    /// What was asked for, if any of it is a file, another machine or another manner than
    /// the document says elsewhere.
    pub(crate) fn asked(&self, ipv6: bool) -> Option<Asked> {
        let is_file = |asked: &str, is_built_in: bool| !is_built_in && looks_like_a_file(asked);
        // A real path is called something, and is nothing that can be named.
        let network = self.network.filter(|_| self.testbed != Testbed::Net);
        let emu_mode = (self.testbed == Testbed::Relay).then(|| EMU_MODE_RELAY.to_owned());
        let is_other = self.to.is_some()
            || emu_mode.is_some()
            || ipv6
            || is_file(self.experiment, catalogue::text(self.experiment).is_some())
            || network.is_some_and(|asked| {
                is_file(asked, lagometer_link::catalogue::named(asked).is_some())
            });
        is_other.then(|| Asked {
            experiment: self.experiment.to_owned(),
            network: network.map(str::to_owned),
            to: self.to.map(str::to_owned),
            emu_mode,
            ipv6,
        })
    }
}

/// What [`resolve_in_silence`] finds; says which lanes are left out.
pub(crate) fn resolved(ask: &Ask<'_>) -> Result<Resolved, Failure> {
    let resolved = resolve_in_silence(ask)?;
    note_left_out(&resolved);
    Ok(resolved)
}

/// Says which lanes are left out, and why.
pub(crate) fn note_left_out(resolved: &Resolved) {
    for lane in &resolved.unrunnable {
        note!("lagometer: lane `{}` is left out: {}", lane.name, lane.why);
    }
}

/// Finds the experiment and its network and applies what was asked beside.
pub(crate) fn resolve_in_silence(ask: &Ask<'_>) -> Result<Resolved, Failure> {
    let Found {
        mut experiment,
        folder,
        origin,
        text,
    } = find_text(ask.experiment)?;
    if let Some(network) = ask.network {
        network.clone_into(&mut experiment.network);
    }
    if let Some(duration) = ask.duration {
        experiment.duration = duration;
    }
    if let Some(seed) = ask.seed {
        experiment.seed = seed;
    }
    if !ask.lanes.is_empty() {
        experiment.keep_lanes(ask.lanes);
    }
    if !ask.presets.is_empty() {
        experiment.presets = ask.presets.to_vec();
    } else if ask.testbed != Testbed::Sim {
        experiment.presets.truncate(1);
    }
    if let Some(tick) = ask.tick {
        experiment.workload.set_tick(tick);
    }
    experiment
        .check()
        .map_err(|(key, message)| Failure::Input(format!("{key}: {message}")))?;
    // A network named on the command line is found from here, one named in an
    // experiment's file from that file's folder.
    let folder = folder.filter(|_| ask.network.is_none());
    let profile = if ask.testbed == Testbed::Net {
        over_net::unknown_path()?
    } else {
        find_network(&experiment.network, folder.as_deref())?
    };
    let network = experiment.network.clone();
    let asked = experiment.clone();
    resolve(experiment, network, profile, ask.testbed).map_err(|why| {
        // Lanes of the command line are in no file.
        let is_in_text = ask.lanes.is_empty() || !why.is_of_a_lane();
        let bad = is_in_text.then(|| why.in_text(&asked, &origin, &text));
        bad.flatten()
            .map_or_else(|| Failure::input(why), Failure::input)
    })
}

/// An experiment and where it was found.
struct Found {
    experiment: Experiment,
    /// Of its file, if it is no built-in one.
    folder: Option<PathBuf>,
    /// What its text is called, and the text.
    origin: String,
    text: String,
}

/// A built-in experiment, or a file and its folder.
pub(crate) fn find_experiment(asked: &str) -> Result<(Experiment, Option<PathBuf>), Failure> {
    find_text(asked).map(|found| (found.experiment, found.folder))
}

fn find_text(asked: &str) -> Result<Found, Failure> {
    if let Some(text) = catalogue::text(asked) {
        let origin = format!("experiments/{asked}.toml");
        return Ok(Found {
            experiment: Experiment::parse(&origin, text).map_err(Failure::input)?,
            folder: None,
            origin,
            text: text.to_owned(),
        });
    }
    if !looks_like_a_file(asked) {
        return Err(Failure::Input(format!(
            "no experiment is called `{asked}`; {}; or name a .toml file",
            suggest(asked, &catalogue::names())
        )));
    }
    let path = Path::new(asked);
    let text = read(path)?;
    let mut experiment = Experiment::parse(asked, &text).map_err(Failure::input)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut read_traffic = |name: &str| {
        let file = folder.join(name);
        // A pipe would keep everybody waiting for whoever writes into it.
        let is_other = fs::metadata(&file).is_ok_and(|about| !about.is_file());
        if is_other {
            return Err(format!(
                "{name} is no regular file: copy what it holds into one"
            ));
        }
        read_file(&file, MOST_DATA).map_err(|why| format!("{name} cannot be read: {why}"))
    };
    experiment
        .load_traffic(asked, &text, &mut read_traffic)
        .map_err(Failure::input)?;
    Ok(Found {
        experiment,
        folder: path.parent().map(Path::to_owned),
        origin: asked.to_owned(),
        text,
    })
}

/// A built-in network, or a file, relative to `folder` if there is one.
pub(crate) fn find_network(asked: &str, folder: Option<&Path>) -> Result<Profile, Failure> {
    if let Some(profile) = lagometer_link::catalogue::named(asked) {
        return Ok(profile);
    }
    if !looks_like_a_file(asked) {
        return Err(Failure::Input(format!(
            "no network is called `{asked}`; {}; or name a .toml file",
            suggest(
                asked,
                &lagometer_link::catalogue::names().collect::<Vec<_>>()
            )
        )));
    }
    let path = folder.map_or_else(|| PathBuf::from(asked), |folder| folder.join(asked));
    Profile::load(&path).map_err(Failure::input)
}

/// A network as [`find_network`] finds it, for `what`, where there is no other
/// traffic and a queue is first in, first out.
pub(crate) fn find_plain_network(asked: &str, what: &str) -> Result<Profile, Failure> {
    let profile = find_network(asked, None)?;
    if profile.cross().is_empty() && !profile.has_managed_queue() {
        return Ok(profile);
    }
    Err(Failure::Input(format!(
        "the network `{asked}` has other traffic or a queue with a discipline, which {what} does \
         not play: name another, or use `lagometer run`"
    )))
}

fn looks_like_a_file(asked: &str) -> bool {
    Path::new(asked).extension().is_some() || asked.contains('/')
}
