//! A sweep with workers that die at any point, against a model of the queue: each job is
//! found once, as it was played, whatever was asked for when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lagometer_distributed::{
    BadAttempt, Brought, Deal, Given, Job, Task, WorkerEvent, fragments, pack,
};
use lagometer_lab::saved::SavedSeed;
use lagometer_lab::{LaneRun, OwnLane, SeedRun};
use proptest::prelude::*;

/// The most that a message of the model holds: results are cut into several.
const MOST: usize = 1_100;

const EACH: Duration = Duration::from_secs(30);

/// What a seed is found to do; long enough to be cut, and of its seed alone.
fn run_of(seed: u64) -> SeedRun {
    let words = (0..400).map(|n: u64| seed.wrapping_add(1).wrapping_mul(n * n + 7).to_string());
    SeedRun {
        seed,
        lanes: vec![
            LaneRun::Panicked(words.collect()),
            LaneRun::Unopened("no port".to_owned()),
        ],
    }
}

fn task(seed: u64) -> Task {
    Task {
        recipe: 0,
        seed,
        lanes: vec!["udp".to_owned(), "kcp".to_owned()],
        instead: Vec::new(),
        each: EACH,
    }
}

/// A sweep over these seeds.
fn sweep(seeds: &[u64]) -> Deal {
    let mut deal = Deal::new("S");
    for &seed in seeds {
        deal.add(task(seed));
    }
    deal
}

fn result_of(seed: u64, attempt: &str, number: usize) -> Vec<Vec<u8>> {
    let brought = Brought::Played(SavedSeed::from(&run_of(seed)));
    fragments::cut(attempt, number, &pack(&brought).unwrap(), MOST)
}

/// A work queue as `JetStream` has it, and what was brought.
#[derive(Default)]
struct Queue {
    /// Jobs that nobody has, by the order in which they are given.
    waiting: Vec<usize>,
    /// Jobs that a worker has, or had when it died.
    given: BTreeSet<usize>,
    /// Parts that the coordinator has not read.
    brought: Vec<Vec<u8>>,
}

impl Queue {
    fn holds(&self) -> BTreeSet<usize> {
        self.waiting.iter().chain(&self.given).copied().collect()
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// A worker takes a job and dies after so many of its fragments.
    TakeAndDie(usize),
    /// A worker takes a job, brings it, and the job is acknowledged or not.
    Bring { acknowledges: bool },
    /// Jobs whose workers are silent go back.
    Redeliver,
    /// A worker drops its job for good: it did not reach the coordinator.
    Drop,
    /// The coordinator reads so many fragments, the newest first or the oldest.
    Read { fragments: usize, newest: bool },
    /// It holds the queue against what is owed.
    Audit,
    /// The queue is deleted with all that is in it.
    Lose,
    /// Somebody brings nonsense.
    Nonsense,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4_usize).prop_map(Step::TakeAndDie),
        6 => any::<bool>().prop_map(|acknowledges| Step::Bring { acknowledges }),
        2 => Just(Step::Redeliver),
        1 => Just(Step::Drop),
        5 => (1..9_usize, any::<bool>()).prop_map(|(fragments, newest)| Step::Read { fragments, newest }),
        2 => Just(Step::Audit),
        1 => Just(Step::Lose),
        1 => Just(Step::Nonsense),
    ]
}

struct Play {
    deal: Deal,
    queue: Queue,
    attempts: usize,
    /// What was found of each job, as often as it was.
    found: BTreeMap<usize, Vec<SeedRun>>,
    played: Duration,
}

impl Play {
    fn new() -> Self {
        Self {
            deal: Deal::new("S"),
            queue: Queue::default(),
            attempts: 0,
            found: BTreeMap::new(),
            played: Duration::ZERO,
        }
    }

    /// Asks for these seeds beside all that was asked for before.
    fn ask(&mut self, seeds: &[u64]) {
        let numbers = seeds.iter().map(|&seed| self.deal.add(task(seed)));
        self.queue.waiting.extend(numbers);
    }

    fn take(&mut self) -> Option<(usize, Vec<Vec<u8>>)> {
        let number = (!self.queue.waiting.is_empty()).then(|| self.queue.waiting.remove(0))?;
        self.attempts += 1;
        if !self.deal.is_owed(number) {
            return None;
        }
        self.queue.given.insert(number);
        self.played += self.deal.on_progress(number, EACH / 3);
        let attempt = format!("w/{}", self.attempts);
        let seed = self.deal.job(number)?.seed;
        Some((number, result_of(seed, &attempt, number)))
    }

    fn read(&mut self, newest: bool) {
        let last = self.queue.brought.len() - 1;
        let message = self.queue.brought.remove(if newest { last } else { 0 });
        if let Some(fragment) = fragments::read(&message)
            && let Given::Found { saved, played } = self.deal.on_fragment(&fragment).unwrap()
        {
            let found = self.found.entry(fragment.header.number).or_default();
            found.push(SeedRun::from(saved));
            self.played += played;
        }
    }

    fn audit(&mut self) {
        if self.queue.brought.is_empty() {
            let lost = self.deal.lost(&self.queue.holds());
            self.queue.waiting.extend(lost);
        }
    }

    fn go(&mut self, step: &Step) {
        match *step {
            Step::TakeAndDie(after) => {
                if let Some((_, fragments)) = self.take() {
                    self.queue.brought.extend(fragments.into_iter().take(after));
                }
            }
            Step::Bring { acknowledges } => {
                if let Some((number, fragments)) = self.take() {
                    self.queue.brought.extend(fragments);
                    if acknowledges {
                        self.queue.given.remove(&number);
                    }
                }
            }
            Step::Redeliver => {
                let given = std::mem::take(&mut self.queue.given);
                self.queue.waiting.extend(given);
            }
            Step::Drop => {
                if let Some((number, _)) = self.take() {
                    self.queue.given.remove(&number);
                }
            }
            Step::Read { fragments, newest } => {
                for _ in 0..fragments.min(self.queue.brought.len()) {
                    self.read(newest);
                }
            }
            Step::Audit => self.audit(),
            Step::Lose => self.queue = Queue::default(),
            Step::Nonsense => self.queue.brought.push(b"hello".to_vec()),
        }
    }

    /// From now on nobody dies: so many rounds until everything is found.
    fn rounds_to_the_end(&mut self) -> usize {
        for round in 1.. {
            self.go(&Step::Redeliver);
            while !self.queue.waiting.is_empty() {
                self.go(&Step::Bring { acknowledges: true });
            }
            while !self.queue.brought.is_empty() {
                self.read(false);
            }
            if self.deal.is_done() || round == 10 {
                return round;
            }
            self.audit();
        }
        unreachable!()
    }
}

proptest! {
    #[test]
    fn whatever_workers_do_each_job_is_found_once_however_many_are_added_when(
        batches in proptest::collection::vec(
            (0..9_u64, proptest::collection::vec(step(), 0..60), any::<bool>()),
            1..4,
        ),
    ) {
        // Not in their order, for a sweep may begin anywhere.
        let mut next = u64::MAX;
        let mut asked = Vec::new();
        let mut play = Play::new();
        for (count, steps, waits) in &batches {
            let seeds: Vec<u64> = (0..*count).map(|n| next.wrapping_add(n * 3)).collect();
            next = next.wrapping_add(count * 3);
            play.ask(&seeds);
            asked.extend(seeds);
            for step in steps {
                play.go(step);
            }
            // A search asks for more once it has everything; others may at any time.
            if *waits {
                play.rounds_to_the_end();
                prop_assert!(play.deal.is_done());
            }
        }
        let rounds = play.rounds_to_the_end();
        prop_assert!(play.deal.is_done());
        // Two audits find what is lost; one round plays it.
        prop_assert!(rounds <= 4, "{rounds} rounds");
        prop_assert_eq!(play.played, EACH * asked.len() as u32, "all progress, each once");
        // By their numbers they are in the order in which they were asked for.
        let found: Vec<Vec<SeedRun>> = play.found.into_values().collect();
        let wanted: Vec<Vec<SeedRun>> = asked.iter().map(|&seed| vec![run_of(seed)]).collect();
        prop_assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
    }
}

#[test]
fn nothing_is_put_in_again_that_is_on_its_way() {
    let mut deal = sweep(&[1, 2, 3]);
    let queued = BTreeSet::from([1]);
    assert!(deal.lost(&queued).is_empty(), "missing for the first time");
    for fragment in result_of(1, "w/1", 0) {
        deal.on_fragment(&fragments::read(&fragment).unwrap())
            .unwrap();
    }
    assert_eq!(deal.lost(&queued), [2], "still missing, and not found");
    assert!(deal.lost(&queued).is_empty(), "put in again just now");
    assert_eq!(deal.owed().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_result_of_another_seed_is_nonsense_and_three_end_the_sweep() {
    let mut deal = sweep(&[1]);
    let mut bring = |attempt: &str| {
        let fragments = result_of(2, attempt, 0);
        let mut last = Ok(Given::Nothing);
        for fragment in &fragments {
            last = deal.on_fragment(&fragments::read(fragment).unwrap());
        }
        last
    };
    assert_eq!(bring("a/1"), Ok(Given::Nothing));
    assert_eq!(bring("b/1"), Ok(Given::Nothing));
    let why = bring("c/1").unwrap_err();
    assert_eq!(
        why.to_string(),
        "seed 1: what c/1 brought is no result of it: it is of seed 2"
    );
}

#[test]
fn a_seed_that_ends_its_workers_ends_the_sweep_and_its_lane_is_named() {
    let mut deal = sweep(&[]);
    let lane = OwnLane {
        name: Some("kcp-wide".to_owned()),
        transport: "kcp".to_owned(),
        settings: toml::Table::new(),
        size: None,
    };
    let lanes = vec!["kcp-wide".to_owned()];
    let instead = vec![lane];
    deal.add(Task {
        lanes,
        instead,
        ..task(7)
    });
    let brought = pack(&Brought::Failed("none brought it".to_owned())).unwrap();
    let [fragment] = &fragments::cut("a/1", 0, &brought, MOST)[..] else {
        panic!("a short text is one fragment");
    };
    let why = deal
        .on_fragment(&fragments::read(fragment).unwrap())
        .unwrap_err();
    let play = "seed 7 of kcp-wide".to_owned();
    let said = "none brought it".to_owned();
    assert_eq!(why, BadAttempt::Failed { play, why: said });
}

#[test]
fn workers_are_named_when_they_come_and_once_when_they_fall_silent() {
    let mut deal = sweep(&[1]);
    let at = Duration::from_secs;
    let name = || "w".to_owned();
    assert_eq!(
        deal.on_worker("w", at(1)),
        Some(WorkerEvent::Joined(name()))
    );
    assert_eq!(deal.on_worker("w", at(9)), None);
    assert!(deal.silent_workers(at(15)).is_empty());
    assert_eq!(deal.silent_workers(at(16)), [WorkerEvent::Silent(name())]);
    assert!(deal.silent_workers(at(29)).is_empty());
    assert_eq!(
        deal.on_worker("w", at(30)),
        Some(WorkerEvent::Joined(name()))
    );
}

/// What a worker is asked crosses as text: a lane's settings are as exact there.
#[test]
fn a_job_with_lanes_of_its_own_is_read_as_it_was_written() {
    let settings = r#"
        tick = "7 ms"
        odd = 0.30000000000000004
        whole = 2.0
        large = 9223372036854775807
        adaptive = { parity_most = 5, on = true }
    "#;
    let mut deal = Deal::new("S");
    let instead = vec![OwnLane {
        name: Some("kcp-wide".to_owned()),
        transport: "kcp".to_owned(),
        settings: toml::from_str(settings).unwrap(),
        size: Some("1201 B".parse().unwrap()),
    }];
    let number = deal.add(Task {
        recipe: 3,
        instead,
        ..task(u64::MAX)
    });
    let job = deal.job(number).unwrap();
    let text = serde_json::to_string(&job).unwrap();
    let read: Job = serde_json::from_str(&text).unwrap();
    assert_eq!(read, job);
    assert_eq!(read.recipe, 3);
}
