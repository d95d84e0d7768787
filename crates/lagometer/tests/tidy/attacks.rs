//! The table of attacks in `docs/security.md`: every test that it names is there.

use std::collections::BTreeSet;
use std::fs;

use crate::{files_below, root};

/// The heading of the section with the table.
const SECTION: &str = "### Attack by attack";

#[test]
fn every_attack_is_listed_with_tests_that_exist() {
    let text = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (_, section) = text.split_once(SECTION).expect("the table has a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|line| line.split(" | ").collect())
        .filter(|row: &Vec<&str>| row[0] != "attack" && !row[0].starts_with("---"))
        .collect();
    assert!(rows.len() > 20, "the table was not found");
    let known = names_of_functions();
    for row in rows {
        assert_eq!(row.len(), 4, "{row:?}");
        let tests: Vec<&str> = row[3].split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test for {}", row[0]);
        for test in tests {
            assert!(known.contains(test), "no test {test} for {}", row[0]);
        }
    }
}

fn names_of_functions() -> BTreeSet<String> {
    let files = files_below(&root().join("crates"), "rs");
    let mut all = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        all.extend(text.lines().filter_map(|line| {
            let name = line.trim_start().strip_prefix("fn ")?;
            Some(name.split(['(', '<']).next()?.to_owned())
        }));
    }
    all
}
