//! Two nodes and one entry: who owns the channels, and when.

use std::time::Duration;

use super::*;

const LEASE: Duration = Duration::from_secs(3);

/// The entry, as the store has it.
#[derive(Default)]
struct Store {
    entry: Option<Bytes>,
    revision: u64,
}

impl Store {
    fn answer(&mut self, request: LeaseRequest) -> LeaseAnswer {
        let (value, is_fine) = match request {
            LeaseRequest::Read => {
                let entry = self.entry.clone().map(|value| (value, self.revision));
                return LeaseAnswer::Entry(entry);
            }
            LeaseRequest::Create(value) => (value, self.entry.is_none()),
            LeaseRequest::Update(value, revision) => {
                (value, self.entry.is_some() && self.revision == revision)
            }
        };
        if !is_fine {
            return LeaseAnswer::Conflict;
        }
        self.entry = Some(value);
        self.revision += 1;
        LeaseAnswer::Written(self.revision)
    }
}

fn node(number: u64) -> Lease {
    Lease::new(Time::ZERO, NodeId(number), NodeTimes::default())
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Lets time pass in steps of 50 ms, in which a node's tasks are answered, or fail.
fn pass(nodes: &mut [&mut Lease], store: &mut Store, from: u64, to: u64, works: bool) {
    for millis in (from..to).step_by(50) {
        for lease in nodes.iter_mut() {
            lease.handle_deadline(at(millis));
            while let Some(task) = lease.poll_task() {
                let answer = if works {
                    store.answer(task.request)
                } else {
                    LeaseAnswer::Failed("no server".to_owned())
                };
                lease.on_answer(at(millis), task.number, answer);
                lease.handle_deadline(at(millis));
            }
        }
    }
}

#[test]
fn the_first_owns_the_channels_and_another_stands_by_until_it_is_silent_for_a_lease() {
    let (mut one, mut other, mut store) = (node(1), node(2), Store::default());
    pass(&mut [&mut one, &mut other], &mut store, 0, 10_000, true);
    assert_eq!(one.standing(at(10_000)), Standing::Owns(1));
    assert_eq!(other.standing(at(10_000)), Standing::StandsBy);
    // The first dies, at most a second after it renewed its lease.
    pass(&mut [&mut other], &mut store, 10_000, 11_900, true);
    assert_eq!(other.standing(at(11_900)), Standing::StandsBy);
    pass(&mut [&mut other], &mut store, 11_900, 15_100, true);
    assert_eq!(other.standing(at(15_100)), Standing::Owns(2));
    // It was only paused: its lease is over, and what it asks for fails.
    assert_eq!(one.standing(at(15_100)), Standing::Rests(1));
    pass(&mut [&mut one], &mut store, 15_100, 15_200, true);
    assert_eq!(one.standing(at(15_200)), Standing::StandsBy);
}

#[test]
fn an_owner_that_was_cut_off_with_all_others_goes_on_in_its_epoch() {
    let (mut one, mut other, mut store) = (node(1), node(2), Store::default());
    pass(&mut [&mut one, &mut other], &mut store, 0, 5_000, true);
    pass(
        &mut [&mut other, &mut one],
        &mut store,
        5_000,
        12_000,
        false,
    );
    assert_eq!(one.standing(at(12_000)), Standing::Rests(1));
    assert!(!one.is_in_touch(at(12_000)));
    // The other is first to reach the store again, and waits a whole lease.
    pass(&mut [&mut other], &mut store, 12_000, 13_000, true);
    pass(
        &mut [&mut other, &mut one],
        &mut store,
        13_000,
        20_000,
        true,
    );
    assert_eq!(one.standing(at(20_000)), Standing::Owns(1));
    assert_eq!(other.standing(at(20_000)), Standing::StandsBy);
}

#[test]
fn a_renewal_whose_answer_was_lost_does_not_cost_the_lease() {
    let (mut one, mut store) = (node(1), Store::default());
    pass(&mut [&mut one], &mut store, 0, 1_000, true);
    one.handle_deadline(at(1_000));
    let task = one.poll_task().unwrap();
    let _ = store.answer(task.request);
    let lost = LeaseAnswer::Failed("timed out".to_owned());
    one.on_answer(at(1_500), task.number, lost);
    pass(&mut [&mut one], &mut store, 1_500, 6_000, true);
    assert_eq!(one.standing(at(6_000)), Standing::Owns(1));
    // An answer that comes after it was given up changes nothing.
    one.on_answer(at(6_000), task.number, LeaseAnswer::Conflict);
    assert_eq!(one.standing(at(6_000)), Standing::Owns(1));
}

#[test]
fn a_lease_that_is_given_up_is_taken_at_once() {
    let (mut one, mut other, mut store) = (node(1), node(2), Store::default());
    pass(&mut [&mut one, &mut other], &mut store, 0, 5_000, true);
    one.end(at(5_000), None);
    let task = one.poll_task().unwrap();
    let answer = store.answer(task.request);
    one.on_answer(at(5_000), task.number, answer);
    assert_eq!(one.standing(at(5_000)), Standing::StandsBy);
    pass(&mut [&mut one, &mut other], &mut store, 5_000, 6_100, true);
    assert_eq!(other.standing(at(6_100)), Standing::Owns(2));
    assert_eq!(other.predecessor(), Some((NodeId(1), 1)));
    assert_eq!(one.next_deadline(), None);
    assert!(one.is_over());
}

#[test]
fn a_lease_that_is_given_up_in_favour_of_one_is_for_others_as_if_it_were_held() {
    let (mut one, mut store) = (node(1), Store::default());
    let (mut other, mut third) = (node(2), node(3));
    let all = &mut [&mut one, &mut other, &mut third];
    pass(all, &mut store, 0, 5_000, true);
    one.end(at(5_000), Some(NodeId(3)));
    let task = one.poll_task().unwrap();
    one.on_answer(at(5_000), task.number, store.answer(task.request));
    pass(&mut [&mut other], &mut store, 5_000, 7_900, true);
    assert_eq!(other.standing(at(7_900)), Standing::StandsBy);
    third.hurry(at(7_900), at(9_000));
    pass(
        &mut [&mut third, &mut other],
        &mut store,
        7_900,
        8_000,
        true,
    );
    assert_eq!(third.standing(at(8_000)), Standing::Owns(2));
    assert_eq!(other.standing(at(8_000)), Standing::StandsBy);
}

#[test]
fn a_renewal_that_is_under_way_is_answered_before_the_lease_is_given_up() {
    let (mut one, mut store) = (node(1), Store::default());
    pass(&mut [&mut one], &mut store, 0, 1_000, true);
    one.handle_deadline(at(1_000));
    let renewal = one.poll_task().unwrap();
    one.end(at(1_000), None);
    assert_eq!(one.poll_task(), None);
    one.on_answer(at(1_010), renewal.number, store.answer(renewal.request));
    let free = one.poll_task().unwrap();
    assert!(!one.is_over());
    let answer = store.answer(free.request);
    assert!(matches!(answer, LeaseAnswer::Written(_)), "{answer:?}");
    one.on_answer(at(1_020), free.number, answer);
    assert!(one.is_over());
}

#[test]
fn an_entry_that_was_lost_is_made_anew_and_its_epoch_rises_above_what_edges_have_seen() {
    let (mut one, mut store) = (node(1), Store::default());
    pass(&mut [&mut one], &mut store, 0, 2_000, true);
    store = Store::default();
    let mut other = node(2);
    pass(&mut [&mut one, &mut other], &mut store, 2_000, 9_000, true);
    let standings = [&one, &other].map(|lease| lease.standing(at(9_000)));
    let owners = standings
        .iter()
        .filter(|it| matches!(it, Standing::Owns(_)));
    assert_eq!(owners.count(), 1, "{standings:?}");
    let owner = if matches!(standings[0], Standing::Owns(_)) {
        &mut one
    } else {
        &mut other
    };
    owner.raise(at(9_000), 40);
    pass(&mut [owner], &mut store, 9_000, 9_100, true);
    assert_eq!(owner.standing(at(9_100)), Standing::Owns(41));
}

#[test]
fn times_of_a_lease_count_from_before_it_was_asked_for() {
    let (mut one, mut store) = (node(1), Store::default());
    pass(&mut [&mut one], &mut store, 0, 1_000, true);
    one.handle_deadline(at(1_000));
    let task = one.poll_task().unwrap();
    // The answer takes two seconds.
    let answer = store.answer(task.request);
    one.on_answer(at(3_000), task.number, answer);
    assert_eq!(one.standing(at(3_999)), Standing::Owns(1));
    assert_eq!(one.standing(at(1_000) + LEASE), Standing::Rests(1));
}

#[test]
fn a_task_that_is_never_answered_does_not_hold_the_lease_up() {
    let (mut one, mut store) = (node(1), Store::default());
    one.handle_deadline(at(0));
    assert!(one.poll_task().is_some());
    assert_eq!(one.next_deadline(), Some(at(0) + LEASE));
    pass(&mut [&mut one], &mut store, 3_000, 5_000, true);
    assert_eq!(one.standing(at(5_000)), Standing::Owns(1));
}

/// Two nodes, of which the first has named the second for so long.
fn named() -> (Lease, Lease, Store) {
    let (mut one, mut other, mut store) = (node(1), node(2), Store::default());
    pass(&mut [&mut one, &mut other], &mut store, 0, 3_000, true);
    assert_eq!((one.may_name(), one.names()), (None, None));
    one.set_successor(at(3_000), Some(NodeId(2)));
    pass(&mut [&mut one, &mut other], &mut store, 3_000, 3_100, true);
    assert_eq!(one.may_name(), Some(NodeId(2)));
    assert_eq!(one.names(), Some(NodeId(2)));
    (one, other, store)
}

#[test]
fn who_is_named_takes_a_lease_that_is_over_before_others_and_knows_that_it_was_named() {
    let (_, mut other, mut store) = named();
    let mut third = node(3);
    // The holder dies.
    pass(
        &mut [&mut third, &mut other],
        &mut store,
        3_100,
        7_200,
        true,
    );
    assert_eq!(other.standing(at(7_200)), Standing::Owns(2));
    assert_eq!(other.predecessor(), Some((NodeId(1), 1)));
    assert!(other.is_named());
    // Nobody is named any more, and the next is not.
    assert_eq!((other.may_name(), other.names()), (None, None));
    pass(&mut [&mut third], &mut store, 7_200, 12_000, true);
    assert_eq!(third.standing(at(12_000)), Standing::Owns(3));
    assert!(!third.is_named());
}

#[test]
fn others_take_the_lease_where_who_is_named_does_not() {
    let (_, _, mut store) = named();
    let mut third = node(3);
    pass(&mut [&mut third], &mut store, 3_100, 8_900, true);
    assert_eq!(third.standing(at(8_900)), Standing::StandsBy);
    pass(&mut [&mut third], &mut store, 8_900, 10_300, true);
    assert_eq!(third.standing(at(10_300)), Standing::Owns(2));
    assert!(!third.is_named());
}

#[test]
fn an_entry_may_name_a_node_until_it_is_known_that_it_does_not() {
    let (mut one, mut other, mut store) = named();
    one.set_successor(at(3_100), None);
    // It was written, perhaps, and nobody knows.
    pass(&mut [&mut one], &mut store, 3_100, 4_000, false);
    assert_eq!(one.may_name(), Some(NodeId(2)));
    pass(&mut [&mut one, &mut other], &mut store, 4_000, 5_000, true);
    assert_eq!((one.may_name(), one.names()), (None, None));
    assert_eq!(one.standing(at(5_000)), Standing::Owns(1));
    // So who was named before is not when it takes the lease.
    pass(&mut [&mut other], &mut store, 5_000, 10_000, true);
    assert_eq!(other.standing(at(10_000)), Standing::Owns(2));
    assert!(!other.is_named());
}

#[test]
fn who_is_named_does_not_lose_its_place_by_readings_that_fail() {
    let (_, mut other, mut store) = named();
    other.set_can_succeed(true);
    // The holder dies, and then nothing can be read for a while.
    pass(&mut [&mut other], &mut store, 3_100, 4_100, true);
    pass(&mut [&mut other], &mut store, 4_100, 6_500, false);
    pass(&mut [&mut other], &mut store, 6_500, 7_200, true);
    assert_eq!(other.standing(at(7_200)), Standing::Owns(2));
    assert!(other.is_named());
}

#[test]
fn a_name_that_was_written_while_the_answer_was_lost_is_not_forgotten() {
    let (mut one, mut store) = (node(1), Store::default());
    pass(&mut [&mut one], &mut store, 0, 1_000, true);
    one.set_successor(at(1_000), Some(NodeId(2)));
    one.handle_deadline(at(1_000));
    let task = one.poll_task().unwrap();
    let _ = store.answer(task.request);
    one.on_answer(at(1_500), task.number, LeaseAnswer::Failed("lost".into()));
    one.set_successor(at(1_500), None);
    let mut answers = Vec::new();
    for ms in 1_500..4_000 {
        one.handle_deadline(at(ms));
        if let Some(task) = one.poll_task() {
            let answer = store.answer(task.request);
            one.on_answer(at(ms), task.number, answer.clone());
            let entry = Entry::decode(store.entry.clone().unwrap()).unwrap();
            let is_known = entry.successor.is_none() || one.may_name() == entry.successor;
            assert!(is_known, "{ms}: {answer:?}");
            answers.push(answer);
        }
    }
    assert!(answers.contains(&LeaseAnswer::Conflict), "{answers:?}");
    assert_eq!(one.may_name(), None);
}

#[test]
fn who_is_named_and_has_nothing_to_go_on_with_waits_as_others_do() {
    let (_, mut other, mut store) = named();
    pass(&mut [&mut other], &mut store, 3_100, 4_100, true);
    pass(&mut [&mut other], &mut store, 4_100, 6_500, false);
    pass(&mut [&mut other], &mut store, 6_500, 9_400, true);
    assert_eq!(other.standing(at(9_400)), Standing::StandsBy);
}

#[test]
fn a_lease_counts_from_when_its_renewal_was_reported() {
    let (_, mut other, mut store) = named();
    pass(&mut [&mut other], &mut store, 3_100, 4_100, true);
    // A reading is under way; the holder renews, says so, and dies.
    other.handle_deadline(at(5_100));
    let read = other.poll_task().unwrap();
    let old = store.answer(read.request);
    store.revision += 1;
    other.note_renewal(at(5_200), store.revision);
    other.on_answer(at(5_300), read.number, old);
    pass(&mut [&mut other], &mut store, 5_300, 8_190, true);
    assert_eq!(other.standing(at(8_190)), Standing::StandsBy);
    pass(&mut [&mut other], &mut store, 8_190, 8_300, true);
    assert_eq!(other.standing(at(8_300)), Standing::Owns(2));
}

#[test]
fn what_was_reported_while_nothing_could_be_read_may_name_nobody() {
    let (mut one, mut other, mut store) = named();
    other.set_can_succeed(true);
    pass(&mut [&mut other], &mut store, 3_100, 4_100, true);
    one.set_successor(at(4_100), None);
    pass(&mut [&mut one], &mut store, 4_100, 4_200, true);
    other.note_renewal(at(4_200), store.revision);
    pass(&mut [&mut other], &mut store, 4_200, 8_000, false);
    pass(&mut [&mut other], &mut store, 8_000, 10_900, true);
    assert_eq!(other.standing(at(10_900)), Standing::StandsBy);
}

#[test]
fn a_higher_epoch_whose_answer_was_lost_is_the_holders_all_the_same() {
    let (mut one, mut other, mut store) = (node(1), node(2), Store::default());
    pass(&mut [&mut one, &mut other], &mut store, 0, 1_400, true);
    one.raise_once_idle(at(1_400), 1);
    one.handle_deadline(at(1_400));
    let task = one.poll_task().expect("it takes another epoch");
    assert!(matches!(
        store.answer(task.request),
        LeaseAnswer::Written(_)
    ));
    let lost = LeaseAnswer::Failed("timed out".to_owned());
    one.on_answer(at(1_500), task.number, lost);
    // Asked for again, in vain, before it has looked.
    one.raise_once_idle(at(1_500), 1);
    for millis in (1_500..20_000).step_by(1_000) {
        assert_ne!(one.standing(at(millis)), Standing::StandsBy, "{millis}");
        pass(
            &mut [&mut one, &mut other],
            &mut store,
            millis,
            millis + 1_000,
            true,
        );
    }
    assert_eq!(one.standing(at(20_000)), Standing::Owns(2));
    assert_eq!(other.standing(at(20_000)), Standing::StandsBy);
}

/// It never does nothing but ask for what cannot be written.
#[test]
fn a_higher_epoch_that_is_refused_is_asked_for_again_once_the_entry_was_read() {
    let (mut one, mut store) = (node(1), Store::default());
    pass(&mut [&mut one], &mut store, 0, 1_400, true);
    // Another has it meanwhile.
    let mut other = node(2);
    other.note_epoch(1);
    let taken = other.entry(2).encode();
    store.answer(LeaseRequest::Update(taken, store.revision));
    let mut asked = 0;
    for millis in (1_400..2_400).step_by(10) {
        one.raise_once_idle(at(millis), 1);
        one.handle_deadline(at(millis));
        while let Some(task) = one.poll_task() {
            asked += 1;
            let answer = store.answer(task.request);
            one.on_answer(at(millis), task.number, answer);
        }
    }
    assert_eq!(one.standing(at(2_400)), Standing::StandsBy);
    assert!(asked < 10, "{asked}");
}
