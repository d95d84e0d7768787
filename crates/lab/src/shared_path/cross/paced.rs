//! Traffic of packets one after the other at a rate: constant, or a call's.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_link::Direction;
use lagometer_link::cross::{Cross, CrossKind};
use lagometer_units::{Rate, Time};

use super::call::{Receiver, Sender};
use super::schedule::{Schedule, Turn};
use super::{CrossPacket, Load};

/// Packets at a rate, while their schedule is on.
#[derive(Debug)]
pub(super) struct Paced {
    direction: Direction,
    packet_bytes: u64,
    pace: Pace,
    schedule: Schedule,
    next_packet: Option<Time>,
    sequence: u64,
    received: u64,
    outgoing: VecDeque<CrossPacket>,
}

#[derive(Debug)]
enum Pace {
    /// Bits per second.
    Constant(f64),
    Call(Box<Sender>, Box<Receiver>),
}

impl Paced {
    pub(super) fn new(cross: &Cross, schedule: Schedule) -> Self {
        let pace = if cross.kind == CrossKind::Constant {
            let rate = cross.rate.map_or(1_000_000, Rate::bits_per_second);
            Pace::Constant(rate as f64)
        } else {
            let most = cross.highest() as f64;
            let least = (cross.least() as f64).min(most);
            let sender = Sender::new(least, most, cross.adapts.unwrap_or_default());
            Pace::Call(Box::new(sender), Box::default())
        };
        Self {
            direction: cross.direction.into(),
            packet_bytes: cross.packet_bytes(),
            pace,
            schedule,
            next_packet: None,
            sequence: 0,
            received: 0,
            outgoing: VecDeque::new(),
        }
    }

    pub(super) fn next_wake(&self) -> Option<Time> {
        let report = match &self.pace {
            Pace::Call(_, receiver) => receiver.next_report(),
            Pace::Constant(_) => None,
        };
        [self.next_packet, self.schedule.next_turn(), report]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn wake(&mut self, now: Time) {
        while let Some(turn) = self.schedule.turn(now) {
            self.next_packet = (turn == Turn::On).then_some(now);
            if let Pace::Call(sender, receiver) = &mut self.pace {
                sender.start(now);
                **receiver = Receiver::default();
            }
        }
        if self.next_packet.is_some_and(|at| at <= now) {
            self.send(now);
        }
        if let Pace::Call(_, receiver) = &mut self.pace
            && let Some(report) = receiver.report(now)
        {
            self.outgoing.push_back(CrossPacket {
                direction: self.direction.opposite(),
                flow: 0,
                load: Load::Report(report),
            });
        }
    }

    pub(super) fn receive(&mut self, now: Time, load: &Load) {
        match (load, &mut self.pace) {
            (Load::Paced { bytes, .. }, Pace::Constant(_)) => self.received += bytes,
            (
                Load::Paced {
                    sequence,
                    sent,
                    bytes,
                },
                Pace::Call(_, receiver),
            ) => {
                self.received += bytes;
                if self.schedule.is_on() {
                    receiver.receive(now, *sequence, *sent, *bytes);
                }
            }
            (Load::Report(report), Pace::Call(sender, _)) => sender.adapt(now, report),
            (Load::Ip(_) | Load::Report(_), _) => {}
        }
    }

    pub(super) fn poll(&mut self) -> Option<CrossPacket> {
        self.outgoing.pop_front()
    }

    pub(super) const fn received_bytes(&self) -> u64 {
        self.received
    }

    fn send(&mut self, now: Time) {
        let bits_per_second = match &mut self.pace {
            Pace::Constant(bits) => *bits,
            Pace::Call(sender, _) => sender.rate(now),
        };
        let bytes = self.packet_bytes;
        self.outgoing.push_back(CrossPacket {
            direction: self.direction,
            flow: 0,
            load: Load::Paced {
                sequence: self.sequence,
                sent: now,
                bytes,
            },
        });
        self.sequence += 1;
        let gap = (bytes as f64 * 8e9 / bits_per_second) as u64;
        self.next_packet = Some(now + Duration::from_nanos(gap.max(1)));
    }
}
