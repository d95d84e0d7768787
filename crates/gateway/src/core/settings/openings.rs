//! What a game's own settings files leave open to its clients, in words for
//! whoever starts the gateway.

use lagometer_protocol::messages::channeldpb::{ChannelType, MessageType};

use super::channel_types::{AclLevel, ChannelTypes, channel_type_name};
use super::fsm::Fsm;

const GLOBAL: i32 = ChannelType::Global as i32;

/// One line for each thing that a client may do to others under these settings
/// and could not where nothing is said: the default rights leave nothing open.
#[must_use]
pub fn openings(clients: &Fsm, types: &ChannelTypes) -> Vec<String> {
    let may = |msg_type: MessageType| clients.allows_somewhere(msg_type as u32);
    let mut lines = Vec::new();
    for (number, settings) in types.all() {
        let which = number.map_or_else(
            || "any other channel type".to_owned(),
            |number| format!("channel type {}", channel_type_name(number)),
        );
        if settings.acl.unsub == AclLevel::Anyone && may(MessageType::UnsubFromChannel) {
            let harm = match number {
                Some(GLOBAL) => "can unseat the game server",
                _ => "can cut others off from its channels, their owners too",
            };
            lines.push(format!(
                "{which} lets any connection unsubscribe others: a client {harm} \
                 (ACLSettings.Unsub 4 would let servers only)"
            ));
        }
        if settings.acl.remove == AclLevel::Anyone && may(MessageType::RemoveChannel) {
            lines.push(format!(
                "{which} lets any connection remove its channels: a client can end \
                 what others play in (ACLSettings.Remove 4 would let servers only)"
            ));
        }
    }
    if may(MessageType::SubToChannel) && may(MessageType::ChannelDataUpdate) {
        lines.push(
            "the clients' state machine lets clients subscribe with write access and update: a \
             client can change any channel's data, the game server's too"
                .to_owned(),
        );
    }
    if may(MessageType::CreateEntityChannel) {
        lines.push(
            "the clients' state machine lets clients make entity channels: a client can take the \
             number of an entity before the game server does"
                .to_owned(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_rights_leave_nothing_open() {
        assert_eq!(
            openings(&Fsm::client(), &ChannelTypes::default()),
            [""; 0].map(String::from)
        );
    }

    #[test]
    fn channelds_own_rights_are_said_to_leave_the_game_servers_seat_open() {
        let lines = openings(&Fsm::client(), &ChannelTypes::open());
        assert!(
            lines[0].starts_with(
                "channel type GLOBAL lets any connection unsubscribe others: a client can unseat the \
                 game server"
            ),
            "{lines:?}"
        );
        assert_eq!(lines.len(), 4, "types 1, 3, 4 and 5: {lines:?}");
        let more = openings(&Fsm::authoritative_client(), &ChannelTypes::open());
        assert_eq!(more.len(), 6, "{more:?}");
        assert!(more.iter().all(|line| line.lines().count() == 1));
        // A machine that lets nobody unsubscribe leaves less open.
        let mute = Fsm::from_json(
            r#"{ "States": [ { "Name": "A", "MsgTypeWhitelist": "1" },
                { "Name": "B", "MsgTypeWhitelist": "100-200" } ] }"#,
        )
        .unwrap();
        assert!(openings(&mute, &ChannelTypes::open()).is_empty());
    }
}
