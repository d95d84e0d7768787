//! The page of all presets of transports with every setting, from the
//! registries.

use std::fmt::Write as _;

use lagometer_socket::SocketSpec;
use lagometer_transport::{Source, Spec, TransportProperties};
use serde_json::{Map, Value};

use super::markdown::{cell, code};

/// The whole page.
pub(super) fn page() -> String {
    let mut text = "# Presets of transports\n\n".to_owned();
    text.push_str(
        "What each preset sets and promises. A lane takes a preset by name, and changes what its \
         `settings` name; `lagometer list transports` lists them in a line each.\n",
    );
    for preset in lagometer_transport::presets() {
        if let Some(spec) = Spec::preset(preset.name) {
            let library = spec.library();
            let head = (preset.name, preset.about, library);
            describe(&mut text, head, &spec.properties(), &spec.settings_json());
            origins(&mut text, preset.aliases, preset.sources);
        }
    }
    text.push_str(
        "\n# Transports that own their sockets\n\nThese run over real sockets only: \
         `--testbed emu`, `--testbed kernel` or `--to`.\n",
    );
    for preset in lagometer_socket::presets() {
        if let Ok(spec) = SocketSpec::resolve(preset.name, &Map::new()) {
            let library = spec.library();
            let head = (preset.name, preset.about, library.as_str());
            describe(&mut text, head, &spec.properties(), &spec.settings_json());
            origins(&mut text, preset.aliases, preset.sources);
        }
    }
    text
}

/// What of the packets differs from run to run, or that nothing does.
const fn varies(what: &str) -> &str {
    if what.is_empty() { "nothing" } else { what }
}

fn describe(
    text: &mut String,
    (name, about, library): (&str, &str, &str),
    properties: &TransportProperties,
    settings: &Value,
) {
    let yes = |is: bool| if is { "yes" } else { "no" };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n## {name}\n\n{}.\n", cell(about));
    text.push_str("| | |\n| --- | --- |\n");
    for (what, is) in [
        ("library", cell(library)),
        ("reliable", yes(properties.reliable).to_owned()),
        ("ordered", yes(properties.ordered).to_owned()),
        ("encrypted", yes(properties.encrypted).to_owned()),
        ("largest packet", format!("{} B", properties.mtu_bytes)),
        (
            "headers of a small message",
            format!("{} B", properties.header_bytes),
        ),
        ("acknowledgements", cell(&properties.acks)),
        ("congestion control", cell(&properties.congestion_control)),
        (
            "a silent peer is given up after",
            cell(&properties.peer_timeout.to_string()),
        ),
        ("cannot be set", cell(&properties.fixed)),
        (
            "not the same bytes when a seed is played again",
            cell(varies(&properties.varies)),
        ),
    ] {
        let _ = writeln!(text, "| {what} | {is} |");
    }
    let mut rows = Vec::new();
    flatten("", settings, &mut rows);
    if rows.is_empty() {
        text.push_str("\nIt has no settings.\n");
        return;
    }
    text.push_str("\n| setting | value |\n| --- | --- |\n");
    for (key, value) in rows {
        let _ = writeln!(text, "| {} | {} |", code(&key), code(&value));
    }
}

/// What else a preset is called, and where its settings come from.
fn origins(text: &mut String, aliases: &[&str], sources: &[Source]) {
    if !aliases.is_empty() {
        let _ = writeln!(text, "\nAlso called `{}`.", aliases.join("`, `"));
    }
    if sources.is_empty() {
        return;
    }
    text.push_str("\n| setting | because | source |\n| --- | --- | --- |\n");
    for source in sources {
        let setting = match source.setting {
            Source::REST => "all others".to_owned(),
            key => code(key),
        };
        let (says, address) = (cell(source.says), cell(source.address));
        let _ = writeln!(text, "| {setting} | {says} | {address} |");
    }
}

/// Every setting by its path, as it is written after a lane's name.
fn flatten(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                flatten(&path, value, rows);
            }
        }
        Value::Null if path.is_empty() => {}
        Value::Null => rows.push((path.to_owned(), "none".to_owned())),
        value => rows.push((path.to_owned(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_within_tables_are_named_by_their_path() {
        let mut rows = Vec::new();
        let settings = serde_json::json!({"a": {"b": 1, "c": "x"}, "d": null});
        flatten("", &settings, &mut rows);
        let rows: Vec<_> = rows.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(rows, [("a.b", "1"), ("a.c", "\"x\""), ("d", "none")]);
    }
}
