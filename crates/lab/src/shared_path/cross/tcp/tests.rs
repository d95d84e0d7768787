use std::collections::VecDeque;
use std::time::Duration;

use super::*;

const DELAY: Duration = Duration::from_millis(1);
const FLOWS: u32 = 64;
const BYTES: u64 = 300;
const PORTS: usize = 28_232;

/// Hosts a millisecond apart.
struct Apart {
    hosts: Hosts,
    now: Time,
    on_the_way: VecDeque<(Time, CrossPacket)>,
}

impl Apart {
    fn new(direction: &str) -> Self {
        let text = format!("kind = \"web\"\ndirection = \"{direction}\"\n");
        Self {
            hosts: Hosts::new(&toml::from_str(&text).unwrap(), 1),
            now: Time::ZERO,
            on_the_way: VecDeque::new(),
        }
    }

    /// Goes on for `time`.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            while let Some(packet) = self.hosts.poll() {
                self.on_the_way.push_back((self.now + DELAY, packet));
            }
            let arrival = self.on_the_way.front().map(|(at, _)| *at);
            let deadline = self.hosts.next_deadline();
            let next = arrival.into_iter().chain(deadline).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            self.hosts.handle_deadline(self.now);
            while let Some((_, packet)) = self.on_the_way.pop_front_if(|(at, _)| *at <= self.now) {
                let Load::Ip(bytes) = packet.load else {
                    panic!("TCP is IP packets");
                };
                self.hosts.receive(self.now, packet.direction, &bytes);
            }
        }
    }
}

/// 500 pages need more connections than there are ports.
fn pages_keep_opening(direction: &str, most: usize) {
    let mut apart = Apart::new(direction);
    for page in 1..=500 {
        apart.hosts.open(apart.now, FLOWS, BYTES);
        assert_eq!(apart.hosts.open_transfers(), FLOWS, "page {page}");
        apart.run(Duration::from_millis(15));
        // Nothing that is over is looked at again.
        assert_eq!(apart.hosts.open_transfers(), 0, "page {page}");
        assert!(apart.hosts.server.transfers.is_empty(), "page {page}");
        let bytes = page * u64::from(FLOWS) * BYTES;
        assert_eq!(apart.hosts.received_bytes(), bytes);
        let [client, server] = [&apart.hosts.client, &apart.hosts.server];
        let lengths = [client.endpoint.len(), server.endpoint.len()];
        assert!(lengths.iter().sum::<usize>() <= most, "{lengths:?}");
    }
    // TIME-WAIT lasts a minute, and its timer is up to an eighth late.
    apart.run(Duration::from_secs(70));
    assert!(apart.hosts.client.endpoint.is_empty());
    assert!(apart.hosts.server.endpoint.is_empty());
}

#[test]
fn more_pages_come_down_than_there_are_ports() {
    pages_keep_opening("down", PORTS);
}

#[test]
fn more_pages_go_up_than_there_are_ports() {
    pages_keep_opening("up", PORTS);
}
