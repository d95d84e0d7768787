//! Both sides together, and datagrams that no sender of ours makes.

use proptest::prelude::*;

use super::wire::{Body, Parity};
use super::*;
use crate::Endpoint;
use crate::in_tests::{datagrams, received};

/// Groups of so many, one after the other, with so much parity.
fn blocks(data: u8, parity: u8) -> Settings {
    Settings {
        data,
        parity,
        every: data,
        ..Settings::OVERLAPPING
    }
}

/// What the client sends for messages of these sizes, sent at once.
fn sent(pair: &mut Pair, sizes: &[usize]) -> Vec<Vec<u8>> {
    for (number, &size) in sizes.iter().enumerate() {
        let message = vec![number as u8; size];
        pair.client.send(Time::ZERO, &message).unwrap();
    }
    datagrams(&mut *pair.client)
}

#[test]
fn a_message_costs_nine_bytes_and_parity_is_as_long_as_the_longest() {
    let mut pair = blocks(3, 2).pair(1, Time::ZERO);
    let sizes: Vec<_> = sent(&mut pair, &[10, 500, 0])
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(sizes, [19, 509, 9, 513, 513]);
}

#[test]
fn any_two_of_five_are_recovered_whatever_their_sizes() {
    for first in 0..5 {
        for second in 0..5 {
            let mut pair = blocks(3, 2).pair(1, Time::ZERO);
            let datagrams = sent(&mut pair, &[10, 500, 0]);
            for (index, datagram) in datagrams.iter().enumerate() {
                if index != first && index != second {
                    pair.server.handle_datagram(Time::ZERO, datagram);
                }
            }
            let mut arrived = received(&mut *pair.server);
            arrived.sort();
            assert_eq!(arrived, [vec![], vec![0; 10], vec![1; 500]]);
        }
    }
}

#[test]
fn an_unfinished_group_gets_its_parity_when_time_is_up_and_then_the_line_is_silent() {
    let mut pair = blocks(8, 1).pair(1, Time::ZERO);
    let messages = sent(&mut pair, &[10, 20, 30]);
    let due = pair.client.next_deadline().unwrap();
    assert_eq!(due, Time::from_millis(60));
    pair.client.handle_deadline(due);
    let parity = datagrams(&mut *pair.client);
    assert_eq!(parity.len(), 1);
    assert_eq!(pair.client.next_deadline(), None);
    for datagram in [&messages[0], &messages[2], &parity[0]] {
        pair.server.handle_datagram(due, datagram);
    }
    let expected = [vec![0; 10], vec![2; 30], vec![1; 20]];
    assert_eq!(received(&mut *pair.server), expected);
}

#[test]
fn the_parity_of_a_lone_message_is_a_copy() {
    let mut pair = blocks(8, 2).pair(1, Time::ZERO);
    let message = sent(&mut pair, &[10]).remove(0);
    pair.client.handle_deadline(Time::from_millis(60));
    let copies = datagrams(&mut *pair.client);
    assert_eq!(copies.len(), 2);
    assert_eq!(copies[0].len(), message.len());
    for datagram in &copies {
        pair.server.handle_datagram(Time::ZERO, datagram);
    }
    assert_eq!(received(&mut *pair.server), [vec![0; 10]]);
}

/// Of messages 0 to 4 all but 0 and 4 are lost. The parity of (3, 4) brings 3,
/// with which that of (2, 3) brings 2, and so on.
#[test]
fn overlapping_groups_help_each_other() {
    let mut pair = Settings::OVERLAPPING.pair(1, Time::ZERO);
    let datagrams = sent(&mut pair, &[50; 5]);
    let is_parity = |datagram: &&Vec<u8>| datagram[4] == 2;
    assert_eq!(datagrams.iter().filter(is_parity).count(), 4);
    for datagram in datagrams.iter().filter(is_parity) {
        pair.server.handle_datagram(Time::ZERO, datagram);
    }
    assert_eq!(received(&mut *pair.server).len(), 0);
    let last = datagrams.iter().rfind(|datagram| datagram[4] == 0).unwrap();
    pair.server.handle_datagram(Time::ZERO, last);
    let mut arrived = received(&mut *pair.server);
    arrived.sort();
    let expected: Vec<_> = (0..5_u8).map(|number| vec![number; 50]).collect();
    assert_eq!(arrived, expected);
}

#[test]
fn interleaved_groups_survive_a_burst() {
    let settings = Settings {
        interleave: 3,
        ..blocks(4, 1)
    };
    let mut pair = settings.pair(1, Time::ZERO);
    let datagrams = sent(&mut pair, &[20; 12]);
    assert_eq!(datagrams.len(), 15);
    for datagram in datagrams[..4].iter().chain(&datagrams[7..]) {
        pair.server.handle_datagram(Time::ZERO, datagram);
    }
    assert_eq!(received(&mut *pair.server).len(), 12);
}

#[test]
fn parity_is_held_back_for_as_long_as_it_is_configured() {
    let settings = Settings {
        parity_delay: Span::from_millis(40),
        ..blocks(2, 1)
    };
    let mut pair = settings.pair(1, Time::ZERO);
    assert_eq!(sent(&mut pair, &[20; 2]).len(), 2);
    let due = pair.client.next_deadline().unwrap();
    assert_eq!(due, Time::from_millis(40));
    pair.client.handle_deadline(due);
    assert_eq!(datagrams(&mut *pair.client).len(), 1);
    assert_eq!(pair.client.next_deadline(), None);
}

/// Plays `count` messages, one each 20 ms, over a path that loses of each 100
/// datagrams those with the `lost` lowest numbers of a fixed shuffle. Returns how
/// many datagrams the client sent and how many messages arrived.
fn play(settings: &Settings, count: u32, lost: usize) -> (usize, usize) {
    let mut pair = settings.pair(1, Time::ZERO);
    let (mut carried, mut arrived) = (0, 0);
    for number in 0..count {
        let now = Time::from_millis(u64::from(number) * 20);
        pair.client.handle_deadline(now);
        pair.client.send(now, &number.to_le_bytes()).unwrap();
        for datagram in datagrams(&mut *pair.client) {
            carried += 1;
            if carried * 37 % 100 >= lost {
                pair.server.handle_datagram(now, &datagram);
            }
        }
        arrived += received(&mut *pair.server).len();
        for report in datagrams(&mut *pair.server) {
            pair.client.handle_datagram(now, &report);
        }
    }
    (carried, arrived)
}

#[test]
fn adaptive_parity_follows_the_loss() {
    let settings = Settings {
        every: 4,
        ..Settings::adaptive()
    };
    let (calm, all) = play(&settings, 2_000, 0);
    assert_eq!((calm, all), (2_500, 2_000), "one parity for four messages");
    let (stormy, arrived) = play(&settings, 2_000, 10);
    assert!((3_400..=3_500).contains(&stormy), "{stormy}");
    assert!(arrived > 1_980, "{arrived}");
}

/// Every byte that one side sends, for a series that does not change.
#[test]
fn the_same_messages_make_the_same_datagrams_as_ever() {
    let settings = Settings {
        interleave: 2,
        ..blocks(3, 2)
    };
    let mut pair = settings.pair(7, Time::ZERO);
    let all = sent(&mut pair, &[5, 0, 30, 12, 1, 7, 9, 3]).concat();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&all);
    assert_eq!((all.len(), hasher.finalize()), GOLDEN);
}

/// Datagrams of the series above: bytes, and their CRC-32.
const GOLDEN: (usize, u32) = (275, 1_122_170_430);

#[test]
fn settings_that_cannot_be_are_refused() {
    let refused = |settings: Settings| settings.check().unwrap_err().setting;
    assert_eq!(refused(blocks(0, 1)), "data");
    assert_eq!(refused(blocks(65, 1)), "data");
    assert_eq!(refused(blocks(4, 17)), "parity");
    let every = Settings {
        every: 65,
        ..Settings::OVERLAPPING
    };
    assert_eq!(refused(every), "every");
    let mut most = Settings::adaptive();
    most.adaptive.as_mut().unwrap().parity_most = 17;
    assert_eq!(refused(most), "adaptive.parity_most");
}

/// Whatever a peer that knows the checksum sends, what is kept for it is bounded.
#[test]
fn a_flood_of_parity_for_messages_that_never_come_is_bounded() {
    let settings = blocks(64, 16);
    let (up, _) = Integrity::both_directions(1);
    let mut endpoint = UdpFec::new(&settings, up, up);
    for first in 0..20_000_u32 {
        let parity = Parity {
            first: first.wrapping_mul(0x9e37_79b9),
            count: (first % 70) as u8,
            index: (first % 20) as u8,
            shard: &vec![first as u8; (first % 1300) as usize],
        };
        endpoint.handle_datagram(Time::ZERO, &Body::Parity(parity).to_datagram(up));
    }
    assert!(endpoint.held_parity_bytes() <= 212_992);
    assert!(endpoint.receive(Time::ZERO).is_none());
}

proptest! {
    /// Over any settings and any losses: no message arrives twice or damaged, and
    /// all arrive when no group loses more than it has parity.
    #[test]
    fn what_arrives_is_what_was_sent(
        data in 1_u8..12,
        parity in 0_u8..5,
        every in 1_u8..12,
        interleave in 1_u8..4,
        sizes in prop::collection::vec(0_usize..60, 1..80),
        lost in prop::collection::vec(any::<bool>(), 1..200),
        rare in any::<bool>(),
    ) {
        let settings = Settings { interleave, every: every.min(data), ..blocks(data, parity) };
        let mut pair = settings.pair(1, Time::ZERO);
        let mut all = sent(&mut pair, &sizes);
        pair.client.handle_deadline(Time::from_secs(1));
        all.extend(datagrams(&mut *pair.client));
        let mut arrived = Vec::new();
        for (index, datagram) in all.iter().enumerate() {
            let is_lost = lost[index % lost.len()] && (!rare || index == 7);
            if !is_lost {
                pair.server.handle_datagram(Time::ZERO, datagram);
                arrived.extend(received(&mut *pair.server));
            }
        }
        arrived.sort();
        let mut expected: Vec<_> = sizes.iter().enumerate()
            .map(|(number, &size)| vec![number as u8; size]).collect();
        expected.sort();
        if parity > 0 && rare {
            prop_assert_eq!(arrived, expected);
        } else {
            let mut left = expected.into_iter();
            prop_assert!(arrived.iter().all(|message| left.any(|sent| sent == *message)));
        }
    }

    /// Sealed as a peer would seal them, with any content.
    #[test]
    fn no_datagram_makes_it_panic(
        bodies in prop::collection::vec((0_u8..5, 0_u32..40, prop::collection::vec(any::<u8>(), 0..40)), 1..100),
        adaptive in any::<bool>(),
    ) {
        let settings = if adaptive { Settings::adaptive() } else { blocks(5, 3) };
        let (up, _) = Integrity::both_directions(1);
        let mut endpoint = UdpFec::new(&settings, up, up);
        for (kind, number, rest) in bodies {
            let mut datagram = vec![0, 0, 0, 0, kind];
            datagram.extend_from_slice(&number.to_le_bytes());
            datagram.extend_from_slice(&rest);
            up.seal(&mut datagram);
            endpoint.handle_datagram(Time::ZERO, &datagram);
            endpoint.send(Time::ZERO, &rest).unwrap();
            received(&mut endpoint);
            datagrams(&mut endpoint);
        }
    }
}
