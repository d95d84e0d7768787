//! The NATS side of a gateway of several nodes: users, permissions, certificates.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;

use crate::nats_server::NatsServer;
use crate::node::{Node, lagometer};
use crate::peers::{GameServer, player, seen, sees};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/nats_server/data")
        .join(name)
}

/// A NATS server's user as the manual has it: its name, and its rights under a prefix.
fn user(name: &str, prefix: &str) -> String {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway/cluster.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let user = manual.split("    users: [\n").nth(1).unwrap();
    let user = user.split("\n    ]\n").next().unwrap();
    assert!(user.contains("user: gateway\n") && user.contains("\"A-LONG-ONE\""));
    user.replace("user: gateway\n", &format!("user: {name}\n"))
        .replace("\"A-LONG-ONE\"", "secret-of-the-test")
        .replace("lagometer.gateway", &format!("{prefix}.gateway"))
        .replace(
            "lagometer-gateway",
            &format!("{}-gateway", prefix.replace('.', "_")),
        )
}

/// A server that demands TLS and knows these users.
fn guarded(folder: &Path, users: &str) -> Option<NatsServer> {
    let others = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\" }}\nauthorization {{ users: [\n{users}\n] }}",
        data("server.pem").display(),
        data("server-key.pem").display()
    );
    NatsServer::start_with(folder.to_owned(), "", &others)
}

fn url(nats: &NatsServer, user: &str, password: &str) -> String {
    let port = nats.url.rsplit(':').next().unwrap();
    format!("tls://{user}:{password}@localhost:{port}")
}

#[test]
fn two_gateways_with_the_rights_of_the_manual_and_no_more_do_not_reach_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let users = user("gateway", "lagometer") + "\n" + &user("other", "team.other");
    let Some(nats) = guarded(folder.path(), &users) else {
        return;
    };
    let authority = data("authority.pem").display().to_string();
    let start = |name: &str, prefix: &str, role: &str| {
        let url = url(&nats, name, "secret-of-the-test");
        let node = Node::start_by(
            lagometer(),
            folder.path(),
            role,
            &[
                "--nats",
                &url,
                "--nats-ca",
                &authority,
                "--nats-prefix",
                prefix,
                "--shards=1",
            ],
        );
        node.until_ready();
        node
    };
    let gateway = |name, prefix| {
        let channels = start(name, prefix, "channels");
        channels.until("it owns the channels", Node::owns_channels);
        (channels, start(name, prefix, "edge"))
    };
    let (mut owner, edge) = gateway("gateway", "lagometer");
    let (other_owner, other_edge) = gateway("other", "team.other");
    let next = start("gateway", "lagometer", "channels");

    // Either has a GLOBAL of its own, with a server of its own.
    let mut server = GameServer::start(&[edge.servers], 3);
    let mut other_server = GameServer::start(&[other_edge.servers], 1);
    let mut of_one = player(&[edge.clients], "one");
    let mut of_other = player(&[other_edge.clients], "one");
    server.add(5);
    other_server.add(1);
    sees(&mut of_one, 8).unwrap();
    sees(&mut of_other, 2).unwrap();

    // A takeover in one is none in the other.
    owner.until("it is followed", |it| it.metric("gateway_followed") == 1);
    owner.kill();
    next.until("it takes over", Node::owns_channels);
    server.add(1);
    sees(&mut of_one, 9).unwrap();
    other_server.add(1);
    sees(&mut of_other, 3).unwrap();
    assert_eq!(seen(&of_other).len(), 3);
    assert_eq!(other_owner.metric("gateway_channels_epoch"), 1);
    assert_eq!(next.metric("gateway_channels_epoch"), 2);
    // Nothing that they do needs more than the manual grants.
    assert!(!nats.log().contains("Violation"), "{}", nats.log());
}

#[test]
fn what_nats_refuses_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let rights = user("gateway", "lagometer");
    let without = |rights: &str, what: &str| {
        let lines = rights.lines().filter(|line| !line.contains(what));
        lines.collect::<Vec<_>>().join("\n")
    };
    let fewer = user("fewer", "fewer");
    let fewer = without(&fewer, "STREAM.CREATE");
    let Some(nats) = guarded(folder.path(), &format!("{rights}\n{fewer}")) else {
        return;
    };
    let authority = data("authority.pem").display().to_string();
    let known = ["--nats-ca", authority.as_str()];
    let cases: [(String, &[&str], &str); 2] = [
        (
            url(&nats, "gateway", "wrong"),
            &known,
            "refuses this user: authorization violation",
        ),
        (
            url(&nats, "gateway", "secret-of-the-test"),
            &[],
            "is not trusted: ",
        ),
    ];
    thread::scope(|scope| {
        for (url, arguments, expected) in &cases {
            for role in ["edge", "channels"] {
                scope.spawn(move || {
                    let output = lagometer()
                        .args(["-dev", "--web=none", "-sa=127.0.0.1:0", "-ca=127.0.0.1:0"])
                        .args(["--loglevel=2", "--role", role, "--nats", url])
                        .args(*arguments)
                        .stdin(Stdio::null())
                        .output()
                        .unwrap();
                    let printed = String::from_utf8(output.stderr).unwrap();
                    assert_eq!(output.status.code(), Some(3), "{printed}");
                    assert_eq!(printed.lines().count(), 1, "{printed}");
                    assert!(printed.contains(expected), "{expected} is not in {printed}");
                    assert!(!printed.contains("secret-of-the-test"), "{printed}");
                });
            }
        }
        scope.spawn(|| {
            let url = url(&nats, "fewer", "secret-of-the-test");
            let arguments = [
                "--nats",
                &url,
                "--nats-ca",
                &authority,
                "--nats-prefix",
                "fewer",
            ];
            let node = Node::start_by(lagometer(), folder.path(), "channels", &arguments);
            let says = "`fewer-gateway`";
            node.until("it says so", |node| node.log().contains(says));
            // It goes on asking, and does not go on saying so.
            node.until("asked again", |_| {
                nats.log().matches("Violation").count() > 2
            });
            assert_eq!(node.log().matches(says).count(), 1, "{}", node.log());
            let complains = "complains: nats: Permissions Violation for Publish";
            assert_eq!(node.log().matches(complains).count(), 1, "{}", node.log());
            assert_eq!(node.get("/readyz").0, 503);
            assert_eq!(node.get("/healthz").0, 200);
        });
    });
}
