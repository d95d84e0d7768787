//! Two lanes of TCP, each beside a download in a queue that marks: one asks for marks.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What became of a lane's packets down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fates {
    pub(crate) marked: u64,
    pub(crate) dropped: u64,
}

/// Writes the experiment and its network into `folder`.
pub(crate) fn experiment(folder: &Path) -> PathBuf {
    let network = "summary = \"a queue that marks\"\n\
                   [both]\ndelay = \"20 ms\"\nrate = \"2 Mbit/s\"\n\
                   queue = { discipline = \"codel\", ecn = true }\n\
                   [[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n";
    fs::write(folder.join("marks.toml"), network).unwrap();
    // Acknowledgements alone, which nobody marks, do not go down before the data.
    let lane = |name: &str, ecn: bool| {
        format!(
            "[[lane]]\nname = \"{name}\"\ntransport = \"tcp-cubic\"\n\
             settings = {{ quick_ack = false, ecn = {ecn} }}\n"
        )
    };
    let text = format!(
        "name = \"marks\"\nsummary = \"t\"\nnetwork = \"marks.toml\"\nfor = \"3 s\"\nlanes = []\n\
         {}{}[workload.paced-echo]\nsize = \"1000 B\"\ninterval = \"10 ms\"\n",
        lane("deaf", false),
        lane("asks", true)
    );
    let path = folder.join("experiment.toml");
    fs::write(&path, text).unwrap();
    path
}

/// What became of the packets of both lanes, each on a link of its own.
pub(crate) fn of_lanes(document: &Value) -> [Fates; 2] {
    [("deaf", 0), ("asks", 1)].map(|(name, link)| {
        let senders = document["bottlenecks"][link]["down"]["senders"].as_array();
        let mut senders = senders
            .unwrap_or_else(|| panic!("no links: {document}"))
            .iter();
        let of_lane = senders.find(|sender| sender["name"] == name).unwrap();
        Fates {
            marked: of_lane["marked"].as_u64().unwrap(),
            dropped: of_lane["dropped"].as_u64().unwrap(),
        }
    })
}
