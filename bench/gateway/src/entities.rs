//! Many entities, each with a channel of its own, seen by many players at
//! intervals that depend on how near they are.

use std::cell::RefCell;
use std::rc::Rc;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use lagometer_client::swarm::{MemberId, Swarm};
use lagometer_client::{Event, Handler, Outbox, Settings};
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
    CreateEntityChannelMessage,
};
use lagometer_units::Span;
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::cli::Setup;
use crate::counters::{Spread, microseconds};
use crate::process::{Gateway, Usage};
use crate::receiving::Driver;
use crate::states::{TYPE_URL, for_each_state, put_state};
use crate::ticks::{Lateness, Ticks};

/// The first number of an entity's channel.
const ENTITIES_FROM: u32 = 0x0008_0000;

/// How long a step of setting up may take.
const SOON: Duration = Duration::from_mins(2);

/// What is asked for before its answers are waited for.
const REQUESTS_AT_ONCE: usize = 20;

/// How many entities are near a player, and how many are not far. Unreal's
/// levels of detail with a thousand players on 300 by 300 metres.
const NEAR: usize = 3;
const NOT_FAR: usize = 86;

/// Milliseconds between two windows of entities that are near, not far, far.
#[derive(Clone, Copy, Debug)]
struct Intervals([u32; 3]);

impl FromStr for Intervals {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = |text: &str| text.trim().parse().ok().filter(|&ms| ms > 0);
        let intervals: Option<Vec<u32>> = text.split(',').map(read).collect();
        intervals
            .and_then(|intervals| Some(Self(intervals.try_into().ok()?)))
            .ok_or("three times in milliseconds, such as 50,100,1000")
    }
}

/// How many players see how many entities.
#[derive(Clone, Debug, Args)]
pub(crate) struct World {
    /// How many players.
    #[arg(long, default_value_t = 1000)]
    players: usize,
    /// How many entities, all of which every player is subscribed to.
    #[arg(long, default_value_t = 1000)]
    entities: usize,
    /// Updates of each entity a second.
    #[arg(long, default_value_t = 30)]
    rate: u32,
    /// Milliseconds between two windows of entities that are near, not far and
    /// far.
    #[arg(long, value_name = "NEAR,NOT_FAR,FAR", default_value = "50,100,1000")]
    intervals_ms: Intervals,
    /// Traffic before it counts.
    #[arg(long, default_value = "3s")]
    warm_up: Span,
    /// Traffic that counts.
    #[arg(long = "for", default_value = "8s")]
    measured: Span,
}

/// What one run came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// How many players.
    pub(crate) players: usize,
    /// How many entities.
    pub(crate) entities: usize,
    /// Seconds until all were subscribed to all.
    pub(crate) set_up_s: f64,
    /// Updates delivered a second.
    pub(crate) windows_per_s: f64,
    /// The share of those that were due.
    pub(crate) share: f64,
    /// Milliseconds by which the distance of two windows exceeded the
    /// interval, for near, not far, far.
    pub(crate) late_ms: [Spread; 3],
    /// The gateway's ticks, where it reports them.
    pub(crate) ticks: Option<Lateness>,
    /// Newest states that some player never got.
    pub(crate) missing: u64,
    /// The gateway's share of a core, percent.
    pub(crate) gateway_cpu_pct: f64,
    /// Its resident memory, megabytes.
    pub(crate) gateway_rss_mb: f64,
    /// This program's share of a core, percent.
    pub(crate) generator_cpu_pct: f64,
    /// Milliseconds by which the server's updates were sent too late.
    pub(crate) generator_late_ms: Spread,
    /// Bytes a second over all sockets.
    pub(crate) received_bytes_per_s: f64,
}

struct Shared {
    intervals_ms: [u32; 3],
    is_measuring: bool,
    windows: u64,
    late_us: [Histogram<u64>; 3],
    sub_results: u64,
    origin: Instant,
    /// Microseconds from the origin to the latest arrival.
    arrived_us: u32,
}

struct Peer {
    shared: Rc<RefCell<Shared>>,
    /// Its place among the players; `None` is the server.
    place: Option<usize>,
    newest: Vec<u16>,
    last_us: Vec<u32>,
    is_let_in: bool,
    channels: usize,
}

impl Handler for Peer {
    fn on_arrival(&mut self) {
        let mut shared = self.shared.borrow_mut();
        shared.arrived_us = shared.origin.elapsed().as_micros() as u32;
    }

    fn on_event(&mut self, _outbox: &mut Outbox, event: Event<'_>) {
        match event {
            Event::Data {
                channel_id, value, ..
            } => self.on_data(channel_id, value),
            Event::LoggedIn { .. } => self.is_let_in = true,
            Event::Message { message, .. } => match message {
                FromGateway::CreateChannel(_) | FromGateway::CreateEntityChannel(_) => {
                    self.channels += 1;
                }
                FromGateway::SubToChannel(_) if self.place.is_some() => {
                    self.shared.borrow_mut().sub_results += 1;
                }
                _ => {}
            },
            _ => {}
        }
    }
}

impl Peer {
    fn on_data(&mut self, channel_id: u32, value: &[u8]) {
        let (Some(place), Some(entity)) = (self.place, channel_id.checked_sub(ENTITIES_FROM))
        else {
            return;
        };
        let entity = entity as usize;
        let mut shared = self.shared.borrow_mut();
        let now_us = shared.arrived_us;
        let newest = &mut self.newest;
        let read = for_each_state(value, |state| {
            if let Some(newest) = newest.get_mut(entity) {
                *newest = state.number;
            }
        });
        let Some(last_us) = self.last_us.get_mut(entity).filter(|_| read.is_ok()) else {
            return;
        };
        let gap_us = now_us.wrapping_sub(std::mem::replace(last_us, now_us));
        if shared.is_measuring {
            shared.windows += 1;
            let tier = tier(place, entity, newest.len());
            let late_us = gap_us.saturating_sub(shared.intervals_ms[tier] * 1000);
            shared.late_us[tier].saturating_record(u64::from(late_us));
        }
    }
}

/// How near an entity is to a player: they stand in a ring.
fn tier(player: usize, entity: usize, entities: usize) -> usize {
    match (entity + entities - player % entities) % entities {
        0..NEAR => 0,
        NEAR..NOT_FAR => 1,
        _ => 2,
    }
}

/// Starts the gateway and shows the world to all players.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn run(setup: &Setup, gateway: &str, world: &World) -> Result<Seen, BenchError> {
    let command = format!("taskset -c {} {gateway}", setup.core);
    let running = Gateway::start(&command, &setup.logs.join("gateway.log"), setup.servers)?;
    let began = Instant::now();
    let mut show = Show::set_up(setup, world)?;
    let set_up_s = began.elapsed().as_secs_f64();
    let start = Instant::now();
    let warm = start + world.warm_up.duration();
    show.play(start, warm)?;
    let before = (
        Usage::of(running.pid()),
        Usage::own(),
        show.swarm.traffic().received_bytes,
    );
    let ticks_before = Ticks::ask(setup.metrics);
    show.shared.borrow_mut().is_measuring = true;
    let measuring = Instant::now();
    show.play(start, warm + world.measured.duration())?;
    show.shared.borrow_mut().is_measuring = false;
    let seconds = measuring.elapsed().as_secs_f64();
    let gateway = Usage::of(running.pid());
    let own = Usage::own();
    let received = show.swarm.traffic().received_bytes - before.2;
    let ticks = Ticks::ask(setup.metrics)
        .zip(ticks_before)
        .and_then(|(after, before)| after.since(&before, seconds));
    // What is furthest away comes a second later.
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        show.swarm.poll(Duration::from_millis(10))?;
    }
    let missing = show.missing();
    let shared = show.shared.borrow();
    let windows_per_s = shared.windows as f64 / seconds;
    Ok(Seen {
        players: world.players,
        entities: world.entities,
        set_up_s,
        windows_per_s,
        share: windows_per_s / due_per_s(world),
        late_ms: [0, 1, 2].map(|tier| Spread::from(&shared.late_us[tier])),
        ticks,
        missing,
        gateway_cpu_pct: 100.0 * (gateway.cpu_s - before.0.cpu_s) / seconds,
        gateway_rss_mb: gateway.rss_mb,
        generator_cpu_pct: 100.0 * (own.cpu_s - before.1.cpu_s) / seconds,
        generator_late_ms: Spread::from(&show.late_us),
        received_bytes_per_s: received as f64 / seconds,
    })
}

/// Windows that are due in a second.
fn due_per_s(world: &World) -> f64 {
    let of_one: f64 = (0..world.entities)
        .map(|entity| {
            let interval = world.intervals_ms.0[tier(0, entity, world.entities)];
            (1000.0 / f64::from(interval)).min(f64::from(world.rate))
        })
        .sum();
    of_one * world.players as f64
}

struct Show {
    world: World,
    swarm: Swarm<Peer>,
    shared: Rc<RefCell<Shared>>,
    server: MemberId,
    players: Vec<MemberId>,
    turns: u64,
    late_us: Histogram<u64>,
}

impl Driver for Show {
    type Peer = Peer;

    // Few, so that the server's frames are not late for them.
    const AT_ONCE: usize = 64;

    fn swarm(&mut self) -> &mut Swarm<Peer> {
        &mut self.swarm
    }
}

impl Show {
    fn set_up(setup: &Setup, world: &World) -> Result<Self, BenchError> {
        let shared = Rc::new(RefCell::new(Shared {
            intervals_ms: world.intervals_ms.0,
            is_measuring: false,
            windows: 0,
            late_us: [microseconds(), microseconds(), microseconds()],
            sub_results: 0,
            origin: Instant::now(),
            arrived_us: 0,
        }));
        let peer = |place: Option<usize>| {
            let entities = place.map_or(0, |_| world.entities);
            Peer {
                shared: Rc::clone(&shared),
                place,
                newest: vec![0; entities],
                last_us: vec![0; entities],
                is_let_in: false,
                channels: 0,
            }
        };
        let settings = Settings {
            max_waiting_bytes: 16 << 20,
            ..Settings::default()
        };
        let mut swarm = Swarm::new()?.with_turns_of(Self::AT_ONCE);
        let server = swarm.connect(setup.servers, settings, peer(None))?;
        let mut show = Self {
            world: world.clone(),
            swarm,
            shared: Rc::clone(&shared),
            server,
            players: Vec::new(),
            turns: 0,
            late_us: microseconds(),
        };
        show.log_in(&[server])?;
        show.create_entities()?;
        for place in 0..world.players {
            let member = show
                .swarm
                .connect(setup.clients, settings, peer(Some(place)))?;
            show.players.push(member);
            show.swarm.poll(Duration::ZERO)?;
        }
        let players = show.players.clone();
        show.log_in(&players)?;
        show.subscribe_all()?;
        Ok(show)
    }

    fn log_in(&mut self, members: &[MemberId]) -> Result<(), BenchError> {
        for (at, &member) in members.iter().enumerate() {
            if let Some((_, outbox)) = self.swarm.member(member) {
                outbox.authenticate(&format!("entity-{at}"), "bench")?;
            }
            self.swarm.flush(member);
        }
        self.wait("the logins", SOON, |show| {
            members.iter().all(|&id| {
                show.swarm
                    .member(id)
                    .is_some_and(|(peer, _)| peer.is_let_in)
            })
        })
    }

    fn create_entities(&mut self) -> Result<(), BenchError> {
        let server = self.server;
        let entities = self.world.entities;
        if let Some((_, outbox)) = self.swarm.member(server) {
            outbox.create_channel(CreateChannelMessage {
                channel_type: ChannelType::Global.into(),
                ..CreateChannelMessage::default()
            })?;
            for entity in 0..entities as u32 {
                outbox.create_entity_channel(
                    0,
                    CreateEntityChannelMessage {
                        entity_id: ENTITIES_FROM + entity,
                        // The owner has no need of its own updates.
                        sub_options: Some(options(ChannelDataAccess::WriteAccess, 1000)),
                        data: Some(prost_types::Any {
                            type_url: TYPE_URL.to_owned(),
                            value: Vec::new(),
                        }),
                        ..CreateEntityChannelMessage::default()
                    },
                )?;
            }
        }
        self.swarm.flush(server);
        self.wait("the entities' channels", SOON, |show| {
            let made = show.swarm.member(server).map(|(peer, _)| peer.channels);
            made == Some(entities + 1)
        })
    }

    fn subscribe_all(&mut self) -> Result<(), BenchError> {
        let entities = self.world.entities;
        for (place, member) in self.players.clone().into_iter().enumerate() {
            if let Some((_, outbox)) = self.swarm.member(member) {
                for entity in 0..entities {
                    let interval = self.world.intervals_ms.0[tier(place, entity, entities)];
                    let wanted = options(ChannelDataAccess::ReadAccess, interval);
                    outbox.subscribe(ENTITIES_FROM + entity as u32, 0, Some(wanted))?;
                }
            }
            self.swarm.flush(member);
            // Not all at once: a gateway's queues are bounded.
            let floor = place.saturating_sub(REQUESTS_AT_ONCE) * entities;
            self.wait("the subscriptions", SOON, |show| {
                show.shared.borrow().sub_results >= floor as u64
            })?;
        }
        let all = self.players.len() * entities;
        self.wait("the last subscriptions", SOON, |show| {
            show.shared.borrow().sub_results >= all as u64
        })
    }

    /// Updates all entities at every turn, as a game server's frame does.
    fn play(&mut self, start: Instant, end: Instant) -> Result<(), BenchError> {
        let period = Duration::from_secs(1) / self.world.rate.max(1);
        let mut update = Vec::new();
        loop {
            let now = Instant::now();
            if now >= end {
                return Ok(());
            }
            let due = start + Duration::from_nanos(period.as_nanos() as u64 * self.turns);
            if due <= now {
                if self.shared.borrow().is_measuring {
                    let late = now.duration_since(due).as_micros() as u64;
                    self.late_us.saturating_record(late);
                }
                self.turns += 1;
                if let Some((_, outbox)) = self.swarm.member(self.server) {
                    for entity in 0..self.world.entities as u32 {
                        update.clear();
                        put_state(&mut update, entity + 1, 1, self.turns as u16);
                        outbox.update(ENTITIES_FROM + entity, TYPE_URL, &update)?;
                    }
                }
                self.swarm.flush(self.server);
            }
            self.receive(now, due.max(now).min(end))?;
        }
    }

    fn missing(&mut self) -> u64 {
        let number = self.turns as u16;
        let mut missing = 0;
        for member in self.players.clone() {
            missing += match self.swarm.member(member) {
                Some((peer, _)) => peer.newest.iter().filter(|&&at| at != number).count() as u64,
                None => self.world.entities as u64,
            };
        }
        missing
    }
}

fn options(access: ChannelDataAccess, interval_ms: u32) -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        data_access: Some(access.into()),
        fan_out_interval_ms: Some(interval_ms),
        ..ChannelSubscriptionOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_three_and_none_is_nothing() {
        let read = |text: &str| text.parse().map(|Intervals(ms)| ms).ok();
        assert_eq!(read("20,50, 500"), Some([20, 50, 500]));
        for wrong in ["", "20", "20,50", "20,50,0", "20,50,far", "1,2,3,4"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
