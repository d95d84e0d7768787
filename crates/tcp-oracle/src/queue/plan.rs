//! Which discipline with which settings, and what flows send through it, by a seed.

use crate::random::Random;

const MS: u64 = 1_000_000;

/// A discipline of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// `codel`: one queue.
    CoDel,
    /// `fq_codel`: a queue for each flow.
    FqCodel,
}

impl QueueKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::CoDel, Self::FqCodel];

    /// Its name in the kernel.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CoDel => "codel",
            Self::FqCodel => "fq_codel",
        }
    }

    /// The one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A discipline with its settings, and the rate at which it is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueSettings {
    pub(super) kind: QueueKind,
    /// Bytes a second.
    pub(super) rate: u64,
    /// Packets.
    pub(super) limit: u64,
    /// Microseconds.
    pub(super) target_us: u64,
    /// Microseconds.
    pub(super) interval_us: u64,
    /// Bytes; of `fq_codel`.
    pub(super) quantum: u64,
    pub(super) ecn: bool,
}

/// What one flow sends.
#[derive(Clone, Debug)]
pub(super) struct FlowPlan {
    /// Bytes of its packets, IP and UDP headers included.
    pub(super) bytes: u64,
    pub(super) is_ecn_capable: bool,
    pub(super) habit: Habit,
}

/// When a flow sends.
#[derive(Clone, Debug)]
pub(super) enum Habit {
    /// At these times.
    Open(Vec<u64>),
    /// As TCP would: a window that grows by one in each round trip and is halved when
    /// a packet is marked or lost. The round trip without the queue, in nanoseconds.
    Window(u64),
}

/// What is played.
#[derive(Clone, Debug)]
pub(super) struct QueuePlan {
    pub(super) settings: QueueSettings,
    pub(super) flows: Vec<FlowPlan>,
    /// For so long flows send, in nanoseconds.
    pub(super) lasts: u64,
}

/// What is played of a kind with a seed.
pub(super) fn plan(kind: QueueKind, seed: u64) -> QueuePlan {
    let mut random = Random::new(seed, 50 + kind as u64);
    let rate = random.spread(60_000, 1_000_000);
    let settings = QueueSettings {
        kind,
        rate,
        limit: if random.chance(0.4) {
            random.spread(10, 150)
        } else {
            1_000
        },
        target_us: random.pick(&[5_000, 5_000, 5_000, 1_000, 20_000]),
        interval_us: random.pick(&[100_000, 100_000, 30_000, 300_000]),
        quantum: random.pick(&[1_514, 1_514, 300, 3_000]),
        ecn: random.chance(0.5),
    };
    let lasts = random.between(2_000, 8_000) * MS;
    let count = random.between(1, 7);
    let flows = (0..count)
        .map(|number| flow(number, count, rate, lasts, &mut random))
        .collect();
    QueuePlan {
        settings,
        flows,
        lasts,
    }
}

fn flow(number: u64, count: u64, rate: u64, lasts: u64, random: &mut Random) -> FlowPlan {
    // Sizes of which no two are equal: which of two equally long queues loses a
    // packet is not said.
    let bytes = random.between(60, 1_480) / 8 * 8 + number;
    let habit = match random.between(0, 2) {
        0 => Habit::Window(random.spread(MS, 200 * MS)),
        1 => {
            // A share of the rate that may be more than it has.
            let share = random.spread(5, 180) as f64 / 100.0 / count as f64;
            let gap = (bytes as f64 * 1e9 / (rate as f64 * share)) as u64;
            let mut at = random.between(0, 500 * MS);
            Habit::Open(times(lasts, || {
                at += random.between(gap / 2, gap + gap / 2).max(1_000);
                (at, 1)
            }))
        }
        _ => {
            let pause = random.spread(20 * MS, 1_500 * MS);
            let most = (pause as f64 / 1e9 * rate as f64 / bytes as f64 * 1.2) as u64;
            let mut at = random.between(0, pause);
            Habit::Open(times(lasts, || {
                at += random.between(pause / 2, pause);
                (at, random.between(1, most.clamp(1, 150)))
            }))
        }
    };
    FlowPlan {
        bytes,
        is_ecn_capable: random.chance(0.5),
        habit,
    }
}

/// The times that `next` gives, with how many packets each.
fn times(lasts: u64, mut next: impl FnMut() -> (u64, u64)) -> Vec<u64> {
    let mut all = Vec::new();
    loop {
        let (at, packets) = next();
        if at > lasts {
            return all;
        }
        all.extend((0..packets).map(|_| at));
    }
}
