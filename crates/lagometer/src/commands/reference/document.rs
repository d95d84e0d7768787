//! The page of the result document, from its JSON Schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::markdown::cell;

/// The schema, which a test holds to the types.
const SCHEMA: &str = include_str!("../../../../../schema/lagometer-2.json");

/// The whole page.
pub(super) fn page() -> String {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    let mut page = "# The result document\n\n".to_owned();
    page.push_str(
        "What `--json` writes, field by field, from the JSON Schema that every document is held \
         against (`schema/lagometer-2.json` of the source). A field that *may be absent* is left \
         out where it has nothing to say.\n",
    );
    fields(&mut page, &schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        let _ = writeln!(page, "\n## {name}");
        let what = description(definition);
        if !what.is_empty() {
            let _ = writeln!(page, "\n{what}");
        }
        if definition.get("properties").is_some() {
            fields(&mut page, definition);
        } else if let Some(values) = definition["oneOf"].as_array() {
            page.push('\n');
            for value in values {
                let _ = writeln!(page, "- {}: {}", kind(value), description(value));
            }
        } else {
            let _ = writeln!(page, "\n{}.", kind(definition));
        }
    }
    page
}

fn fields(page: &mut String, of: &Value) {
    let required: Vec<&str> = of["required"]
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    page.push_str("\n| field | type | is |\n| --- | --- | --- |\n");
    for (name, field) in of["properties"].as_object().into_iter().flatten() {
        let absent = if required.contains(&name.as_str()) {
            ""
        } else {
            "; may be absent"
        };
        let _ = writeln!(
            page,
            "| `{name}` | {}{absent} | {} |",
            kind(field),
            cell(&description(field))
        );
    }
}

fn description(of: &Value) -> String {
    cell(of["description"].as_str().unwrap_or_default())
}

/// A type in words, with links to those that have a section.
fn kind(of: &Value) -> String {
    if let Some(name) = of["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or(name);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = of.get("const") {
        return format!("`{}`", bare(value));
    }
    if let Some(values) = of["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|it| format!("`{}`", bare(it))).collect();
        return values.join(", ");
    }
    if let Some(choices) = of["anyOf"].as_array().or(of["oneOf"].as_array()) {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &of["type"] {
        Value::String(name) if name == "array" => array(of),
        Value::String(name) if name == "object" => object(of),
        Value::String(name) => name.clone(),
        Value::Array(names) => names
            .iter()
            .map(|name| {
                let mut one = of.as_object().cloned().unwrap_or_else(Map::new);
                one.insert("type".to_owned(), name.clone());
                kind(&Value::Object(one))
            })
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any JSON".to_owned(),
    }
}

fn array(of: &Value) -> String {
    if let Some(items) = of["prefixItems"].as_array() {
        let items: Vec<_> = items.iter().map(kind).collect();
        return format!("\\[{}\\]", items.join(", "));
    }
    format!("list of {}", kind(&of["items"]))
}

fn object(of: &Value) -> String {
    match of.get("additionalProperties") {
        Some(values @ Value::Object(_)) => format!("table of {}", kind(values)),
        _ => "object".to_owned(),
    }
}

/// A value without the quotes of a string.
fn bare(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_definition_of_the_schema_has_a_section_with_its_fields() {
        let text = page();
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let definitions = schema["$defs"].as_object().unwrap();
        assert!(definitions.len() > 20);
        for (name, definition) in definitions {
            assert!(text.contains(&format!("\n## {name}\n")), "{name}");
            for field in definition["properties"].as_object().into_iter().flatten() {
                assert!(text.contains(&format!("\n| `{}` | ", field.0)), "{name}");
            }
        }
    }

    #[test]
    fn types_are_written_in_words() {
        for (of, expected) in [
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"$ref": "#/$defs/Lane"}), "[Lane](#lane)"),
            (
                json!({"type": "array", "items": {"$ref": "#/$defs/Lane"}}),
                "list of [Lane](#lane)",
            ),
            (
                json!({"anyOf": [{"$ref": "#/$defs/Echo"}, {"type": "null"}]}),
                "[Echo](#echo) or null",
            ),
            (json!({"const": "lagometer/2"}), "`lagometer/2`"),
            (json!({}), "any JSON"),
        ] {
            assert_eq!(kind(&of), expected);
        }
    }
}
