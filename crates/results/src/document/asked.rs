//! What whoever made a run named, where the document does not say it otherwise.

use serde::{Deserialize, Serialize};

/// What a command line named, where that was a file or another machine: an experiment keeps
/// its own name in the document, and the network of an experiment's file stands beside that
/// file. Paths are as they were given, whole ones too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Asked {
    /// The experiment: a built-in one's name, or a file.
    pub experiment: String,
    /// The network in place of the experiment's, if there was one: a name, or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The remote end, for a run over a real path: its address and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What the lanes of the testbed `emu` ran between (`--emu-mode`), if it was not hosts
    /// in namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emu_mode: Option<String>,
    /// Whether lanes used IPv6 (`--ipv6`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
}
