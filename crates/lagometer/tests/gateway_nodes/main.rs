//! A gateway of several nodes as its users meet it: real processes joined by a real NATS
//! server, peers that speak through the client library, and nodes that are killed.

mod faults;
#[path = "../free_addresses/mod.rs"]
mod free_addresses;
mod game;
#[allow(dead_code, reason = "not all that hosts do is needed here")]
#[path = "../kubernetes/hosts.rs"]
mod hosts;
#[path = "../nats_server/mod.rs"]
mod nats_server;
mod node;
mod peers;
mod security;
mod shards;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nats_server::NatsServer;
use node::{Node, PATIENT, lagometer};
use peers::{GameServer, is_hung_up_on, player, sees};

/// A gateway of two edges and two nodes for channels.
struct Cluster {
    folder: tempfile::TempDir,
    nats: NatsServer,
    edges: Vec<Node>,
    channels: Vec<Node>,
}

impl Cluster {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let nats = NatsServer::start(folder.path().to_owned())?;
        let node = |role| Node::start(folder.path(), role, &nats.url);
        let channels = vec![node("channels"), node("channels")];
        let edges = vec![node("edge"), node("edge")];
        for node in channels.iter().chain(&edges) {
            node.until_ready();
        }
        Some(Self {
            folder,
            nats,
            edges,
            channels,
        })
    }

    fn node(&self, role: &str) -> Node {
        Node::start(self.folder.path(), role, &self.nats.url)
    }

    fn servers(&self) -> Vec<SocketAddr> {
        self.edges.iter().map(|edge| edge.servers).collect()
    }

    fn clients(&self) -> Vec<SocketAddr> {
        self.edges.iter().map(|edge| edge.clients).collect()
    }

    /// Which node owns the channels, once one does.
    fn owner(&self) -> usize {
        let until = Instant::now() + PATIENT;
        loop {
            let owner = self.channels.iter().position(Node::owns_channels);
            if let Some(owner) = owner {
                return owner;
            }
            assert!(Instant::now() < until, "no node owns the channels");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn players_of_two_edges_see_one_world_whoever_is_killed() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let [one, other] = [0, 1].map(|edge| cluster.edges[edge].clients);
    let mut server = GameServer::start(&[cluster.edges[0].servers], 1);
    let mut players = [player(&[one], "one"), player(&[other], "two")];
    server.add(20);
    for player in &mut players {
        sees(player, server.entries).unwrap();
    }

    // An edge dies: its player comes back to another, and sees everything.
    cluster.edges[1].kill();
    let since = Instant::now();
    server.add(20);
    let hung_up = is_hung_up_on(&mut players[1]);
    players[1] = player(&cluster.clients(), "two");
    sees(&mut players[1], server.entries).unwrap();
    let back = since.elapsed();
    sees(&mut players[0], server.entries).unwrap();
    eprintln!("an edge was killed: hung up on after {hung_up:?}, sees all after {back:?}");
    let owner = cluster.owner();
    let lost = |node: &Node| node.metric("gateway_routes_lost_total") > 0;
    cluster.channels[owner].until("the edge is given up", lost);
    cluster.edges[1] = cluster.node("edge");
    cluster.edges[1].until_ready();
    let mut third = player(&[cluster.edges[1].clients], "three");
    sees(&mut third, server.entries).unwrap();

    // The owner of the channels dies, and the other has followed: it goes on.
    let is_followed = |node: &Node| node.metric("gateway_followed") == 1;
    cluster.channels[owner].until("the other follows", is_followed);
    cluster.channels[owner].kill();
    let since = Instant::now();
    server.add(5);
    for player in players.iter_mut().chain([&mut third]) {
        sees(player, server.entries).unwrap();
    }
    eprintln!("the owner was killed: all seen {:?} later", since.elapsed());
    assert_eq!(cluster.owner(), 1 - owner);

    // That dies, too, and nobody has followed: the next takes over, without channels, and
    // everyone is asked to connect again.
    cluster.channels[1 - owner].kill();
    cluster.channels[owner].start_again();
    let since = Instant::now();
    let hung_up = is_hung_up_on(&mut server.client);
    let mut server = GameServer::start(&cluster.servers(), server.entries);
    let back_in_hand = since.elapsed();
    server.add(5);
    players = ["one", "two"].map(|name| player(&cluster.clients(), name));
    for player in &mut players {
        sees(player, server.entries).unwrap();
    }
    let back = since.elapsed();
    eprintln!(
        "the owner was killed alone: hung up on after {hung_up:?}, GLOBAL owned after {back_in_hand:?}, \
         all seen after {back:?}"
    );
    assert_eq!(cluster.owner(), owner);

    // NATS itself dies and comes back: nobody is hung up on, and nothing is lost.
    cluster.nats.kill();
    server.add(20);
    // Long enough that what was sent meanwhile is lost more than once.
    std::thread::sleep(Duration::from_millis(500));
    cluster.nats.start_again();
    let since = Instant::now();
    server.add(20);
    for player in &mut players {
        sees(player, server.entries).unwrap();
    }
    eprintln!(
        "NATS was killed: all seen {:?} after it was back",
        since.elapsed()
    );
}

#[test]
fn players_of_a_world_are_spread_over_the_edges_that_are_named() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let edges: Vec<String> = cluster
        .clients()
        .iter()
        .map(SocketAddr::to_string)
        .collect();
    let world = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(["world", "single", "--players=6", "--for=3s", "--no-html"])
        .args([format!("--gateway={}", edges.join(","))])
        .args([format!("--servers={}", cluster.edges[0].servers)])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let players = |edge: &Node| edge.metric("connection_num{type=\"CLIENT\"}");
    for edge in &cluster.edges {
        edge.until("it has its share", |edge| players(edge) == 3);
    }
    let ended = world.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    // On a busy machine states may be too old, which is said with 1.
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{said}");
}

#[test]
fn an_owner_that_ends_with_nobody_standing_by_gives_up_its_lease_before_it_would_be_over() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let owner = cluster.owner();
    cluster.channels[1 - owner].kill();
    let alone = |node: &Node| node.metric("gateway_standbys") == 0;
    cluster.channels[owner].until("nobody stands by", alone);
    let mut server = GameServer::start(&cluster.servers(), 3);
    let since = Instant::now();
    cluster.channels[owner].end();
    cluster.channels[1 - owner].start_again();
    assert_eq!(cluster.owner(), 1 - owner);
    let took = since.elapsed();
    is_hung_up_on(&mut server.client);
    let mut server = GameServer::start(&cluster.servers(), 3);
    let mut player = player(&cluster.clients(), "one");
    server.add(1);
    sees(&mut player, 4).unwrap();
    eprintln!("the owner ended alone: another owns the channels after {took:?}");
    let log = cluster.channels[1 - owner].log();
    assert!(log.contains("owns the channels in epoch 2"), "{log}");
}

#[test]
fn nodes_wait_for_nats_and_say_so_once_and_are_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut nats) = NatsServer::start(folder.path().to_owned()) else {
        return;
    };
    nats.kill();
    let nodes = ["channels", "edge"].map(|role| Node::start(folder.path(), role, &nats.url));
    for node in &nodes {
        node.until("it waits", |node| {
            node.log().contains("waiting for NATS at")
        });
        node.until("it answers", |node| node.get("/readyz").0 != 0);
        assert_eq!(node.get("/readyz").0, 503);
        assert_eq!(node.get("/healthz").0, 200);
        let lines = node.log().matches("waiting for NATS at").count();
        assert_eq!(lines, 1, "{}", node.log());
    }
    nats.start_again();
    for node in &nodes {
        node.until_ready();
    }
    // Somebody of another version: refused, in one line.
    let mut stream = BufReader::new(TcpStream::connect(nats.address()).unwrap());
    let frame = b"LG\x09\x00somebody of another version";
    let mut said = b"CONNECT {\"verbose\":false}\r\n".to_vec();
    for _ in 0..2 {
        said.extend_from_slice(
            format!("PUB lagometer.gateway.0-1.all {}\r\n", frame.len()).as_bytes(),
        );
        said.extend_from_slice(frame);
        said.extend_from_slice(b"\r\n");
    }
    said.extend_from_slice(b"PING\r\n");
    stream.get_mut().write_all(&said).unwrap();
    let mut line = String::new();
    while !line.contains("PONG") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0);
    }
    for node in &nodes {
        let says = "a node speaks version 9 of the protocol between nodes";
        node.until("it says so", |node| node.log().contains(says));
        assert_eq!(node.log().matches(says).count(), 1);
        assert_eq!(node.get("/readyz").0, 200);
    }
}

#[test]
fn roles_without_nats_and_nats_without_a_role_are_refused_in_one_line() {
    let cases: [(&[&str], &str); 4] = [
        (&["--role", "edge"], "say with --nats"),
        (&["--nats", "nats://127.0.0.1:1"], "add --role edge"),
        (
            &["--role", "edge", "--nats", "http://x"],
            "`http://x` is no address of a NATS server",
        ),
        (
            &[
                "--role",
                "channels",
                "--nats",
                "nats://x",
                "--nats-creds",
                "/nowhere",
            ],
            "/nowhere: cannot be read",
        ),
    ];
    for (arguments, expected) in cases {
        let output = lagometer()
            .args(["-dev", "--web=none", "-sa=127.0.0.1:0", "-ca=127.0.0.1:0"])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(printed.contains(expected), "{expected} is not in {printed}");
    }
}
