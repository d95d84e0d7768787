//! The experiments that are built in: every file of `experiments/`.

/// The names of all built-in experiments, in order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    EXPERIMENTS.iter().map(|&(name, _)| name).collect()
}

/// The TOML text of a built-in experiment.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    EXPERIMENTS
        .iter()
        .find_map(|&(known, text)| (known == name).then_some(text))
}

/// Builds the list from the names of the files.
macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*]
    };
}

const EXPERIMENTS: &[(&str, &str)] = experiments![
    "2015-a1-udt-dgram",
    "2015-a2-udt-stream-200",
    "2015-a3-udt-stream-kcp",
    "2015-b-enet-kcp",
    "2015-c1-udt-epoll",
    "2015-c2-udt-50-kcp",
    "2015-d-kcp-enet-udt",
    "2015-e-kcp-enet-udt",
    "battle-royale",
    "collapse",
    "fairness-bbr",
    "fairness-cubic",
    "fairness-self",
    "fighter",
    "forward-error-correction",
    "kcp-test-cpp",
    "mmo",
    "moba",
    "overload",
    "pvp-50",
    "pvp-500",
    "racing",
    "shooter",
    "turn-based",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

    #[test]
    fn every_built_in_experiment_is_read_and_bears_its_files_name() {
        for (name, text) in EXPERIMENTS {
            let experiment = Experiment::parse(&format!("experiments/{name}.toml"), text)
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(experiment.name, *name);
            assert!(
                lagometer_link::catalogue::named(&experiment.network).is_some(),
                "{name}: no network is called {}",
                experiment.network
            );
        }
    }
}
