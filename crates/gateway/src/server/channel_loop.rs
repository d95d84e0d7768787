//! The thread of the channels, where they have one of their own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lagometer_units::Time;
use rustix::io::Errno;

use super::bus_adapter::{Delivered, Posted};
use super::channel_worker::ChannelWorker;
use super::command::{Command, Commands};
use super::mailbox::Exchange;
use super::poller::{EventNotifier, Events, Poller, Waker};
use super::report::{Numbers, Report};
use super::shared::Shared;

/// So long a fan-out tick that is due waits for what came before it and belongs into
/// its windows. A flood may take a tenth of a second to be worked off: then the tick
/// goes first, and what is left belongs into the next one's.
const TICK_WAITS_AT_MOST: Duration = Duration::from_millis(2);

/// The loop over messages and fan-out ticks.
pub(super) struct ChannelLoop {
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    pub(super) worker: ChannelWorker,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: Arc<Commands>,
    pub(super) report: Arc<Report>,
    pub(super) exchange: Mailboxes,
}

impl ChannelLoop {
    /// Runs until it is asked to end. Each turn has the order that the
    /// [mailbox](super::mailbox) asks for: sleep, silence, look at everything.
    pub(super) fn run(mut self) -> Result<(), Errno> {
        let mut ready = Events::new();
        let mut arrived = VecDeque::new();
        let (mut answered, mut turns, mut busy_ns) = (0, 0, 0);
        loop {
            let before = self.shared.clock.now();
            let due = self.worker.next_deadline().map(|due| due.since(before));
            self.poller.wait(self.exchange.rest(due), &mut ready)?;
            // The waker is all that it waits for.
            if ready.iter().next().is_some() {
                self.waker.silence();
            }
            let now = self.shared.clock.now();
            while let Some(command) = self.commands.take() {
                match command {
                    Command::End => return Ok(()),
                    Command::Reload(config) => self.worker.reload(&config, &self.waker),
                    Command::Adopt(_) | Command::Evict(..) | Command::Drain => {}
                }
            }
            // While a connection loop cannot keep up, nothing is taken in and
            // no fan-out tick is made: what waits is bounded.
            if self.exchange.take(&mut arrived) {
                let clock = self.shared.clock;
                let (worker, exchange) = (&mut self.worker, &mut self.exchange);
                work(worker, exchange, || clock.now(), &mut arrived);
            }
            if self.worker.has_owner() && !self.shared.owned.swap(true, Ordering::SeqCst) {
                self.shared.wake_all();
            }
            turns += 1;
            busy_ns += self.shared.clock.now().since(now).as_nanos() as u64;
            let asked = self.report.asked();
            self.report.answer(asked, &mut answered, || Numbers {
                channels: Some(self.worker.report()),
                turns,
                busy_ns,
                queued: self.exchange.depth() as u64,
                ..Numbers::default()
            });
        }
    }
}

/// What the worker needs to be reached.
pub(super) type Mailboxes = Exchange<Posted, Delivered, EventNotifier>;

/// Handles what has come and what is due. Looks at the clock in between.
fn work(
    worker: &mut ChannelWorker,
    exchange: &mut Mailboxes,
    clock: impl Fn() -> Time,
    arrived: &mut VecDeque<Posted>,
) {
    let mut now = clock();
    for item in arrived.drain(..) {
        match item {
            Posted::Message(from, message) => worker.handle(now, from, message),
            Posted::Probe(side, number) => {
                exchange.post(usize::from(side.0), Delivered::Probe(number));
            }
            // The channels of this process are never lost.
            Posted::Settled(..) => {}
        }
        let looked = clock();
        if looked.since(now) >= TICK_WAITS_AT_MOST
            && worker.next_deadline().is_some_and(|due| due <= looked)
        {
            now = looked;
            tick(worker, exchange, now);
            exchange.deliver();
        }
    }
    tick(worker, exchange, now);
    exchange.deliver();
}

/// Does what is due, and posts all that there is to say.
fn tick(worker: &mut ChannelWorker, exchange: &mut Mailboxes, now: Time) {
    worker.settle(now);
    worker.handle_deadline(now);
    worker.settle(now);
    while let Some((side, message)) = worker.poll_bus() {
        exchange.post(usize::from(side.0), Delivered::Message(message));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use lagometer_protocol::any::type_url;
    use lagometer_protocol::messages::channeldpb::{
        AuthMessage, ChannelDataUpdateMessage, ChannelSubscriptionOptions, CreateChannelMessage,
    };
    use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
    use lagometer_protocol::{FrameBuilder, MessagePack};
    use prost::Message;
    use prost_types::Any;

    use super::*;
    use crate::core::Shard;
    use crate::core::bus::ToConnections;
    use crate::core::{ConnKey, ConnectionManager, ConnectionSettings, Peer, SideId};
    use crate::server::bus_adapter::FromChannels;
    use crate::server::clock::Clock;
    use crate::server::config::FileConfig;
    use crate::server::mailbox::{Capacity, Queue};
    use crate::server::poller;

    /// A game server on a gateway in development, and the way to its channels.
    struct Game {
        worker: ChannelWorker,
        exchange: Mailboxes,
        outbox: FromChannels,
        side: ConnectionManager,
        server: ConnKey,
        /// The clock moves on by a tenth of a millisecond whenever it is looked at.
        now: Cell<Time>,
    }

    impl Game {
        /// It has logged in, owns GLOBAL with data, and is sent what changes every
        /// five milliseconds.
        fn start() -> Self {
            let config = FileConfig::parse("test", "").unwrap();
            let config = FileConfig {
                dev: true,
                ..config
            }
            .resolve(1)
            .unwrap();
            let poller = Poller::new().unwrap();
            let waker = poller::waker(&poller, 0).unwrap();
            let inbox = Arc::new(Queue::new(Capacity::of_items(8), waker.clone()));
            let outbox = Arc::new(Queue::new(Capacity::of_items(1 << 20), waker.clone()));
            let mut side = ConnectionManager::new(ConnectionSettings::default());
            let server = side.open(Time::ZERO, Peer::Server, None).unwrap();
            let mut game = Self {
                worker: ChannelWorker::new(&config, Shard::WHOLE, Clock::start(), &waker),
                exchange: Exchange::new(inbox, vec![Arc::clone(&outbox)], waker.clone()),
                outbox,
                side,
                server,
                now: Cell::new(Time::from_secs(1)),
            };
            for (of_type, body) in first_messages(5) {
                game.send(of_type, &body);
            }
            // The whole state is sent, and a window begins.
            game.work(Vec::new());
            game.now.set(game.now.get() + Duration::from_millis(20));
            game.work(Vec::new());
            game
        }

        /// The posts that a message of the server's becomes.
        fn posts(&mut self, of_type: u32, body: &[u8]) -> Vec<Posted> {
            let frame = frame(of_type, body);
            self.side.receive(self.now.get(), self.server, &frame);
            std::iter::from_fn(|| self.side.poll_bus())
                .map(|message| Posted::Message(SideId(0), message))
                .collect()
        }

        /// Works on these, and returns what is delivered to the connections.
        fn work(&mut self, posts: Vec<Posted>) -> Vec<Delivered> {
            let clock = || {
                self.now.set(self.now.get() + Duration::from_micros(100));
                self.now.get()
            };
            work(
                &mut self.worker,
                &mut self.exchange,
                clock,
                &mut posts.into(),
            );
            let mut delivered = VecDeque::new();
            self.outbox.take(&mut delivered);
            delivered.into()
        }

        fn send(&mut self, of_type: u32, body: &[u8]) {
            let posts = self.posts(of_type, body);
            for delivered in self.work(posts) {
                if let Delivered::Message(message) = delivered {
                    self.side.handle(self.now.get(), message);
                }
            }
        }
    }

    /// What a server says first, by type: it logs in, and owns GLOBAL with data, of which it
    /// is sent what changes at this interval.
    pub(in crate::server) fn first_messages(fan_out_interval_ms: u32) -> [(u32, Vec<u8>); 2] {
        let login = AuthMessage {
            player_identifier_token: "server".into(),
            login_token: "secret".into(),
        };
        let global = CreateChannelMessage {
            channel_type: 1,
            data: Some(chat("before")),
            sub_options: Some(ChannelSubscriptionOptions {
                fan_out_interval_ms: Some(fan_out_interval_ms),
                skip_self_update_fan_out: Some(false),
                ..ChannelSubscriptionOptions::default()
            }),
            ..CreateChannelMessage::default()
        };
        [(1, login.encode_to_vec()), (3, global.encode_to_vec())]
    }

    /// A frame of one message.
    pub(in crate::server) fn frame(of_type: u32, body: &[u8]) -> Vec<u8> {
        let mut builder = FrameBuilder::new();
        let message = MessagePack {
            msg_type: of_type,
            body,
            ..MessagePack::default()
        };
        builder.push(&message).unwrap();
        builder.finish().unwrap().to_vec()
    }

    fn chat(content: &str) -> Any {
        let data = ChatChannelData {
            chat_messages: vec![ChatMessage {
                content: content.into(),
                ..ChatMessage::default()
            }],
        };
        Any {
            type_url: type_url("chatpb.ChatChannelData"),
            value: data.encode_to_vec(),
        }
    }

    /// An update of GLOBAL.
    pub(in crate::server) fn update() -> Vec<u8> {
        let update = ChannelDataUpdateMessage {
            data: Some(chat("after")),
            context_conn_id: 0,
        };
        update.encode_to_vec()
    }

    /// After how many of a flood of probes a window left.
    fn probes_before_window(delivered: &[Delivered]) -> Option<usize> {
        let is_window = |delivered: &Delivered| {
            matches!(delivered, Delivered::Message(ToConnections::Window(_)))
        };
        delivered.iter().position(is_window)
    }

    #[test]
    fn a_tick_that_is_due_does_not_wait_for_the_end_of_a_flood() {
        let mut game = Game::start();
        let mut posts = game.posts(8, &update());
        posts.extend((0..1000).map(|number| Posted::Probe(SideId(0), number)));
        let delivered = game.work(posts);
        assert_eq!(delivered.len(), 1001);
        let before = probes_before_window(&delivered).expect("a window");
        // Five milliseconds of a window, two for which it waits, and the tick they
        // end in, a tenth of a millisecond each probe.
        assert!((60..=300).contains(&before), "{before}");
    }

    #[test]
    fn what_came_before_a_tick_belongs_into_its_window() {
        let mut game = Game::start();
        let body = update();
        game.send(8, &body);
        // The tick is due when the loop wakes, and two updates have come.
        game.now.set(game.now.get() + Duration::from_millis(21));
        let mut posts = game.posts(8, &body);
        posts.extend(game.posts(8, &body));
        let delivered = game.work(posts);
        let windows: Vec<_> = delivered
            .iter()
            .filter_map(|delivered| match delivered {
                Delivered::Message(ToConnections::Window(window)) => Some(&window.value),
                _ => None,
            })
            .collect();
        let [window] = windows[..] else {
            panic!("{delivered:?}");
        };
        let window = ChatChannelData::decode(&**window).unwrap();
        assert_eq!(window.chat_messages.len(), 3);
    }
}
