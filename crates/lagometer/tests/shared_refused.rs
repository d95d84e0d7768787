//! Experiments with other traffic and shared links that cannot be played: refused in
//! one line, at the line to be changed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const CROSS: &str = "[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n";

/// What `lagometer run` says of an experiment over a network.
fn refused(folder: &Path, network: &str, experiment: &str) -> String {
    fs::write(folder.join("n.toml"), format!("summary = \"n\"\n{network}")).unwrap();
    let path = folder.join("x.toml");
    fs::write(&path, experiment).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(["run", path.to_str().unwrap(), "--no-html", "--seeds", "1"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    said
}

/// Eight lines, and what follows them.
fn experiment(head: &str, rest: &str) -> String {
    format!(
        "name = \"x\"\nsummary = \"x\"\nnetwork = \"n.toml\"\nfor = \"2 s\"\n{head}\n\
         [workload.paced-echo]\nsize = \"500 B\"\ninterval = \"50 ms\"\n{rest}"
    )
}

#[test]
fn what_two_files_have_wrong_together_names_the_experiment_s_line() {
    let folder = tempfile::tempdir().unwrap();
    let bounded = "[both]\nrate = \"2 Mbit/s\"\nqueue = \"200 ms\"\n";
    let lanes = "lanes = [\"udp\"]";
    let own = "[[lane]]\nname = \"mine\"\ntransport = \"kcp\"\n";
    let narrow = "[down]\nmtu = \"1000 B\"\n";
    let constant = "[[cross]]\nkind = \"constant\"\ndirection = \"down\"\nrate = \"1 Mbit/s\"\n";
    for (network, experiment, says) in [
        (
            bounded.to_owned(),
            experiment(lanes, &format!("{own}{own}")),
            "x.toml:13: two lanes are called `mine`",
        ),
        (
            bounded.to_owned(),
            experiment("lanes = [\n\"udp\",\n\"udp\"]", ""),
            "x.toml:7: two lanes are called `udp`",
        ),
        (
            bounded.to_owned(),
            experiment(
                "lanes = [\"udp\"]\nshared = true",
                &format!("{CROSS}host = \"game\"\n"),
            ),
            "x.toml:13: other traffic `bulk` is on the game's machine",
        ),
        (
            format!("{bounded}{CROSS}host = \"game\"\n"),
            experiment("lanes = [\"udp\"]\nshared = true", ""),
            "x.toml:6: other traffic `bulk` is on the game's machine",
        ),
        (
            String::new(),
            experiment(lanes, CROSS),
            "x.toml:10: other traffic `bulk` sends as fast as it can",
        ),
        (
            format!("{bounded}{CROSS}"),
            experiment(lanes, &format!("{CROSS}name = \"bulk\"\n")),
            "x.toml:12: the network and the experiment both have other traffic called `bulk`",
        ),
        (
            narrow.to_owned(),
            experiment(lanes, &format!("{constant}size = \"1001 B\"\n")),
            "x.toml:13: over the network `n.toml`, other traffic `constant` has packets of 1001 B",
        ),
        (
            bounded.replace("queue = \"200 ms\"\n", ""),
            experiment(lanes, &constant.replace("1 Mbit/s", "3 Mbit/s")),
            "x.toml:12: over the network `n.toml`, other traffic (`constant`) sends 3 Mbit/s",
        ),
        (
            bounded.to_owned(),
            experiment(lanes, "[[cross]]\ndirection = \"down\"\n"),
            "x.toml:9: other traffic needs a `kind`: `bulk`, `web`, `call` or `constant`",
        ),
    ] {
        let said = refused(folder.path(), &network, &experiment);
        assert!(said.contains(says), "{said}, not {says}");
    }
}
