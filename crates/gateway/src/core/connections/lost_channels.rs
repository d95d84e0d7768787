//! What becomes of connections where something on its way from the channels was left out,
//! or the channels themselves are lost: both happen only where they are on another node.

use crate::core::burst_queue::BurstQueue;
use crate::core::bus::{CloseReason, Recipients, ToChannels};
use crate::core::by_number::ByNumber;
use crate::core::ids::{ChannelId, ConnId, ConnKey};

use super::ConnectionManager;
use super::connection::Login;
use super::groups::Groups;

impl ConnectionManager {
    /// The channel manager knows nothing of this side any more, as when it is on another
    /// node that was lost: who has attempted to log in has to connect again, and what was
    /// on its way to the channels is forgotten.
    pub fn lose_channels(&mut self) {
        let keys: Vec<ConnKey> = self.table.keys().collect();
        for key in keys {
            let knows = self
                .table
                .get_mut(key)
                .filter(|it| it.login != Login::NotTried);
            if let Some(connection) = knows {
                connection.pause = None;
                self.begin_to_close(key, CloseReason::ChannelsLost);
            }
        }
        self.groups = Groups::default();
        self.by_id = ByNumber::default();
        self.pauses_due.clear();
        self.to_channels = BurstQueue::default();
    }

    /// Windows of a channel did not come: this side's members ask for all of its data.
    pub(super) fn missed(&mut self, to: &Recipients, channel: ChannelId) {
        let ids: Vec<ConnId> = match to {
            Recipients::Group(group) => {
                let members = self.groups.take(*group);
                let ids = members.iter().map(|placed| placed.member.id).collect();
                self.groups.put_back(*group, members);
                ids
            }
            Recipients::These(members) => members.iter().map(|member| member.id).collect(),
        };
        for id in ids {
            if self.by_id.contains_key(&id) {
                self.to_channels
                    .push_back(ToChannels::Resync { id, channel });
            }
        }
    }
}
