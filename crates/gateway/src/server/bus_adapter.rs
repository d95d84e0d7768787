//! How a connection loop reaches the channels: they are on the same thread, or
//! on one of their own.

use std::collections::VecDeque;
use std::sync::Arc;

use lagometer_units::Time;

use crate::core::bus::{ToChannels, ToConnections};
use crate::core::{ConnKey, ConnectionManager, SideId};

use super::channel_worker::ChannelWorker;
use super::config::Config;
use super::mailbox::{Item, Queue};
use super::poller::{EventNotifier, Waker};
use super::report::Numbers;

/// What a connection loop has for the channel loop.
#[derive(Debug)]
pub(super) enum Posted {
    /// A message, and which loop it comes from.
    Message(SideId, ToChannels),
    /// A probe of that loop, to be sent back as it is.
    Probe(SideId, u64),
    /// The loop has closed whom channels that were lost knew, as it was asked to with this
    /// number.
    Settled(SideId, u32),
}

/// What the channel loop has for a connection loop.
#[derive(Debug)]
pub(super) enum Delivered {
    /// A message.
    Message(ToConnections),
    /// A probe that has been through the channel loop.
    Probe(u64),
    /// The channels, which are on another node, know nothing of this loop any more.
    Lost(u32),
}

impl Item for Posted {
    fn payload_bytes(&self) -> usize {
        match self {
            Self::Message(_, message) => message.payload_bytes(),
            Self::Probe(..) | Self::Settled(..) => 0,
        }
    }
}

impl Item for Delivered {
    fn payload_bytes(&self) -> usize {
        match self {
            Self::Message(message) => message.payload_bytes(),
            Self::Probe(_) | Self::Lost(_) => 0,
        }
    }
}

/// The way to the channels.
#[derive(Debug)]
pub(super) enum BusAdapter {
    /// They are here, and the last probe, which needs no way.
    Here(Box<ChannelWorker>, u64),
    /// They are on another thread.
    There(Mail),
}

/// What the channels have for one connection loop.
pub(super) type FromChannels = Arc<Queue<Delivered, EventNotifier>>;

/// Queues to and from the channels' thread.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) side: SideId,
    pub(super) to_channels: Arc<Queue<Posted, EventNotifier>>,
    pub(super) from_channels: FromChannels,
    /// What found no room yet.
    pub(super) unsent: VecDeque<Posted>,
    /// Wakes this loop.
    pub(super) waker: Waker,
    pub(super) taken: VecDeque<Delivered>,
    /// The last probe that has come back.
    pub(super) probe_returned: u64,
}

impl BusAdapter {
    /// Carries what the sides have for each other, until neither has more: to channels
    /// that are here at `channels_at`, which may be before `now`, and not before they were
    /// last told. Returns the connections that were let in by it, in order.
    #[must_use]
    pub(super) fn exchange(
        &mut self,
        now: Time,
        channels_at: Time,
        connections: &mut ConnectionManager,
    ) -> Vec<ConnKey> {
        let mut let_in = Vec::new();
        let mut deliver = |connections: &mut ConnectionManager, message| {
            if let ToConnections::AuthAnswer {
                key,
                admitted: true,
                ..
            } = message
            {
                let_in.push(key);
            }
            connections.handle(now, message);
        };
        match self {
            Self::Here(channels, _) => loop {
                let mut moved = false;
                while let Some(message) = connections.poll_bus() {
                    channels.handle(channels_at, SideId(0), message);
                    moved = true;
                }
                channels.settle(channels_at);
                while let Some((_, message)) = channels.poll_bus() {
                    deliver(connections, message);
                    moved = true;
                }
                if !moved {
                    break;
                }
            },
            Self::There(mail) => {
                mail.from_channels.take(&mut mail.taken);
                for item in mail.taken.drain(..) {
                    match item {
                        Delivered::Message(message) => deliver(connections, message),
                        Delivered::Probe(number) => mail.probe_returned = number,
                        Delivered::Lost(number) => {
                            connections.lose_channels();
                            mail.unsent.push_back(Posted::Settled(mail.side, number));
                        }
                    }
                }
                while let Some(message) = connections.poll_bus() {
                    mail.unsent.push_back(Posted::Message(mail.side, message));
                }
                mail.to_channels.offer(&mut mail.unsent, &mail.waker);
            }
        }
        let_in
    }

    /// Sends a probe the way of all messages, behind those that wait.
    pub(super) fn send_probe(&mut self, number: u64) {
        match self {
            Self::Here(_, last) => *last = number,
            Self::There(mail) => mail.unsent.push_back(Posted::Probe(mail.side, number)),
        }
    }

    /// The last probe that has come back.
    pub(super) fn returned_probe(&self) -> u64 {
        match self {
            Self::Here(_, last) => *last,
            Self::There(mail) => mail.probe_returned,
        }
    }

    /// The channels cannot keep up: nothing more is to be read for now.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Here(..) => false,
            Self::There(mail) => !mail.unsent.is_empty(),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        match self {
            Self::Here(channels, _) => channels.next_deadline(),
            Self::There(_) => None,
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Time) {
        if let Self::Here(channels, _) = self {
            channels.handle_deadline(now);
        }
    }

    /// Whether GLOBAL has an owner, as far as that is known here.
    pub(super) fn has_owner(&self) -> bool {
        match self {
            Self::Here(channels, _) => channels.has_owner(),
            Self::There(_) => false,
        }
    }

    pub(super) fn reload(&mut self, config: &Config, waker: &Waker) {
        if let Self::Here(channels, _) = self {
            channels.reload(config, waker);
        }
    }

    /// Adds what is known here to a loop's numbers.
    pub(super) fn report(&self, numbers: &mut Numbers) {
        match self {
            Self::Here(channels, _) => numbers.channels = Some(channels.report()),
            Self::There(mail) => numbers.queued = mail.from_channels.depth() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Shard;
    use crate::core::{ConnectionSettings, Peer};
    use crate::server::channel_loop::tests::{first_messages, frame, update};
    use crate::server::clock::Clock;
    use crate::server::config::FileConfig;
    use crate::server::mailbox::Capacity;
    use crate::server::poller::{Poller, waker};

    const EIGHT: Capacity = Capacity::of_items(8);

    #[test]
    fn a_probe_does_not_come_back_before_the_channel_loop_has_worked() {
        let poller = Poller::new().unwrap();
        let waker = waker(&poller, 0).unwrap();
        let to_channels = Arc::new(Queue::new(EIGHT, waker.clone()));
        let from_channels = Arc::new(Queue::new(EIGHT, waker.clone()));
        let mut adapter = BusAdapter::There(Mail {
            side: SideId(3),
            to_channels: Arc::clone(&to_channels),
            from_channels: Arc::clone(&from_channels),
            unsent: VecDeque::new(),
            waker: waker.clone(),
            taken: VecDeque::new(),
            probe_returned: 0,
        });
        let mut connections = ConnectionManager::new(ConnectionSettings::default());
        adapter.send_probe(7);
        // A channel loop that sleeps before a full inbox: this loop turns and
        // turns, and gets nothing done.
        for _ in 0..3 {
            assert!(
                adapter
                    .exchange(Time::ZERO, Time::ZERO, &mut connections)
                    .is_empty()
            );
            assert_eq!(adapter.returned_probe(), 0);
        }
        let mut arrived = VecDeque::new();
        to_channels.take(&mut arrived);
        let back = arrived.drain(..).map(|item| match item {
            Posted::Probe(SideId(3), number) => Delivered::Probe(number),
            other => panic!("{other:?}"),
        });
        from_channels.offer(&mut back.collect(), &waker);
        assert!(
            adapter
                .exchange(Time::ZERO, Time::ZERO, &mut connections)
                .is_empty()
        );
        assert_eq!(adapter.returned_probe(), 7);
    }

    /// Whether an update goes out at once that is found 5 ms after a tick, and of which the
    /// channels are told as of then.
    fn goes_out_at_once(channels_at: Time) -> bool {
        let config = FileConfig::parse("test", "dev = true").unwrap();
        let config = config.resolve(1).unwrap();
        let waker = waker(&Poller::new().unwrap(), 0).unwrap();
        let worker = ChannelWorker::new(&config, Shard::WHOLE, Clock::start(), &waker);
        let mut adapter = BusAdapter::Here(Box::new(worker), 0);
        let mut connections = ConnectionManager::new(ConnectionSettings::default());
        let server = connections.open(Time::ZERO, Peer::Server, None).unwrap();
        let began = Time::from_secs(1);
        for (of_type, body) in first_messages(20) {
            connections.receive(began, server, &frame(of_type, &body));
            let _ = adapter.exchange(began, began, &mut connections);
        }
        // The whole state has gone out.
        let looked = Time::from_millis(1_090);
        adapter.handle_deadline(looked);
        let _ = adapter.exchange(looked, looked, &mut connections);
        assert_eq!(adapter.next_deadline(), None);
        let found = Time::from_millis(1_105);
        connections.receive(found, server, &frame(8, &update()));
        let _ = adapter.exchange(found, channels_at, &mut connections);
        adapter.next_deadline().is_some_and(|due| due <= found)
    }

    #[test]
    fn what_may_have_come_before_a_tick_that_has_passed_goes_out_with_that() {
        assert!(goes_out_at_once(Time::from_millis(1_090)));
        assert!(!goes_out_at_once(Time::from_millis(1_105)));
    }
}
