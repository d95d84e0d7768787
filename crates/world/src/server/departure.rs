//! How a server leaves when its world is over: it takes away the channels it
//! made, and goes so that nothing is kept for its return.

use std::collections::BTreeSet;

use lagometer_client::Outbox;

/// What a server that leaves has still to see gone.
#[derive(Debug, Default)]
pub(super) struct Departure {
    begun: bool,
    /// Channels that it has asked to be removed. It is subscribed to each, and
    /// so is sent their removal.
    removing: BTreeSet<u32>,
}

impl Departure {
    /// The world is over: players that go now leave everything as it is.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Has `channels` removed.
    pub(super) fn remove(&mut self, channels: impl IntoIterator<Item = u32>, outbox: &mut Outbox) {
        for id in channels {
            // What finds no room stays, and the next world removes it.
            if outbox.remove_channel(id).is_ok() {
                self.removing.insert(id);
            }
        }
    }

    /// A channel is gone.
    pub(super) fn removed(&mut self, id: u32) {
        self.removing.remove(&id);
    }

    /// Whether all that was to be removed is gone.
    pub(super) fn is_clear(&self) -> bool {
        self.removing.is_empty()
    }
}
