//! The tree as a whole: the floors that crates stand on, one layout of modules,
//! and nobody else's code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::{files_below, root};

/// Crates that are no floor of the house: what drives it from outside.
const OUTSIDE: &[&str] = &["lagometer-gateway-bench", "lagometer-instruments-bench"];

/// The map's table is the order: a crate imports only from rows above its own.
/// What its tests need besides is free.
#[test]
fn crates_import_only_from_the_floors_beneath_them() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let report = upward_imports(&in_the_table(&map), &packages());
    assert!(report.is_empty(), "\n{report}");
}

/// So is its picture: a crate imports from rows above its own, or from the left.
#[test]
fn crates_import_only_what_the_picture_has_above_them_or_to_the_left() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let packages = packages();
    let picture = map.split("```").nth(1).unwrap();
    let is_ours = |word: &&str| {
        packages
            .iter()
            .any(|it| short(it["name"].as_str().unwrap()) == *word)
    };
    // Behind the crates of a row stands what they are, after two blanks or more.
    let mut order: Vec<&str> = picture
        .lines()
        .skip(1)
        .flat_map(|row| {
            row.split_whitespace()
                .filter(|word| *word != "->")
                .take_while(is_ours)
        })
        .collect();
    order.extend(["c", "kcp-oracle", "tcp-oracle"]);
    let report = upward_imports(&order, &packages);
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn an_import_from_above_and_a_crate_without_a_row_are_found() {
    let row = |name: &str| format!("| [`{name}`](crates/{name}) | is | knows |\n");
    let package = |name: &str, imports: &str, kind: Value| {
        let import = json!({ "name": format!("lagometer-{imports}"), "path": "/x", "kind": kind });
        json!({ "name": format!("lagometer-{name}"), "dependencies": [import] })
    };
    let map = row("low") + &row("high");
    let order = in_the_table(&map);
    assert_eq!(order, ["low", "high"]);
    let fine = [
        package("high", "low", Value::Null),
        package("low", "high", json!("dev")),
    ];
    assert_eq!(upward_imports(&order, &fine), "");
    let upward = upward_imports(&order, &[package("low", "high", Value::Null)]);
    assert!(upward.starts_with("low imports high,"), "{upward}");
    let unknown = upward_imports(&order, &[package("new", "low", Value::Null)]);
    assert!(
        unknown.starts_with("new is not in ARCHITECTURE.md"),
        "{unknown}"
    );
}

/// The crates in the order of the map's table.
fn in_the_table(map: &str) -> Vec<&str> {
    map.lines()
        .filter_map(|line| line.strip_prefix("| [`")?.split_once("`](crates/"))
        .map(|(name, _)| name)
        .collect()
}

/// What imports something that does not stand before it, and who does not stand there.
fn upward_imports(order: &[&str], packages: &[Value]) -> String {
    let floors: BTreeMap<&str, usize> = order
        .iter()
        .enumerate()
        .map(|(floor, name)| (*name, floor))
        .collect();
    assert!(!floors.is_empty(), "the map was not found");
    let mut report = String::new();
    for package in packages {
        let name = short(package["name"].as_str().unwrap());
        if OUTSIDE.contains(&package["name"].as_str().unwrap()) {
            continue;
        }
        let Some(floor) = floors.get(name) else {
            let _ = writeln!(report, "{name} is not in ARCHITECTURE.md's order");
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let is_ours = dependency["path"].is_string();
            if !is_ours || dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            let beneath = short(dependency["name"].as_str().unwrap());
            if floors.get(beneath).is_none_or(|it| it >= floor) {
                let _ = writeln!(
                    report,
                    "{name} imports {beneath}, which is not beneath it in ARCHITECTURE.md"
                );
            }
        }
    }
    report
}

/// The workspace's packages, as cargo sees them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{why}");
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let Value::Array(packages) = metadata["packages"].take() else {
        panic!("cargo lists no packages");
    };
    packages
}

fn short(name: &str) -> &str {
    name.strip_prefix("lagometer-").unwrap_or(name)
}

/// A module with parts of its own is `name.rs` beside the folder `name`, so that
/// no two tabs of an editor are called alike.
#[test]
fn modules_with_parts_lie_beside_their_folders() {
    let root = root();
    let found: Vec<_> = files_below(&root.join("crates"), "rs")
        .into_iter()
        .filter(|path| path.ends_with("mod.rs") && path.iter().any(|part| part == "src"))
        .collect();
    assert!(found.is_empty(), "{found:?}: `git mv name/mod.rs name.rs`");
}

/// Other people's code comes as a dependency, where its licence and its
/// version are seen to.
#[test]
fn the_tree_holds_our_own_work_only() {
    let root = root();
    let mut report = String::new();
    for end in ["rs", "c", "h", "cpp", "go", "js", "css", "toml", "proto"] {
        for path in files_below(&root, end) {
            let at = path.strip_prefix(&root).unwrap();
            let is_this = at.ends_with("tests/tidy/tree.rs");
            let text = fs::read_to_string(&path).unwrap_or_default();
            if !is_this && is_foreign(at, &text) {
                let _ = writeln!(report, "{}: is it somebody else's?", at.display());
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Whether a file lies where others' code is kept, or is signed by somebody.
fn is_foreign(at: &Path, text: &str) -> bool {
    let folders = ["third_party", "vendor", "node_modules"];
    let marks = ["SPDX-License-Identifier:", "Copyright (c)", "Copyright ©"];
    at.iter()
        .any(|part| folders.iter().any(|name| part == *name))
        || marks.iter().any(|mark| text.contains(mark))
}

#[test]
fn foreign_code_is_known_by_its_folder_and_its_signature() {
    let own = Path::new("crates/link/src/link.rs");
    assert!(!is_foreign(own, "//! A link."));
    assert!(is_foreign(own, "// Copyright (c) 2015 somebody"));
    assert!(is_foreign(Path::new("third_party/ikcp.c"), ""));
}

/// The guide to adding something shows what was added: what a block of a diff says
/// stands in a file is there.
#[test]
fn the_diffs_that_the_guide_shows_are_in_the_files() {
    let root = root();
    let guide = fs::read_to_string(root.join("docs/extending.md")).unwrap();
    let blocks: Vec<&str> = guide.split("```diff\n").skip(1).collect();
    assert!(blocks.len() >= 3, "a transport, a workload and a testbed");
    let mut report = String::new();
    for block in blocks {
        let (block, _) = block.split_once("```").unwrap();
        let mut file = ("", String::new());
        for line in block.lines().filter(|line| !line.starts_with('-')) {
            if let Some(path) = line.strip_prefix("+++ b/") {
                file = (path, fs::read_to_string(root.join(path)).unwrap());
                continue;
            }
            let wanted = line[1..].trim_end();
            if !file.1.lines().any(|there| there == wanted) {
                let _ = writeln!(report, "{} has no line `{wanted}`", file.0);
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
