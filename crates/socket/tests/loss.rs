//! What a library promises over a path that loses: a relay of datagrams stands
//! between the two sides and drops some of either direction.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lagometer_socket::{BoxedConnection, Opening, SocketSpec};
use lagometer_transport::{Refused, State};
use lagometer_units::{GOLDEN, Time, mix};
use serde_json::{Map, Value};

/// UDT's timer may have to help several times over.
const TIMEOUT: Duration = Duration::from_mins(1);

const MESSAGES: u32 = 60;

/// Carries datagrams between whoever speaks to it and one server.
struct Relay {
    address: SocketAddr,
    dropped: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Whether a datagram of one direction is lost.
type Loss = Box<dyn FnMut(&[u8]) -> bool + Send>;

impl Relay {
    /// In front of `server`; `up` decides of what goes to it, `down` of what it
    /// sends.
    fn before(server: SocketAddr, mut up: Loss, mut down: Loss) -> Self {
        let local = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let remote = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        remote.connect(server).unwrap();
        let address = local.local_addr().unwrap();
        let dropped = Arc::new(AtomicU32::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        for socket in [&local, &remote] {
            socket
                .set_read_timeout(Some(Duration::from_millis(20)))
                .unwrap();
        }
        let (local_back, remote_back) = (local.try_clone().unwrap(), remote.try_clone().unwrap());
        let client = Arc::new(std::sync::Mutex::new(None));
        let upwards = {
            let (client, stop, dropped) = (Arc::clone(&client), stop.clone(), dropped.clone());
            thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while !stop.load(Ordering::Relaxed) {
                    if let Ok((length, from)) = local.recv_from(&mut buffer) {
                        *client.lock().unwrap() = Some(from);
                        if up(&buffer[..length]) {
                            dropped.fetch_add(1, Ordering::Relaxed);
                        } else {
                            let _ = remote.send(&buffer[..length]);
                        }
                    }
                }
            })
        };
        let downwards = {
            let (stop, dropped) = (stop.clone(), dropped.clone());
            thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while !stop.load(Ordering::Relaxed) {
                    let Ok(length) = remote_back.recv(&mut buffer) else {
                        continue;
                    };
                    let to = *client.lock().unwrap();
                    if down(&buffer[..length]) {
                        dropped.fetch_add(1, Ordering::Relaxed);
                    } else if let Some(to) = to {
                        let _ = local_back.send_to(&buffer[..length], to);
                    }
                }
            })
        };
        Self {
            address,
            dropped,
            stop,
            threads: vec![upwards, downwards],
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Of a direction's datagrams a sixth is lost once the handshake is through, by
/// chance that is the same in every run, and three in a row now and then.
///
/// By chance, not every so many: UDT sends its whole window again when it has received
/// nothing for a time. Where the window is a multiple of the loss's period, the
/// same packet of it is lost each time, and everything stands still for good
/// without anybody's fault.
fn is_lost(number: u32) -> bool {
    let chance = mix(u64::from(number).wrapping_mul(GOLDEN));
    number > 12 && (chance.is_multiple_of(8) || number % 50 < 3)
}

/// Losses by chance.
fn by_chance() -> Loss {
    let mut seen = 0;
    Box::new(move |_| {
        seen += 1;
        is_lost(seen)
    })
}

/// A connection through a relay.
struct Pair {
    client: BoxedConnection,
    server: BoxedConnection,
    relay: Relay,
    origin: Instant,
}

impl Pair {
    fn open(name: &str, up: Loss, down: Loss) -> Self {
        Self::with(name, &Map::new(), up, down)
    }

    /// With these settings in place of the preset's.
    fn with(name: &str, settings: &Map<String, Value>, up: Loss, down: Loss) -> Self {
        let spec = SocketSpec::resolve(name, settings).unwrap();
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server_address = free.local_addr().unwrap();
        drop(free);
        let relay = Relay::before(server_address, up, down);
        let opening = |remote| Opening {
            local: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            remote,
            seed: 1,
            now: Time::ZERO,
        };
        Self {
            server: spec.server(&opening(server_address)).unwrap(),
            client: spec.client(&opening(relay.address)).unwrap(),
            relay,
            origin: Instant::now(),
        }
    }

    /// A turn of both ends.
    fn turn(&mut self, name: &str) -> Time {
        let elapsed = self.origin.elapsed();
        assert!(elapsed < TIMEOUT, "{name} does not come to its end");
        let now = Time::ZERO + elapsed;
        self.client.turn(now);
        self.server.turn(now);
        now
    }

    fn is_ready(&self) -> bool {
        self.client.state() == State::Ready && self.server.state() == State::Ready
    }
}

/// Sends numbered messages through the relay, one every 5 ms and `at_most` so many, and
/// returns the first [`MESSAGES`] as they arrive.
fn arrivals(name: &str, at_most: u32) -> Vec<u32> {
    let mut pair = Pair::open(name, by_chance(), by_chance());
    let mut sent = 0;
    let mut arrived = Vec::new();
    while arrived.len() < MESSAGES as usize {
        let now = pair.turn(name);
        if sent < at_most && pair.is_ready() {
            sent += u32::from(send(name, &mut pair.client, now, sent));
        }
        receive(name, &mut pair.server, now, &mut arrived);
        pair.client.wait(Duration::from_millis(5));
    }
    assert!(pair.relay.dropped.load(Ordering::Relaxed) > 0, "{name}");
    arrived.truncate(MESSAGES as usize);
    arrived
}

/// Takes in the numbers of the messages that have come.
fn receive(name: &str, server: &mut BoxedConnection, now: Time, arrived: &mut Vec<u32>) {
    while let Some(message) = server.receive(now) {
        let number: [u8; 4] = message.bytes[..4].try_into().unwrap();
        assert_eq!(message.bytes.len(), 300, "{name}");
        arrived.push(u32::from_le_bytes(number));
    }
}

fn send(name: &str, client: &mut BoxedConnection, now: Time, number: u32) -> bool {
    let mut message = vec![0; 300];
    message[..4].copy_from_slice(&number.to_le_bytes());
    match client.send(now, &message) {
        Ok(()) => true,
        Err(Refused::BufferFull) => false,
        Err(refused) => panic!("{name}: {refused}"),
    }
}

#[test]
#[cfg(feature = "udt")]
fn udt_delivers_everything_once_and_in_order_over_a_path_that_loses() {
    let expected: Vec<u32> = (0..MESSAGES).collect();
    thread::scope(|scope| {
        let names = [
            "udt-dgram",
            "udt-stream",
            "udt-epoll",
            "udt-default",
            "udt-dgram-2015",
            "udt-stream-2015",
            "udt-epoll-2015",
        ];
        let runs = names.map(|name| (name, scope.spawn(move || arrivals(name, MESSAGES))));
        for (name, run) in runs {
            assert_eq!(run.join().unwrap(), expected, "{name}");
        }
    });
}

/// What a relay saw of a packet of UDT's that was lost together with the report of
/// its loss.
#[cfg(feature = "udt")]
#[derive(Debug, Default)]
struct Gap {
    /// The number of the packet.
    sequence: Option<u32>,
    /// It has been sent again.
    is_closed: bool,
    /// How often it was reported; the first report was lost.
    reports: u32,
    /// When the server was last sent something, since the gap.
    last_sent: Option<Instant>,
    /// The longest that the server was sent nothing while the gap was there.
    silence: Duration,
}

#[cfg(feature = "udt")]
impl Gap {
    fn note_sent(&mut self) {
        let now = Instant::now();
        if self.sequence.is_some() && !self.is_closed {
            let since = self
                .last_sent
                .map_or(Duration::ZERO, |last_sent| now - last_sent);
            self.silence = self.silence.max(since);
            self.last_sent = Some(now);
        }
    }

    /// Of the server's packets the 21st with data is lost once.
    fn loses_of_server(&mut self, datagram: &[u8], data: &mut u32) -> bool {
        let word = u32::from_be_bytes(datagram[..4].try_into().unwrap());
        if word >> 31 == 1 {
            return false;
        }
        *data += 1;
        if *data == 21 {
            self.sequence = Some(word);
            self.last_sent = Some(Instant::now());
            return true;
        }
        if self.sequence == Some(word) && !self.is_closed {
            self.note_sent();
            self.is_closed = true;
        }
        false
    }

    /// Of the client's packets the first report of a loss is lost: a control packet,
    /// type 3 (draft-gg-udt-03, section 3.2).
    fn loses_of_client(&mut self, datagram: &[u8]) -> bool {
        let word = u32::from_be_bytes(datagram[..4].try_into().unwrap());
        if word >> 16 == 0x8003 && self.sequence.is_some() {
            self.reports += 1;
            if self.reports == 1 {
                return true;
            }
        }
        self.note_sent();
        false
    }
}

/// Plays a server whose packet is lost together with the report of its loss, with a
/// client that sends a message every 20 ms: until the server's messages have all
/// come, or for two seconds, after which the client falls silent.
#[cfg(feature = "udt")]
fn gap_beside_a_lively_client(name: &str) -> Gap {
    let gap = Arc::new(std::sync::Mutex::new(Gap::default()));
    let (of_client, of_server) = (Arc::clone(&gap), Arc::clone(&gap));
    let mut data = 0;
    let mut pair = Pair::open(
        name,
        Box::new(move |datagram| of_client.lock().unwrap().loses_of_client(datagram)),
        Box::new(move |datagram| {
            let mut gap = of_server.lock().unwrap();
            gap.loses_of_server(datagram, &mut data)
        }),
    );
    let (mut sent, mut arrived, mut turns) = (0, 0, 0);
    while arrived < MESSAGES {
        let now = pair.turn(name);
        if pair.is_ready() {
            turns += 1;
            if sent < MESSAGES {
                sent += u32::from(send(name, &mut pair.server, now, sent));
            }
            if turns < 100 {
                send(name, &mut pair.client, now, turns);
            }
        }
        while pair.server.receive(now).is_some() {}
        while let Some(message) = pair.client.receive(now) {
            let number: [u8; 4] = message.bytes[..4].try_into().unwrap();
            assert_eq!(u32::from_le_bytes(number), arrived, "{name}");
            arrived += 1;
        }
        thread::sleep(Duration::from_millis(20));
    }
    drop(pair);
    Arc::try_unwrap(gap).unwrap().into_inner().unwrap()
}

/// UDT reports a loss once. If the report is lost the sender sends again only when it
/// has received nothing for 300 ms, and messages that come the other way put that off.
#[test]
#[cfg(feature = "udt")]
fn udt_itself_leaves_a_gap_open_whose_report_was_lost_while_its_peer_sends() {
    let gap = gap_beside_a_lively_client("udt-default");
    assert!(gap.reports == 1 && gap.is_closed, "{gap:?}");
    assert!(gap.silence > Duration::from_millis(250), "{gap:?}");
}

#[test]
#[cfg(feature = "udt")]
fn a_gap_whose_report_was_lost_is_reported_again_while_the_peer_sends() {
    for name in ["udt-dgram", "udt-stream", "udt-epoll"] {
        let gap = gap_beside_a_lively_client(name);
        assert!(gap.reports > 1 && gap.is_closed, "{name}: {gap:?}");
    }
}

#[test]
fn srt_delivers_everything_once_and_in_order_over_a_path_that_loses() {
    let spec = SocketSpec::resolve("srt", &Map::new()).unwrap();
    if let Err(lacks) = spec.available() {
        println!("skipped: {lacks}");
        return;
    }
    // Its receiver reports losses, and nothing shows it that the last before a pause is lost.
    let goes_on = u32::MAX;
    let expected: Vec<u32> = (0..MESSAGES).collect();
    assert_eq!(arrivals("srt", goes_on), expected);
}

#[test]
#[cfg(feature = "srt")]
fn the_last_message_before_a_pause_comes_with_the_next_over_srt_unless_its_sender_times_it() {
    const SENT: u32 = 20;
    for is_reported_again in [true, false] {
        let name = format!("srt, repeat_loss_reports {is_reported_again}");
        let settings =
            Map::from_iter([("repeat_loss_reports".to_owned(), is_reported_again.into())]);
        let mut data = 0;
        // The first transmission of the last message alone.
        let loses = move |datagram: &[u8]| {
            data += u32::from(datagram[0] < 0x80);
            datagram[0] < 0x80 && data == SENT
        };
        let mut pair = Pair::with("srt", &settings, Box::new(loses), Box::new(|_| false));
        let (mut sent, mut arrived) = (0, Vec::new());
        let mut paused_since = None;
        while arrived.len() <= SENT as usize {
            let now = pair.turn(&name);
            if sent < SENT && pair.is_ready() {
                sent += u32::from(send(&name, &mut pair.client, now, sent));
                paused_since = Some(Instant::now());
            }
            receive(&name, &mut pair.server, now, &mut arrived);
            let is_over = paused_since.is_some_and(|since| since.elapsed().as_secs() >= 1);
            let goes_on = if is_reported_again {
                is_over
            } else {
                arrived.len() == SENT as usize
            };
            if sent == SENT && goes_on {
                if is_reported_again {
                    assert_eq!(arrived.len(), SENT as usize - 1, "{name}");
                }
                sent += u32::from(send(&name, &mut pair.client, now, sent));
            }
            pair.client.wait(Duration::from_millis(5));
        }
        assert_eq!(arrived, (0..=SENT).collect::<Vec<_>>(), "{name}");
    }
}
