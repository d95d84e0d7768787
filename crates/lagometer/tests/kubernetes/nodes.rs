//! The manifest and the Compose file of a gateway of several nodes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hosts::Hosts;
use crate::{
    arguments, changed, containers, deploy, has_kubectl, is_root, known_and_harmless, text,
};

/// The longest that nodes may take until they are ready.
const PATIENT: Duration = Duration::from_mins(1);

/// The objects of the manifest.
fn manifest() -> Vec<Value> {
    changed(
        "gateway-nodes.yaml",
        &["annotate", "--overwrite"],
        "checked=yes",
    )
}

fn named<'a>(written: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = written
        .iter()
        .find(|it| text(it, "/kind") == kind && text(it, "/metadata/name") == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

#[test]
fn a_gateway_of_several_nodes_is_known_and_harmless() {
    if !has_kubectl() {
        return;
    }
    let written = known_and_harmless("gateway-nodes.yaml");
    for (kind, name) in [
        ("StatefulSet", "nats"),
        ("StatefulSet", "channels"),
        ("Deployment", "edges"),
    ] {
        let workload = named(&written, kind, name);
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        let budget = named(&written, "PodDisruptionBudget", name);
        assert_eq!(&budget["spec"]["selector"]["matchLabels"], labels);
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
        is_known(budget);
        let service = workload["spec"]["serviceName"].as_str().unwrap_or(name);
        let service = named(&written, "Service", service);
        assert_eq!(&service["spec"]["selector"], labels);
        // Nodes that are not ready are watched, too, and find each other.
        assert_eq!(service["spec"]["publishNotReadyAddresses"], true);
        let pod = &workload["spec"]["template"]["spec"];
        assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= 60);
        for container in containers(pod) {
            for probe in ["readinessProbe", "livenessProbe"] {
                assert!(container[probe].is_object(), "{name} has no {probe}");
            }
        }
    }
    let scaler = named(&written, "HorizontalPodAutoscaler", "edges");
    is_known(scaler);
    assert_eq!(scaler["spec"]["scaleTargetRef"]["name"], "edges");
    // Fields within lists are not looked up above.
    let players = json!({ "type": "AverageValue", "averageValue": "1000" });
    let processors = json!({ "type": "Utilization", "averageUtilization": 70 });
    let metrics = &scaler["spec"]["metrics"];
    assert_eq!(metrics[0]["pods"]["target"], players);
    assert_eq!(metrics[1]["resource"]["target"], processors);
    assert_eq!(
        (&metrics[0]["type"], &metrics[1]["type"]),
        (&json!("Pods"), &json!("Resource"))
    );
    let policies = &scaler["spec"]["behavior"]["scaleDown"]["policies"];
    assert_eq!(
        *policies,
        json!([{ "type": "Pods", "value": 1, "periodSeconds": 300 }])
    );
    let metric = metrics[0]["pods"]["metric"]["name"].as_str();
    let rule = fs::read_to_string(deploy("prometheus/adapter.yaml")).unwrap();
    assert!(rule.contains(&format!("as: {}\n", metric.unwrap())));
    // Who speaks to NATS is a node, or one of its own.
    let policy = named(&written, "NetworkPolicy", "nats");
    let from = |index: usize| {
        let rule = &policy["spec"]["ingress"][index];
        let peers = rule["from"].as_array().unwrap().iter().map(|peer| {
            let labels = &peer["podSelector"]["matchLabels"];
            text(labels, "/app.kubernetes.io~1component").to_owned()
        });
        (peers.collect::<Vec<_>>(), rule["ports"][0]["port"].clone())
    };
    let nodes = ["channels", "edges"].map(str::to_owned).to_vec();
    assert_eq!(from(0), (nodes, json!(4222)));
    assert_eq!(from(1), (vec!["nats".to_owned()], json!(6222)));
    // Nodes have the rights of the manual, and no more.
    let manual = fs::read_to_string(deploy("../docs/gateway/cluster.md")).unwrap();
    let rights = |text: &str| {
        let part = text.split("permissions {").nth(1).unwrap();
        let part = part.split('}').next().unwrap();
        part.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let configured = named(&written, "ConfigMap", "nats");
    let configured = text(&configured["data"], "/nats.conf");
    assert_eq!(rights(configured), rights(&manual));
}

/// That Kubernetes' types have every field of an object without pods: a patch that holds it
/// is merged by them. Values are left out, so that every field counts as one that has fields;
/// lists are taken over whole, with whatever they hold.
fn is_known(object: &Value) {
    fn fields(value: &Value) -> Value {
        match value {
            Value::Object(all) => all
                .iter()
                // Of labels every name is right.
                .filter(|(key, _)| *key != "matchLabels")
                .map(|(key, value)| (key.clone(), fields(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Value::Array(all) => all.iter().map(fields).collect::<Vec<_>>().into(),
            _ => json!({}),
        }
    }
    let skeleton = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": { "name": "checked" },
        "spec": fields(&object["spec"]),
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("skeleton.json");
    fs::write(&path, skeleton.to_string()).unwrap();
    let merged = |patch: &Value| {
        let output = Command::new("kubectl")
            .args(["patch", "--local", "--type=strategic", "-o", "json", "-f"])
            .arg(&path)
            .args(["-p", &patch.to_string()])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let errors = merged(&skeleton);
    if errors.contains("no kind") {
        eprintln!(
            "skipped: kubectl is too old for {} of {}",
            object["kind"], object["apiVersion"]
        );
        return;
    }
    assert!(errors.is_empty(), "not known to Kubernetes: {errors}");
}

/// Says what is skipped where namespaces or NATS are missing.
fn may_have_hosts_and_nats() -> bool {
    if !is_root() {
        eprintln!("skipped: network namespaces with names need root");
        return false;
    }
    let version = Command::new("nats-server").arg("--version").output();
    if version.is_err() {
        assert!(std::env::var_os("LAGOMETER_REQUIRE_NATS").is_none());
        eprintln!("skipped: there is no nats-server");
    }
    version.is_ok()
}

/// Three NATS servers, a node for channels and an edge, each on a host of its own, as the
/// manifest starts them; a world is played on them.
#[test]
fn the_commands_of_the_pods_are_a_gateway_that_players_play_on() {
    if !has_kubectl() || !may_have_hosts_and_nats() {
        return;
    }
    let written = manifest();
    let hosts = Hosts::make(&[
        ("nats-0", "nats-0.nats-nodes nats"),
        ("nats-1", "nats-1.nats-nodes"),
        ("nats-2", "nats-2.nats-nodes"),
        ("channels", "channels"),
        ("edges", "gateway-edges"),
        ("world", "world"),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let configuration = named(&written, "ConfigMap", "nats");
    let configuration = text(&configuration["data"], "/nats.conf");
    let secrets = [
        ("NATS_USER", "gateway"),
        ("NATS_PASSWORD", "n0t-for-others"),
    ];
    let words = |kind: &str, name: &str| {
        let pod = &named(&written, kind, name)["spec"]["template"]["spec"];
        let words = arguments(containers(pod)[0]).into_iter().map(|word| {
            secrets.iter().fold(word, |word, (name, value)| {
                word.replace(&format!("$({name})"), value)
            })
        });
        words.collect::<Vec<_>>()
    };
    let mut nats = Vec::new();
    for host in ["nats-0", "nats-1", "nats-2"] {
        let path = folder.path().join(host);
        fs::create_dir(&path).unwrap();
        let data = path.join("data").display().to_string();
        let path = path.join("nats.conf");
        fs::write(&path, configuration.replace("/data", &data)).unwrap();
        let mut command = hosts.command_of(host, "nats-server");
        for word in words("StatefulSet", "nats") {
            command.arg(word.replace("/etc/nats/nats.conf", &path.display().to_string()));
        }
        command.env("POD_NAME", host).envs(secrets);
        nats.push(hosts.serve_by(host, &mut command, 8222));
    }
    let _channels = hosts.serve("channels", &words("StatefulSet", "channels"), 8080);
    let _edges = hosts.serve("edges", &words("Deployment", "edges"), 8080);
    for (host, kind, name, port) in [
        ("nats-0", "StatefulSet", "nats", 8222),
        ("channels", "StatefulSet", "channels", 8080),
        ("edges", "Deployment", "edges", 8080),
    ] {
        let container = containers(&named(&written, kind, name)["spec"]["template"]["spec"])[0];
        for probe in ["readinessProbe", "livenessProbe"] {
            until_well(&hosts, host, port, text(&container[probe], "/httpGet/path"));
        }
    }
    let world = [
        "world",
        "single",
        "--players=20",
        "--for=1s",
        "--gateway=gateway-edges:12108",
        "--servers=gateway-edges:11288",
        "--no-html",
        "--json=-",
    ];
    let output = hosts
        .command("world", &world.map(str::to_owned))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let world = &document["world"];
    assert_eq!(world["players"]["in_game"], 20, "{world:#}");
    assert_eq!(
        world["sight"]["views_right"],
        world["sight"]["views_compared"]
    );
}

/// Waits until a probe on a host is answered as Kubernetes wants it.
fn until_well(hosts: &Hosts, host: &str, port: u16, path: &str) {
    let until = Instant::now() + PATIENT;
    hosts.within(host, || {
        loop {
            let answer = get(port, path);
            if answer.split(' ').nth(1) == Some("200") {
                return;
            }
            assert!(Instant::now() < until, "{path} at {port}: {answer}");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

fn get(port: u16, path: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        let asked = write!(stream, "GET {path} HTTP/1.0\r\nhost: pod\r\n\r\n");
        if asked.is_ok() {
            let _ = stream.read_to_string(&mut answer);
        }
    }
    answer
}

/// The Compose files, read as Kubernetes' client reads YAML.
#[test]
fn compose_files_start_what_the_manifests_start() {
    if !has_kubectl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let compose = |file: &str| {
        let text = fs::read_to_string(deploy(file)).unwrap();
        let path = folder.path().join(file);
        let head = "apiVersion: v1\nkind: Compose\nmetadata: { name: checked }\n";
        // The name of a Compose project is none that Kubernetes has.
        fs::write(&path, head.to_owned() + &text).unwrap();
        let output = Command::new("kubectl")
            .args([
                "annotate",
                "--local",
                "--dry-run=client",
                "-o",
                "json",
                "-f",
            ])
            .args([path.as_os_str(), "checked=yes".as_ref()])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{file}: {errors}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let words = |service: &Value| {
        let words = service["command"].as_array().unwrap().iter();
        words
            .map(|it| it.as_str().unwrap().to_owned())
            .filter(|word| !word.starts_with("--nats="))
            .collect::<Vec<_>>()
    };
    let written = manifest();
    let in_pod = |kind: &str, name: &str| {
        let pod = &named(&written, kind, name)["spec"]["template"]["spec"];
        let mut words = arguments(containers(pod)[0]);
        words.retain(|word| !word.starts_with("--nats="));
        words
    };
    let nodes = compose("compose-nodes.yaml");
    let services = &nodes["services"];
    assert_eq!(words(&services["edges"]), in_pod("Deployment", "edges"));
    assert_eq!(
        words(&services["channels"]),
        in_pod("StatefulSet", "channels")
    );
    let single = compose("compose.yaml");
    for file in [&nodes, &single] {
        for (name, service) in file["services"].as_object().unwrap() {
            assert_eq!(service["read_only"], true, "{name}");
            assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
        }
        // Who is depended on is there, and so is what is mounted.
        for service in file["services"].as_object().unwrap().values() {
            for other in service["depends_on"].as_array().into_iter().flatten() {
                assert!(file["services"][other.as_str().unwrap()].is_object());
            }
            for volume in service["volumes"].as_array().into_iter().flatten() {
                let source = volume.as_str().unwrap().split(':').next().unwrap();
                assert!(deploy(source).exists(), "{source}");
            }
        }
    }
    // All that a name leads to is scraped.
    let scraped = fs::read_to_string(deploy("prometheus/prometheus.yml")).unwrap();
    assert!(scraped.contains(r#"names: ["gateway", "edges", "channels"]"#));
}
