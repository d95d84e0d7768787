//! A world that loses its gateway, or one of its servers, in the middle, or has
//! somebody who does not listen.
//!
//! The world is played by the binary on a gateway by the binary; what breaks
//! is a process killed with SIGKILL, or a connection cut as the kernel cuts
//! those of a killed process.

mod free_addresses;
mod world_gateway;

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use lagometer_protocol::messages::channeldpb::{
    AuthMessage, ChannelDataAccess, ChannelSubscriptionOptions, SubscribedToChannelMessage,
};
use lagometer_protocol::{FrameBuilder, MessagePack, ToGateway};
use lagometer_web::scrape;
use serde_json::Value;
use world_gateway::Gateway;

impl Gateway {
    /// Kills it without a word and starts another in its place.
    fn replace(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = self.installation.start();
    }
}

/// Plays `spatial` with 20 players on the gateway, breaks something once all
/// are in, and returns what was found.
fn play(clients: SocketAddr, servers: SocketAddr, break_it: impl FnOnce()) -> Value {
    let spatial = ["spatial", "--for", "6s"];
    play_one(&spatial, clients, servers, break_it)
}

/// The same with any scenario and flags.
fn play_one(
    scenario: &[&str],
    clients: SocketAddr,
    servers: SocketAddr,
    break_it: impl FnOnce(),
) -> Value {
    let mut world = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .arg("world")
        .args(scenario)
        .args(["--players", "20", "--join-every", "5ms"])
        .args(["--json", "-", "--no-html"])
        .args(["--gateway", &clients.to_string()])
        .args(["--servers", &servers.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = world.stdout.take().unwrap();
    let document = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    });
    let mut errors = String::new();
    let mut break_it = Some(break_it);
    for line in BufReader::new(world.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.contains(" s  20 players, ")
            && let Some(break_it) = break_it.take()
        {
            break_it();
        }
        errors += &line;
        errors.push('\n');
    }
    assert!(world.wait().unwrap().success(), "{errors}");
    assert!(break_it.is_none(), "nothing was broken: {errors}");
    serde_json::from_str(&document.join().unwrap()).unwrap()
}

/// Everybody is in the game, has one server and sees what is there.
fn is_whole(world: &Value) {
    sees_all(world);
    assert_eq!(world["handovers"]["simulated"], 20, "{world:#}");
    assert_eq!(world["handovers"]["doubled"], 0, "{world:#}");
    assert_eq!(world["handovers"]["orphans"], 0, "{world:#}");
}

#[test]
fn players_come_back_to_a_gateway_that_was_killed() {
    let mut gateway = Gateway::start(&["--scr"], "");
    let [servers, clients, _] = gateway.installation.addresses;
    let document = play(clients, servers, || gateway.replace());
    let world = &document["world"];
    is_whole(world);
    let players = &world["players"];
    assert!(players["returned"].as_u64().unwrap() >= 20, "{players:#}");
    assert!(players["servers_returned"].as_u64().unwrap() >= 10);
}

#[test]
fn a_server_that_was_cut_off_goes_on_where_it_was() {
    let gateway = Gateway::start(&["--scr"], "");
    let [servers, clients, _] = gateway.installation.addresses;
    let path = GatewayPath::to(servers);
    // The master is first; the fifth of the others has the middle.
    let document = play(clients, path.address, || path.cut(5));
    let world = &document["world"];
    is_whole(world);
    // Players keep their connections and what they see.
    assert_eq!(world["players"]["lost"], 0, "{world:#}");
    assert_eq!(world["players"]["servers_returned"], 1, "{world:#}");
    assert_eq!(world["handovers"]["failed"], 0, "{world:#}");
}

/// A server that has the world alone has forgotten its players when it comes
/// back, and they are in other processes, whose connections stood.
#[test]
fn a_lone_server_that_was_cut_off_gets_its_players_back() {
    // Where the gateway keeps what a server had, that must be cleared away.
    let cases = [("single", &[][..]), ("lod", &[]), ("lod", &["--scr"])];
    let played = cases.map(|(scenario, flags)| {
        std::thread::spawn(move || {
            let gateway = Gateway::start(flags, "");
            let [servers, clients, _] = gateway.installation.addresses;
            let path = GatewayPath::to(servers);
            let asked = [scenario, "--workers", "2", "--for", "4s"];
            play_one(&asked, clients, path.address, || path.cut(0))
        })
    });
    for document in played {
        let document = document.join().unwrap();
        let world = &document["world"];
        sees_all(world);
        assert_eq!(world["players"]["lost"], 0, "{world:#}");
        assert_eq!(world["players"]["servers_lost"], 1, "{world:#}");
        assert_eq!(world["players"]["servers_returned"], 1, "{world:#}");
    }
}

#[test]
fn all_processes_come_back_to_a_gateway_that_was_killed() {
    let mut gateway = Gateway::start(&["--scr"], "");
    let [servers, clients, _] = gateway.installation.addresses;
    let asked = ["lod", "--workers", "2", "--for", "5s"];
    let document = play_one(&asked, clients, servers, || gateway.replace());
    let world = &document["world"];
    sees_all(world);
    let players = &world["players"];
    assert!(players["returned"].as_u64().unwrap() >= 20, "{players:#}");
    assert_eq!(players["returned"], players["lost"], "{players:#}");
    assert!(players["servers_returned"].as_u64().unwrap() >= 1);
}

/// Everybody is in the game, and whoever looks sees what is there.
fn sees_all(world: &Value) {
    assert_eq!(world["players"]["in_game"], 20, "{world:#}");
    let (sight, looked) = (&world["sight"], &world["players"]["observers"]);
    assert_eq!(&sight["views_right"], looked, "{world:#}");
    assert_eq!(&sight["views_compared"], looked, "{world:#}");
}

/// It subscribes to everything, as players do, and takes nothing of it. The
/// gateway says so, and nobody else is worse off.
#[test]
fn a_player_that_never_reads_harms_nobody_else() {
    // What few players are sent in seconds is to be too much already.
    let settings = "[slow_readers]\nresume_at = \"4 KiB\"\nmerge_from = \"16 KiB\"\n";
    let gateway = Gateway::start(&[], settings);
    let [servers, clients, web] = gateway.installation.addresses;
    let mut silent = None;
    let document = play_one(&["single", "--for", "6s"], clients, servers, || {
        silent = Some(subscribe_and_never_read(clients));
    });
    let world = &document["world"];
    assert_eq!(world["players"]["in_game"], 20, "{world:#}");
    assert_eq!(world["players"]["lost"], 0, "{world:#}");
    assert_eq!(world["sight"]["missing"], 0, "{world:#}");
    assert_eq!(world["sight"]["views_right"], 16, "{world:#}");
    assert_eq!(world["sight"]["views_compared"], 16, "{world:#}");
    let slow = of_clients(web, "gateway_slow_readers");
    assert!(slow >= 1.0, "nobody was slow");
    let merged = of_clients(web, "gateway_updates_merged");
    assert!(merged > 0.0, "nothing was merged for it");
}

/// A client that logs in, subscribes to GLOBAL and never reads. It has next to
/// no room for what it is sent.
fn subscribe_and_never_read(clients: SocketAddr) -> socket2::Socket {
    let kind = (socket2::Domain::IPV4, socket2::Type::STREAM);
    let mut stream = socket2::Socket::new(kind.0, kind.1, None).unwrap();
    stream.set_recv_buffer_size(1).unwrap();
    // The kernel at the other end keeps more for it the larger its segments.
    stream.set_tcp_mss(536).unwrap();
    stream.connect(&clients.into()).unwrap();
    let requests = [
        ToGateway::Auth(AuthMessage {
            player_identifier_token: "silent".to_owned(),
            login_token: "test_lt".to_owned(),
        }),
        ToGateway::SubToChannel(SubscribedToChannelMessage {
            conn_id: 0,
            sub_options: Some(ChannelSubscriptionOptions {
                data_access: Some(ChannelDataAccess::ReadAccess.into()),
                fan_out_interval_ms: Some(20),
                ..ChannelSubscriptionOptions::default()
            }),
        }),
    ];
    for request in requests {
        let mut body = Vec::new();
        request.encode_body(&mut body);
        let mut frame = FrameBuilder::new();
        frame
            .push(&MessagePack {
                msg_type: request.msg_type() as u32,
                body: &body,
                ..MessagePack::default()
            })
            .unwrap();
        stream.write_all(frame.finish().unwrap()).unwrap();
        if matches!(request, ToGateway::Auth(_)) {
            // It is let in once the first byte of the answer is here.
            stream.read_exact(&mut [0]).unwrap();
        }
    }
    stream
}

/// What the gateway's metrics say of clients under a name; 0 before they have
/// it.
fn of_clients(web: SocketAddr, name: &str) -> f64 {
    let text = scrape::fetch(web).unwrap();
    let samples = scrape::samples(&text, name);
    samples
        .filter(|(labels, _)| labels.contains("connType=\"CLIENT\""))
        .map(|(_, value)| value)
        .sum()
}

/// A path to the gateway on which one connection can be cut.
struct GatewayPath {
    address: SocketAddr,
    ends: Arc<Mutex<Vec<[TcpStream; 2]>>>,
}

impl GatewayPath {
    fn to(gateway: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let ends = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&ends);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for local in listener.incoming() {
                let local = local.unwrap();
                let remote = TcpStream::connect(gateway).unwrap();
                for end in [&local, &remote] {
                    end.set_nodelay(true).unwrap();
                }
                let copy = |stream: &TcpStream| stream.try_clone().unwrap();
                known.lock().unwrap().push([copy(&local), copy(&remote)]);
                for (from, to) in [(copy(&local), copy(&remote)), (remote, local)] {
                    std::thread::spawn(move || carry(from, to));
                }
            }
        });
        Self { address, ends }
    }

    fn cut(&self, nth: usize) {
        for end in &self.ends.lock().unwrap()[nth] {
            // The other may have gone by itself by then.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
