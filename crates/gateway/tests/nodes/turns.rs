//! What a node does in one turn, as the server's loops do it.

use std::collections::VecDeque;

use lagometer_gateway::core::{AuthPolicy, ChannelManager, ChannelSettings, ConnectionManager};
use lagometer_gateway::nodes::{
    BusEvent, ChannelsEvent, ChannelsNode, Delivery, EdgeNode, Standing,
};
use lagometer_units::Time;

/// The channel managers of a node.
#[derive(Default)]
pub(crate) struct Managers {
    /// Of the channels that it owns.
    pub(crate) own: Option<ChannelManager>,
    /// Of those of an owner that ends.
    pub(crate) replica: Option<ChannelManager>,
}

pub(crate) fn turn_edge(
    now: Time,
    events: VecDeque<BusEvent>,
    node: &mut EdgeNode,
    side: &mut ConnectionManager,
) {
    for event in events {
        match event {
            BusEvent::Frame(frame) => node.on_frame(now, frame),
            BusEvent::Up => node.on_up(now),
            _ => {}
        }
    }
    side.handle_deadline(now);
    node.handle_deadline(now);
    loop {
        let mut moved = false;
        while let Some((number, delivery)) = node.poll_delivery() {
            moved = true;
            match delivery {
                Delivery::Message(message) => side.handle(now, message),
                Delivery::Lost(incarnation) => {
                    side.lose_channels();
                    node.settled(now, number, incarnation);
                }
            }
        }
        while let Some(message) = side.poll_bus() {
            moved = true;
            node.send(now, 0, &message);
        }
        if !moved {
            break;
        }
    }
    while side.poll_writable().is_some() {}
    node.handle_deadline(now);
}

pub(crate) fn turn_channels(
    now: Time,
    events: VecDeque<BusEvent>,
    node: &mut ChannelsNode,
    managers: &mut Managers,
) {
    for event in events {
        match event {
            BusEvent::Frame(frame) => node.on_frame(now, frame),
            BusEvent::Up => node.on_up(),
            BusEvent::Lease(number, answer) => node.on_lease(now, number, answer),
            BusEvent::Down => {}
        }
        work(now, node, managers);
    }
    node.handle_deadline(now);
    work(now, node, managers);
    if let (Some(channels), Standing::Owns(_)) = (&mut managers.own, node.standing(now)) {
        channels.handle_deadline(node.channels_time(now));
        pass_on(now, node, channels);
        node.set_has_global_owner(now, channels.has_global_owner());
    }
    node.handle_deadline(now);
}

/// Does what the node has for the channels.
pub(crate) fn work(now: Time, node: &mut ChannelsNode, managers: &mut Managers) {
    while let Some(event) = node.poll_event() {
        match event {
            ChannelsEvent::Begin(_) => managers.own = Some(ChannelManager::new(settings())),
            ChannelsEvent::End => managers.own = None,
            ChannelsEvent::Message(side, message) => {
                let channels = managers.own.as_mut().expect("channels of this epoch");
                channels.handle(node.channels_time(now), side, message);
                pass_on(now, node, channels);
            }
            ChannelsEvent::HandOver => {
                let channels = managers.own.as_ref().expect("channels of this epoch");
                node.hand_over(now, channels.snapshot().ok());
            }
            ChannelsEvent::Replica(bytes) => {
                managers.replica = ChannelManager::restore(settings(), &bytes).ok();
                assert!(managers.replica.is_some(), "they are read back");
                node.on_replica(now, true);
            }
            ChannelsEvent::Resume(_) => {
                managers.own = managers.replica.take();
                assert!(managers.own.is_some(), "there is a replica");
            }
        }
    }
}

fn pass_on(now: Time, node: &mut ChannelsNode, channels: &mut ChannelManager) {
    while let Some((side, message)) = channels.poll_bus() {
        node.send(now, side, &message);
    }
    while channels.poll_event().is_some() {}
}

fn settings() -> ChannelSettings {
    ChannelSettings {
        auth: AuthPolicy::AdmitAll,
        ..ChannelSettings::default()
    }
}
