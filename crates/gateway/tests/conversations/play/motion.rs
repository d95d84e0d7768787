//! What moves between acts: the bus, the wires, time.

use std::time::Duration;

use lagometer_gateway::core::{ConnectionManager, Event, ReadControl, SideId};

use super::super::peer::TestPeer;
use super::super::script::{Form, SentFrame};
use super::super::sentinels::Sentinels;
use super::super::settings::CLOSE_AT_BYTES;
use super::{BYSTANDER, Play, READERS, SERVER};

/// Less does not congest a server, under any settings that are drawn.
const CONGESTED_BYTES: usize = CLOSE_AT_BYTES / 4;

impl Play<'_> {
    /// Lets time pass, from one deadline to the next, with the bus free.
    pub(super) fn pass(&mut self, millis: u64) -> Result<(), String> {
        self.held.fill([false; 2]);
        self.settle()?;
        let end = self.now + Duration::from_millis(millis);
        let mut woken = 0_u64;
        loop {
            let deadlines = self.sides.iter().map(ConnectionManager::next_deadline);
            let next = deadlines
                .chain([self.channels.next_deadline()])
                .flatten()
                .min();
            let Some(next) = next.filter(|&next| next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            for side in &mut self.sides {
                side.handle_deadline(self.now);
            }
            self.channels.handle_deadline(self.now);
            self.settle()?;
            woken += 1;
            // Every tick of every channel, at a millisecond each, and more.
            if woken > 10_000 + 100 * millis {
                return Err(format!("woken {woken} times in {millis} ms"));
            }
        }
        self.now = end;
        Ok(())
    }

    /// Carries the bus and the wires until nothing moves.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        loop {
            let mut moved = self.carry();
            // Who reads at once is congested until it does.
            self.note_congestion();
            for who in 0..self.peers.len() {
                if self.peers[who].is_open && !self.peers[who].stalls {
                    moved |= self.read(who, usize::MAX)?;
                }
            }
            moved |= self.close();
            moved |= self.listen()?;
            if !moved {
                break;
            }
        }
        for who in self.pause() {
            self.deliver(who)?;
        }
        Ok(())
    }

    fn carry(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.sides.len() {
            while let Some(message) = self.sides[index].poll_bus() {
                self.up[index].push_back(message);
            }
            while !self.held[index][1]
                && let Some(message) = self.up[index].pop_front()
            {
                self.outcome.bus += 1;
                self.channels
                    .handle(self.now, SideId(index as u16), message);
                moved = true;
            }
        }
        while let Some((side, message)) = self.channels.poll_bus() {
            self.down[usize::from(side.0)].push_back(message);
        }
        for index in 0..self.sides.len() {
            while !self.held[index][0]
                && let Some(message) = self.down[index].pop_front()
            {
                self.outcome.bus += 1;
                self.sides[index].handle(self.now, message);
                moved = true;
            }
            while self.sides[index].poll_writable().is_some() {}
            while self.sides[index].poll_event().is_some() {}
            while self.sides[index].poll_recording().is_some() {}
        }
        while let Some(event) = self.channels.poll_event() {
            if let Event::Dropped { why, .. } = event {
                self.refusals.insert(why);
            }
        }
        moved
    }

    /// A peer reads so many bytes at most.
    pub(super) fn read(&mut self, who: usize, most: usize) -> Result<bool, String> {
        let peer = &mut self.peers[who];
        let side = &mut self.sides[peer.side];
        if side.waiting(peer.key) == 0 {
            return Ok(false);
        }
        let slices = side.output(peer.key).flatten();
        let bytes: Vec<u8> = slices.copied().take(most).collect();
        if bytes.is_empty() {
            return Ok(false);
        }
        side.wrote(self.now, peer.key, bytes.len());
        self.outcome.bytes_out += bytes.len() as u64;
        for &byte in who.to_le_bytes().iter().chain(&bytes) {
            // FNV-1a.
            let mixed = self.outcome.digest ^ u64::from(byte);
            self.outcome.digest = mixed.wrapping_mul(0x0100_0000_01b3);
        }
        let (id, admitted) = (side.id(peer.key), side.is_admitted(peer.key));
        peer.read(&bytes, id, admitted)?;
        Ok(true)
    }

    fn close(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.sides.len() {
            while let Some((key, why)) = self.sides[index].poll_close() {
                self.sides[index].close(key, why);
                moved = true;
                for peer in &mut self.peers {
                    if peer.side == index && peer.key == key {
                        peer.is_open = false;
                    }
                }
            }
        }
        moved
    }

    /// The well-behaved read what came for them; the others do not.
    fn listen(&mut self) -> Result<bool, String> {
        let readers = READERS.map(|reader| self.id(reader));
        let alone = self.is_alone();
        let mut answers = Vec::new();
        for who in 0..self.peers.len() {
            for message in std::mem::take(&mut self.peers[who].inbox) {
                if who == SERVER {
                    answers.extend(Sentinels::answer(&message, readers));
                } else if let Some(reader) = READERS.iter().position(|&reader| reader == who)
                    && self.is_promised()
                {
                    self.sentinels.on_message(reader, &message, alone)?;
                } else if who == BYSTANDER && alone && message.msg_type != 1 {
                    return Err(format!("the bystander is sent type {}", message.msg_type));
                }
            }
        }
        let any = !answers.is_empty();
        for answer in answers {
            if self.peers[SERVER].is_open {
                let frame = SentFrame {
                    messages: vec![answer],
                    times: 1,
                    form: Form::Plain,
                };
                let (side, key) = (self.peers[SERVER].side, self.peers[SERVER].key);
                self.sides[side].receive(self.now, key, &frame.bytes());
            }
        }
        Ok(any)
    }

    /// Pauses and resumes peers as the core says.
    fn pause(&mut self) -> Vec<usize> {
        let mut resumed = Vec::new();
        for index in 0..self.sides.len() {
            while let Some((key, control)) = self.sides[index].poll_pause() {
                let is_it = |peer: &TestPeer| peer.side == index && peer.key == key;
                if let Some(who) = self.peers.iter().position(is_it) {
                    self.peers[who].paused = control == ReadControl::Pause;
                    resumed.extend((control == ReadControl::Resume).then_some(who));
                }
            }
        }
        resumed
    }

    /// Notes that a server is congested now.
    fn note_congestion(&mut self) {
        let is_congested = |peer: &TestPeer| {
            peer.is_open && self.sides[peer.side].waiting(peer.key) >= CONGESTED_BYTES
        };
        if self.peers.iter().any(is_congested) {
            self.congested_at = self.now;
        }
    }
}
