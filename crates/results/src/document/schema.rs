//! The checked-in JSON Schema of the result document: it must be what the
//! types say, and every document must satisfy it.
//!
//! `LAGOMETER_BLESS=1 cargo test -p lagometer-results schema` writes it anew
//! after a change to the types.

use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{Document, SCHEMA};
use crate::document::sample::sample_document;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/lagometer-2.json")
}

fn generated() -> Value {
    let mut schema = schemars::schema_for!(Document).to_value();
    schema["title"] = json!("Lagometer result document");
    schema["properties"]["schema"]["const"] = json!(SCHEMA);
    schema
}

fn validator() -> Validator {
    jsonschema::validator_for(&generated()).expect("the schema is a JSON Schema")
}

#[test]
fn the_checked_in_schema_is_what_the_types_say() {
    let mut generated = serde_json::to_string_pretty(&generated()).expect("values are JSON");
    generated.push('\n');
    if std::env::var_os("LAGOMETER_BLESS").is_some() {
        std::fs::write(path(), &generated).expect("the schema can be written");
    }
    let checked_in = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(
        checked_in == generated,
        "schema/lagometer-2.json is out of date: LAGOMETER_BLESS=1 cargo test -p lagometer-results schema"
    );
}

#[test]
fn documents_satisfy_the_schema() {
    let value = serde_json::to_value(sample_document()).expect("documents are JSON");
    let errors: Vec<_> = validator()
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn what_is_no_document_does_not() {
    let validator = validator();
    let sample = serde_json::to_value(sample_document()).expect("documents are JSON");
    let damages: [fn(&mut Value); 5] = [
        |value| value["schema"] = json!("lagometer/1"),
        |value| value["lanes"] = json!({}),
        |value| value["lanes"][0]["rtt_ms"]["p50"] = json!("60"),
        |value| value["lanes"][0]["messages"]["lost"] = json!(-1),
        |value| {
            value
                .as_object_mut()
                .expect("a document is an object")
                .remove("host");
        },
    ];
    for (index, damage) in damages.into_iter().enumerate() {
        let mut value = sample.clone();
        damage(&mut value);
        assert!(!validator.is_valid(&value), "damage {index} was accepted");
    }
}
