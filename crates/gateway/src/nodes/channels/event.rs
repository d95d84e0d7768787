//! What a node for channels has its channel manager do.

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::bus::ToChannels;
use crate::core::{AuthVerdict, SideId, Ticket};

/// What is to be done with the channel manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelsEvent {
    /// This node owns the channels from now on: a new manager begins, without channels.
    Begin(u64),
    /// It owns the channels of the last [replica](Self::Replica): that manager goes on.
    /// Logins that it had given out are to be [asked about
    /// again](crate::core::ChannelManager::ask_again).
    Resume(u64),
    /// This node ends. What the manager has to say is to be sent, then it is to be written
    /// down and [handed over](super::ChannelsNode::hand_over).
    HandOver,
    /// Another node is to follow this one: likewise, and then the manager goes on here
    /// ([`super::ChannelsNode::be_followed`]).
    BeFollowed,
    /// The owner ends or is followed by this node, and has written its manager down: it is
    /// to be read back and kept beside, and [`super::ChannelsNode::on_replica`] to be called.
    Replica(Bytes),
    /// The owner has done that, at this instant of the channels' clock: so is the manager of
    /// the last [replica](Self::Replica) to do. All that it has to say then is to be handed
    /// to [`super::ChannelsNode::on_replica_said`] before anything else is done.
    Replay(Time, Replayed),
    /// A message of a connection loop, for the manager.
    Message(SideId, ToChannels),
    /// This node owns the channels no longer: the manager is to be forgotten.
    End,
}

/// What an owner does with its channel manager, for a replica of that to do again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// It handles a message of a connection loop.
    Message(SideId, ToChannels),
    /// It does what is due.
    Deadline,
    /// A login was decided.
    Verdict(Ticket, AuthVerdict),
}
