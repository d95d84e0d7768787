//! What must hold after every act.

use std::time::Duration;

use lagometer_gateway::core::{BrokenInvariant, ConnectionManager, Peer, SideId, sides_agree};

use super::{ATTACKERS_FROM, Play, SERVER};

/// How long a peer may stay paused once no server is congested: a pause, and
/// the wait for an answer whether it is to go on.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

impl Play<'_> {
    /// Whether the well-behaved are promised anything: servers are trusted, and
    /// so is whoever loads files that let clients do more.
    pub(super) fn is_promised(&self) -> bool {
        !self.settings.hostile_servers && self.settings.files.is_none()
    }

    /// Whether nobody but the sentinels may write to their channel.
    pub(super) fn is_alone(&self) -> bool {
        self.is_promised() && !self.settings.clients_decide
    }

    fn is_held(&self) -> bool {
        self.held.iter().flatten().any(|&held| held)
    }

    /// What must hold now.
    pub(super) fn check(&self) -> Result<(), String> {
        let broken = |error: BrokenInvariant| error.to_string();
        self.channels.check_invariants().map_err(broken)?;
        for side in &self.sides {
            side.check_invariants().map_err(broken)?;
        }
        let may_clients_own = self.settings.files.is_some_and(|files| files.dev);
        if !may_clients_own && let Some((owner, Peer::Client)) = self.channels.global_owner() {
            return Err(format!("GLOBAL is owned by a client, {owner}"));
        }
        let limits = self.settings.slow_readers();
        let limit = limits.close_at_bytes.max(limits.server_close_at_bytes);
        for peer in &self.peers {
            let waiting = self.sides[peer.side].waiting(peer.key);
            if waiting > limit + (1 << 20) {
                return Err(format!("{waiting} bytes wait for one connection"));
            }
        }
        if self.is_held() {
            return Ok(());
        }
        let sides: Vec<(SideId, &ConnectionManager)> = (0..).map(SideId).zip(&self.sides).collect();
        sides_agree(&self.channels, &sides).map_err(broken)?;
        let relieved_for = self.now.since(self.congested_at);
        let paused = self
            .peers
            .iter()
            .position(|peer| peer.is_open && peer.paused);
        if let Some(who) = paused.filter(|_| relieved_for > LONGEST_PAUSE) {
            return Err(format!(
                "peer {who} is paused though no server is congested for {relieved_for:?}"
            ));
        }
        if !self.is_promised() {
            return Ok(());
        }
        for who in 0..ATTACKERS_FROM {
            if self.peers[who].paused {
                return Err(format!("sentinel {who} is paused"));
            }
            if !self.peers[who].is_open {
                return Err(format!("sentinel {who} was cut off"));
            }
        }
        if self.channels.global_owner().map(|(id, _)| id.0) != Some(self.id(SERVER)) {
            return Err("the server has lost GLOBAL to clients".to_owned());
        }
        self.sentinels.check(self.now, self.is_alone())
    }
}
