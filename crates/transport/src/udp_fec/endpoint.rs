//! One side of the connection.

use lagometer_units::Time;

use super::Settings;
use super::loss::LossMeter;
use super::receiver::Receiver;
use super::sender::Sender;
use super::wire::Body;
use crate::erasure::ErasureCode;
use crate::integrity::Integrity;
use crate::{Endpoint, Message, Refused, State};

/// One side of a UDP connection with forward error correction.
#[derive(Debug)]
pub(super) struct UdpFec {
    inbound: Integrity,
    /// `None` where no parity is ever made.
    code: Option<ErasureCode>,
    sender: Sender,
    receiver: Receiver,
    /// Where loss is reported.
    meter: Option<LossMeter>,
}

impl UdpFec {
    pub(super) fn new(settings: &Settings, outbound: Integrity, inbound: Integrity) -> Self {
        let (data, parity) = (settings.data, settings.parity_most());
        let adaptive = settings.adaptive.as_ref();
        Self {
            inbound,
            code: (parity > 0).then(|| ErasureCode::new(data.into(), parity.into())),
            sender: Sender::new(settings, outbound),
            receiver: Receiver::new(settings),
            meter: adaptive.map(|adaptive| LossMeter::new(adaptive.report_interval.0)),
        }
    }

    /// Bytes of parity that wait for messages.
    #[cfg(test)]
    pub(super) const fn held_parity_bytes(&self) -> usize {
        self.receiver.held_parity_bytes()
    }

    /// A message came by itself, not as a copy.
    fn measure(&mut self, now: Time, number: u32) {
        let report = self
            .meter
            .as_mut()
            .and_then(|meter| meter.on_message(now, number));
        if let Some(report) = report {
            self.sender.report(report);
        }
    }
}

impl Endpoint for UdpFec {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        self.sender.send(now, self.code.as_ref(), message)
    }

    fn receive(&mut self, _now: Time) -> Option<Message> {
        self.receiver.receive()
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        let code = self.code.as_ref();
        match self.inbound.open(datagram).and_then(Body::parse) {
            Some(Body::Message {
                number,
                is_copy,
                message,
            }) => {
                self.receiver.on_message(code, number, message);
                if !is_copy {
                    self.measure(now, number);
                }
            }
            Some(Body::Parity(parity)) => {
                if let Some(code) = code {
                    self.receiver.on_parity(code, parity);
                }
            }
            Some(Body::Report(report)) => self.sender.on_report(report),
            None => {}
        }
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        self.sender.poll_datagram(buffer)
    }

    fn next_deadline(&mut self) -> Option<Time> {
        self.sender.next_deadline()
    }

    fn handle_deadline(&mut self, now: Time) {
        self.sender.handle_deadline(now, self.code.as_ref());
    }

    fn state(&self) -> State {
        State::Ready
    }
}
