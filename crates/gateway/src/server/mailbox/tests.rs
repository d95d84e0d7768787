//! The queue on the bells that the server has.

use std::collections::VecDeque;

use super::Queue;
use crate::server::poller::{Events, Poller, waker};

#[test]
fn what_finds_no_room_stays_and_keeps_its_place() {
    let poller = Poller::new().unwrap();
    let waker = waker(&poller, 0).unwrap();
    let queue = Queue::new(3, waker.clone());
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
fn nothing_is_lost_between_threads() {
    let poller = Poller::new().unwrap();
    let consumer = waker(&poller, 0).unwrap();
    let other = Poller::new().unwrap();
    let producer = waker(&other, 0).unwrap();
    let queue = Queue::new(16, consumer.clone());
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
