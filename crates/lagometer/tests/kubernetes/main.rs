//! The manifests under `deploy/kubernetes`: every field is one that Kubernetes
//! knows, pods are as harmless as promised, and the very commands they hold do
//! their work between two hosts with addresses of their own.
//!
//! The schema is `kubectl`'s own: it reads the manifests into its types, by
//! which a field that does not exist is lost, and what comes back is compared
//! with what was written. The two hosts are network namespaces, for which root
//! is needed.

mod hosts;
mod nodes;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use hosts::Hosts;

#[test]
fn every_field_is_known_and_pods_are_harmless() {
    if !has_kubectl() {
        return;
    }
    let written = known_and_harmless("lagometer.yaml");
    let kinds: Vec<&str> = written.iter().map(|it| text(it, "/kind")).collect();
    assert_eq!(kinds, ["Service", "Deployment", "Job"]);
    let serve = &written[1]["spec"]["template"]["spec"]["containers"][0];
    assert!(serve["readinessProbe"].is_object() && serve["livenessProbe"].is_object());
    let labels = &written[1]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&apart_from(&written[2]), labels);
    assert_eq!(&written[0]["spec"]["selector"], labels);
}

#[test]
fn a_world_and_what_watches_it_are_known_and_harmless() {
    if !has_kubectl() {
        return;
    }
    let written = known_and_harmless("world.yaml");
    let named = |kind: &str, name: &str| {
        let found = written
            .iter()
            .find(|it| text(it, "/kind") == kind && text(it, "/metadata/name") == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    for (kind, name) in [
        ("Deployment", "gateway"),
        ("Job", "world"),
        ("Deployment", "prometheus"),
        ("Deployment", "grafana"),
    ] {
        let workload = named(kind, name);
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        assert_eq!(&named("Service", name)["spec"]["selector"], labels);
        for container in containers(&workload["spec"]["template"]["spec"]) {
            for probe in ["readinessProbe", "livenessProbe"] {
                assert!(container[probe].is_object(), "{name} has no {probe}");
            }
        }
    }
    let gateway = &named("Deployment", "gateway")["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&apart_from(named("Job", "world")), gateway);
    // The configuration and the dashboards are the files of this repository,
    // and everything that is mounted exists.
    let built = Command::new("kubectl")
        .arg("kustomize")
        .arg(deploy(""))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{errors}");
    let text = String::from_utf8(built.stdout).unwrap();
    for map in text.split("configMap:").skip(1) {
        let name = map.split("name: ").nth(1).unwrap();
        let name = name.lines().next().unwrap();
        assert!(text.contains(&format!("\n  name: {name}\n")), "{name}");
    }
    for title in ["Lagometer gateway", "Lagometer world"] {
        assert!(text.contains(title), "the dashboard {title} is missing");
    }
}

/// The objects of a manifest, after Kubernetes' own types have been found to
/// know every field, and its pods to be allowed nothing they do not need.
fn known_and_harmless(file: &str) -> Vec<Value> {
    let written = changed(file, &["annotate", "--overwrite"], "checked=yes");
    let understood = changed(file, &["set", "env"], "CHECKED=yes");
    let workloads = written
        .iter()
        .filter(|it| it.pointer("/spec/template").is_some());
    assert_eq!(workloads.clone().count(), understood.len());
    for (wrote, read) in workloads.clone().zip(&understood) {
        let mut lost = Vec::new();
        losses(wrote, read, text(wrote, "/kind"), &mut lost);
        assert!(lost.is_empty(), "not known to Kubernetes: {lost:#?}");
    }
    for workload in workloads {
        let pod = &workload["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["automountServiceAccountToken"], false);
        for container in containers(pod) {
            let security = &container["securityContext"];
            assert_eq!(security["readOnlyRootFilesystem"], true);
            assert_eq!(security["allowPrivilegeEscalation"], false);
            assert_eq!(security["capabilities"]["drop"][0], "ALL");
            for amount in ["cpu", "memory"] {
                for bound in ["requests", "limits"] {
                    assert!(container["resources"][bound][amount].is_string());
                }
            }
        }
    }
    written
}

#[test]
fn a_world_on_many_nodes_is_known_and_harmless() {
    if !has_kubectl() {
        return;
    }
    let written = known_and_harmless("world-workers.yaml");
    let kinds: Vec<&str> = written.iter().map(|it| text(it, "/kind")).collect();
    assert_eq!(kinds, ["Service", "Job", "Job"]);
    let coordinator = &written[1]["spec"]["template"];
    assert_eq!(
        &written[0]["spec"]["selector"],
        &coordinator["metadata"]["labels"]
    );
    let gateway = json!({
        "app.kubernetes.io/name": "lagometer", "app.kubernetes.io/component": "gateway"
    });
    for job in &written[1..] {
        assert_eq!(apart_from(job), gateway);
    }
    let coordinator = containers(&coordinator["spec"])[0];
    for probe in ["readinessProbe", "livenessProbe"] {
        assert!(coordinator[probe].is_object(), "no {probe}");
    }
    // A share for each pod, and a pod for each share.
    let workers = &written[2]["spec"];
    assert_eq!(workers["completionMode"], "Indexed");
    assert_eq!(workers["completions"], workers["parallelism"]);
    let asked = format!("--workers={}", workers["completions"]);
    assert!(arguments(coordinator).contains(&asked), "{asked}");
}

/// The labels of the pods that those of `workload` never share a node with.
fn apart_from(workload: &Value) -> Value {
    let rule = workload
        .pointer(
            "/spec/template/spec/affinity/podAntiAffinity/\
             requiredDuringSchedulingIgnoredDuringExecution/0",
        )
        .unwrap();
    assert_eq!(rule["topologyKey"], "kubernetes.io/hostname");
    rule["labelSelector"]["matchLabels"].clone()
}

#[test]
fn the_commands_of_the_pods_measure_from_host_to_host() {
    if !has_kubectl() {
        return;
    }
    if !is_root() {
        eprintln!("skipped: network namespaces with names need root");
        return;
    }
    let written = kubectl(&["annotate", "--overwrite"], "checked=yes");
    let pod = |index: usize| &written[index]["spec"]["template"]["spec"];
    let name = text(&written[0], "/metadata/name");
    let hosts = Hosts::make(&[("client", "client"), ("server", name)]);
    let _server = hosts.serve("server", &arguments(containers(pod(1))[0]), 7711);
    let mut commands = Vec::new();
    for container in containers(pod(2)) {
        // As written, but shorter.
        let arguments: Vec<String> = arguments(container)
            .into_iter()
            .map(|word| match word.as_str() {
                "5s" => "400ms".to_owned(),
                "1s" => "20ms".to_owned(),
                _ => word,
            })
            .collect();
        let output = hosts
            .command("client", &arguments)
            .output()
            .expect("`ip netns exec` runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?}: {errors}\n{table}");
        let command = arguments[0].as_str();
        commands.push(command.to_owned());
        match command {
            "echo" => assert!(table.contains("echoes each second"), "{table}"),
            "sweep" => {
                for test in ["tcp_lat", "tcp_bw", "udp_lat", "udp_bw"] {
                    assert!(table.contains(test), "{test}: {table}");
                }
                assert!(!table.contains("failed"), "{table}");
            }
            _ => {
                let lanes = arguments.iter().skip_while(|word| *word != "--lanes");
                for lane in lanes.skip(1).take(1).flat_map(|lanes| lanes.split(',')) {
                    let row = table.lines().find(|line| line.starts_with(lane));
                    assert!(row.is_some(), "{lane}: {table}");
                }
            }
        }
    }
    assert_eq!(commands, ["echo", "sweep", "speed"]);
}

/// A gateway, the coordinator and the workers of a world, each on a host of its
/// own.
#[test]
fn the_commands_of_the_pods_play_a_world_together() {
    if !has_kubectl() {
        return;
    }
    if !is_root() {
        eprintln!("skipped: network namespaces with names need root");
        return;
    }
    let command = |file: &str, name: &str, shortened: &[(&str, &str)]| {
        let written = changed(file, &["annotate", "--overwrite"], "checked=yes");
        let workload = written
            .iter()
            .find(|it| text(it, "/kind") != "Service" && text(it, "/metadata/name") == name);
        let pod = &workload.unwrap()["spec"]["template"]["spec"];
        let mut arguments = arguments(containers(pod)[0]);
        for (written, instead) in shortened {
            let word = arguments.iter_mut().find(|word| word.as_str() == *written);
            *word.unwrap_or_else(|| panic!("{name} has no {written}")) = (*instead).to_owned();
        }
        arguments
    };
    let hosts = Hosts::make(&[
        ("gateway", "gateway"),
        ("world", "world"),
        ("workers", "workers"),
    ]);
    let gateway = command("world.yaml", "gateway", &[]);
    let _gateway = hosts.serve("gateway", &gateway, 12108);
    let short = [
        ("--players=1000", "--players=20"),
        ("--for=10min", "--for=1s"),
    ];
    let mut coordinator = command("world-workers.yaml", "world", &short);
    coordinator.extend(["--join-every=5ms", "--json=-"].map(str::to_owned));
    let coordinator = hosts
        .command("world", &coordinator)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let workers: Vec<_> = (0..3)
        .map(|index: u32| {
            let index = format!("--index={index}");
            let worker = command(
                "world-workers.yaml",
                "world-workers",
                &[("--index=$(INDEX)", &index)],
            );
            hosts
                .command("workers", &worker)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let output = coordinator.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let world = &document["world"];
    assert_eq!(world["players"]["in_game"], 20, "{world:#}");
    assert_eq!(
        world["sight"]["views_right"],
        world["sight"]["views_compared"]
    );
    let processes = world["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 4, "{processes:#?}");
    for worker in &processes[1..] {
        // By the network between them.
        assert!(text(worker, "/at").starts_with("10.79.0.3:"), "{worker}");
    }
}

/// What is under `deploy`.
fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(path)
}

/// The remote end's manifest, as JSON.
fn kubectl(change: &[&str], value: &str) -> Vec<Value> {
    changed("lagometer.yaml", change, value)
}

/// The objects of a manifest after a change of no consequence, as JSON.
fn changed(file: &str, change: &[&str], value: &str) -> Vec<Value> {
    let manifests = deploy("kubernetes").join(file);
    let output = Command::new("kubectl")
        .args(change)
        .args(["--local", "--dry-run=client", "-o", "json", "-f"])
        .args([manifests.as_os_str(), value.as_ref()])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // What has no pods has no environment, which is said and is no fault.
    let errors = errors.replace("\n the object", " the object");
    let is_known = errors.lines().all(|line| {
        line.is_empty()
            || line.contains("service/")
            || line.contains("does not have a pod template")
    });
    assert!(output.status.success() || is_known, "{errors}");
    serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

/// Appends the place of everything in `wrote` that `read` does not have.
fn losses(wrote: &Value, read: &Value, place: &str, lost: &mut Vec<String>) {
    match (wrote, read) {
        (Value::Object(wrote), Value::Object(read)) => {
            for (key, value) in wrote {
                // Ours, by the change of no consequence.
                if key != "annotations" {
                    let read = read.get(key).unwrap_or(&Value::Null);
                    losses(value, read, &format!("{place}.{key}"), lost);
                }
            }
        }
        (Value::Array(wrote), Value::Array(read)) => {
            for (index, value) in wrote.iter().enumerate() {
                let read = read.get(index).unwrap_or(&Value::Null);
                losses(value, read, &format!("{place}[{index}]"), lost);
            }
        }
        _ if wrote == read => {}
        _ => lost.push(format!("{place}: {wrote} became {read}")),
    }
}

fn containers(pod: &Value) -> Vec<&Value> {
    ["initContainers", "containers"]
        .iter()
        .filter_map(|key| pod[key].as_array())
        .flatten()
        .collect()
}

fn arguments(container: &Value) -> Vec<String> {
    let words = container["args"].as_array().unwrap();
    words
        .iter()
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

fn text<'a>(value: &'a Value, place: &str) -> &'a str {
    value
        .pointer(place)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether `kubectl` is there; where it must be, it is.
fn has_kubectl() -> bool {
    let is_there = Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    assert!(
        is_there || std::env::var_os("LAGOMETER_REQUIRE_KUBECTL").is_none(),
        "kubectl is missing: apt-get install kubernetes-client"
    );
    if !is_there {
        eprintln!("skipped: kubectl is missing: apt-get install kubernetes-client");
    }
    is_there
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
