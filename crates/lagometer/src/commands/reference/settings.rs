//! The page of the gateway's settings, from `deploy/gateway.toml`, which shows
//! every key with what holds where it is left out: a test of the gateway holds
//! it to the code.

use std::fmt::Write as _;

use super::markdown::{cell, fenced};

/// The file, as the repository has it.
const FILE: &str = include_str!("../../../../../deploy/gateway.toml");

/// A section of the file.
#[derive(Debug, Default, PartialEq)]
struct Section {
    /// Empty for what stands before the first.
    name: String,
    /// What is said of all of it.
    what: String,
    keys: Vec<Key>,
}

/// A key as the file shows it.
#[derive(Debug, PartialEq)]
struct Key {
    name: String,
    value: String,
    /// It is commented out: left out it has no value of its own.
    is_unset: bool,
    what: String,
}

/// The whole page.
pub(super) fn page() -> String {
    let mut page = "# The gateway's settings\n\n".to_owned();
    page.push_str(
        "Every key of the file that `lagometer gateway --config FILE` takes, with what holds where \
         it is left out; in parentheses an example of what has no default. Options of the command \
         line go before the file. Times are written as in `\"20 ms\"`, sizes as in `\"64 KiB\"`.\n",
    );
    for section in sections(FILE) {
        let heading = if section.name.is_empty() {
            "At the top".to_owned()
        } else {
            format!("[{}]", section.name)
        };
        let _ = writeln!(page, "\n## {heading}\n");
        if !section.what.is_empty() {
            let _ = writeln!(page, "{}\n", cell(&section.what));
        }
        page.push_str("| key | default | is |\n| --- | --- | --- |\n");
        for key in section.keys {
            let value = if key.is_unset {
                format!("(`{}`)", key.value)
            } else {
                format!("`{}`", key.value)
            };
            let _ = writeln!(
                page,
                "| `{}` | {} | {} |",
                key.name,
                cell(&value),
                cell(&key.what)
            );
        }
    }
    let _ = write!(page, "\n## The whole file\n\n{}", fenced("toml", FILE));
    page
}

/// Sections with their keys, in the file's order.
fn sections(text: &str) -> Vec<Section> {
    let mut sections = vec![Section::default()];
    let mut said = String::new();
    for line in text.lines().map(str::trim) {
        let (is_unset, rest) = match line.strip_prefix('#') {
            Some(rest) => (true, rest.trim()),
            None => (false, line),
        };
        if rest.is_empty() {
            said.clear();
        } else if let Some(name) = section_name(rest) {
            sections.push(Section {
                name: name.to_owned(),
                what: std::mem::take(&mut said),
                keys: Vec::new(),
            });
        } else if let Some((name, value, after)) = key_and_value(rest) {
            let both = [std::mem::take(&mut said), after.to_owned()];
            let what = both.into_iter().filter(|it| !it.is_empty());
            let what = what.collect::<Vec<_>>().join("; ");
            let key = Key {
                name: name.to_owned(),
                value: value.to_owned(),
                is_unset,
                what,
            };
            if let Some(section) = sections.last_mut() {
                section.keys.push(key);
            }
        } else {
            if !said.is_empty() {
                said.push(' ');
            }
            said.push_str(rest);
        }
    }
    sections
}

fn section_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    let is_name = name.chars().all(|it| it.is_ascii_lowercase() || it == '_');
    is_name.then_some(name)
}

/// A key, its value, and what is said after it.
fn key_and_value(line: &str) -> Option<(&str, &str, &str)> {
    let (name, value) = line.split_once(" = ")?;
    let is_name = |it: char| it.is_ascii_lowercase() || it == '_';
    if !name.chars().all(is_name) {
        return None;
    }
    let (value, after) = value.split_once(" # ").unwrap_or((value, ""));
    Some((name, value.trim(), after.trim()))
}

#[cfg(test)]
mod tests {
    use lagometer_gateway::server::config::FileConfig;

    use super::*;

    #[test]
    fn keys_have_their_comments_and_those_left_out_an_example() {
        let text = "# The file.\n\ndev = false\n\n# All of a.\n[a]\n# One,\n# two.\nb = 5 # three\n\
                    # c = \"x\"\n# [d]\n# e = 1\n";
        let found = sections(text);
        let key = |name: &str, value: &str, is_unset, what: &str| Key {
            name: name.into(),
            value: value.into(),
            is_unset,
            what: what.into(),
        };
        let section = |name: &str, what: &str, keys| Section {
            name: name.into(),
            what: what.into(),
            keys,
        };
        assert_eq!(
            found,
            [
                section("", "", vec![key("dev", "false", false, "")]),
                section(
                    "a",
                    "All of a.",
                    vec![
                        key("b", "5", false, "One, two.; three"),
                        key("c", "\"x\"", true, "")
                    ]
                ),
                section("d", "", vec![key("e", "1", true, "")]),
            ]
        );
    }

    /// What the gateway names when it meets a key it does not know.
    fn known_keys(section: &str) -> Vec<String> {
        let text = match section {
            "" => "nonesuch = 1".to_owned(),
            name => format!("[{name}]\nnonesuch = 1"),
        };
        let error = FileConfig::parse("", &text).unwrap_err().to_string();
        let (_, expected) = error.split_once("nonesuch`").unwrap();
        let quoted = expected.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    }

    #[test]
    fn the_file_explains_every_key_that_the_gateway_knows_and_no_other() {
        let sections = sections(FILE);
        let mut seen = 0;
        for section in &sections {
            for key in &section.keys {
                seen += 1;
                let name = format!("[{}] {}", section.name, key.name);
                assert!(!key.what.is_empty(), "{name}: nothing is said");
            }
            let mut shown: Vec<&str> = section.keys.iter().map(|key| &*key.name).collect();
            if section.name.is_empty() {
                shown.extend(sections.iter().skip(1).map(|section| &*section.name));
            }
            shown.sort_unstable();
            let mut known = known_keys(&section.name);
            known.sort_unstable();
            assert_eq!(shown, known, "[{}]", section.name);
        }
        assert!(seen > 80, "only {seen} keys were found");
    }
}
