//! What a test wants of its gateway, as files and flags that both understand.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::gateway::{CHANNELD, own_binary};

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The grid, as the file for `-scc` holds it.
    pub(crate) spatial: Option<&'static str>,
    /// Announce snappy.
    pub(crate) snappy: bool,
    /// Keep what a server owned for when it comes back.
    pub(crate) recovery: bool,
    /// Bits of a connection id.
    pub(crate) conn_id_bits: u32,
    /// How players connect: `tcp`, `kcp` or `ws`.
    pub(crate) transport: &'static str,
    /// What clients may send once they are let in.
    pub(crate) client_may_send: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            spatial: None,
            snappy: false,
            recovery: false,
            conn_id_bits: 31,
            transport: "tcp",
            client_may_send: "3-8, 15-65535",
        }
    }
}

/// Channels of every type at 20 ms, as `channel_settings_hifi.json` has them,
/// but with data types for those that a test needs.
const CHANNELS: &str = r#"{
  "1": {"TickIntervalMs": 20, "DefaultFanOutIntervalMs": 20, "SendOwnerLostAndRecovered": true,
        "ACLSettings": {"Sub": 3, "Unsub": 3, "Remove": 0}},
  "2": {"TickIntervalMs": 20, "DefaultFanOutIntervalMs": 20, "RemoveChannelAfterOwnerRemoved": true,
        "SendOwnerLostAndRecovered": true, "ACLSettings": {"Sub": 2, "Unsub": 2, "Remove": 2}},
  "3": {"TickIntervalMs": 20, "DefaultFanOutIntervalMs": 20, "RemoveChannelAfterOwnerRemoved": true,
        "SendOwnerLostAndRecovered": true, "ACLSettings": {"Sub": 3, "Unsub": 3, "Remove": 2}},
  "4": {"TickIntervalMs": 20, "DefaultFanOutIntervalMs": 20, "SendOwnerLostAndRecovered": true,
        "ACLSettings": {"Sub": 3, "Unsub": 3, "Remove": 2}},
  "5": {"TickIntervalMs": 20, "DefaultFanOutIntervalMs": 20, "RemoveChannelAfterOwnerRemoved": true,
        "ACLSettings": {"Sub": 3, "Unsub": 3, "Remove": 2}, "DataMsgFullName": "tpspb.EntityChannelData"},
  "100": {"TickIntervalMs": 20, "DefaultFanOutIntervalMs": 20, "SendOwnerLostAndRecovered": true,
        "ACLSettings": {"Sub": 3, "Unsub": 3, "Remove": 3}}
}"#;

impl Settings {
    /// Whether players connect over TCP.
    pub(crate) fn over_tcp(&self) -> bool {
        self.transport == "tcp"
    }

    /// Puts the files both read into `folder`.
    pub(crate) fn write_files(&self, folder: &Path) {
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("channels.json", CHANNELS);
        write("servers.json", &fsm("2-65535"));
        write("clients.json", &fsm(self.client_may_send));
        if let Some(spatial) = self.spatial {
            write("spatial.json", spatial);
        }
    }

    /// The original with these settings.
    pub(crate) fn channeld(&self, servers: SocketAddr, clients: SocketAddr) -> Command {
        let mut command = Command::new(std::env::var_os(CHANNELD).unwrap());
        command.args([
            "-dev",
            "-loglevel=0",
            "-cwm=false",
            "-sfsm=servers.json",
            "-cfsm=clients.json",
            "-chs=channels.json",
            &format!("-sa={servers}"),
            &format!("-ca={clients}"),
            &format!("-cn={}", self.transport),
            &format!("-mcb={}", self.conn_id_bits),
            &format!("-ct={}", u8::from(self.snappy)),
            &format!("-scr={}", self.recovery),
        ]);
        if self.spatial.is_some() {
            command.arg("-scc=spatial.json");
        }
        command
    }

    /// This project's gateway with the same.
    pub(crate) fn ours(
        &self,
        name: &str,
        folder: &Path,
        servers: SocketAddr,
        clients: SocketAddr,
        metrics: SocketAddr,
    ) -> Command {
        let grid = match self.spatial {
            Some(_) => "grid = \"spatial.json\"",
            None => "",
        };
        let config = format!(
            r#"
dev = true

[servers]
listen = ["tcp://{servers}"]
state_machine = "servers.json"
recovery = {recovery}

[clients]
listen = ["{transport}://{clients}"]
state_machine = "clients.json"
wait_for_owner = false
compression = "{compression}"

[web]
listen = "{metrics}"

[channels]
settings = "channels.json"
connection_id_bits = {conn_id_bits}
{grid}
"#,
            recovery = self.recovery,
            transport = self.transport,
            compression = if self.snappy { "snappy" } else { "none" },
            conn_id_bits = self.conn_id_bits,
        );
        let file = format!("{name}.toml");
        fs::write(folder.join(&file), config).unwrap();
        let mut command = own_binary();
        command.args(["gateway", "--config", &file]);
        command
    }
}

fn fsm(open: &str) -> String {
    format!(
        r#"{{"States": [{{"Name": "INIT", "MsgTypeWhitelist": "1"}},
                      {{"Name": "OPEN", "MsgTypeWhitelist": "{open}"}}],
            "Transitions": []}}"#
    )
}
