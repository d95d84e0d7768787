//! The queue with the wakers that the server has.

use std::collections::VecDeque;

use super::{Capacity, Item, Queue};
use crate::server::poller::{Events, Poller, waker};

impl Item for u32 {
    fn payload_bytes(&self) -> usize {
        0
    }
}

/// An item that is as long as it says.
#[derive(Debug, PartialEq)]
struct Long(usize);

impl Item for Long {
    fn payload_bytes(&self) -> usize {
        self.0
    }
}

#[test]
fn what_waits_is_bounded_by_its_bytes_and_one_item_of_any_length_finds_room() {
    let poller = Poller::new().unwrap();
    let waker = waker(&poller, 0).unwrap();
    let capacity = Capacity {
        items: 100,
        bytes: 1000,
    };
    let queue = Queue::new(capacity, waker.clone());
    let mut batch: VecDeque<Long> = [400, 599, 0, 5000, 0, 1].map(Long).into();
    let mut out = VecDeque::new();
    // Up to the first that reaches the bound, and not one after it.
    queue.offer(&mut batch, &waker);
    assert_eq!(batch, [Long(0), Long(1)]);
    queue.offer(&mut batch, &waker);
    assert_eq!(batch.len(), 2);
    queue.take(&mut out);
    assert_eq!(out, [400, 599, 0, 5000].map(Long));
    // What was taken does not count any more.
    queue.offer(&mut batch, &waker);
    assert!(batch.is_empty());
}

#[test]
fn what_finds_no_room_stays_and_keeps_its_place() {
    let poller = Poller::new().unwrap();
    let waker = waker(&poller, 0).unwrap();
    let queue = Queue::new(Capacity::of_items(3), waker.clone());
    let mut batch: VecDeque<u32> = (0..5).collect();
    queue.offer(&mut batch, &waker);
    assert_eq!(batch, [3, 4]);
    assert_eq!(queue.depth(), 3);
    let mut out = VecDeque::new();
    queue.take(&mut out);
    assert_eq!(out, [0, 1, 2]);
    queue.offer(&mut batch, &waker);
    out.clear();
    queue.take(&mut out);
    assert_eq!(out, [3, 4]);
}

#[test]
fn what_a_burst_took_is_given_back_and_an_even_load_keeps_what_it_needs() {
    let poller = Poller::new().unwrap();
    let waker = waker(&poller, 0).unwrap();
    let queue = Queue::new(Capacity::of_items(100_000), waker.clone());
    let (mut batch, mut out) = (VecDeque::new(), VecDeque::new());
    let mut turn = |count: u32| {
        batch.extend(0..count);
        queue.offer(&mut batch, &waker);
        queue.take(&mut out);
        assert!(out.drain(..).eq(0..count));
        (batch.capacity(), out.capacity())
    };
    turn(50_000);
    let even = turn(50_000);
    assert_eq!(turn(50_000), even);
    for _ in 0..16 {
        turn(1);
    }
    for _ in 0..2 {
        let (batch, out) = turn(1);
        assert!(batch <= 1024 && out <= 1024, "{batch}, {out}");
    }
}

#[test]
fn nothing_is_lost_between_threads() {
    let poller = Poller::new().unwrap();
    let consumer = waker(&poller, 0).unwrap();
    let other = Poller::new().unwrap();
    let producer = waker(&other, 0).unwrap();
    let queue = Queue::new(Capacity::of_items(16), consumer.clone());
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut ready = Events::new();
            let mut batch = VecDeque::new();
            for item in 0..10_000_u32 {
                batch.push_back(item);
                queue.offer(&mut batch, &producer);
                while batch.len() > 8 {
                    other.wait(None, &mut ready).unwrap();
                    producer.silence();
                    queue.offer(&mut batch, &producer);
                }
            }
            while !batch.is_empty() {
                other.wait(None, &mut ready).unwrap();
                producer.silence();
                queue.offer(&mut batch, &producer);
            }
        });
        let (mut ready, mut out) = (Events::new(), VecDeque::new());
        while seen.len() < 10_000 {
            poller.wait(None, &mut ready).unwrap();
            consumer.silence();
            queue.take(&mut out);
            seen.extend(out.drain(..));
        }
    });
    assert!(seen.iter().copied().eq(0..10_000));
}
