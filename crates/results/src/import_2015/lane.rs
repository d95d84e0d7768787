//! A log as a lane of a result document.

use std::time::Duration;

use lagometer_units::{Span, Time};

use super::Log;
use crate::document::Lane;
use crate::figures::{SeedRun, figures};
use crate::record::MessageRecord;

impl Log {
    /// The messages of the log as if the client had kept to its schedule: the
    /// n-th echo belongs to the message due at n times `spacing`.
    ///
    /// Where the client held back, the true times lie further apart, and the
    /// delay of the messages it never sent is in no figure.
    #[must_use]
    pub fn records(&self, spacing: Duration) -> Vec<MessageRecord> {
        let mut intended = Time::ZERO;
        self.echoes
            .iter()
            .map(|echo| {
                let record = MessageRecord {
                    accepted: Some(intended),
                    returned: Some(intended + Duration::from_millis(u64::from(echo.rtt_ms))),
                    ..MessageRecord::due(intended)
                };
                intended += spacing;
                record
            })
            .collect()
    }

    /// The log as a lane, with the [statistics](Self::statistics) of its time
    /// beside the figures by this project's definitions.
    #[must_use]
    pub fn to_lane(&self, lane: &str, transport: &str, spacing: Duration) -> Lane {
        let records = self.records(spacing);
        let run = SeedRun {
            seed: 0,
            records: &records,
            disturbed: &[],
            overhead: None,
            cost: None,
            game: None,
            flows: None,
        };
        let mut lane = figures(&[run], &[], None).into_lane(lane, transport);
        // The schedule is assumed, so a delay from the intended send and one
        // from the actual send cannot be told apart.
        lane.rtt_raw_ms = None;
        // It shows no loss, so nothing is known of how many there were.
        if let Some(drawn) = &mut lane.resamples {
            drawn.values.remove("lost");
            drawn.worst_unit.remove("lost");
        }
        lane.settings = serde_json::json!({ "spacing": Span(spacing).to_string() });
        lane.imported = Some(self.statistics(spacing));
        lane
    }
}
