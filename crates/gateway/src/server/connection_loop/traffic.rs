//! Reading from connections, writing to them, and letting them go.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lagometer_platform::thread_cpu_time;
use lagometer_units::Time;

use crate::core::{Budget, CloseReason, ConnKey, Peer};
use crate::server::admission_control::{Permit, PermitId};
use crate::server::intake::{Intake, Share, TakenIn};
use crate::server::poller::{Interest, Ready};
use crate::server::sockets::Socket;
use crate::server::stream_transport::{Reading, StreamTransport, Writing};

use super::ConnectionLoop;

/// How long a turn reads at most: what is to be written waits meanwhile, and
/// those that were not read have the first turn next time.
const READING_AT_MOST: Duration = Duration::from_millis(10);

/// A connection of which so many messages were taken in hands them to the channels at
/// once: where they are on this thread, their work then counts in the turn's time, and
/// where they have one of their own it can begin.
const MANY_MESSAGES: usize = 256;

/// The clock is looked at after so many connections.
pub(super) const LOOK_AT_CLOCK_EVERY: usize = 16;

impl ConnectionLoop {
    /// Does what the poller says can be done for a connection.
    pub(super) fn take_event(&mut self, now: Time, slot: usize, event: Ready, may_read: bool) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        let is_edge_triggered = matches!(socket.interest, Interest::Edges | Interest::Nothing);
        let writable = event.writable && socket.blocked;
        // Who has gone while it is paused is read to its end when the pause is over.
        socket.has_ended |= is_edge_triggered && event.ended;
        if writable {
            self.write(now, slot);
        }
        if !event.readable {
            return;
        }
        let is_in_turn = (self.sockets.at(slot)).is_some_and(|socket| !socket.is_unauthenticated);
        if may_read && is_in_turn {
            self.read(now, slot);
        } else {
            // What is edge-triggered is not reported again; and who has not
            // logged in waits for those who have.
            self.list_unread(slot);
        }
    }

    /// A connection is to be read in the next turn, even if the poller does not
    /// report it. It is listed once: whoever sends much is read no more often
    /// than the rest.
    pub(super) fn list_unread(&mut self, slot: usize) {
        if let Some(socket) = self.sockets.at(slot)
            && !socket.is_listed
        {
            socket.is_listed = true;
            let unread = if socket.is_unauthenticated {
                &mut self.unread_unauthenticated
            } else {
                &mut self.unread
            };
            unread.push_back(socket.key);
        }
    }

    /// Whether anybody is to be read whom the poller does not report.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty() || !self.unread_unauthenticated.is_empty()
    }

    /// Reads those that have logged in and were listed before this turn, in the
    /// order they were listed, as long as there is time. Returns whether there is still.
    pub(super) fn read_listed(&mut self, now: Time) -> bool {
        for at in 0..self.unread.len() {
            if at % LOOK_AT_CLOCK_EVERY == LOOK_AT_CLOCK_EVERY - 1 && self.is_late(now) {
                return false;
            }
            let Some(key) = self.unread.pop_front() else {
                break;
            };
            if let Some(socket) = self.sockets.get(key) {
                socket.is_listed = false;
                self.read(now, key.slot());
            }
        }
        !self.is_late(now)
    }

    /// This turn has read for so long that what it has to write is due.
    pub(super) fn is_late(&self, now: Time) -> bool {
        self.shared.clock.now().since(now) >= READING_AT_MOST
    }

    /// Reads what has arrived for a connection, as far as its share goes.
    pub(super) fn read(&mut self, now: Time, slot: usize) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        // What is there stays where it is until the pause ends.
        if socket.is_paused() {
            return;
        }
        if let StreamTransport::Kcp(session) = &socket.transport
            && session.waits_for_proof()
        {
            if session.is_closed() {
                let key = socket.key;
                self.end(now, key, CloseReason::TransportFailed);
            }
            return;
        }
        // Listed and reported by the poller, it has its share all the same. KCP
        // has no socket that is polled, and hands on what its window holds.
        if socket.read_in_turn == Some(self.turns)
            && !matches!(socket.transport, StreamTransport::Kcp(_))
        {
            self.list_unread(slot);
            return;
        }
        socket.read_in_turn = Some(self.turns);
        let key = socket.key;
        let work = socket.is_unauthenticated.then(thread_cpu_time);
        let share = Share::of(socket.peer, socket.is_unauthenticated);
        let clock = self.shared.clock;
        let backlog = &mut socket.backlog;
        let mut intake = Intake::new(now, clock, &mut self.side, key, backlog, share);
        intake.take_backlog();
        let mut reading = Reading::More;
        if !intake.has_backlog() {
            reading = socket.transport.read(&mut intake, &mut self.buffer);
        }
        let (taken, has_backlog) = (intake.taken(), intake.has_backlog());
        let ends = matches!(reading, Reading::Ended(_));
        if let Some(before) = work {
            socket.login_work += thread_cpu_time().saturating_sub(before);
        }
        // The end is behind what was not taken in yet.
        let more = reading == Reading::More || has_backlog || (socket.has_ended && !ends);
        match reading {
            Reading::Ended(why) if !has_backlog => self.end(now, key, why),
            _ => {
                self.charge(now, slot, taken);
                self.weigh(now, slot);
            }
        }
        if more {
            self.list_unread(slot);
        }
        if taken.messages >= MANY_MESSAGES {
            self.exchange(now);
        }
    }

    /// Charges a connection, and its address, for what was taken in of it: it is
    /// not read for a while where that was too much, and closed where that was
    /// too much before its login.
    fn charge(&mut self, now: Time, slot: usize, taken: TakenIn) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        let key = socket.key;
        // Who has not logged in has budgets of its own, and a time within which it
        // must: its address pays for it, but others there do not hold it back.
        let is_unauthenticated = socket.is_unauthenticated;
        if let Some(until) = socket.permit.spend(now, taken.messages)
            && !is_unauthenticated
        {
            self.side.over_budget(now, key, Budget::Messages);
            self.pause(key, until);
        }
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        if socket.is_unauthenticated {
            if socket.login_work > self.login_work {
                self.side.over_budget(now, key, Budget::LoginWork);
                self.end(now, key, CloseReason::OverBudget(Budget::LoginWork));
            }
        } else if socket.peer == Peer::Client
            && let Some(too_fast) = socket
                .pace
                .spend(now, self.rates, taken.messages, taken.bytes)
        {
            self.side.over_budget(now, key, too_fast.budget());
            self.pause(key, too_fast.until);
        }
    }

    /// The core has let a connection in. It is ended if its place was given to
    /// another meanwhile and there is none left.
    pub(super) fn note_login(&mut self, now: Time, key: ConnKey) {
        if let Some(socket) = self.sockets.get(key)
            && socket.is_unauthenticated
        {
            if socket.permit.authenticated().is_err() {
                // It gets no answer that it is let in: it is not.
                self.end_silently(now, key, CloseReason::Evicted);
                return;
            }
            socket.is_unauthenticated = false;
            socket.transport.authenticated();
            self.unauthenticated.remove(&socket.permit.id());
            self.take_over_debt(now, key);
        }
    }

    /// A client pays for what one of its address that has ended sent too much: nobody
    /// gets anything by hanging up and coming again.
    fn take_over_debt(&mut self, now: Time, key: ConnKey) {
        if let Some(socket) = self.sockets.get(key)
            && let Some(debt) = socket.permit.take_over_debt(now)
        {
            socket.pace.take_over(now, debt);
        }
    }

    /// A connection has got a place that counts, in place of one that did not.
    /// Returns whether it has it still: until its login was noted there, it
    /// could be given to another.
    pub(super) fn set_permit(&mut self, now: Time, key: ConnKey, permit: Permit) -> bool {
        let Some(socket) = self.sockets.get(key) else {
            return false;
        };
        if socket.is_unauthenticated {
            self.unauthenticated.remove(&socket.permit.id());
            self.unauthenticated.insert(permit.id(), key);
            socket.permit = permit;
        } else if permit.authenticated().is_err() {
            return false;
        } else {
            socket.permit = permit;
            self.take_over_debt(now, key);
        }
        true
    }

    /// A connection that has not logged in has lost its place.
    pub(super) fn evict(&mut self, now: Time, permit: PermitId, why: CloseReason) {
        if let Some(&key) = self.unauthenticated.get(&permit) {
            if let CloseReason::OverBudget(budget) = why {
                self.side.over_budget(now, key, budget);
            }
            self.end(now, key, why);
        }
    }

    /// Reads nothing of a connection until then.
    pub(super) fn pause(&mut self, key: ConnKey, until: Time) {
        let Some(socket) = self.sockets.get(key) else {
            return;
        };
        if let Some(before) = socket.paused_until {
            if before >= until {
                return;
            }
            self.paused.remove(&(before, key));
        }
        socket.paused_until = Some(until);
        self.side.not_read_until(key, until);
        self.paused.insert((until, key));
        self.watch(key.slot());
    }

    /// Reads those again whose pause has ended.
    pub(super) fn resume_paused(&mut self, now: Time) {
        while let Some(&(until, key)) = self.paused.first()
            && until <= now
        {
            self.resume(key.slot());
        }
    }

    fn resume(&mut self, slot: usize) {
        if let Some(socket) = self.sockets.at(slot)
            && let Some(until) = socket.paused_until.take()
        {
            self.paused.remove(&(until, socket.key));
            self.watch(slot);
            self.list_unread(slot);
        }
    }

    /// Reads nothing of a connection, or reads it again, as the core says.
    pub(super) fn hold_back(&mut self, slot: usize, hold: bool) {
        if let Some(socket) = self.sockets.at(slot)
            && socket.is_held_back != hold
        {
            socket.is_held_back = hold;
            self.watch(slot);
            if !hold {
                self.list_unread(slot);
            }
        }
    }

    /// Has the poller watch a connection for what it waits for.
    fn watch(&mut self, slot: usize) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        let interest = match (socket.interest, socket.is_paused(), socket.blocked) {
            (Interest::Edges, ..) => Interest::Edges,
            (_, false, true) => Interest::ReadWrite,
            (_, false, false) => Interest::Read,
            (_, true, true) => Interest::Write,
            (_, true, false) => Interest::Nothing,
        };
        if let Some(watched) = socket.transport.socket()
            && socket.interest != interest
            && self.poller.change(watched, slot as u64, interest).is_ok()
        {
            socket.interest = interest;
        }
    }

    /// Writes what waits for a connection that has room again.
    pub(super) fn write(&mut self, now: Time, slot: usize) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        let key = socket.key;
        let writing = socket
            .transport
            .write(now, &mut self.side, key, &mut self.scratch);
        socket.blocked = writing == Writing::Blocked;
        if writing == Writing::Broken {
            self.end(now, key, CloseReason::TransportFailed);
            return;
        }
        let note_kcp = matches!(socket.transport, StreamTransport::Kcp(_));
        self.watch(slot);
        if note_kcp {
            self.note_kcp(now, slot);
        }
    }

    /// Writes to all that there is something new for, save those that have no
    /// room: the poller reports when they have.
    pub(super) fn flush(&mut self, now: Time) {
        while let Some(key) = self.side.poll_writable() {
            if let Some(socket) = self.sockets.get(key)
                && !socket.blocked
            {
                self.write(now, key.slot());
            }
        }
    }

    /// Lets those go that the core wants to be rid of.
    pub(super) fn close_those_to_go(&mut self, now: Time) {
        while let Some((key, why)) = self.side.poll_close() {
            self.end(now, key, why);
        }
    }

    /// Writes once more, closes, and notifies the core.
    pub(super) fn end(&mut self, now: Time, key: ConnKey, why: CloseReason) {
        if why != CloseReason::PeerClosed
            && why != CloseReason::TransportFailed
            && let Some(socket) = self.sockets.get(key)
        {
            let transport = &mut socket.transport;
            transport.write(now, &mut self.side, key, &mut self.scratch);
        }
        self.end_silently(now, key, why);
    }

    /// Closes, and notifies the core; what waits to be written is not.
    fn end_silently(&mut self, now: Time, key: ConnKey, why: CloseReason) {
        let Some(socket) = self.sockets.remove(key) else {
            return;
        };
        let Socket {
            transport,
            peer,
            permit,
            is_unauthenticated,
            pace,
            paused_until,
            ..
        } = *socket;
        self.unauthenticated.remove(&permit.id());
        if !is_unauthenticated {
            permit.leave_debt(now, pace);
        }
        if let Some(until) = paused_until {
            self.paused.remove(&(until, key));
        }
        self.forget_kcp(&transport, key);
        if let Some(watched) = transport.socket() {
            // Closing does the same if this fails.
            let _ = self.poller.remove(watched);
        }
        transport.close(why);
        self.side.close(key, why);
        self.shared.loads[self.number].fetch_sub(1, Ordering::Relaxed);
        if peer == Peer::Client {
            self.shared.clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
