//! The entry of the store that says whose the lease is.

use bytes::Bytes;

use crate::nodes::bus::NodeId;
use crate::nodes::frame::PROTOCOL;
use crate::nodes::wire::{Malformed, Put as _, Reader};

/// What the entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) protocol: u16,
    pub(super) node: NodeId,
    pub(super) epoch: u64,
    /// The holder has given it up.
    pub(super) is_free: bool,
    /// … in favour of this node: others wait for as long as if it were held. While it is
    /// held: the node that follows the holder and has all that it has.
    pub(super) successor: Option<NodeId>,
}

impl Entry {
    pub(super) fn encode(self) -> Bytes {
        let mut out = Vec::with_capacity(27);
        out.put_u16(self.protocol);
        out.put_u64(self.node.0);
        out.put_u64(self.epoch);
        out.put_u8(u8::from(self.is_free));
        // No node has the name 0: it is drawn from 64 bits.
        out.put_u64(self.successor.map_or(0, |node| node.0));
        out.into()
    }

    pub(super) fn decode(bytes: Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let mut entry = Self {
            protocol: reader.u16()?,
            node: NodeId(reader.u64()?),
            epoch: reader.u64()?,
            is_free: reader.flag()?,
            successor: None,
        };
        // What comes next is this version's own.
        if entry.protocol == PROTOCOL {
            entry.successor = Some(NodeId(reader.u64()?)).filter(|node| node.0 != 0);
        }
        Ok(entry)
    }
}
