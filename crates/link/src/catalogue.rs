//! The networks that come with the project, by name.

use crate::profile::Profile;

macro_rules! networks {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../networks/", $name, ".toml")))),*]
    };
}

/// Name and text of each, the calmest first.
const NETWORKS: &[(&str, &str)] = networks![
    "perfect",
    "lan",
    "fiber",
    "cable",
    "home-wifi",
    "busy-wifi",
    "adsl-bufferbloat",
    "shared-10",
    "home-film",
    "home-film-fq",
    "home-upload",
    "3g",
    "4g-moving",
    "5g",
    "satellite-leo",
    "intercontinental",
    "2015-a",
    "2015-b",
    "2015-c",
    "2015-d",
    "2015-e",
    "loss-1",
    "loss-5",
    "loss-20",
    "loss-bursty",
    "outage-one-way",
    "mtu-1280",
    "kcp-test-cpp",
];

/// The names of all networks that come with the project.
pub fn names() -> impl Iterator<Item = &'static str> {
    NETWORKS.iter().map(|(name, _)| *name)
}

/// The profile of the network called `name`, if there is one.
#[must_use]
pub fn named(name: &str) -> Option<Profile> {
    let origin = format!("networks/{name}.toml");
    // A test reads them all, so what is in the list can be read.
    Profile::from_text(&origin, text(name)?).ok()
}

/// The TOML text of the network called `name`, with the sources of its
/// numbers, if there is one.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    NETWORKS
        .iter()
        .find_map(|(other, text)| (*other == name).then_some(*text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn a_network_whose_events_come_at_the_same_instants_under_every_seed_says_so() {
        for (name, text) in NETWORKS {
            let is_timed = text
                .lines()
                .any(|line| line.starts_with("at = ") || line.starts_with("handover = "));
            let says_so = text
                .lines()
                .any(|line| line.starts_with('#') && line.contains("under every seed"));
            assert_eq!(is_timed, says_so, "{name}");
        }
    }

    #[test]
    fn every_network_can_be_read_and_says_where_its_numbers_are_from() {
        for (name, text) in NETWORKS {
            if let Err(error) = Profile::from_text(name, text) {
                panic!("{error}");
            }
            assert!(named(name).is_some());
            let comments = text.lines().filter(|line| line.starts_with('#')).count();
            assert!(
                comments >= 2,
                "{name} does not say where its numbers are from"
            );
        }
        assert!(named("no such network").is_none());
    }

    #[test]
    fn every_file_of_the_folder_is_in_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("networks");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "toml"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let listed: BTreeSet<String> = names().map(str::to_owned).collect();
        assert_eq!(files, listed);
        assert_eq!(listed.len(), NETWORKS.len());
    }
}
