//! What a node does in one turn, as the server's loops do it.

use std::collections::VecDeque;

use lagometer_gateway::core::{AuthPolicy, ChannelManager, ChannelSettings, ConnectionManager};
use lagometer_gateway::nodes::{
    BusEvent, ChannelsEvent, ChannelsNode, Delivery, EdgeNode, Standing,
};
use lagometer_units::Time;

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
    manager: &mut Option<ChannelManager>,
) {
    for event in events {
        match event {
            BusEvent::Frame(frame) => node.on_frame(now, frame),
            BusEvent::Up => node.on_up(),
            BusEvent::Lease(number, answer) => node.on_lease(now, number, answer),
            BusEvent::Down => {}
        }
        work(now, node, manager);
    }
    node.handle_deadline(now);
    work(now, node, manager);
    if let (Some(channels), Standing::Owns(_)) = (&mut *manager, node.standing(now)) {
        channels.handle_deadline(now);
        while let Some((side, message)) = channels.poll_bus() {
            node.send(now, side, &message);
        }
        node.set_has_global_owner(now, channels.has_global_owner());
    }
    node.handle_deadline(now);
}

fn work(now: Time, node: &mut ChannelsNode, manager: &mut Option<ChannelManager>) {
    while let Some(event) = node.poll_event() {
        match event {
            ChannelsEvent::Begin(_) => {
                *manager = Some(ChannelManager::new(ChannelSettings {
                    auth: AuthPolicy::AdmitAll,
                    ..ChannelSettings::default()
                }));
            }
            ChannelsEvent::End => *manager = None,
            ChannelsEvent::Message(side, message) => {
                let channels = manager.as_mut().expect("channels of this epoch");
                channels.handle(now, side, message);
                while let Some((side, message)) = channels.poll_bus() {
                    node.send(now, side, &message);
                }
            }
        }
    }
}
