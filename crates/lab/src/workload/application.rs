//! What every workload's two ends can do, whatever they say to each other.

use std::fmt::Debug;
use std::time::Duration;

use lagometer_results::{FlowRecords, GameRecords, MessageRecord};
use lagometer_transport::{Delivery, Message, Messenger, Refused, State};
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

/// The client's end of a workload.
pub trait ClientApplication: Debug + Send {
    /// Does all there is to do at `now`: takes out what has arrived, then sends what is
    /// due. Returns whether anything was sent or received.
    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool;

    /// When the next message is meant to leave.
    fn next_send(&self) -> Option<Time>;

    /// Counts every message that has not left yet as meant to leave and lost: the
    /// connection is gone.
    fn abandon(&mut self);

    /// Whether the transport has taken every message.
    fn has_sent_all(&self) -> bool;

    /// How many messages came back.
    fn returned(&self) -> u32;

    /// When the first message is, or was, meant to leave that is newer than all that came
    /// back: what a player waits for. [`Time::MAX`] where none is left, `None` where this
    /// end cannot know.
    fn awaited(&self) -> Option<Time>;

    /// The longest delay of what came back since this was last asked, from the intended
    /// instant on; for whoever watches.
    fn take_worst(&mut self) -> Option<Duration>;

    /// Whether every message was meant to leave already and came back.
    fn is_complete(&self) -> bool;

    /// What the client saw that it should not have seen.
    fn misdeliveries(&self) -> Misdeliveries;

    /// Bytes of all messages that the transport took; of those that go on after the time
    /// of play, as a game's do, in that time alone.
    fn payload_bytes(&self) -> u64;

    /// What was found, joined with what arrived at the remote end, by this end's clock;
    /// with times from the start of measuring.
    fn findings(&self, arrivals: &[RemoteArrival]) -> Findings;
}

/// The remote end of a workload.
pub trait ServerApplication: Debug + Send {
    /// The client's first message is due at `start`: called once, before that.
    fn begin(&mut self, _start: Time) {}

    /// Takes out what has arrived and answers. Returns whether anything was sent or
    /// received.
    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool;

    /// When it wants to act by itself.
    fn next_send(&self) -> Option<Time> {
        None
    }

    /// Every message's first arrival, in the order they arrived, and of workloads whose
    /// server sends by a schedule when the transport took each of its own.
    fn arrivals(&self) -> &[RemoteArrival];

    /// Bytes of all messages that the transport took, as of the client.
    fn payload_bytes(&self) -> u64;

    /// What the server saw that it should not have seen.
    fn misdeliveries(&self) -> Misdeliveries;
}

/// What a client found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// One for each message.
    pub records: Vec<MessageRecord>,
    /// What became of a game's other streams, where there was one.
    pub game: Option<GameRecords>,
    /// What became of each direction's messages, where they were not echoed.
    pub flows: Option<FlowRecords>,
}

/// Which stream a message belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// The client's messages; of a game, its inputs.
    #[default]
    Messages,
    /// A game's events.
    Events,
    /// A game's voice.
    Voice,
    /// The server's own messages, of which it is notified when its transport took them, and for
    /// how long it had refused them.
    Taken,
}

/// A message's arrival at the remote end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteArrival {
    /// The stream it belongs to.
    pub stream: Stream,
    /// The message's number in its stream.
    pub number: u32,
    /// When it arrived.
    pub at: Time,
    /// How long it was kept back there for an earlier one.
    pub blocked: Option<Duration>,
}

impl RemoteArrival {
    /// Of one of the client's messages, of which is not known whether it was kept back.
    #[must_use]
    pub const fn new(number: u32, at: Time) -> Self {
        Self {
            stream: Stream::Messages,
            number,
            at,
            blocked: None,
        }
    }
}

/// What an application saw that no transport should let it see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misdeliveries {
    /// Messages whose content was not what was sent.
    pub damaged: u64,
    /// Messages that arrived more than once.
    pub duplicated: u64,
    /// Messages that arrived after one sent later.
    pub out_of_order: u64,
}

impl std::ops::AddAssign for Misdeliveries {
    fn add_assign(&mut self, other: Self) {
        self.damaged += other.damaged;
        self.duplicated += other.duplicated;
        self.out_of_order += other.out_of_order;
    }
}

/// Has an application act on a side of any kind.
pub fn act<S: Messenger + ?Sized>(
    side: &mut S,
    turn: impl FnOnce(&mut dyn Messenger) -> bool,
) -> bool {
    turn(&mut Lent(side))
}

/// A side of any kind, lent as one of none in particular.
struct Lent<'a, S: ?Sized>(&'a mut S);

impl<S: Messenger + ?Sized> Messenger for Lent<'_, S> {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        self.0.send(now, message)
    }

    fn send_as(&mut self, now: Time, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        self.0.send_as(now, delivery, message)
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        self.0.receive(now)
    }

    fn state(&self) -> State {
        self.0.state()
    }
}
