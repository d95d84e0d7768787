//! Lanes that are alike by construction, or apart by a known difference, as messages;
//! and which lanes a sentence sets apart.
//!
//! What is here knows no more of the statistics than a message's record, so that
//! earlier versions of them are judged by the same plays
//! (`bench/studies/false-sentences`).

use std::sync::Mutex;
use std::time::Duration;

use lagometer_results::MessageRecord;
use lagometer_units::Time;

const EVERY_MS: u64 = 50;
/// The calm path's round trip without its jitter.
const CALM_MS: f64 = 20.0;
/// The limit by which lanes are ranked.
pub(crate) const LIMIT_MS: u32 = 150;
/// Lag begins at 150 ms above the calm round trip.
#[allow(dead_code, reason = "versions before it have no such threshold")]
pub(crate) const LAG_THRESHOLD: Duration = Duration::from_millis(170);

/// What the lanes of a run meet. All meet the same of it, each with luck of its own but
/// where a kind says that it is alike.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conditions {
    /// Bursts of loss, every four seconds, for a third of a second on average; a lost
    /// message is sent again and delays all behind it, or stays lost where a lane is
    /// unreliable.
    Bursts,
    /// Outages of very unlike length: every ten seconds, for 100 ms at least and ten
    /// seconds at most, as many longer than `t` as `t` to the power of -1.3. After each
    /// a lane needs time of its own until it delivers.
    Outages,
}

/// A kind of run.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) conditions: Conditions,
    pub(crate) lanes: usize,
    pub(crate) seeds: u64,
    pub(crate) seconds: u64,
    /// How much longer than the one before each lane takes to recover: 0 for
    /// identical lanes.
    pub(crate) slower: f64,
    /// How much longer all but the first take beside that.
    pub(crate) all_slower: f64,
    /// How much longer the last takes beside that, drawn anew under each seed: on average
    /// so many times; 0 for a lane like the others.
    pub(crate) erratic: f64,
    /// How many lanes, the first of them, send again what all others lose for good.
    pub(crate) reliable: usize,
    /// How alike the luck of two lanes with the same message of a burst is: the correlation
    /// of what becomes bad of it, as where several meet the very same lost packet.
    pub(crate) alike: f64,
}

/// Five identical lanes under as many seeds as `run` plays by itself.
pub(crate) const KIND: Kind = Kind {
    conditions: Conditions::Bursts,
    lanes: 5,
    seeds: 20,
    seconds: 30,
    slower: 0.0,
    all_slower: 0.0,
    erratic: 0.0,
    reliable: usize::MAX,
    alike: 0.0,
};

/// As many as the default experiment ranks together, and more.
pub(crate) const MANY: Kind = Kind { lanes: 13, ..KIND };
/// The reliable and the unreliable lanes of the default experiment, of whom one sentence
/// speaks in two clauses.
pub(crate) const TWO_GROUPS: Kind = Kind {
    reliable: 7,
    ..MANY
};
/// Half of what befalls a message befalls it in every lane.
pub(crate) const SAME_LUCK: Kind = Kind { alike: 0.5, ..KIND };
/// As few seeds as any comparison rests on.
pub(crate) const FIVE_SEEDS: Kind = Kind { seeds: 5, ..KIND };
/// Thirty stretches of one seed, and ten minutes of it.
pub(crate) const ONE_SEED: [Kind; 2] = [
    Kind {
        seeds: 1,
        seconds: 300,
        ..KIND
    },
    Kind {
        seeds: 1,
        seconds: 600,
        ..KIND
    },
];
pub(crate) const OUTAGES: Kind = Kind {
    conditions: Conditions::Outages,
    ..KIND
};
pub(crate) const LOSS: Kind = Kind {
    reliable: 0,
    ..KIND
};
/// Each recovers by a hundredth slower than the one before.
pub(crate) const NEARLY_ALIKE: Kind = Kind {
    slower: 0.01,
    ..KIND
};
/// All others take so much longer that three messages in a hundred more are late.
pub(crate) const ONE_BETTER: Kind = Kind {
    all_slower: 0.7,
    ..KIND
};

/// Few seeds; all others recover more slowly than the first, and the last so much more
/// slowly under some seeds that no other can be shown to beat it.
pub(crate) const ERRATIC: Kind = Kind {
    seeds: 5,
    all_slower: 2.0,
    erratic: 20.0,
    ..KIND
};

impl Kind {
    fn slowness(&self, lane: usize) -> f64 {
        1.0 + self.slower * lane as f64 + if lane > 0 { self.all_slower } else { 0.0 }
    }

    /// Whether what the lane loses stays lost.
    pub(crate) const fn is_unreliable(&self, lane: usize) -> bool {
        lane >= self.reliable
    }

    /// What lane `lane` of run `run` did under each seed. The first is the best by
    /// construction.
    pub(crate) fn records(&self, run: u64, lane: usize) -> Vec<Vec<MessageRecord>> {
        let is_erratic = self.erratic > 0.0 && lane + 1 == self.lanes;
        (0..self.seeds)
            .map(|seed| {
                let slowness = self.slowness(lane);
                let more = if is_erratic {
                    keyed([run, seed, u64::MAX - 1]).exponential(self.erratic)
                } else {
                    0.0
                };
                self.play([run, seed, lane as u64], lane, slowness + more)
            })
            .collect()
    }

    /// The share in time that a lane has in the long run.
    pub(crate) fn true_share(&self, lane: usize) -> f64 {
        let limit = Duration::from_millis(u64::from(LIMIT_MS));
        let (mut in_time, mut all) = (0_u64, 0_u64);
        for record in self.in_the_long_run(lane) {
            all += 1;
            in_time += u64::from(record.rtt().is_some_and(|rtt| rtt <= limit));
        }
        in_time as f64 / all as f64
    }

    /// The round trip in milliseconds within which a lane has so many thousandths of its
    /// messages in the long run; infinite where more than the rest are lost.
    #[allow(dead_code, reason = "of versions before it shares alone are tried")]
    pub(crate) fn true_quantile(&self, lane: usize, per_mille: u64) -> f64 {
        let mut rtts: Vec<u64> = self
            .in_the_long_run(lane)
            .map(|record| record.rtt().map_or(u64::MAX, |rtt| rtt.as_nanos() as u64))
            .collect();
        let rank = (rtts.len() as u64 * per_mille).div_ceil(1000) as usize;
        match *rtts.select_nth_unstable(rank - 1).1 {
            u64::MAX => f64::INFINITY,
            nanos => nanos as f64 / 1e6,
        }
    }

    /// So many messages of a lane that what is rare among them is as frequent as ever.
    fn in_the_long_run(&self, lane: usize) -> impl Iterator<Item = MessageRecord> {
        // Outages are so unlike that the share settles late.
        let seconds = match self.conditions {
            Conditions::Bursts => 100_000,
            Conditions::Outages => 1_000_000,
        };
        let seeds = 0..seconds / self.seconds;
        // All with the luck of one, so that they differ by nothing else.
        seeds.flat_map(move |seed| self.play([u64::MAX, seed, 0], lane, self.slowness(lane)))
    }

    /// What a lane that recovers by `slowness` times the usual does, with the luck of a run,
    /// a seed and a lane.
    fn play(&self, luck_of: [u64; 3], lane: usize, slowness: f64) -> Vec<MessageRecord> {
        let [run, seed, _] = luck_of;
        let bursts = self.impairments(run, seed);
        let is_reliable = !self.is_unreliable(lane);
        let mut random = keyed(luck_of);
        // The same in every lane.
        let mut common = keyed([run, seed, u64::MAX - 2]);
        // Two lanes both take the common luck as often as the square of this.
        let takes_common = self.alike.sqrt();
        let (mut burst, mut last, mut recovered) = (0, 0.0_f64, 0.0_f64);
        (0..self.seconds * 1000 / EVERY_MS)
            .map(|index| {
                let intended = (index * EVERY_MS) as f64;
                while bursts
                    .get(burst)
                    .is_some_and(|&(_, until)| until < intended)
                {
                    burst += 1;
                }
                let bad = bursts.get(burst).filter(|&&(from, _)| from <= intended);
                let mut delay = CALM_MS + random.exponential(3.0);
                let mut is_lost = false;
                match (self.conditions, bad) {
                    (_, None) => {}
                    (Conditions::Outages, Some(&(_, until))) => {
                        if recovered < until {
                            recovered = until + random.exponential(100.0 * slowness);
                        }
                        last = last.max(recovered);
                    }
                    (Conditions::Bursts, Some(_)) => {
                        let of_all = common.share();
                        // Without common luck no other is drawn than ever was.
                        let is_of_all = takes_common > 0.0 && random.share() < takes_common;
                        let luck = if is_of_all { of_all } else { random.share() };
                        if luck < 0.5 && is_reliable {
                            delay += 40.0 + random.exponential(70.0 * slowness);
                        } else {
                            is_lost = luck < 0.5;
                        }
                    }
                }
                let returned = if is_reliable {
                    last.max(intended + delay)
                } else {
                    intended + delay
                };
                last = returned;
                MessageRecord {
                    returned: (!is_lost).then(|| Time::from_nanos((returned * 1e6) as u64)),
                    ..MessageRecord::due(Time::from_millis(index * EVERY_MS))
                }
            })
            .collect()
    }

    /// When it is bad, from and until, in milliseconds.
    fn impairments(&self, run: u64, seed: u64) -> Vec<(f64, f64)> {
        let mut generator = keyed([run, seed, u64::MAX]);
        let (mut at, mut bursts) = (0.0, Vec::new());
        while at < self.seconds as f64 * 1e3 {
            let (calm, bad) = match self.conditions {
                Conditions::Bursts => {
                    let calm = generator.exponential(4_000.0);
                    (calm, generator.exponential(300.0))
                }
                Conditions::Outages => {
                    let calm = generator.exponential(10_000.0);
                    let tail = (1.0 - generator.share()).powf(-1.0 / 1.3);
                    (calm, (100.0 * tail).min(10_000.0))
                }
            };
            let from = at + calm;
            at = from + bad;
            bursts.push((from, at));
        }
        bursts
    }
}

/// Of the runs, the share of which each of several things holds, and their number.
pub(crate) fn rates<const THINGS: usize>(
    runs: u64,
    hold: impl Fn(u64) -> [bool; THINGS] + Sync,
) -> ([f64; THINGS], u64) {
    let runs = std::env::var("LAGOMETER_MONTE_CARLO")
        .ok()
        .and_then(|runs| runs.parse().ok())
        .unwrap_or(runs);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let counts = Mutex::new([0_u64; THINGS]);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (hold, counts) = (&hold, &counts);
            scope.spawn(move || {
                for run in (thread..runs).step_by(threads as usize) {
                    let outcomes = hold(run);
                    let mut counts = counts.lock().unwrap();
                    for (count, outcome) in counts.iter_mut().zip(outcomes) {
                        *count += u64::from(outcome);
                    }
                }
            });
        }
    });
    (
        counts
            .into_inner()
            .unwrap()
            .map(|count| count as f64 / runs as f64),
        runs,
    )
}

/// A lane's name, which no other name begins with.
pub(crate) fn name_of(lane: usize) -> String {
    format!("lane-{lane}-")
}

/// The lanes of so many that a sentence does not name as the best, where `alike` are the
/// words that follow several of whom it names none before another.
pub(crate) fn left_out(sentence: &str, lanes: usize, alike: &str) -> Vec<usize> {
    let place = |lane: &usize| sentence.find(&name_of(*lane)).unwrap_or(usize::MAX);
    let named = match sentence.find(alike) {
        Some(end) => end,
        None => (0..lanes)
            .map(|lane| place(&lane))
            .min()
            .unwrap_or(0)
            .saturating_add(1),
    };
    (0..lanes).filter(|lane| place(lane) >= named).collect()
}

/// Whether a worse lane is preferred to a better one: the lanes are in order of merit.
pub(crate) fn prefers_a_worse(out: &[usize], lanes: usize) -> bool {
    let worst_named = (0..lanes).rev().find(|lane| !out.contains(lane));
    let best_out = out.iter().min();
    best_out.is_some_and(|best| worst_named.is_some_and(|worst| *best < worst))
}

/// A rate with its 95 % interval.
pub(crate) fn with_interval(rate: f64, runs: u64) -> String {
    let [low, high] = interval(rate, runs);
    format!(
        "{:.1} % ({:.1} to {:.1})",
        rate * 100.0,
        low * 100.0,
        high * 100.0
    )
}

/// The 95 % interval of a rate that was found of so many runs (E. B. Wilson, 1927).
pub(crate) fn interval(rate: f64, runs: u64) -> [f64; 2] {
    let (runs, z) = (runs as f64, 1.96_f64);
    let middle = (rate + z * z / (2.0 * runs)) / (1.0 + z * z / runs);
    let half = z / (1.0 + z * z / runs)
        * (rate * (1.0 - rate) / runs + z * z / (4.0 * runs * runs)).sqrt();
    [(middle - half).max(0.0), (middle + half).min(1.0)]
}

struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }
}

/// A generator for these numbers.
fn keyed(numbers: [u64; 3]) -> SplitMix64 {
    let mut generator = SplitMix64(7);
    for number in numbers {
        generator = SplitMix64(generator.next() ^ number);
    }
    generator
}
