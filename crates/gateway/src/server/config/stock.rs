//! The settings files that come with channeld, under their names: who starts
//! the gateway with channeld's command line need not bring its folder along.

use std::path::Path;

/// Each file's name and its text.
const FILES: &[(&str, &str)] = &[
    (
        "channel_settings_hifi.json",
        include_str!("stock/channel_settings_hifi.json"),
    ),
    (
        "channel_settings_lofi.json",
        include_str!("stock/channel_settings_lofi.json"),
    ),
    (
        "channel_settings_tps.json",
        include_str!("stock/channel_settings_tps.json"),
    ),
    (
        "channel_settings_ue.json",
        include_str!("stock/channel_settings_ue.json"),
    ),
    (
        "client_authoratative_fsm.json",
        include_str!("stock/client_authoratative_fsm.json"),
    ),
    (
        "client_non_authoratative_fsm.json",
        include_str!("stock/client_non_authoratative_fsm.json"),
    ),
    (
        "server_authoratative_fsm.json",
        include_str!("stock/server_authoratative_fsm.json"),
    ),
    (
        "spatial_static_2x2.json",
        include_str!("stock/spatial_static_2x2.json"),
    ),
    (
        "spatial_static_4x1.json",
        include_str!("stock/spatial_static_4x1.json"),
    ),
    (
        "spatial_static_benchmark.json",
        include_str!("stock/spatial_static_benchmark.json"),
    ),
    (
        "spatial_static_tanks_big.json",
        include_str!("stock/spatial_static_tanks_big.json"),
    ),
    (
        "spatial_static_tanks_small.json",
        include_str!("stock/spatial_static_tanks_small.json"),
    ),
];

/// The text of the file of that name, whatever the folder.
pub(super) fn file(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    FILES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{ChannelTypes, Fsm, Grid};

    #[test]
    fn all_of_them_can_be_read() {
        for (name, text) in FILES {
            let problem = if name.starts_with("channel_settings") {
                ChannelTypes::from_json(text).err()
            } else if name.starts_with("spatial") {
                Grid::from_json(text).err()
            } else {
                Fsm::from_json(text).err()
            };
            assert_eq!(problem, None, "{name}");
        }
    }

    #[test]
    fn state_machines_are_what_holds_where_nothing_is_said() {
        let text = |name: &str| file(Path::new(name)).unwrap();
        assert_eq!(
            Fsm::from_json(text("config/server_authoratative_fsm.json")),
            Ok(Fsm::server())
        );
        assert_eq!(
            Fsm::from_json(text("client_non_authoratative_fsm.json")),
            Ok(Fsm::client())
        );
        assert_eq!(
            Fsm::from_json(text("client_authoratative_fsm.json")),
            Ok(Fsm::authoritative_client())
        );
        assert_eq!(file(Path::new("mine.json")), None);
    }
}
