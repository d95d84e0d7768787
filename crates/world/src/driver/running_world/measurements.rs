//! Counting while a world is played, and what comes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_results::{GatewayMetrics, WorldMoment};
use lagometer_stats::Distribution;
use lagometer_units::Time;

use crate::driver::backend::Flow;
use crate::driver::coordination::{Note, Truth};
use crate::measure::authority::{AuthorityChecker, Claim, Loss, Report};
use crate::measure::outcome::{Moment, Outcome};
use crate::measure::windows::Windows;
use crate::player::Player;
use crate::server::ServerCounts;
use crate::sim::scenario::{Channels, Scenario};
use crate::sim::vector::Vector;

/// Ages sampled each second, all players together: enough for a p99.9 of every
/// tier within seconds, and a few per cent of a core.
const SAMPLES_PER_S: f64 = 200_000.0;

/// Each view is looked at no more often than this.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// An entity of which nothing is known for so long, beyond the fan-out delay,
/// is missing.
const MISSING_AFTER: Duration = Duration::from_secs(2);

/// Centimetres by which a view may differ from the truth: what is not sent
/// because it is too small.
const TOLERANCE_CM: f64 = 0.01;

#[derive(Debug)]
pub(super) struct Measurements {
    tiers: Vec<Duration>,
    look_every: Duration,
    /// Whether what happens now counts.
    measuring: bool,
    began: Time,
    cpu_before: Option<Duration>,
    noted: Noted,
    server_before: ServerCounts,
    flow_before: Flow,
    pub(super) gateway: Option<GatewayMetrics>,
    outcome: Outcome,
    /// Ages since the last note.
    ages_since: Distribution,
    /// What servers here say of whom they simulate, and has not been reported.
    claims: Vec<Claim>,
    losses: Vec<Loss>,
    /// Who simulates whom, where several servers do.
    checker: AuthorityChecker,
    /// How many servers simulate.
    simulating: u32,
    /// Whether the world is in GLOBAL, so that all wait for the same windows.
    is_in_global: bool,
}

/// The players of this process that have no connection.
#[derive(Debug)]
pub(super) struct Absent<'a> {
    /// Whose connections have broken off.
    cut_off: &'a BTreeMap<u32, Box<Player>>,
    /// The numbers of those that never had one.
    never_came: Vec<u32>,
}

impl<'a> Absent<'a> {
    /// Those of `own` numbers that are not among who `came`, and who is cut off.
    pub(super) fn among<T>(
        own: impl Iterator<Item = u32>,
        came: &BTreeMap<u32, T>,
        cut_off: &'a BTreeMap<u32, Box<Player>>,
    ) -> Self {
        let never_came = own.filter(|number| !came.contains_key(number)).collect();
        Self {
            cut_off,
            never_came,
        }
    }
}

/// What the last note saw.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    nth: u32,
    at: Time,
    updates: u64,
    /// Updates since then that players have forgotten.
    forgotten: u64,
    frames: u64,
    late_ms: f64,
    received_bytes: u64,
    cpu: Option<Duration>,
    handovers: u64,
}

impl Measurements {
    /// `cpu` is the processor time used so far, where that is known, as in
    /// everything else that takes it.
    pub(super) fn new(scenario: &Scenario, cpu: Option<Duration>) -> Self {
        let looked_at = f64::from(scenario.observers.min(scenario.players));
        let samples = looked_at * f64::from(scenario.players);
        Self {
            tiers: scenario.tiers.iter().map(|tier| tier.every.0).collect(),
            look_every: LOOK_EVERY.max(Duration::from_secs_f64(samples / SAMPLES_PER_S)),
            measuring: false,
            began: Time::ZERO,
            cpu_before: None,
            noted: Noted {
                cpu,
                ..Noted::default()
            },
            server_before: ServerCounts::default(),
            flow_before: Flow::default(),
            gateway: None,
            outcome: Outcome::nothing(scenario),
            ages_since: Distribution::new(),
            claims: Vec::new(),
            losses: Vec::new(),
            checker: AuthorityChecker::default(),
            simulating: scenario.simulating(),
            is_in_global: scenario.channels == Channels::Single,
        }
    }

    /// What a server here began and ended to simulate.
    pub(super) fn claims(&mut self, mut claims: Vec<Claim>) {
        self.claims.append(&mut claims);
    }

    /// All that was said by servers here up to `now` and has not been reported.
    pub(super) fn report(&mut self, now: Time) -> Report {
        Report {
            until: now,
            claims: std::mem::take(&mut self.claims),
            losses: std::mem::take(&mut self.losses),
        }
    }

    /// What servers anywhere say is held against each other.
    pub(super) fn judge(&mut self, said: Report) {
        self.checker.take(said);
    }

    /// Times between the last state by one server and the first by the next.
    pub(super) fn handover_gaps(&mut self, gaps: &[Duration]) {
        if let (true, Some(handovers)) = (self.measuring, &mut self.outcome.handovers) {
            for gap in gaps {
                handovers.gaps.record(*gap);
            }
        }
    }

    /// How often each view is looked at.
    pub(super) fn look_every(&self) -> Duration {
        self.look_every
    }

    /// The first note will be the one numbered `nth`, of the time from `at` on.
    pub(super) fn begin_notes(&mut self, nth: u32, at: Time) {
        self.noted.nth = nth;
        self.noted.at = at;
    }

    /// Players are about to count from nothing.
    pub(super) fn forget<'a>(&mut self, players: impl Iterator<Item = &'a Player>) {
        let updates: u64 = players.map(|player| player.counts().updates).sum();
        self.noted.forgotten += updates.saturating_sub(self.noted.updates);
        self.noted.updates = 0;
    }

    /// From now on what happens counts.
    pub(super) fn begin(
        &mut self,
        now: Time,
        server: ServerCounts,
        flow: Flow,
        cpu: Option<Duration>,
    ) {
        self.measuring = true;
        self.began = now;
        self.cpu_before = cpu;
        self.server_before = server;
        self.flow_before = flow;
        self.checker.count_from(now);
    }

    /// When it began to count.
    pub(super) fn began(&self) -> Time {
        self.began
    }

    /// Looks at what a player sees.
    pub(super) fn look(&mut self, player: &Player, now: Time) {
        if !player.observes() {
            return;
        }
        let Self {
            tiers,
            measuring,
            outcome,
            ages_since,
            ..
        } = self;
        player.ages(now, |tier, age| {
            ages_since.record(age);
            if *measuring {
                outcome.age[tier].record(age);
                let limit = tiers[tier] * 3 + Duration::from_millis(100);
                outcome.stale += u64::from(age > limit);
            }
        });
    }

    /// A frame of the server began so late and took so long.
    pub(super) fn frame(&mut self, late: Duration, took: Duration) {
        self.noted.frames += 1;
        self.noted.late_ms = self.noted.late_ms.max(late.as_secs_f64() * 1e3);
        if self.measuring {
            self.outcome.frame_late.record(late);
            self.outcome.frame_work.record(took);
        }
    }

    /// A frame of the server was left out.
    pub(super) fn miss_frame(&mut self) {
        self.outcome.frames_missed += u64::from(self.measuring);
    }

    /// A server has broken off: the one numbered `simulating` of those that
    /// simulate, if it does.
    pub(super) fn lose_server(&mut self, simulating: Option<u32>, at: Time) {
        self.outcome.servers_lost += 1;
        let loss = simulating.map(|server| Loss { at, server });
        self.losses.extend(loss);
    }

    /// A server has come back.
    pub(super) fn return_server(&mut self) {
        self.outcome.returned.servers += 1;
    }

    /// A player has come back.
    pub(super) fn return_player(&mut self) {
        self.outcome.returned.players += 1;
    }

    /// A player has lost its connection. What it did until then counts.
    pub(super) fn lose(&mut self, player: &Player, reason: String) {
        self.outcome.lost.push(reason);
        if self.measuring {
            count(&mut self.outcome, player);
        }
    }

    /// Notes what happened since the last note; `came` players have come so
    /// far.
    pub(super) fn note<'a>(
        &mut self,
        now: Time,
        came: u32,
        players: impl Iterator<Item = &'a Player>,
        flow: Flow,
        cpu: Option<Duration>,
    ) -> Note {
        let (mut in_game, mut connected, mut updates) = (0, 0, 0);
        for player in players {
            connected += 1;
            in_game += u32::from(player.is_in_game());
            updates += player.counts().updates;
        }
        let noted = self.noted;
        let updates_since = updates.saturating_sub(noted.updates) + noted.forgotten;
        let seconds = now.since(noted.at).as_secs_f64().max(1e-9);
        let ages = std::mem::take(&mut self.ages_since);
        let handovers = self.checker.sums().completed;
        // The checker counts anew once, when what is measured begins.
        let handovers_since = handovers.checked_sub(noted.handovers).unwrap_or(handovers);
        let world = WorldMoment {
            at_s: now.as_secs_f64(),
            players: in_game,
            updates_per_s: updates_since as f64 / seconds,
            bytes_per_s: (flow.received_bytes - noted.received_bytes) as f64 / seconds,
            frames_per_s: noted.frames as f64 / seconds / f64::from(self.simulating),
            frame_late_ms: noted.late_ms,
            age_p50_ms: None,
            age_p99_ms: None,
            generator_cpu_pct: used(noted.cpu, cpu)
                .map(|used| 100.0 * used.as_secs_f64() / seconds),
            handovers_per_s: (self.outcome.handovers.is_some())
                .then(|| handovers_since as f64 / seconds),
        };
        let mut moment = Moment {
            world,
            gateway_ticks: None,
        };
        moment.set_ages(&ages);
        self.noted = Noted {
            nth: noted.nth + 1,
            at: now,
            updates,
            forgotten: 0,
            frames: 0,
            late_ms: 0.0,
            received_bytes: flow.received_bytes,
            cpu,
            handovers,
        };
        self.outcome.timeline.push(moment);
        Note {
            nth: noted.nth,
            moment,
            ages,
            came,
            connected,
        }
    }

    /// The time that counts is over.
    pub(super) fn end<'a>(
        &mut self,
        now: Time,
        players: impl Iterator<Item = &'a Player>,
        absent: &Absent<'_>,
        cpu: Option<Duration>,
    ) {
        self.measuring = false;
        let gaps_until = self.is_in_global.then_some(now);
        let outcome = &mut self.outcome;
        outcome.measured = now.since(self.began);
        outcome.generator_cpu = used(self.cpu_before, cpu);
        for player in players {
            outcome.players += u32::from(player.is_in_game());
            outcome.missing += player.view().missing(now, MISSING_AFTER);
            count(outcome, player);
            gaps_until.inspect(|now| outcome.count_gaps(player.windows(), *now));
        }
        count_absent(outcome, absent, self.began, gaps_until);
    }

    /// What server and sockets did in the time that counted.
    pub(super) fn end_counts(&mut self, server: ServerCounts, flow: Flow) {
        self.outcome.server = server.since(self.server_before);
        self.outcome.wire = self.wire_since(flow);
    }

    fn wire_since(&self, flow: Flow) -> (u64, u64) {
        let before = self.flow_before;
        (
            flow.received_bytes - before.received_bytes,
            flow.sent_bytes - before.sent_bytes,
        )
    }

    /// Compares what players see with what is, once all stand still. Whether
    /// all of them are right.
    pub(super) fn compare<'a>(
        &mut self,
        truth: &Truth,
        players: impl Iterator<Item = &'a Player>,
    ) -> bool {
        let (mut right, mut looked_at) = (0, 0);
        for player in players.filter(|player| player.observes() && player.is_in_game()) {
            looked_at += 1;
            right += usize::from(is_right(player, truth));
        }
        self.outcome.right_views = (right, looked_at);
        if let Some(handovers) = &mut self.outcome.handovers {
            handovers.simulated = truth.len() as u64;
        }
        right == looked_at
    }

    /// Notes what each player made of the measured time.
    pub(super) fn input_digest<'a>(&mut self, players: impl Iterator<Item = &'a Player>) {
        let input_digest = players.map(|player| (player.number(), player.input_digest()));
        self.outcome.input_digest = input_digest.collect();
    }

    /// What was found by now, without how it went: for whoever would miss it.
    pub(super) fn so_far<'a>(
        &self,
        now: Time,
        players: impl Iterator<Item = &'a Player>,
        absent: &Absent<'_>,
        server: ServerCounts,
        flow: Flow,
        cpu: Option<Duration>,
    ) -> Outcome {
        let mut found = Outcome {
            timeline: Vec::new(),
            ..self.outcome.clone()
        };
        if self.measuring {
            found.server = server.since(self.server_before);
            found.wire = self.wire_since(flow);
            found.generator_cpu = used(self.cpu_before, cpu);
            let gaps_until = self.is_in_global.then_some(now);
            for player in players {
                count(&mut found, player);
                gaps_until.inspect(|now| found.count_gaps(player.windows(), *now));
            }
            count_absent(&mut found, absent, self.began, gaps_until);
        }
        found
    }

    /// What was found, at `now`; nothing is counted after it.
    pub(super) fn take_outcome(&mut self, now: Time, partial: bool) -> Outcome {
        self.checker.settle();
        if let Some(handovers) = &mut self.outcome.handovers {
            handovers.authority = self.checker.sums();
            handovers.flights = self.checker.flights().clone();
            handovers.orphans = self.checker.orphans(now) as u64;
        }
        Outcome {
            partial,
            gateway: self.gateway.clone(),
            ..self.outcome.clone()
        }
    }
}

/// Adds what players that have no connection go without: updates, and windows up to
/// `gaps_until` where there are any to wait for.
fn count_absent(outcome: &mut Outcome, absent: &Absent<'_>, began: Time, gaps_until: Option<Time>) {
    let nothing = Windows::since(began);
    let cut_off = absent.cut_off.iter();
    let cut_off = cut_off.map(|(number, player)| (number, player.windows()));
    let never_came = absent.never_came.iter().map(|number| (number, &nothing));
    for (number, windows) in cut_off.chain(never_came) {
        outcome.updates.entry(*number).or_default();
        gaps_until.inspect(|now| outcome.count_gaps(windows, *now));
    }
}

/// Adds what a player did over one connection in the time that is measured.
fn count(outcome: &mut Outcome, player: &Player) {
    let counts = player.counts();
    outcome.states += counts.states;
    *outcome.updates.entry(player.number()).or_default() += counts.updates;
    if let Some(after) = player.first_state_after() {
        outcome.first_state.record(after);
    }
    outcome.sum += counts;
}

/// Whether a player sees everyone it is shown where they are, and nobody else.
fn is_right(player: &Player, truth: &Truth) -> bool {
    let all_seen = truth.iter().all(|(&entity, &is)| {
        let seen = player.view().seen(entity).and_then(|seen| seen.place);
        match seen {
            Some(place) => near(place, is),
            None => !player.is_shown(is),
        }
    });
    let nobody_else = player
        .view()
        .entities()
        .all(|(entity, _)| truth.contains_key(&entity));
    all_seen && nobody_else
}

fn near(one: Vector, other: Vector) -> bool {
    let apart = one - other;
    [apart.x, apart.y, apart.z]
        .iter()
        .all(|apart| apart.abs() <= TOLERANCE_CM)
}

/// Processor time between two readings.
fn used(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(after?.saturating_sub(before?))
}
