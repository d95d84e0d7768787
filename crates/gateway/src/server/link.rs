//! How a connection loop reaches the channels: they are on the same thread, or
//! on one of their own.

use std::collections::VecDeque;
use std::sync::Arc;

use lagometer_units::Time;

use crate::core::bus::{ToChannels, ToConnections};
use crate::core::{ConnectionSide, SideId};

use super::channel_worker::ChannelWorker;
use super::config::Config;
use super::poller::Waker;
use super::queue::Queue;
use super::report::Numbers;

/// A message for the channels, and which loop it comes from.
pub(super) type Posted = (SideId, ToChannels);

/// The way to the channels.
#[derive(Debug)]
pub(super) enum Link {
    /// They are here.
    Here(Box<ChannelWorker>),
    /// They are on another thread.
    There(Mail),
}

/// Queues to and from the channels' thread.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) side: SideId,
    pub(super) to_channels: Arc<Queue<Posted>>,
    pub(super) from_channels: Arc<Queue<ToConnections>>,
    /// What found no room yet.
    pub(super) unsent: VecDeque<Posted>,
    /// The loop's own bell.
    pub(super) waker: Waker,
    pub(super) taken: VecDeque<ToConnections>,
}

impl Link {
    /// Carries what the sides have for each other, until neither has more.
    pub(super) fn exchange(&mut self, now: Time, connections: &mut ConnectionSide) {
        match self {
            Self::Here(channels) => loop {
                let mut moved = false;
                while let Some(message) = connections.poll_bus() {
                    channels.handle(now, SideId(0), message);
                    moved = true;
                }
                channels.settle(now);
                while let Some((_, message)) = channels.poll_bus() {
                    connections.handle(now, message);
                    moved = true;
                }
                if !moved {
                    return;
                }
            },
            Self::There(mail) => {
                mail.from_channels.take(&mut mail.taken);
                for message in mail.taken.drain(..) {
                    connections.handle(now, message);
                }
                while let Some(message) = connections.poll_bus() {
                    mail.unsent.push_back((mail.side, message));
                }
                mail.to_channels.offer(&mut mail.unsent, &mail.waker);
            }
        }
    }

    /// The channels cannot keep up: nothing more is to be read for now.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Here(_) => false,
            Self::There(mail) => !mail.unsent.is_empty(),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        match self {
            Self::Here(channels) => channels.next_deadline(),
            Self::There(_) => None,
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Time) {
        if let Self::Here(channels) = self {
            channels.handle_deadline(now);
        }
    }

    /// Whether GLOBAL has an owner, as far as that is known here.
    pub(super) fn has_owner(&self) -> bool {
        match self {
            Self::Here(channels) => channels.has_owner(),
            Self::There(_) => false,
        }
    }

    pub(super) fn reload(&mut self, config: &Config, waker: &Waker) {
        if let Self::Here(channels) = self {
            channels.reload(config, waker);
        }
    }

    /// Adds what is known here to a loop's numbers.
    pub(super) fn report(&self, numbers: &mut Numbers) {
        match self {
            Self::Here(channels) => numbers.channels = Some(channels.report()),
            Self::There(mail) => numbers.queued = mail.from_channels.depth() as u64,
        }
    }
}
