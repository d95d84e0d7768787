//! What those who have not logged in keep in memory: bounded for each by what a
//! login needs, and for all together by `unauthenticated_memory`.
//!
//! A quarter of it is for KCP peers that may not be where they say, split among
//! the threads; there the oldest goes. The rest is for everybody else, over all
//! threads; there the one goes that holds most of the address that holds most.

use lagometer_units::Time;

use crate::core::{Budget, CloseReason};
use crate::server::stream_transport::StreamTransport;

use super::ConnectionLoop;

impl ConnectionLoop {
    /// Looks at what a connection that has not logged in keeps, which something
    /// may have been added to: ends it where that is more than a login needs, and
    /// others where all together keep too much.
    pub(super) fn weigh(&mut self, now: Time, slot: usize) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        let key = socket.key;
        let unproven = match &socket.transport {
            StreamTransport::Kcp(session) => session.unproven,
            _ => None,
        };
        if !socket.is_unauthenticated && unproven.is_none() {
            return;
        }
        let settings = &self.config.connections;
        let unfinished = settings.logins.unfinished_bytes();
        let exceeds = socket
            .transport
            .exceeds(settings.before_login.bytes, unfinished);
        if exceeds {
            self.side.over_budget(now, key, Budget::LoginBytes);
            self.end(now, key, CloseReason::OverBudget(Budget::LoginBytes));
            return;
        }
        let held =
            socket.transport.held_bytes() + socket.backlog.capacity() + self.side.held_bytes(key);
        if let Some(unproven) = unproven {
            self.kcp_unproven.hold(unproven, held);
            self.make_room_of_unproven(now);
        } else {
            for evicted in socket.permit.hold(held) {
                let why = CloseReason::OverBudget(Budget::LoginMemory);
                self.shared.evict(evicted, why);
            }
        }
    }

    /// Ends the oldest of the KCP conversations that are not proven until the
    /// rest hold no more than they may.
    fn make_room_of_unproven(&mut self, now: Time) {
        let most = self.config.kcp.unproven_bytes;
        while let Some(oldest) = self.kcp_unproven.to_evict_for_memory(most) {
            self.side.over_budget(now, oldest, Budget::LoginMemory);
            // Nothing more is sent to whoever it is.
            self.end(now, oldest, CloseReason::TransportFailed);
        }
    }
}
