//! What is said in a conversation and over which path, by a seed.

use crate::path::PathSettings;
use crate::random::Random;
use crate::settings::EndSettings;

const MS: u64 = 1_000_000;

/// What a path may do to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Delay, and nothing else.
    Clean,
    /// A limited rate, and a queue that may overflow.
    Rate,
    /// Single packets are lost.
    Loss,
    /// Packets are lost in bursts, and in outages.
    Burst,
    /// Packets are overtaken and doubled.
    Reorder,
    /// All of it.
    Mixed,
    /// One of the others, and marks, a smaller MTU within the path or an end of all
    /// packets; sockets and hosts have their options set in many ways.
    Options,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Clean,
        Self::Rate,
        Self::Loss,
        Self::Burst,
        Self::Reorder,
        Self::Mixed,
        Self::Options,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Rate => "rate",
            Self::Loss => "loss",
            Self::Burst => "burst",
            Self::Reorder => "reorder",
            Self::Mixed => "mixed",
            Self::Options => "options",
        }
    }

    /// The one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// What an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Writes so many bytes, and waits until they have found room.
    Write(u32),
    /// Sets `TCP_NODELAY`.
    Nodelay(bool),
    /// Sets `TCP_CORK`.
    Cork(bool),
    /// Ends its stream.
    Finish,
    /// Closes.
    Close,
}

/// How an application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Everything as it comes.
    Eager,
    /// At most so many bytes, every so many nanoseconds.
    Periodic(u32, u64),
}

/// What an application at one end does.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// What it does by itself, and when, in nanoseconds since it was connected.
    pub(crate) acts: Vec<(u64, Act)>,
    pub(crate) reader: Reader,
    /// To so many bytes read it answers with so many.
    pub(crate) reply: Option<(u64, u32)>,
    /// It sets `TCP_QUICKACK` after each read.
    pub(crate) quick_ack: bool,
}

/// One conversation.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) ends: [EndSettings; 2],
    pub(crate) paths: [PathSettings; 2],
    pub(crate) plans: [Plan; 2],
}

/// The conversation of a class and seed under a congestion control.
pub(crate) fn conversation(class: Class, control: &str, seed: u64) -> Conversation {
    let mut random = Random::new(seed, 1 + class as u64 + 16 * of_its_own(class, control));
    let delay_ns = random.spread(200_000, 120 * MS);
    let paths = [0, 1].map(|_| path(class, delay_ns, &mut random));
    let mtu = random.pick(&[1500, 1500, 1500, 1400, 1280, 9000]);
    let is_tuned = random.chance(0.75);
    let ends = [0, 1].map(|_| EndSettings {
        control: control.to_owned(),
        mtu,
        nodelay: random.chance(0.5),
        send_buffer: (!is_tuned && random.chance(0.5))
            .then(|| random.spread(4_096, 200_000) as u32),
        receive_buffer: (!is_tuned && random.chance(0.5))
            .then(|| random.spread(4_096, 200_000) as u32),
        ..EndSettings::default()
    });
    let plans = plans(&mut random);
    let mut conversation = Conversation { ends, paths, plans };
    if class == Class::Options {
        vary_options(&mut conversation, &mut random);
        aim(&mut conversation, seed, &mut random);
    }
    conversation
}

/// The other kinds say the same under each control. Options are many, and what they do
/// hangs little on the control: each has conversations of its own.
fn of_its_own(class: Class, control: &str) -> u64 {
    match (class, control) {
        (Class::Options, "reno") => 1,
        (Class::Options, "bbr") => 2,
        _ => 0,
    }
}

/// Most options matter on few paths: four of five conversations have one together with
/// a path on which it does.
fn aim(conversation: &mut Conversation, seed: u64, random: &mut Random) {
    let ends_at = random.spread(300, 4_000) * MS;
    let silence = (ends_at, u64::MAX);
    let [first, second] = &mut conversation.ends;
    match seed % 5 {
        0 => {
            first.user_timeout_ms = Some(random.spread(200, 5_000) as u32);
            second.user_timeout_ms = Some(random.spread(200, 5_000) as u32);
            conversation.paths[0].outages.push(silence);
        }
        1 => {
            let keep_alive = [
                random.between(1, 4),
                random.between(1, 2),
                random.between(1, 4),
            ];
            let keep_alive = Some(keep_alive.map(|it| it as u32));
            (first.keep_alive, second.keep_alive) = (keep_alive, keep_alive);
            conversation.paths[1].outages.push(silence);
            for plan in &mut conversation.plans {
                if let Some((at, _)) = plan.acts.last_mut() {
                    *at += 40_000 * MS;
                }
            }
        }
        2 => {
            (first.mtu, second.mtu) = (1500, 1500);
            let reported = if first.is_ipv6 { 1280 } else { 900 };
            for path in &mut conversation.paths {
                path.mtu = Some((reported, true));
            }
        }
        3 => {
            first.thin_linear_timeouts = true;
            second.thin_linear_timeouts = true;
            let back = (ends_at, ends_at + random.spread(2_000, 20_000) * MS);
            conversation.paths[0].outages.push(back);
        }
        _ => {}
    }
}

/// Sets options of sockets and hosts, and has the path do what some of them are for.
fn vary_options(conversation: &mut Conversation, random: &mut Random) {
    let is_ipv6 = random.chance(0.5);
    for end in &mut conversation.ends {
        end.is_ipv6 = is_ipv6;
        end.vary(random);
    }
    for plan in &mut conversation.plans {
        plan.quick_ack = random.chance(0.25);
        // Long enough for keep-alive.
        if let Some((at, _)) = plan.acts.last_mut()
            && random.chance(0.5)
        {
            *at += random.spread(1_000, 30_000) * MS;
        }
    }
    for path in &mut conversation.paths {
        if random.chance(0.5) {
            path.mark = random.spread(5, 300) as f64 / 1_000.0;
        }
        if random.chance(0.25) {
            let smaller: &[u16] = if is_ipv6 {
                &[1280, 1400]
            } else {
                &[576, 1000, 1280, 1400]
            };
            path.mtu = Some((random.pick(smaller), random.chance(0.7)));
        }
        if random.chance(0.1) {
            path.outages
                .push((random.spread(10, 20_000) * MS, u64::MAX));
        }
    }
}

fn path(class: Class, delay_ns: u64, random: &mut Random) -> PathSettings {
    let class = match class {
        Class::Options => random.pick(&[
            Class::Clean,
            Class::Rate,
            Class::Loss,
            Class::Burst,
            Class::Reorder,
        ]),
        other => other,
    };
    let mut path = PathSettings {
        delay_ns: delay_ns + random.between(0, delay_ns / 4),
        burst: 1,
        ..PathSettings::default()
    };
    let is_mixed = class == Class::Mixed;
    if class == Class::Rate || is_mixed {
        let rate = random.spread(30_000, 5_000_000);
        path.rate = Some((rate, random.spread(4_000, 200_000)));
    }
    if matches!(class, Class::Loss | Class::Mixed) {
        path.loss = random.spread(5, 100) as f64 / 1_000.0;
    }
    if class == Class::Burst || (is_mixed && random.chance(0.3)) {
        path.loss = random.spread(3, 30) as f64 / 1_000.0;
        path.burst = random.between(2, 12);
        if random.chance(0.5) {
            let from = random.between(0, 3_000) * MS;
            path.outages
                .push((from, from + random.spread(50, 3_000) * MS));
        }
    }
    if class == Class::Reorder || is_mixed {
        let late = random.spread(100_000, delay_ns.max(200_000));
        path.reorder = (random.spread(5, 200) as f64 / 1_000.0, late);
        path.duplicate = random.pick(&[0.0, 0.0, 0.01, 0.05]);
    }
    path
}

fn plans(random: &mut Random) -> [Plan; 2] {
    let reader = |random: &mut Random| {
        if random.chance(0.8) {
            Reader::Eager
        } else {
            let bytes = random.spread(500, 100_000) as u32;
            Reader::Periodic(bytes, random.spread(1_000_000, 200 * MS))
        }
    };
    let mut plans = [0, 1].map(|_| Plan {
        acts: Vec::new(),
        reader: reader(random),
        reply: None,
        quick_ack: false,
    });
    let talks = random.between(0, 4);
    let request = random.spread(1, 3_000) as u32;
    for (end, plan) in plans.iter_mut().enumerate() {
        plan.acts = match talks {
            0 if end == 0 => requests(request, random),
            1 => messages(random),
            2 if end == 0 => bulk(random),
            3 => bulk(random),
            4 => mixture(random),
            _ => Vec::new(),
        };
    }
    if talks == 0 {
        plans[1].reply = Some((u64::from(request), random.spread(1, 30_000) as u32));
    }
    // Who is the first to end, and how; the other ends when it has read all.
    let first = random.between(0, 1) as usize;
    let at = plans[first].acts.last().map_or(0, |(at, _)| *at) + random.spread(1, 2_000) * MS;
    let end = random.pick(&[Act::Finish, Act::Close]);
    plans[first].acts.push((at, end));
    plans
}

fn requests(size: u32, random: &mut Random) -> Vec<(u64, Act)> {
    let mut at = random.between(0, 20) * MS;
    (0..random.between(3, 30))
        .map(|_| {
            at += random.spread(1, 800) * MS + random.between(0, MS);
            (at, Act::Write(size))
        })
        .collect()
}

fn messages(random: &mut Random) -> Vec<(u64, Act)> {
    let interval = random.pick(&[5, 10, 16, 33, 50, 100, 250]) * MS;
    let (least, most) = (random.spread(1, 400), random.spread(400, 2_000));
    let begin = random.between(0, interval);
    (0..random.between(10, 80))
        .map(|index| {
            let size = random.between(least, most) as u32;
            (
                begin + index * interval + random.between(0, 900_000),
                Act::Write(size),
            )
        })
        .collect()
}

fn bulk(random: &mut Random) -> Vec<(u64, Act)> {
    let chunk = random.spread(1_000, 300_000) as u32;
    let count = random.between(1, 1 + 600_000 / u64::from(chunk)).min(40);
    let mut at = 0;
    (0..count)
        .map(|_| {
            at += random.between(0, 10) * MS / 4;
            (at, Act::Write(chunk))
        })
        .collect()
}

fn mixture(random: &mut Random) -> Vec<(u64, Act)> {
    let mut at = 0;
    (0..random.between(1, 30))
        .map(|_| {
            at += random.spread(100_000, 1_500 * MS);
            let act = match random.between(0, 19) {
                0 => Act::Nodelay(true),
                1 => Act::Nodelay(false),
                2 => Act::Cork(true),
                3 | 4 => Act::Cork(false),
                _ => Act::Write(random.spread(1, 60_000) as u32),
            };
            (at, act)
        })
        .collect()
}
