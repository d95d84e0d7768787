//! Whom a server's user-space message goes to.

use crate::messages::channeldpb::BroadcastType;

/// The broadcast flags of an envelope, read as what they ask for.
///
/// The flags are not quite a set: 0 and 1 are cases of their own, 1 beside
/// others means nothing, and `ALL` need not be set beside an exclusion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broadcast(pub u32);

/// Who receives a user-space message that a server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The channel's owner.
    Owner,
    /// The connection named in the forward, subscribed or not; the channel's
    /// owner when none is named.
    SingleConnection,
    /// The channel's subscribers.
    Subscribers(Excluded),
    /// The subscribers of the channel's neighbours in the grid and, unless
    /// [`Excluded::owner`] is set, of the channel itself; never the connection
    /// named in the forward.
    Adjacent(Excluded),
    /// Nobody: the flags mean nothing.
    Nobody,
}

/// Who of an audience is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent flags of the wire"
)]
pub struct Excluded {
    /// The connection that sent the message.
    pub sender: bool,
    /// The channel's owner; with [`Audience::Adjacent`] the whole channel in
    /// the middle.
    pub owner: bool,
    /// Connections of the client side.
    pub clients: bool,
    /// Connections of the server side.
    pub servers: bool,
}

impl Broadcast {
    /// Reads the flags.
    #[must_use]
    pub fn audience(self) -> Audience {
        let excluded = Excluded {
            sender: self.has(BroadcastType::AllButSender),
            owner: self.has(BroadcastType::AllButOwner),
            clients: self.has(BroadcastType::AllButClient),
            servers: self.has(BroadcastType::AllButServer),
        };
        match self.0 {
            0 => Audience::Owner,
            1 => Audience::SingleConnection,
            _ if self.has(BroadcastType::AdjacentChannels) => Audience::Adjacent(excluded),
            2..64 => Audience::Subscribers(excluded),
            _ => Audience::Nobody,
        }
    }

    /// Whether `flag` is set.
    #[must_use]
    pub fn has(self, flag: BroadcastType) -> bool {
        self.0 & flag as u32 != 0
    }
}

impl From<BroadcastType> for Broadcast {
    fn from(flag: BroadcastType) -> Self {
        Self(flag as u32)
    }
}

impl std::ops::BitOr<BroadcastType> for Broadcast {
    type Output = Self;

    fn bitor(self, flag: BroadcastType) -> Self {
        Self(self.0 | flag as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY_OUT: Excluded = Excluded {
        sender: false,
        owner: false,
        clients: false,
        servers: false,
    };

    #[test]
    fn the_cases_of_their_own() {
        assert_eq!(Broadcast(0).audience(), Audience::Owner);
        assert_eq!(Broadcast(1).audience(), Audience::SingleConnection);
        assert_eq!(Broadcast(2).audience(), Audience::Subscribers(NOBODY_OUT));
        assert_eq!(Broadcast(3).audience(), Audience::Subscribers(NOBODY_OUT));
        assert_eq!(Broadcast(64).audience(), Audience::Adjacent(NOBODY_OUT));
        assert_eq!(Broadcast(128).audience(), Audience::Nobody);
        assert_eq!(
            Broadcast(128 | 64).audience(),
            Audience::Adjacent(NOBODY_OUT)
        );
        assert_eq!(Broadcast(128 | 2).audience(), Audience::Nobody);
    }

    #[test]
    fn an_exclusion_alone_is_a_broadcast() {
        for flags in 0..128 {
            let excluded = Excluded {
                sender: flags & 4 != 0,
                owner: flags & 8 != 0,
                clients: flags & 16 != 0,
                servers: flags & 32 != 0,
            };
            let expected = match flags {
                0 => Audience::Owner,
                1 => Audience::SingleConnection,
                2..64 => Audience::Subscribers(excluded),
                _ => Audience::Adjacent(excluded),
            };
            assert_eq!(Broadcast(flags).audience(), expected, "flags {flags}");
        }
    }

    #[test]
    fn flags_are_put_together() {
        let flags = Broadcast::from(BroadcastType::AdjacentChannels) | BroadcastType::AllButServer;
        assert_eq!(flags, Broadcast(96));
    }
}
