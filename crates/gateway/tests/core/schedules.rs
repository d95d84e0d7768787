//! Thousands of schedules drawn from seeds, and what must hold in all of them.

use std::collections::BTreeMap;

use lagometer_gateway::core::Peer;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataHandoverMessage, ChannelSubscriptionOptions, CreateChannelMessage,
    SubscribedToChannelResultMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::messages::unrealpb::SpatialChannelData;
use lagometer_units::SplitMix64;
use prost::Message;

use crate::spatial::{make_entity, row_of_four, walk};
use crate::world::{GLOBAL, Who, World, any, data, types};

pub(crate) const CHAT: &str = "chatpb.ChatChannelData";

/// Numbers from a seed.
pub(crate) struct Draw(pub(crate) SplitMix64);

impl Draw {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// One line of the channel's history.
struct Line {
    sender: u32,
    text: String,
}

/// What a subscriber has seen, checked as it comes.
#[derive(Default)]
struct Reader {
    subscribed: bool,
    /// The next line it may be sent; `None` until the first update, where the
    /// whole state is not sent.
    next: Option<usize>,
    skip_self: bool,
}

/// A world whose GLOBAL is a chat, and the server that owns it.
pub(crate) fn chat() -> (World, Who) {
    let mut world = World::new();
    let master = world.server();
    let message = CreateChannelMessage {
        channel_type: 1,
        data: Some(any(CHAT, &ChatChannelData::default())),
        ..CreateChannelMessage::default()
    };
    world.create_with(master, &message);
    (world, master)
}

/// A chat of several writers, subscribers of all sorts who come, change their
/// minds and go.
struct Chat {
    world: World,
    draw: Draw,
    master: Who,
    history: Vec<Line>,
    readers: BTreeMap<Who, Reader>,
}

impl Chat {
    fn new(seed: u64) -> Self {
        let (mut world, master) = chat();
        world.forget_all();
        world.unsubscribe(master, GLOBAL);
        world.forget_all();
        Self {
            world,
            draw: Draw::new(seed),
            master,
            history: Vec::new(),
            readers: BTreeMap::new(),
        }
    }

    fn step(&mut self) {
        match self.draw.below(12) {
            0 => self.come(),
            1 => self.go(),
            2 | 3 => self.change(),
            4 => self.unsubscribe(),
            5..=9 => self.write(),
            _ => {
                let pause = self.draw.below(90);
                self.world.pass(pause);
            }
        }
        self.read();
    }

    fn come(&mut self) {
        if self.readers.len() < 6 {
            let peer = Peer::ALL[self.draw.below(2) as usize];
            let who = self.world.join(peer);
            self.readers.insert(who, Reader::default());
        }
    }

    fn go(&mut self) {
        if self.draw.one_in(3)
            && let Some(who) = self.anyone()
        {
            self.readers.remove(&who);
            self.world.hang_up(who);
        }
    }

    fn change(&mut self) {
        let Some(who) = self.anyone() else { return };
        let interval = [1, 20, 33, 50, 100, 250][self.draw.below(6) as usize];
        let mut options = ChannelSubscriptionOptions {
            data_access: Some(2),
            fan_out_interval_ms: Some(interval),
            ..ChannelSubscriptionOptions::default()
        };
        let reader = self.readers.get_mut(&who).expect("a reader");
        if !reader.subscribed {
            *reader = Reader {
                subscribed: true,
                next: None,
                skip_self: self.draw.one_in(2),
            };
            let skip_first = self.draw.one_in(3);
            options.skip_self_update_fan_out = Some(reader.skip_self);
            options.skip_first_fan_out = Some(skip_first);
            options.fan_out_delay_ms = Some(self.draw.below(100) as i32 - 40);
            if self.draw.one_in(4) {
                options.data_field_masks = vec!["chatMessages.content".into()];
            }
            if skip_first {
                // From when on it gets windows is the first one's to decide.
                options.fan_out_delay_ms = Some(0);
                reader.next = Some(self.history.len());
            }
        }
        self.world.subscribe(who, GLOBAL, options);
    }

    fn unsubscribe(&mut self) {
        if let Some(who) = self.anyone()
            && self.readers[&who].subscribed
        {
            self.world.unsubscribe(who, GLOBAL);
        }
    }

    fn write(&mut self) {
        let subscribed = self.readers.iter().filter(|(_, reader)| reader.subscribed);
        let mut writers: Vec<Who> = subscribed.map(|(&who, _)| who).collect();
        writers.push(self.master);
        let who = writers[self.draw.below(writers.len() as u64) as usize];
        // A server that only reads writes in the owner's name; nobody owns.
        if who == self.master {
            return;
        }
        let text = self.history.len().to_string();
        let line = ChatChannelData {
            chat_messages: vec![ChatMessage {
                content: text.clone(),
                ..ChatMessage::default()
            }],
        };
        self.world.update(who, GLOBAL, CHAT, &line);
        let sender = self.world.id(who);
        self.history.push(Line { sender, text });
    }

    /// Holds what every reader got against the history.
    fn read(&mut self) {
        for (&who, reader) in &mut self.readers {
            let id = self.world.id(who);
            for pack in std::mem::take(&mut self.world.peers[who].inbox) {
                match pack.msg_type {
                    types::UNSUB => reader.subscribed = false,
                    types::UPDATE => {
                        assert!(reader.subscribed, "nothing comes once it is unsubscribed");
                        let update: ChatChannelData = data(&pack);
                        reader.check(id, &update, &self.history);
                    }
                    _ => {}
                }
            }
        }
    }

    /// In the end everyone has everything.
    fn finish(&mut self) {
        self.world.pass(2000);
        self.read();
        for (&who, reader) in &self.readers {
            if reader.subscribed {
                let id = self.world.id(who);
                let mut left = self.history[reader.next.unwrap_or(0)..]
                    .iter()
                    .filter(|line| !(reader.skip_self && line.sender == id));
                assert!(
                    reader.next.is_some() && left.next().is_none(),
                    "{who} has only {:?} of {}",
                    reader.next,
                    self.history.len()
                );
            }
        }
    }

    fn anyone(&mut self) -> Option<Who> {
        let all: Vec<Who> = self.readers.keys().copied().collect();
        let count = all.len() as u64;
        (count > 0).then(|| all[self.draw.below(count) as usize])
    }
}

impl Reader {
    fn check(&mut self, id: u32, update: &ChatChannelData, history: &[Line]) {
        let texts = update.chat_messages.iter().map(|message| &message.content);
        let Some(next) = &mut self.next else {
            // The whole state: all there was until now, its own lines too.
            let seen: Vec<&String> = texts.collect();
            let all: Vec<&String> = history.iter().map(|line| &line.text).collect();
            assert_eq!(seen, all[..seen.len()]);
            self.next = Some(seen.len());
            return;
        };
        for text in texts {
            while self.skip_self && history[*next].sender == id {
                *next += 1;
            }
            assert_eq!(
                *text, history[*next].text,
                "each once, in order, none left out"
            );
            *next += 1;
        }
    }
}

#[test]
fn every_update_reaches_every_subscriber_once_and_in_order() {
    for seed in 0..4000 {
        let result = std::panic::catch_unwind(|| {
            let mut chat = Chat::new(seed);
            for _ in 0..120 {
                chat.step();
            }
            chat.finish();
        });
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// Entities that wander over the grid, moved by whoever owns them.
fn wander(seed: u64) {
    let mut draw = Draw::new(seed);
    let (mut world, [_, first, second]) = row_of_four((seed % 2) as u32);
    let servers = [first, second];
    let client = world.client();
    let watched = 65_536 + draw.below(4) as u32;
    world.subscribe(client, watched, ChannelSubscriptionOptions::default());
    let entities: Vec<u32> = (0..4).map(|index| 0x80_100 + 2 * index).collect();
    let mut places: BTreeMap<u32, f32> = BTreeMap::new();
    for &id in &entities {
        make_entity(&mut world, first, id, 5.0);
        places.insert(id, 5.0);
    }
    world.forget_all();
    // Which server holds which entity, by what it received.
    let mut writers: BTreeMap<u32, Vec<Who>> =
        entities.iter().map(|&id| (id, vec![first])).collect();
    for _ in 0..60 {
        let id = entities[draw.below(4) as usize];
        let x = draw.below(400) as f32 / 10.0;
        let owner = *writers[&id].first().expect("an owner");
        assert_eq!(writers[&id].len(), 1, "one owner for entity {id}");
        let crossed = (places[&id] / 10.0).floor() as u32 != (x / 10.0).floor() as u32;
        walk(&mut world, owner, id, x);
        places.insert(id, x);
        let destination = 65_536 + (x / 10.0) as u32;
        for who in servers {
            for pack in std::mem::take(&mut world.peers[who].inbox) {
                let holders = writers.entry(pack.channel_id).or_default();
                match pack.msg_type {
                    types::UNSUB => holders.retain(|&one| one != who),
                    types::SUB if pack.channel_id >= 0x80_000 => {
                        let result = SubscribedToChannelResultMessage::decode(&*pack.msg_body);
                        let options = result.unwrap().sub_options.unwrap();
                        holders.retain(|&one| one != who);
                        if options.data_access == Some(2) {
                            holders.push(who);
                        }
                    }
                    types::HANDOVER => {
                        let message = ChannelDataHandoverMessage::decode(&*pack.msg_body).unwrap();
                        assert!(crossed);
                        assert_eq!(message.dst_channel_id, destination);
                        let data = message.data.unwrap();
                        let data = SpatialChannelData::decode(&*data.value).unwrap();
                        assert_eq!(data.entities.keys().copied().collect::<Vec<_>>(), [id]);
                    }
                    _ => {}
                }
            }
        }
        // The server of the cell it is in holds it, and nobody else.
        let expected = servers[(x / 20.0) as usize];
        assert_eq!(writers[&id], [expected], "entity {id} at {x}");
        let pause = draw.below(60);
        world.pass(pause);
    }
    // Who looks at a cell now sees just those that are in it.
    world.pass(500);
    for cell in 0..4 {
        let late = world.client();
        world.subscribe(late, 65_536 + cell, ChannelSubscriptionOptions::default());
        world.pass(200);
        let states = world.updates::<SpatialChannelData>(late, 65_536 + cell);
        let shown: Vec<u32> = states
            .iter()
            .flat_map(|state| state.entities.keys().copied())
            .collect();
        for id in &entities {
            // Only a handover gives the cell of an entity.
            let is_in = (places[id] / 10.0).floor() as u32 == cell;
            assert!(!shown.contains(id) || is_in, "entity {id} in cell {cell}");
        }
    }
}

#[test]
fn every_entity_has_one_owner_wherever_it_wanders() {
    for seed in 0..400 {
        let result = std::panic::catch_unwind(|| wander(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}
