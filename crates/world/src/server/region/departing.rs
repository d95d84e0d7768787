//! A server's leaving when its world is over.

use lagometer_client::Outbox;

use super::Region;

impl Region {
    /// The number of its connection, once the gateway has let it in.
    #[must_use]
    pub fn conn_id(&self) -> Option<u32> {
        self.conn_id
    }

    /// Whether any of its players is still there.
    #[must_use]
    pub fn has_players(&self) -> bool {
        !self.players.is_empty()
    }

    /// Has the channels removed that it has: of its entities and its cells.
    pub fn take_away(&mut self, outbox: &mut Outbox) {
        let entities = self.entities.all().map(|entity| entity.0);
        let cells = self.cells.iter().copied();
        self.departure.remove(entities.chain(cells), outbox);
    }
}
