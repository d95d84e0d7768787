use super::{Departure, Marks, Sent, SentQueue, Shift};
use crate::{Instant, Seq};

fn sent(seq: u32, payload: u32, ends_buffer: bool) -> Sent {
    Sent {
        seq: Seq(seq),
        end: Seq(seq + payload),
        payload,
        syn: false,
        fin: false,
        push: ends_buffer,
        ends_buffer,
        is_linear: false,
        unit: payload,
        marks: Marks::default(),
        is_timed: true,
        at: Instant::from_millis(1),
        turn: 1,
        overhead: if ends_buffer { 768 } else { 0 },
        delivered_us: None,
        first_sent_us: 0,
        delivered: 0,
        is_app_limited: false,
    }
}

fn lengths(queue: &SentQueue) -> Vec<u32> {
    (0..queue.len())
        .filter_map(|index| queue.get(index))
        .map(|sent| sent.payload)
        .collect()
}

#[test]
fn a_buffer_is_cut_anew_and_its_neighbour_is_not() {
    let mut queue = SentQueue::default();
    for (index, ends) in [false, false, true, true].into_iter().enumerate() {
        queue.push(sent(1_000 * index as u32, 1_000, ends));
    }
    assert_eq!(queue.together(0), 3);
    assert_eq!(queue.together_before(2), 2);
    assert_eq!(queue.cut_anew(0, 3, 1_400), 3);
    assert_eq!(lengths(&queue), [1_400, 1_400, 200, 1_000]);
    assert_eq!(queue.cut_anew(0, 3, 3_000), 1);
    assert_eq!(lengths(&queue), [3_000, 1_000]);
    let whole = queue.first().unwrap();
    assert!(whole.ends_buffer && whole.push && whole.overhead == 768);
    assert_eq!((whole.seq, whole.end), (Seq(0), Seq(3_000)));
}

#[test]
fn what_is_marked_otherwise_is_not_sent_together() {
    let mut queue = SentQueue::default();
    for index in 0..3 {
        queue.push(sent(1_000 * index, 1_000, index == 2));
    }
    queue.get_mut(1).unwrap().marks.set(Marks::SACKED);
    assert_eq!((queue.together(0), queue.together_before(2)), (1, 0));
    // That it was retransmitted long ago makes no difference.
    let first = &mut queue.get_mut(1).unwrap().marks;
    first.clear(Marks::SACKED);
    first.set(Marks::EVER_RETRANSMITTED);
    assert_eq!((queue.together(0), queue.together_before(2)), (3, 2));
}

#[test]
fn what_one_packet_let_go_is_ordered_by_number_and_the_rest_by_turn() {
    let departure = |at_us, turn, end| Departure {
        at_us,
        turn,
        end: Seq(end),
    };
    let retransmission = departure(5, 2, 100);
    assert!(departure(5, 2, 900).is_after(retransmission));
    assert!(retransmission.is_after(departure(5, 1, 900)));
    assert!(retransmission.is_after(departure(4, 3, 900)));
    assert!(!retransmission.is_after(retransmission));
}

/// Segments of 500 B, of which those in `sacked` are selectively acknowledged, each in a
/// buffer of its own.
fn alone(count: u32, sacked: &[usize]) -> SentQueue {
    let mut queue = SentQueue::default();
    for index in 0..count {
        queue.push(sent(500 * index, 500, true));
    }
    for index in sacked {
        queue.get_mut(*index).unwrap().marks.set(Marks::SACKED);
    }
    queue
}

#[test]
fn what_is_acknowledged_selectively_moves_into_the_buffer_before_whose_memory_is_free() {
    let mut queue = alone(5, &[1, 3]);
    let shift = |queue: &SentQueue, index: u32| {
        let range = (Seq(500 * index), Seq(500 * index + 500));
        queue.shift(index as usize, range, Seq(0))
    };
    // Nothing arrived before it.
    assert_eq!(shift(&queue, 1), Shift::Cut);
    // It fills a hole.
    assert_eq!(shift(&queue, 2), Shift::Move(1));
    assert_eq!(queue.move_back(2, 1), 768);
    queue.get_mut(2).unwrap().marks.set(Marks::SACKED);
    assert!(queue.closes_a_hole(3) && !queue.closes_a_hole(4));
    assert_eq!(queue.move_back(3, 1), 768);
    assert_eq!((queue.buffer_begin(3), queue.buffer_rest(1)), (1, 3));
    assert_eq!(queue.buffer_end(2), Some(Seq(2_000)));
    let kept: u32 = (0..5).map(|index| queue.get(index).unwrap().overhead).sum();
    assert_eq!(kept, 3 * 768);
    // Segments of another length stay where they are.
    queue.get_mut(4).unwrap().payload = 400;
    assert_eq!(shift(&queue, 4), Shift::Cut);
}

#[test]
fn of_a_burst_only_whole_segments_count_as_arrived() {
    let mut queue = alone(1, &[0]);
    for index in 1..5 {
        queue.push(sent(500 * index, 500, index == 4));
    }
    let range = |start, end| (Seq(start), Seq(end));
    assert_eq!(queue.shift(1, range(500, 900), Seq(0)), Shift::Leave);
    assert_eq!(queue.shift(1, range(500, 1_600), Seq(0)), Shift::Move(2));
    assert_eq!(queue.shift(1, range(600, 2_500), Seq(0)), Shift::Cut);
    assert_eq!(queue.covered(1, range(600, 2_500)), Some((1, false)));
    assert_eq!(queue.covered(1, range(1_000, 2_500)), Some((1, false)));
    assert_eq!(queue.covered(1, range(500, 1_600)), Some((2, true)));
    assert_eq!(queue.covered(1, range(500, 900)), None);
    assert_eq!(queue.covered(1, range(0, 2_500)), Some((4, true)));
    // Part of it moves, and no memory is free.
    assert_eq!(queue.move_back(1, 2), 0);
    assert_eq!((queue.buffer_rest(0), queue.buffer_rest(3)), (3, 2));
}

#[test]
fn what_moves_into_a_buffer_and_the_buffer_count_as_sent_again_if_one_of_them_was() {
    let mut queue = alone(3, &[0]);
    queue
        .get_mut(1)
        .unwrap()
        .marks
        .set(Marks::EVER_RETRANSMITTED);
    queue.get_mut(1).unwrap().marks.set(Marks::SACKED);
    queue.move_back(1, 1);
    let was_again = |index| queue.get(index).unwrap().marks.was_retransmitted();
    assert_eq!([0, 1, 2].map(was_again), [true, true, false]);
}

#[test]
fn a_probe_for_the_mtu_moves_nowhere() {
    let mut queue = alone(3, &[0]);
    let range = (Seq(500), Seq(1_000));
    assert_eq!(queue.shift(1, range, Seq(0)), Shift::Move(1));
    queue.get_mut(1).unwrap().is_linear = true;
    assert_eq!(queue.shift(1, range, Seq(0)), Shift::Cut);
}
