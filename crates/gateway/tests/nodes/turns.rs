//! What a node does in one turn, as the server's loops do it.

use std::collections::VecDeque;
use std::sync::Arc;

use lagometer_gateway::core::{
    AuthPolicy, AuthVerdict, ChannelManager, ChannelSettings, ConnectionManager, Recovery, Shard,
    ShardCount, ShardId,
};
use lagometer_gateway::nodes::{
    BusEvent, ChannelsEvent, ChannelsNode, Delivery, NodeId, NodeTimes, Replayed, ShardLoad,
    ShardShare, ShardedEdge, Standing,
};
use lagometer_units::Time;

use crate::world;

/// The channel managers of a node.
#[derive(Default)]
pub(crate) struct Managers {
    /// Of the channels that it owns.
    pub(crate) own: Option<ChannelManager>,
    /// Of those of an owner that ends, or is followed.
    pub(crate) replica: Option<ChannelManager>,
}

/// A shard's part of a node for channels.
pub(crate) struct ShardPart {
    settings: ChannelSettings,
    pub(crate) node: ChannelsNode,
    pub(crate) managers: Managers,
    share: ShardShare,
}

/// A node for channels.
pub(crate) struct ChannelsPart {
    pub(crate) load: Arc<ShardLoad>,
    pub(crate) shards: Vec<ShardPart>,
    pub(crate) yielded: u64,
}

impl ChannelsPart {
    pub(crate) fn new(now: Time, id: NodeId, count: ShardCount, recovers: bool) -> Self {
        let load = Arc::new(ShardLoad::default());
        let shards = count.all().map(|shard| ShardPart {
            settings: settings(Shard { id: shard, count }, recovers),
            node: ChannelsNode::new(now, id, NodeTimes::default()),
            managers: Managers::default(),
            share: ShardShare::new(Arc::clone(&load)),
        });
        Self {
            shards: shards.collect(),
            load,
            yielded: 0,
        }
    }
}

pub(crate) fn turn_edge(
    now: Time,
    events: VecDeque<(ShardId, BusEvent)>,
    node: &mut ShardedEdge,
    sides: &mut [ConnectionManager],
) {
    for (shard, event) in events {
        match event {
            BusEvent::Frame(frame) => node.on_frame(now, shard, frame),
            BusEvent::Up if shard == ShardId::HOME => node.on_up(now),
            _ => {}
        }
    }
    for side in sides.iter_mut() {
        side.handle_deadline(now);
    }
    node.handle_deadline(now);
    loop {
        let mut moved = false;
        while let Some((number, delivery)) = node.poll_delivery() {
            moved = true;
            let side = &mut sides[usize::from(number)];
            match delivery {
                Delivery::Message(message) => side.handle(now, message),
                Delivery::Lost(incarnation) => {
                    side.lose_channels();
                    node.settled(now, number, incarnation);
                }
            }
        }
        for (number, side) in (0..).zip(sides.iter_mut()) {
            while let Some(message) = side.poll_bus() {
                moved = true;
                node.send(now, number, message);
            }
        }
        if !moved {
            break;
        }
    }
    for side in sides {
        while side.poll_writable().is_some() {}
    }
    node.handle_deadline(now);
}

pub(crate) fn turn_channels(
    now: Time,
    events: VecDeque<(ShardId, BusEvent)>,
    part: &mut ChannelsPart,
    ends: bool,
) {
    for (shard, event) in events {
        let part = &mut part.shards[shard.index()];
        match event {
            BusEvent::Frame(frame) => part.node.on_frame(now, frame),
            BusEvent::Up => part.node.on_up(),
            BusEvent::Lease(number, answer) => part.node.on_lease(now, number, answer),
            BusEvent::Down => {}
        }
        part.work(now);
    }
    for shard in &mut part.shards {
        shard.turn(now);
        if !ends {
            part.yielded += u64::from(shard.share.balance(now, &mut shard.node));
        }
    }
}

impl ShardPart {
    fn turn(&mut self, now: Time) {
        self.node.handle_deadline(now);
        self.work(now);
        let node = &mut self.node;
        if let (Some(channels), Standing::Owns(_)) = (&mut self.managers.own, node.standing(now)) {
            let channels_now = node.channels_time(now);
            decide(now, node, channels);
            if channels
                .next_deadline()
                .is_some_and(|due| due <= channels_now)
            {
                node.record_deadline(now);
                channels.handle_deadline(channels_now);
            }
            pass_on(now, node, channels);
            node.set_has_global_owner(now, channels.has_global_owner());
        }
        node.handle_deadline(now);
        self.work(now);
    }

    /// When there is something to do, by the node's clock.
    pub(crate) fn next_deadline(&self, now: Time) -> Option<Time> {
        let owns = matches!(self.node.standing(now), Standing::Owns(_));
        let manager = self.managers.own.as_ref().filter(|_| owns);
        let due = manager.and_then(ChannelManager::next_deadline);
        let due = due.map(|due| self.node.node_time(due));
        [self.node.next_deadline(now), due]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what the node has for the channels.
    pub(crate) fn work(&mut self, now: Time) {
        work(now, &self.settings, &mut self.node, &mut self.managers);
    }
}

/// Does what the node has for the channels.
fn work(now: Time, settings: &ChannelSettings, node: &mut ChannelsNode, managers: &mut Managers) {
    while let Some(event) = node.poll_event() {
        match event {
            ChannelsEvent::Begin(epoch) => {
                let mut channels = ChannelManager::new(settings.clone());
                channels.begin_in_epoch(epoch);
                managers.own = Some(channels);
            }
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
            ChannelsEvent::BeFollowed => {
                let channels = managers.own.as_ref().expect("channels of this epoch");
                node.be_followed(now, channels.snapshot().ok());
            }
            ChannelsEvent::Replay(at, what) => {
                let replica = managers.replica.as_mut().expect("a replica");
                replay(at, what, node, replica);
            }
            ChannelsEvent::Replica(bytes) => {
                managers.replica = ChannelManager::restore(settings.clone(), &bytes).ok();
                assert!(managers.replica.is_some(), "they are read back");
                node.on_replica(now, true);
            }
            ChannelsEvent::Resume(_) => {
                managers.own = managers.replica.take();
                let channels = managers.own.as_mut().expect("there is a replica");
                channels.ask_again();
            }
        }
    }
}

/// Has a replica do what the owner has done.
fn replay(at: Time, what: Replayed, node: &mut ChannelsNode, replica: &mut ChannelManager) {
    match what {
        Replayed::Message(side, message) => replica.handle(at, side, message),
        Replayed::Deadline => replica.handle_deadline(at),
        Replayed::Verdict(ticket, verdict) => replica.answer_auth(at, ticket, verdict),
    }
    while let Some((side, message)) = replica.poll_bus() {
        node.on_replica_said(at, side, &message);
    }
    while replica.poll_auth_request().is_some() {}
    while replica.poll_event().is_some() {}
}

/// The provider lets everyone in.
fn decide(now: Time, node: &mut ChannelsNode, channels: &mut ChannelManager) {
    while let Some(request) = channels.poll_auth_request() {
        node.record_verdict(now, request.ticket, AuthVerdict::Admit);
        channels.answer_auth(node.channels_time(now), request.ticket, AuthVerdict::Admit);
    }
}

fn pass_on(now: Time, node: &mut ChannelsNode, channels: &mut ChannelManager) {
    while let Some((side, message)) = channels.poll_bus() {
        node.send(now, side, &message);
    }
    while channels.poll_event().is_some() {}
}

/// Where servers recover, those that break off may come back for what they had.
fn settings(shard: Shard, recovers: bool) -> ChannelSettings {
    ChannelSettings {
        shard,
        recovery: recovers.then_some(Recovery { within: None }),
        auth: AuthPolicy::AskProvider,
        grid: Some(world::grid()),
        ..ChannelSettings::default()
    }
}
