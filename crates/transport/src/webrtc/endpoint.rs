//! One side of a WebRTC connection behind [`Endpoint`].

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_units::Time;
use str0m::channel::ChannelId;
use str0m::net::{Protocol, Receive};
use str0m::{Event, IceConnectionState, Input, Output, Rtc, RtcError};

use super::kind::Kind;
use super::settings::Settings;
use super::wiring::{self, Channels, Side};
use crate::entropy::Entropy;
use crate::origin::{to_instant, to_time};
use crate::{Closed, Delivery, Endpoint, Message, Refused, State, Transport};

/// One side of a WebRTC connection with its data channels.
pub(super) struct WebRtcEndpoint {
    rtc: Rtc,
    channels: Channels,
    side: Side,
    entropy: Entropy,
    largest_message_bytes: usize,
    /// Whether the channel holds messages back for earlier ones.
    ordered: bool,
    receive_buffer_bytes: usize,
    arrived: VecDeque<Message>,
    arrived_bytes: usize,
    outgoing: VecDeque<Vec<u8>>,
    /// The time that the library was last set to.
    set_to: Time,
    deadline: Option<Time>,
    state: State,
}

/// The library answers "never" with an instant a century away.
const NEVER: Duration = Duration::from_hours(50 * 365 * 24);

/// How often in a row the library may ask to be called again at once before
/// it is made to wait for [`PAUSE`].
const MAX_ROUNDS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// What stands for the empty message: one zero byte, as text, while all other
/// messages are binary. RFC 8831, section 6.6, has an identifier of its own
/// for that, but the library loses what it sends under it.
const EMPTY: &[u8] = &[0];

impl WebRtcEndpoint {
    pub(super) fn new(settings: &Settings, side: Side, seed: u64, start: Time) -> Self {
        let mut entropy = Entropy::new(seed, side as u64 + 1);
        let (rtc, channels) = wiring::end(settings, side, seed, start, &mut entropy);
        let mut this = Self {
            rtc,
            channels,
            side,
            entropy,
            largest_message_bytes: settings.largest_message_bytes(),
            ordered: settings.ordered,
            receive_buffer_bytes: settings.receive_buffer.0 as usize,
            arrived: VecDeque::new(),
            arrived_bytes: 0,
            outgoing: VecDeque::new(),
            set_to: start,
            deadline: None,
            state: State::Connecting,
        };
        this.settle(start);
        this
    }

    /// Lets the library do what is to be done by `now`, and collects what it
    /// has to say.
    fn settle(&mut self, now: Time) {
        for _ in 0..MAX_ROUNDS {
            self.deadline = self.collect();
            if self.deadline.is_none_or(|deadline| deadline > now) {
                return;
            }
            self.set_time(now);
        }
        self.deadline = Some(now + PAUSE);
    }

    /// Takes everything out of the library; returns when it must be given the
    /// time again.
    fn collect(&mut self) -> Option<Time> {
        loop {
            match self.entropy.lend(|| self.rtc.poll_output()) {
                Ok(Output::Transmit(transmit)) => self.outgoing.push_back(transmit.contents.into()),
                Ok(Output::Event(event)) => self.handle_event(event),
                Ok(Output::Timeout(instant)) => {
                    let deadline = to_time(instant);
                    return (deadline.since(self.set_to) < NEVER).then_some(deadline);
                }
                Err(error) => {
                    self.close(Closed::Failed(error.to_string()));
                    return None;
                }
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::ChannelOpen(channel, _)
                if channel == self.channels.main && self.state == State::Connecting =>
            {
                self.state = State::Ready;
            }
            Event::ChannelData(data) => {
                let bytes = if data.binary { data.data } else { Vec::new() };
                let is_held_back = data.id == self.channels.main && self.ordered;
                self.arrived_bytes += bytes.len();
                self.arrived.push_back(Message {
                    bytes,
                    blocked: (!is_held_back).then_some(Duration::ZERO),
                });
            }
            Event::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                // Without a restart of ICE, which takes signalling, there is
                // no way back.
                self.close(Closed::DeadLink);
            }
            Event::ChannelClose(channel) if channel == self.channels.main => {
                self.close(Closed::ByPeer);
            }
            Event::Closed => self.close(Closed::ByPeer),
            _ => {}
        }
    }

    /// The first reason to close is the one that counts.
    fn close(&mut self, why: Closed) {
        if !matches!(self.state, State::Closed(_)) {
            self.state = State::Closed(why);
        }
    }

    fn set_time(&mut self, now: Time) {
        self.set_to = now;
        self.input(Input::Timeout(to_instant(now)));
    }

    fn input(&mut self, input: Input<'_>) {
        // What is wrong with a datagram is the datagram's fault, and is of no
        // consequence; what is wrong with the connection shows when it is
        // polled.
        let _: Result<(), RtcError> = self.entropy.lend(|| self.rtc.handle_input(input));
    }

    /// Hands the library a message for a channel.
    fn send_on(&mut self, now: Time, channel: ChannelId, message: &[u8]) -> Result<(), Refused> {
        if self.state != State::Ready {
            return Err(Refused::NotOpen);
        }
        Refused::if_larger(message, self.largest_message_bytes)?;
        // Timers that the message starts count from the time last set.
        if self.set_to < now {
            self.set_time(now);
        }
        let channel = self.rtc.channel(channel);
        let mut channel = channel.ok_or(Refused::NotOpen)?;
        let is_binary = !message.is_empty();
        let bytes = if is_binary { message } else { EMPTY };
        let taken = match channel.write(is_binary, bytes) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refused::BufferFull),
            Err(_) => Err(Refused::NotOpen),
        };
        self.settle(now);
        taken
    }
}

impl Endpoint for WebRtcEndpoint {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        self.send_on(now, self.channels.main, message)
    }

    fn send_as(&mut self, now: Time, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        let channel = match delivery {
            Delivery::Unreliable => self.channels.unreliable,
            Delivery::Reliable => None,
        };
        self.send_on(now, channel.unwrap_or(self.channels.main), message)
    }

    fn receive(&mut self, _now: Time) -> Option<Message> {
        let message = self.arrived.pop_front()?;
        self.arrived_bytes -= message.bytes.len();
        Some(message)
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        let is_accepted = match Kind::of(datagram) {
            Kind::Ice => true,
            // The library hands out messages whether they are wanted or not.
            // So a reader that does not read makes the endpoint deaf to them.
            Kind::Data => self.arrived_bytes < self.receive_buffer_bytes,
            Kind::Garbage => false,
        };
        if !is_accepted {
            return;
        }
        let (here, there) = (self.side.address(), self.side.peer().address());
        let Ok(receive) = Receive::new(Protocol::Udp, there, here, datagram) else {
            return;
        };
        self.set_to = now;
        self.input(Input::Receive(to_instant(now), receive));
        self.settle(now);
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        match self.outgoing.pop_front() {
            Some(datagram) => {
                *buffer = datagram;
                true
            }
            None => false,
        }
    }

    fn next_deadline(&mut self) -> Option<Time> {
        self.deadline
    }

    fn handle_deadline(&mut self, now: Time) {
        self.set_time(now);
        self.settle(now);
    }

    fn state(&self) -> State {
        self.state.clone()
    }
}
