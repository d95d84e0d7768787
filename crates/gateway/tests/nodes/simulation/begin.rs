//! How schedules begin: with which nodes, peers and faults.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lagometer_gateway::core::{Peer, ShardCount};
use lagometer_gateway::nodes::NodeId;

use crate::bus::{Bus, MS};
use crate::faults::{self, Fault};
use crate::outcome::Outcome;
use crate::peers::GamePeer;
use crate::random::Random;

use super::{NodeSlot, Simulation};

impl Simulation {
    pub(crate) fn new(seed: u64, says: bool) -> Self {
        let mut random = Random(seed);
        let edges = random.within(1, 4) as usize;
        let channels = random.within(1, 4) as usize;
        let schedule = faults::schedule(&mut random, edges, channels);
        Self::with(random, edges, channels, schedule, says)
    }

    pub(crate) fn without_faults(seed: u64) -> Self {
        Self::with(Random(seed), 2, 2, Vec::new(), false)
    }

    /// Owners end in order, and others go on.
    pub(crate) fn with_planned_ends(seed: u64, says: bool) -> Self {
        let mut random = Random(seed);
        let edges = random.within(1, 4) as usize;
        let channels = random.within(2, 5) as usize;
        let schedule = faults::planned_ends(&mut random);
        Self::with(random, edges, channels, schedule, says)
    }

    /// Owners die, and others go on where one followed.
    pub(crate) fn with_deaths(seed: u64, followed: bool, says: bool) -> Self {
        let mut random = Random(seed);
        let edges = random.within(1, 4) as usize;
        let channels = random.within(2, 5) as usize;
        let schedule = faults::deaths(&mut random, followed);
        Self::with(random, edges, channels, schedule, says)
    }

    /// Edges die, and the server comes back for what it had.
    pub(crate) fn with_edge_deaths(seed: u64, says: bool) -> Self {
        let mut random = Random(seed);
        let edges = random.within(1, 4) as usize;
        let channels = random.within(2, 5) as usize;
        let schedule = faults::edge_deaths(&mut random, edges);
        let mut simulation = Self::with(random, edges, channels, schedule, says);
        simulation.peers[0].recovers = true;
        simulation
    }

    fn with(
        mut random: Random,
        edges: usize,
        channels: usize,
        schedule: Vec<(u64, Fault)>,
        says: bool,
    ) -> Self {
        let slots = (0..edges + channels).map(|_| NodeSlot {
            id: NodeId(0),
            part: None,
            ahead: random.within(0, 1000) * MS,
            paused_until: 0,
            due: 0,
            inbox: VecDeque::new(),
            starts_at: Some(0),
            ending: None,
        });
        let slots: Vec<NodeSlot> = slots.collect();
        let mut peers = vec![GamePeer::new(Peer::Server, "server".to_owned())];
        let players = random.within(1, 6);
        let shards = [1, 1, 2, 4][random.within(0, 4) as usize];
        let shards = ShardCount::new(shards).expect("a count");
        peers.push(GamePeer::observer("player 0".to_owned()));
        peers.extend((1..players).map(|n| GamePeer::new(Peer::Client, format!("player {n}"))));
        for peer in &mut peers {
            peer.world.is_absent = shards == ShardCount::ONE;
        }
        Self {
            now: 0,
            bus: Bus::new(Random(random.next()), shards),
            random,
            slots,
            edges,
            shards,
            connects_at: vec![100 * MS; peers.len()],
            peers,
            schedule: schedule.into(),
            truth: 0,
            update_at: 0,
            died_followed: BTreeSet::new(),
            owners: BTreeMap::new(),
            nodes: 0,
            says,
            outcome: Outcome::default(),
        }
    }
}
