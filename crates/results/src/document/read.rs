//! Reading a document back, so that it is understood or refused but never
//! misread.

use std::collections::BTreeSet;

use serde::Deserialize;
use thiserror::Error;

use lagometer_stats::{BadDistribution, Distribution};

use super::{Bulk, Document, Echo, Lane, OLDER_SCHEMA, SCHEMA, upgrade};

/// Why a text is not a result document that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadDocument {
    /// The text is not JSON.
    #[error("line {line}, column {column}: not JSON: {message}")]
    NotJson {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What the parser met.
        message: String,
    },
    /// The text is JSON of something else.
    #[error("not a result document: it has no `schema` that starts with `lagometer/`")]
    NotADocument,
    /// The document is of a schema that this version does not read.
    #[error(
        "the document is of schema `{found}` and this version reads `{SCHEMA}` and `{OLDER_SCHEMA}`; make the run again \
         or use the version that wrote it"
    )]
    OtherSchema {
        /// The schema it names.
        found: String,
    },
    /// A field is missing or holds what it must not.
    #[error("line {line}, column {column}: {message}")]
    Malformed {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What the reader expected there.
        message: String,
    },
    /// The figures contradict each other.
    #[error("lane `{lane}`: {contradiction}")]
    Inconsistent {
        /// The name of the lane with the contradiction.
        lane: String,
        /// Which figures contradict each other.
        contradiction: &'static str,
    },
    /// A histogram cannot be read.
    #[error("lane `{lane}`: {reason}")]
    Histogram {
        /// The name of the lane with the contradiction.
        lane: String,
        /// Why the histogram cannot be read.
        reason: BadDistribution,
    },
}

impl Document {
    /// Reads a result document, of this schema or of the one before; what that
    /// one says is brought to what this one means.
    ///
    /// Fields that this version does not know are passed over: a schema only
    /// ever gains fields, and takes a new name when one changes its meaning.
    ///
    /// # Errors
    ///
    /// [`BadDocument`] for anything that is not a document of [`SCHEMA`] or
    /// [`OLDER_SCHEMA`] whose figures agree with each other.
    pub fn from_json(text: &str) -> Result<Self, BadDocument> {
        let is_older = check_schema(text)?;
        let mut document: Self =
            serde_json::from_str(text).map_err(|error| BadDocument::Malformed {
                line: error.line(),
                column: error.column(),
                message: without_place(&error),
            })?;
        let mut names = BTreeSet::new();
        for lane in &document.lanes {
            if !names.insert(&lane.lane) {
                return Err(inconsistent(lane, "there are two lanes of this name"));
            }
            check_lane(lane)?;
        }
        if let Some(echo) = &document.echo {
            check_echo(echo)?;
        }
        if is_older {
            upgrade::from_first(&mut document);
        }
        Ok(document)
    }

    /// The document as JSON, indented for people, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .unwrap_or_else(|_| unreachable!("every key of a document is text"));
        text.push('\n');
        text
    }
}

/// Looks at the schema's name before anything else, whatever else there is.
/// Whether it is the older one.
fn check_schema(text: &str) -> Result<bool, BadDocument> {
    #[derive(Deserialize)]
    struct Named {
        schema: Option<serde_json::Value>,
    }
    let named: Named = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            BadDocument::NotADocument
        } else {
            BadDocument::NotJson {
                line: error.line(),
                column: error.column(),
                message: without_place(&error),
            }
        }
    })?;
    match named.schema.as_ref().and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => Ok(false),
        Some(OLDER_SCHEMA) => Ok(true),
        Some(found) if found.starts_with("lagometer/") => Err(BadDocument::OtherSchema {
            found: found.to_owned(),
        }),
        _ => Err(BadDocument::NotADocument),
    }
}

/// The parser's message without the place, which the error says itself.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

fn check_lane(lane: &Lane) -> Result<(), BadDocument> {
    let messages = &lane.messages;
    if messages.delivered.checked_add(messages.lost) != Some(messages.intended) {
        return Err(inconsistent(
            lane,
            "delivered and lost messages do not add up to those intended",
        ));
    }
    if !lane
        .within
        .values()
        .all(|share| (0.0..=1.0).contains(share))
    {
        return Err(inconsistent(lane, "a share is not between 0 and 1"));
    }
    let timeline = &lane.timeline;
    let len = timeline.lost.len();
    if timeline.min_ms.len() != len || timeline.max_ms.len() != len {
        return Err(inconsistent(
            lane,
            "the series of the timeline differ in length",
        ));
    }
    if let Some(bulk) = &lane.bulk {
        return check_bulk(lane, bulk);
    }
    if lane.histogram.is_empty() && messages.delivered == 0 {
        return Ok(());
    }
    check_histogram(&lane.lane, &lane.histogram, messages.delivered)
}

fn check_echo(echo: &Echo) -> Result<(), BadDocument> {
    let messages = &echo.messages;
    if messages.echoed.checked_add(messages.lost) != Some(messages.sent) {
        return Err(BadDocument::Inconsistent {
            lane: "echo".to_owned(),
            contradiction: "echoed and lost messages do not add up to those sent",
        });
    }
    check_histogram("echo", &echo.histogram, messages.echoed)
}

fn check_histogram(lane: &str, histogram: &str, holds: u64) -> Result<(), BadDocument> {
    let histogram =
        Distribution::from_base64(histogram).map_err(|reason| BadDocument::Histogram {
            lane: lane.to_owned(),
            reason,
        })?;
    if histogram.len() != holds {
        return Err(BadDocument::Inconsistent {
            lane: lane.to_owned(),
            contradiction: "the histogram does not hold as many messages as were delivered",
        });
    }
    Ok(())
}

fn check_bulk(lane: &Lane, bulk: &Bulk) -> Result<(), BadDocument> {
    if bulk.received_bytes > bulk.sent_bytes {
        return Err(inconsistent(lane, "more was received than was sent"));
    }
    let mut last = 0.0;
    for sample in &bulk.series {
        if sample.t_s <= last {
            return Err(inconsistent(lane, "the series does not go forward in time"));
        }
        last = sample.t_s;
    }
    Ok(())
}

fn inconsistent(lane: &Lane, contradiction: &'static str) -> BadDocument {
    BadDocument::Inconsistent {
        lane: lane.lane.clone(),
        contradiction,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::sample::sample_document;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read_back() {
        let document = sample_document();
        assert_eq!(Document::from_json(&document.to_json()), Ok(document));
    }

    #[test]
    fn another_schema_is_refused_by_name_whatever_else_it_holds() {
        for found in ["lagometer/0", "lagometer/3"] {
            let text = format!(r#"{{"lanes": 7, "schema": "{found}"}}"#);
            let refused = Document::from_json(&text).unwrap_err();
            assert_eq!(
                refused,
                BadDocument::OtherSchema {
                    found: found.to_owned()
                }
            );
            assert!(
                refused.to_string().contains("reads `lagometer/2`"),
                "{refused}"
            );
        }
    }

    #[test]
    fn other_json_is_no_document() {
        for text in [
            "{}",
            "[]",
            "7",
            r#"{"schema": 1}"#,
            r#"{"schema": "other"}"#,
        ] {
            assert_eq!(
                Document::from_json(text),
                Err(BadDocument::NotADocument),
                "{text}"
            );
        }
    }

    #[test]
    fn other_text_is_no_json() {
        let refused = Document::from_json("{\n  nonsense").unwrap_err();
        assert!(
            matches!(refused, BadDocument::NotJson { line: 2, .. }),
            "{refused:?}"
        );
    }

    #[test]
    fn a_missing_field_is_named() {
        let refused = Document::from_json(r#"{"schema": "lagometer/1"}"#).unwrap_err();
        assert!(
            refused.to_string().contains("missing field `command`"),
            "{refused}"
        );
    }

    #[test]
    fn unknown_fields_are_passed_over() {
        let text = sample_document()
            .to_json()
            .replacen('{', "{\"of_a_later_version\": [1],", 1);
        assert_eq!(Document::from_json(&text), Ok(sample_document()));
    }

    #[test]
    fn keys_that_had_other_names_are_read_by_them() {
        let sample = sample_document();
        let text = sample.to_json();
        let older = text
            .replace("\"impairments\": {", "\"weather\": {")
            .replace("\"path\": {", "\"road\": {")
            .replace("\"properties\": {", "\"parity\": {")
            .replace("\"local_cpu\":", "\"near_cpu\":")
            .replace("\"remote_cpu\":", "\"far_cpu\":");
        for key in ["weather", "road", "parity", "near_cpu", "far_cpu"] {
            assert!(older.contains(&format!("\"{key}\"")), "{key}");
        }
        assert_eq!(Document::from_json(&older), Ok(sample));
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        let damages: [fn(&mut Document); 7] = [
            |document| document.echo.as_mut().unwrap().messages.sent += 1,
            |document| document.lanes[0].messages.lost += 1,
            |document| document.lanes[0].timeline.lost.push(0),
            |document| document.lanes[0].histogram.clear(),
            |document| document.lanes[0].histogram = Distribution::new().to_base64(),
            |document| document.lanes.push(document.lanes[0].clone()),
            |document| {
                for share in document.lanes[0].within.values_mut() {
                    *share = 1.5;
                }
            },
        ];
        for (index, damage) in damages.into_iter().enumerate() {
            let mut document = sample_document();
            damage(&mut document);
            assert!(
                Document::from_json(&document.to_json()).is_err(),
                "damage {index}"
            );
        }
    }

    #[test]
    fn a_bulk_transfer_is_read_back_and_must_agree_with_itself() {
        let mut document = sample_document();
        let lane = &mut document.lanes[0];
        lane.histogram.clear();
        lane.bulk = Some(Bulk {
            sent_bytes: 10,
            received_bytes: 9,
            path: "gso+gro".to_owned(),
            series: [0.5, 1.0]
                .map(|t_s| crate::BulkSample {
                    t_s,
                    ..crate::BulkSample::default()
                })
                .to_vec(),
            ..Bulk::default()
        });
        let text = document.to_json();
        assert_eq!(Document::from_json(&text), Ok(document.clone()));
        let damages: [fn(&mut Bulk); 2] = [
            |bulk| bulk.received_bytes = 11,
            |bulk| bulk.series[1].t_s = 0.5,
        ];
        for damage in damages {
            let mut worse = document.clone();
            damage(worse.lanes[0].bulk.as_mut().unwrap());
            assert!(Document::from_json(&worse.to_json()).is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn damaged_text_is_refused_or_read_never_a_panic(
            at in any::<prop::sample::Index>(),
            with in "[\"{}\\[\\]0-9a-z,:. -]{0,4}",
        ) {
            let mut text = sample_document().to_json();
            let at = at.index(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
                text.replace_range(at..=at, &with);
            }
            let _ = Document::from_json(&text);
        }
    }
}
