//! A game server whose edge died comes back through another, for what it had.
//!
//! What it had it is given before it says anything: each channel with its data, and a word that
//! this was all. What was on its way when the edge died is lost, so it goes by what it is given.

use std::collections::{BTreeMap, BTreeSet};

use lagometer_protocol::messages::channeldpb::ChannelDataRecoveryMessage;
use prost::Message;

pub(crate) const CHANNEL_DATA: u32 = 20;
pub(crate) const END: u32 = 21;

/// What a server had when it was hung up on, as far as it had been notified of it.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) id: u32,
    pub(crate) channels: BTreeSet<u32>,
}

/// What it was given so far.
#[derive(Debug, Default)]
pub(crate) struct Recovering {
    pub(crate) channels: BTreeMap<u32, ChannelDataRecoveryMessage>,
}

impl Recovering {
    pub(crate) fn receive(&mut self, body: &[u8]) {
        let message = ChannelDataRecoveryMessage::decode(body).expect("a channel");
        self.channels.insert(message.channel_id, message);
    }

    /// What is wrong with it, for a server that is `id` now, if anything is.
    pub(crate) fn what_is_wrong(&self, id: u32, before: &Before) -> Option<String> {
        if id != before.id {
            return Some(format!("came back as {id}, not as {}", before.id));
        }
        let missing = before.channels.iter().find(|channel| {
            let given = self.channels.get(channel);
            given.is_none_or(|given| given.owner_conn_id != id)
        });
        missing.map(|channel| {
            let given: Vec<(u32, u32)> = self
                .channels
                .values()
                .map(|given| (given.channel_id, given.owner_conn_id))
                .collect();
            format!("came back and was not given {channel}, but these with owners {given:?}")
        })
    }
}
