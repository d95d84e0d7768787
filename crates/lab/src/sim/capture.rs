//! A capture of the testbed `sim`: the packets of one seed's lanes with their fates,
//! in the order of their instants, as pcapng.
//!
//! Lanes are played a slice at a time, on any thread. Each hands over what it put on
//! its link in a slice; a packet is written when no lane can have an earlier one any
//! more. So the file is the same however the play is sliced, and no more than a slice
//! of each lane is kept in memory.
//!
//! Instants are counted from 1970, where the clocks of all lanes start. Each lane has
//! the addresses and ports that the testbed `emu` would give it.

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lagometer_capture::pcapng::interface_of;
use lagometer_capture::{LogSummary, PacketFile};
use lagometer_link::{Direction, Fate};
use lagometer_testbed::lane_packet;
use lagometer_transport::Encapsulation;
use lagometer_units::Time;

/// A packet of a lane, as it was put on the link.
#[derive(Clone, Debug)]
pub(crate) struct CapturedPacket {
    pub(crate) at: Time,
    pub(crate) direction: Direction,
    pub(crate) fate: Fate,
    pub(crate) encapsulation: Encapsulation,
    /// What the endpoint handed out.
    pub(crate) datagram: Vec<u8>,
}

/// A capture that is being written. Threads share it.
pub struct SimCapture<'a> {
    state: Mutex<State<'a>>,
}

struct State<'a> {
    file: PacketFile<&'a mut (dyn Write + Send)>,
    lanes: Vec<Waiting>,
}

/// What a lane has handed over and is not yet written.
#[derive(Default)]
struct Waiting {
    packets: VecDeque<CapturedPacket>,
    /// Nothing earlier than this comes any more.
    until: Time,
}

impl<'a> SimCapture<'a> {
    /// Begins a capture of lanes of these names into `out`.
    pub fn new<'n>(
        out: &'a mut (dyn Write + Send),
        lanes: impl Iterator<Item = &'n str> + Clone,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                file: PacketFile::new(out, lanes.clone()),
                lanes: lanes.map(|_| Waiting::default()).collect(),
            }),
        }
    }

    /// Writes what is left and says what became of the capture, which is called `path`.
    /// After a writer's first error nothing more is written.
    pub fn finish(self, path: &Path) -> LogSummary {
        let state = self.state.into_inner();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        for lane in &mut state.lanes {
            lane.until = Time::MAX;
        }
        state.write_settled();
        state.file.finish(path)
    }

    /// Takes what lane number `lane` put on its link; what it hands over later is not
    /// from before `until`.
    pub(crate) fn take(&self, lane: usize, mut packets: Vec<CapturedPacket>, until: Time) {
        // On a link with a discipline they leave its queue in another order than they
        // came.
        packets.sort_by_key(|packet| packet.at);
        let mut state = self.lock();
        if let Some(waiting) = state.lanes.get_mut(lane) {
            let is_in_order =
                waiting.packets.back().map(|last| last.at) <= packets.first().map(|first| first.at);
            waiting.packets.extend(packets);
            if !is_in_order {
                waiting
                    .packets
                    .make_contiguous()
                    .sort_by_key(|packet| packet.at);
            }
            waiting.until = waiting.until.max(until);
        }
        state.write_settled();
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State<'_> {
    /// Writes every packet that none can come before; of one instant in the order of
    /// the lanes.
    fn write_settled(&mut self) {
        let until = self.lanes.iter().map(|lane| lane.until).min();
        let until = until.unwrap_or(Time::MAX);
        loop {
            let lanes = self.lanes.iter().enumerate();
            let next = lanes.filter_map(|(lane, it)| Some((it.packets.front()?.at, lane)));
            let Some((at, lane)) = next.min() else { return };
            if at >= until && until != Time::MAX {
                return;
            }
            if let Some(packet) = self.lanes[lane].packets.pop_front() {
                self.write(lane, &packet);
            }
        }
    }

    fn write(&mut self, lane: usize, packet: &CapturedPacket) {
        let (at, direction) = (packet.at, packet.direction);
        let bytes = lane_packet(lane, direction, packet.encapsulation, &packet.datagram);
        let interface = interface_of(lane, direction == Direction::Up);
        let fate = packet.fate.in_words(at);
        self.file
            .packet(interface, at, &bytes, format_args!("{fate}"));
    }
}

#[cfg(test)]
mod tests {
    use lagometer_capture::logged_packets;
    use lagometer_link::Reason;

    use super::*;

    fn packet(at_ms: u64, datagram: &[u8]) -> CapturedPacket {
        CapturedPacket {
            at: Time::from_millis(at_ms),
            direction: Direction::Up,
            fate: Fate::Dropped(Reason::Loss),
            encapsulation: Encapsulation::UdpIpv4,
            datagram: datagram.to_vec(),
        }
    }

    #[test]
    fn packets_are_written_in_the_order_of_their_instants_however_lanes_are_sliced() {
        let whole = |steps: &[(usize, &[u64], u64)]| {
            let mut file = Vec::new();
            let capture = SimCapture::new(&mut file, ["a", "b"].into_iter());
            for &(lane, instants, until) in steps {
                let packets = instants.iter().map(|&at| packet(at, &at.to_be_bytes()));
                capture.take(lane, packets.collect(), Time::from_millis(until));
            }
            assert_eq!(capture.finish(Path::new("x")).packets, 6);
            file
        };
        let at_once = whole(&[(0, &[1, 3, 5], 6), (1, &[2, 3, 9], 9)]);
        let sliced = whole(&[(1, &[3, 2], 4), (0, &[1], 2), (0, &[3, 5], 5), (1, &[9], 9)]);
        assert!(at_once == sliced);
        let read = logged_packets(&at_once);
        let order: Vec<_> = read
            .map(|it| (it.epoch_ns / 1_000_000, it.interface))
            .collect();
        assert_eq!(order, [(1, 0), (2, 2), (3, 0), (3, 2), (5, 0), (9, 2)]);
    }

    #[test]
    fn a_packet_waits_until_no_lane_can_have_an_earlier_one() {
        let mut file = Vec::new();
        let capture = SimCapture::new(&mut file, ["a", "b"].into_iter());
        capture.take(
            0,
            vec![packet(1, b"x"), packet(7, b"y")],
            Time::from_millis(9),
        );
        assert_eq!(capture.lock().lanes[0].packets.len(), 2);
        capture.take(1, Vec::new(), Time::from_millis(7));
        assert_eq!(capture.lock().lanes[0].packets.len(), 1);
        capture.take(1, Vec::new(), Time::from_millis(8));
        assert_eq!(capture.lock().lanes[0].packets.len(), 0);
    }
}
