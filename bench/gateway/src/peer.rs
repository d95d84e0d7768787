//! One connection of the crowd: a player, or the game server.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lagometer_client::{Event, Handler, Outbox, SendError};
use lagometer_protocol::FromGateway;

use crate::counters::Counters;
use crate::states::{EXACT, for_each_state};

/// Of thousands of players all who have something to read are served before
/// anything else is looked after.
pub(crate) const CONNECTIONS_A_TURN: usize = 1024;

/// A window that is longer than a frame comes in several: what arrives within so much of
/// something [nearly as long as a frame](LONG_BYTES) is of the same window. Windows are 10 ms
/// apart or more.
const OF_ONE_WINDOW: Duration = Duration::from_millis(5);

/// Nearly as much as a frame of 64 KiB holds.
const LONG_BYTES: usize = 50_000;

/// What all peers of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// What they have seen.
    pub(crate) counters: RefCell<Counters>,
    /// When the run began; stamps count from here.
    pub(crate) origin: Instant,
}

impl Shared {
    /// What finds no room to wait in is counted, and is no reason to end the run.
    pub(crate) fn note_sent(&self, sent: Result<(), SendError>) -> Result<(), SendError> {
        if matches!(sent, Err(SendError::Full { .. })) {
            self.counters.borrow_mut().unsent += 1;
            return Ok(());
        }
        sent
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// It stands.
    Connected,
    /// The gateway has let it in.
    LetIn,
    /// It has made its channel or is subscribed.
    Subscribed,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Peer {
    shared: Rc<Shared>,
    /// Whether it is the game server, whose states are not counted.
    is_server: bool,
    /// Whether it measures how old each state is.
    is_probe: bool,
    /// The number of the newest state of each player, by id.
    newest: Vec<u16>,
    /// When something of a window last arrived, and its bytes.
    last_data: Option<(Instant, usize)>,
    /// Windows received while measuring.
    pub(crate) windows: u64,
    /// How far it has come.
    pub(crate) progress: Progress,
    /// The channels it has made.
    pub(crate) channels: Vec<u32>,
}

impl Peer {
    /// A player among `players`, ids from 1.
    #[must_use]
    pub(crate) fn player(shared: Rc<Shared>, players: usize, is_probe: bool) -> Self {
        Self {
            is_server: false,
            is_probe,
            newest: vec![0; players + 1],
            ..Self::server(shared)
        }
    }

    /// The game server.
    #[must_use]
    pub(crate) fn server(shared: Rc<Shared>) -> Self {
        Self {
            shared,
            is_server: true,
            is_probe: false,
            newest: Vec::new(),
            last_data: None,
            windows: 0,
            progress: Progress::Connected,
            channels: Vec::new(),
        }
    }

    /// Players whose newest state, by `numbers`, this one does not have. Its
    /// own, which it is not sent, is left out.
    #[must_use]
    pub(crate) fn missing(&self, own: Option<u32>, numbers: &[u16]) -> u64 {
        let differs = |id: usize| self.newest[id] != numbers[id];
        (1..self.newest.len())
            .filter(|&id| Some(id as u32) != own && differs(id))
            .count() as u64
    }

    fn on_data(&mut self, value: &[u8]) {
        let now = Instant::now();
        let mut counters = self.shared.counters.borrow_mut();
        let counts = counters.is_measuring;
        let now_us = now.duration_since(self.shared.origin).as_micros() as u64;
        let gap = self.last_data.map(|(last, _)| now.duration_since(last));
        let is_long = |(_, bytes)| bytes > LONG_BYTES;
        let is_new =
            !self.last_data.is_some_and(is_long) || gap.is_none_or(|gap| gap > OF_ONE_WINDOW);
        self.last_data = Some((now, value.len()));
        if counts {
            counters.data_bytes += value.len() as u64;
        }
        if counts && is_new {
            counters.windows += 1;
            self.windows += 1;
            if let Some(gap) = gap {
                counters.gaps_us.saturating_record(gap.as_micros() as u64);
            }
        }
        let (newest, is_probe) = (&mut self.newest, self.is_probe);
        let (mut states, mut stale, mut skipped) = (0, 0, 0);
        let read = for_each_state(value, |state| {
            let Some(newest) = newest.get_mut(state.id as usize) else {
                return;
            };
            states += 1;
            match state.number.wrapping_sub(*newest) {
                0 | 0x8000.. => stale += 1,
                step => {
                    skipped += u64::from(step) - 1;
                    *newest = state.number;
                }
            }
            if is_probe && counts {
                let age = now_us.wrapping_sub(u64::from(state.stamp_us)) % u64::from(EXACT);
                counters.latency_us.saturating_record(age);
            }
        });
        if read.is_err() {
            counters.malformed += 1;
        }
        if counts {
            counters.states += states;
            counters.stale += stale;
            counters.skipped += skipped;
        }
    }
}

impl Handler for Peer {
    fn on_event(&mut self, _outbox: &mut Outbox, event: Event<'_>) {
        match event {
            Event::Data { value, .. } if !self.is_server => self.on_data(value),
            Event::User { .. } => {
                let mut counters = self.shared.counters.borrow_mut();
                if counters.is_measuring {
                    counters.user_messages += 1;
                }
            }
            Event::LoggedIn { .. } => self.progress = Progress::LetIn,
            Event::Message {
                message: FromGateway::CreateChannel(made),
                ..
            } => self.channels.push(made.channel_id),
            Event::Message {
                message: FromGateway::SubToChannel(_),
                ..
            } => self.progress = Progress::Subscribed,
            _ => {}
        }
    }
}
