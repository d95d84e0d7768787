//! The log: what the core has to say, as structured events.
//!
//! Nothing is put into words unless somebody listens.

use tracing::{debug, info, warn};

use crate::core::{Event, Severity};

/// Writes one event of the core.
pub(super) fn write(event: &Event) {
    match event {
        Event::Admitted {
            id,
            player,
            recovers,
        } => info!(connection = id.0, player, recovers, "let in"),
        Event::Closed {
            id: Some(id),
            peer,
            why,
        } => info!(connection = id.0, %peer, %why, "closed"),
        Event::ChannelMade {
            channel,
            channel_type,
        } => info!(channel = channel.0, channel_type, "channel made"),
        Event::OwnerLost { channel, owner } => {
            warn!(channel = channel.0, owner = owner.0, "owner lost");
        }
        Event::SlowReader(id) => warn!(connection = id.0, "slow reader"),
        Event::OverBudget {
            id,
            peer,
            budget,
            suppressed,
        } => warn!(
            connection = id.map(|id| id.0),
            %peer,
            %budget,
            suppressed,
            "over budget"
        ),
        Event::Dropped {
            from,
            channel,
            msg_type,
            why,
        } => debug!(
            connection = from.0,
            channel = channel.0,
            msg_type,
            why,
            "message dropped"
        ),
        other => match other.severity() {
            Severity::Debug => debug!("{other}"),
            Severity::Info => info!("{other}"),
            Severity::Warning => warn!("{other}"),
        },
    }
}
