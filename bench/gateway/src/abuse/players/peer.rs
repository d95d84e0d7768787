//! One connection of those who behave, and the board on which all of them note
//! what they have seen.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use lagometer_client::{Event, Handler, Outbox};
use lagometer_protocol::FromGateway;

use crate::abuse::latency::{Ages, Schedule};
use crate::states::for_each_state;

/// As large as a packed move of an Unreal character.
pub(super) const USER_BYTES: usize = 60;

/// What all of them have seen.
pub(super) struct Board {
    pub(super) origin: Instant,
    pub(super) schedule: Schedule,
    pub(super) is_measuring: bool,
    /// Ages of the server's updates at the players.
    pub(super) down: Ages,
    /// Ages of the players' messages at the server.
    pub(super) up: Ages,
    /// Messages of each player that the server has received.
    pub(super) received: Vec<u64>,
    /// Updates that were not what the server sent.
    pub(super) wrong: u64,
}

impl Board {
    /// Nothing was seen, by so many players.
    pub(super) fn new(players: usize, period_us: f64) -> Self {
        Self {
            origin: Instant::now(),
            schedule: Schedule {
                start_us: 0,
                period_us,
            },
            is_measuring: false,
            down: Ages::new(),
            up: Ages::new(),
            received: vec![0; players],
            wrong: 0,
        }
    }

    /// Microseconds from the origin until now.
    pub(super) fn now_us(&self) -> u64 {
        self.origin.elapsed().as_micros() as u64
    }
}

/// One of them.
pub(in crate::abuse) struct Peer {
    pub(super) board: Rc<RefCell<Board>>,
    /// The last turn of the server that a player has seen; `None` is the server.
    pub(super) seen: Option<u64>,
    pub(super) is_let_in: bool,
    pub(super) subscriptions: usize,
    pub(super) rooms: Vec<u32>,
}

impl Handler for Peer {
    fn on_event(&mut self, _outbox: &mut Outbox, event: Event<'_>) {
        match event {
            Event::Data { value, .. } => self.on_data(value),
            Event::User { payload, .. } if self.seen.is_none() => self.on_message(payload),
            Event::LoggedIn { .. } => self.is_let_in = true,
            Event::Message { message, .. } => match message {
                FromGateway::CreateChannel(made) => self.rooms.push(made.channel_id),
                FromGateway::SubToChannel(_) => self.subscriptions += 1,
                _ => {}
            },
            _ => {}
        }
    }
}

impl Peer {
    /// A player, or the server.
    pub(super) fn new(board: Rc<RefCell<Board>>, is_player: bool) -> Self {
        Self {
            board,
            seen: is_player.then_some(0),
            is_let_in: false,
            subscriptions: 0,
            rooms: Vec::new(),
        }
    }

    /// An update: all its states are of the same turn, or of several that were
    /// merged, and then the oldest counts.
    fn on_data(&mut self, value: &[u8]) {
        let Some(seen) = &mut self.seen else {
            return;
        };
        let mut board = self.board.borrow_mut();
        let mut step: Option<u16> = None;
        let read = for_each_state(value, |state| {
            let gained = state.number.wrapping_sub(*seen as u16);
            step = Some(step.map_or(gained, |least| least.min(gained)));
        });
        match step {
            // The state of a room in which nothing has happened yet.
            None | Some(0) if read.is_ok() => {}
            Some(step @ ..0x8000) if read.is_ok() => {
                let (schedule, now_us) = (board.schedule, board.now_us());
                let upto = *seen + u64::from(step);
                if board.is_measuring {
                    schedule.note(&mut board.down, *seen, upto, now_us);
                }
                *seen = upto;
            }
            _ => board.wrong += 1,
        }
    }

    /// A player's message at the server: who sent it, which it is, and when it
    /// was due.
    fn on_message(&mut self, payload: &[u8]) {
        let mut board = self.board.borrow_mut();
        let number = |at: usize| {
            let bytes = payload.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let (Some(player), Some(sequence), Some(due_us)) = (number(0), number(8), number(16))
        else {
            return;
        };
        // An attacker's messages may say anything: only the next one counts.
        let now_us = board.now_us();
        if payload.len() != USER_BYTES || board.received.get(player as usize) != Some(&sequence) {
            return;
        }
        board.received[player as usize] += 1;
        if board.is_measuring {
            board.up.note(now_us.saturating_sub(due_us));
        }
    }
}
