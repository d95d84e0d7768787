//! A run on a kernel, put into a bundle and played again.

use std::fs;

use super::{kernel, lagometer, said};

const NETWORK: &str = "summary = \"a test\"\n[both]\ndelay = \"10 ms\"\nloss = \"5 %\"\n";

#[test]
fn a_bundle_of_a_kernel_is_played_again_on_it_and_on_no_other() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (network, bundle) = (path("ours.toml"), path("run.zip"));
    fs::write(&network, NETWORK).unwrap();
    let run = [
        "run",
        "--testbed",
        "kernel",
        "--no-html",
        "--lanes",
        "kcp,tcp-cubic",
        "--for",
        "4s",
        "--seed",
        "3",
        "--seeds",
        "2",
        "--network",
        &network,
        "--bundle",
        &bundle,
    ];
    let output = lagometer(&run).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("wherever there is the kernel"),
        "{}",
        said(&output)
    );
    // It needs none of the files it was made of.
    fs::remove_file(&network).unwrap();

    let again = path("again.json");
    let replay = ["replay", &bundle, "--threads", "1", "--json", &again];
    let output = lagometer(&replay).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains("the same findings"),
        "{}",
        said(&output)
    );
    let document: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&again).unwrap()).unwrap();
    assert_eq!(document["testbed"], "kernel");
    assert_eq!(document["audit"]["valid"], true, "{}", document["audit"]);
    let delivered = &document["lanes"][1]["messages"]["delivered"];
    assert_eq!(*delivered, 160, "{}", document["lanes"][1]["messages"]);

    let cache = tempfile::tempdir().unwrap();
    let output = lagometer(&["replay", &bundle])
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("was played on the kernel 6.") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn what_a_bundle_cannot_keep_is_refused_before_it_is_played() {
    for flags in [
        &["--testbed", "emu"][..],
        &["--testbed", "kernel", "--ipv6"],
        &["--to", "localhost"],
    ] {
        let all = [&["run", "--no-html", "--bundle", "/no such/run.zip"], flags].concat();
        let output = lagometer(&all).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{flags:?}: {}",
            said(&output)
        );
        assert!(said(&output).contains("bundle"), "{}", said(&output));
    }
}
