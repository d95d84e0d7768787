//! What happens beside nodes, and to them, while players play: NATS servers that die, a
//! store that forgets or is full, an owner that is paused, an edge that is cut off.
//!
//! Cases wait most of their time, and are played side by side. How long players saw nothing
//! new is printed, and depends on the machine; what they saw in the end does not.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::game::{Seen, play};
use crate::hosts::Hosts;
use crate::nats_server::NatsServer;
use crate::node::Node;

/// The bucket with the lease.
const STREAM: &str = "KV_lagometer-gateway";

/// Longer than a lease, and than an edge waits for the channels.
const LONG: Duration = Duration::from_secs(7);

/// Plays one, with what it keeps below a folder.
type Case = fn(&Path);

/// Two edges and two nodes for channels, which are ready.
struct Nodes {
    edges: Vec<Node>,
    channels: Vec<Node>,
}

impl Nodes {
    fn start(folder: &Path, nats: &str) -> Self {
        let start = |role| (0..2).map(|_| Node::start(folder, role, nats)).collect();
        let nodes = Self {
            channels: start("channels"),
            edges: start("edge"),
        };
        nodes.all().for_each(Node::until_ready);
        nodes
    }

    /// Plays a game on them, and says what its players saw.
    fn play(&self, what: &str, meanwhile: impl FnOnce()) -> (Vec<Seen>, u32) {
        let mut this = self;
        play_on(what, &mut this, |_| meanwhile())
    }

    fn all(&self) -> impl Iterator<Item = &Node> {
        self.channels.iter().chain(&self.edges)
    }

    fn owner(&self) -> usize {
        let until = std::time::Instant::now() + crate::node::PATIENT;
        loop {
            if let Some(owner) = self.channels.iter().position(Node::owns_channels) {
                return owner;
            }
            assert!(
                std::time::Instant::now() < until,
                "nobody owns the channels"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl AsRef<Self> for Nodes {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The same, where something is done to the nodes themselves.
fn play_on<T: AsRef<Nodes>>(
    what: &str,
    nodes: &mut T,
    meanwhile: impl FnOnce(&mut T),
) -> (Vec<Seen>, u32) {
    let edges = &nodes.as_ref().edges;
    let servers: Vec<_> = edges.iter().map(|edge| edge.servers).collect();
    let clients: Vec<_> = edges.iter().map(|edge| edge.clients).collect();
    let (players, came_back) = play(&servers, &clients, || meanwhile(nodes));
    eprintln!("{what}: the game server came back {came_back} times; {players:?}");
    (players, came_back)
}

fn nobody_was_hung_up_on((players, came_back): &(Vec<Seen>, u32)) {
    assert_eq!(*came_back, 0, "the game server");
    assert!(players.iter().all(|it| it.hung_up == 0), "{players:?}");
}

#[test]
fn whatever_breaks_while_players_play_they_see_everything_in_the_end() {
    if !crate::nats_server::is_there() {
        eprintln!("skipped: there is no nats-server");
        return;
    }
    let cases: [(&str, Case); 7] = [
        ("an owner that ends", the_owner_ends_in_order),
        ("an owner that dies", the_owner_is_killed),
        ("a cluster of NATS", one_of_three_nats_servers_dies),
        ("a paused owner", the_owner_is_paused),
        ("a bucket that is gone", the_bucket_is_deleted),
        ("a full disk", the_store_is_full),
        ("a cut", an_edge_is_cut_off),
    ];
    let only = std::env::var("LAGOMETER_NODE_CASE").ok();
    thread::scope(|scope| {
        for (name, case) in cases {
            if only
                .as_ref()
                .is_none_or(|only| name.contains(only.as_str()))
            {
                scope.spawn(move || {
                    let folder = tempfile::tempdir().unwrap();
                    case(folder.path());
                });
            }
        }
    });
}

fn one_of_three_nats_servers_dies(folder: &Path) {
    let mut servers = NatsServer::start_cluster(folder).unwrap();
    let urls: Vec<_> = servers.iter().map(|it| it.url.clone()).collect();
    let nodes = Nodes::start(folder, &urls.join(","));
    let bucket = servers[0].ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), "");
    assert_eq!(bucket["config"]["num_replicas"], 3, "{bucket:#}");
    let leader = bucket["cluster"]["leader"].as_str().unwrap();
    let leader = leader.trim_start_matches('n').parse::<usize>().unwrap();

    let other = (leader + 1) % 3;
    let seen = nodes.play("a NATS server was killed", || {
        servers[other].kill();
        thread::sleep(LONG);
    });
    nobody_was_hung_up_on(&seen);
    servers[other].start_again();
    let mut nodes = nodes;
    let owner = nodes.owner();
    nodes.play("the NATS server that leads the bucket was killed", || {
        servers[leader].kill();
        nodes.channels[owner].until("it says so", |it| it.log().contains("lease"));
        thread::sleep(LONG);
        nodes.all().for_each(Node::until_ready);
    });
    servers[leader].start_again();
    if std::env::var_os("LAGOMETER_NODE_ROLLING").is_none() {
        return;
    }
    play_on("all was replaced, one by one", &mut nodes, |nodes| {
        for server in &mut servers {
            server.kill();
            server.start_again();
            nodes.all().for_each(Node::until_ready);
            thread::sleep(LONG);
        }
        for index in 0..2 {
            nodes.channels[index].end();
            nodes.channels[index].start_again();
            nodes.all().for_each(Node::until_ready);
            nodes.edges[index].end();
            nodes.edges[index].start_again();
            nodes.all().for_each(Node::until_ready);
            thread::sleep(Duration::from_secs(2));
        }
    });
}

/// One owner goes, and then the other: all of a gateway can be replaced, node by node. Of the
/// windows so many may be left out.
fn owners_go(
    folder: &Path,
    what: &str,
    is_ready: fn(&Node) -> bool,
    go: fn(&mut Node),
    most_left_out: Option<u64>,
) {
    let nats = NatsServer::start(folder.to_owned()).unwrap();
    let mut nodes = Nodes::start(folder, &nats.url);
    let first = nodes.owner();
    for owner in [first, 1 - first] {
        let next = 1 - owner;
        nodes.channels[owner].until("another would go on", is_ready);
        let seen = play_on(what, &mut nodes, |nodes| {
            go(&mut nodes.channels[owner]);
            nodes.channels[next].until("it goes on", Node::owns_channels);
            nodes.channels[owner].start_again();
            nodes.all().for_each(Node::until_ready);
        });
        nobody_was_hung_up_on(&seen);
        let log = nodes.channels[next].log();
        assert!(log.contains("goes on with the channels of node"), "{log}");
        let resyncs = nodes.channels[next].metric("gateway_resyncs_total");
        assert_eq!(resyncs, 0, "{log}");
    }
    for edge in &nodes.edges {
        assert_eq!(edge.metric("gateway_routes_lost_total"), 0);
        let windows = edge.metric("gateway_windows_left_out_total");
        assert!(
            most_left_out.is_none_or(|most| windows <= most),
            "{windows}"
        );
    }
}

fn the_owner_ends_in_order(folder: &Path) {
    let stands_by = |node: &Node| node.metric("gateway_standbys") == 1;
    let what = "the owner ended in order";
    owners_go(folder, what, stands_by, Node::end, Some(0));
}

fn is_followed(node: &Node) -> bool {
    node.metric("gateway_followed") == 1
}

fn the_owner_is_killed(folder: &Path) {
    let what = "the owner was killed, and followed";
    owners_go(folder, what, is_followed, Node::kill, None);
}

fn the_owner_is_paused(folder: &Path) {
    let nats = NatsServer::start(folder.to_owned()).unwrap();
    let nodes = Nodes::start(folder, &nats.url);
    let owner = nodes.owner();
    nodes.channels[owner].until("another follows", is_followed);
    let seen = nodes.play("the owner was paused", || {
        nodes.channels[owner].signal("STOP");
        nodes.channels[1 - owner].until("it takes over", Node::owns_channels);
        nodes.channels[owner].signal("CONT");
        nodes.channels[owner].until("it has seen that", |it| !it.owns_channels());
        nodes.channels[owner].until_ready();
        thread::sleep(Duration::from_secs(1));
    });
    nobody_was_hung_up_on(&seen);
    assert_eq!(nodes.owner(), 1 - owner);
}

fn the_bucket_is_deleted(folder: &Path) {
    let nats = NatsServer::start(folder.to_owned()).unwrap();
    let nodes = Nodes::start(folder, &nats.url);
    nodes.play("the bucket was deleted", || {
        let deleted = nats.ask(&format!("$JS.API.STREAM.DELETE.{STREAM}"), "");
        assert_eq!(deleted["success"], true, "{deleted}");
        thread::sleep(LONG);
    });
    let bucket = nats.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), "");
    assert_eq!(bucket["config"]["name"], STREAM, "{bucket:#}");
}

fn the_store_is_full(folder: &Path) {
    let room = "max_file_store: 4MB";
    let nats = NatsServer::start_with(folder.to_owned(), room, "").unwrap();
    let nodes = Nodes::start(folder, &nats.url);
    let owner = nodes.owner();
    nodes.play("the store was full", || {
        let filler = r#"{"name":"FILLER","subjects":["filler"],"storage":"file","retention":"limits","num_replicas":1}"#;
        let made = nats.ask("$JS.API.STREAM.CREATE.FILLER", filler);
        assert_eq!(made["config"]["name"], "FILLER", "{made}");
        let mut piece = 1 << 19;
        while piece > 0 {
            let answer = nats.ask("filler", &"x".repeat(piece));
            if answer.get("error").is_some() {
                piece /= 2;
            }
        }
        let says = "have room";
        nodes.channels[owner].until("it says so", |it| it.log().contains(says));
        nodes.channels[owner].until("not ready", |it| it.get("/readyz").0 == 503);
        assert_eq!(nodes.channels[owner].get("/healthz").0, 200);
        assert_eq!(nodes.channels[owner].log().matches(says).count(), 1);
        let deleted = nats.ask("$JS.API.STREAM.DELETE.FILLER", "");
        assert_eq!(deleted["success"], true, "{deleted}");
        nodes.all().for_each(Node::until_ready);
        thread::sleep(Duration::from_secs(1));
    });
}

fn an_edge_is_cut_off(folder: &Path) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: network namespaces with names need root");
        return;
    }
    let hosts = Hosts::make(&[("core", "core"), ("edge", "edge")]);
    let (nats, channels) = hosts.within("core", || {
        let anywhere = "listen: \"0.0.0.0:-1\"";
        let nats = NatsServer::start_with(folder.to_owned(), "", anywhere).unwrap();
        let port = nats.url.rsplit(':').next().unwrap();
        let channels = Node::start(folder, "channels", &format!("nats://127.0.0.1:{port}"));
        channels.until_ready();
        (nats, channels)
    });
    let port = nats.url.rsplit(':').next().unwrap();
    let url = format!("nats://10.79.0.1:{port}");
    hosts.within("edge", || {
        let nodes = Nodes {
            edges: vec![Node::start(folder, "edge", &url)],
            channels: vec![],
        };
        nodes.edges[0].until_ready();
        let cut = |what: &str, lasts: Duration| {
            nodes.play(what, || {
                hosts.connect(2, false);
                thread::sleep(lasts);
                hosts.connect(2, true);
                nodes.edges[0].until_ready();
                thread::sleep(Duration::from_secs(1));
            })
        };
        let seen = cut("an edge was cut off for 2 s", Duration::from_secs(2));
        nobody_was_hung_up_on(&seen);
        let (players, _) = cut("an edge was cut off for 7 s", LONG);
        assert!(players[0].hung_up > 0, "{players:?}");
    });
    drop(channels);
}
