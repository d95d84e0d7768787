//! The table of transport properties: what each promises and what it pays for that,
//! so that a reader sees which lanes may be compared with which.

use lagometer_results::TransportProperties;

use super::markup::esc;
use super::view::View;
use crate::ranking;
use crate::written::known_bytes;

/// What is said of a lane, each with what it means: short ones first.
const COLUMNS: [(&str, &str); 12] = [
    (
        "reliable",
        "Every message arrives while the connection lives",
    ),
    (
        "ordered",
        "Messages arrive in the order in which they were sent",
    ),
    ("encrypted", "Payloads are encrypted on the wire"),
    ("MTU", "The largest datagram, with its headers"),
    (
        "header",
        "Bytes on the wire beyond the payload for a message that fits one datagram",
    ),
    (
        "head-of-line blocking",
        "Where later messages wait for a lost one to be retransmitted",
    ),
    (
        "peer timeout",
        "How long a peer may be silent before the connection is closed; equal wherever it can be set",
    ),
    ("acknowledgements", "When acknowledgements are sent"),
    (
        "a late answer costs",
        "Extra packets or bytes when the application answers later than in the turn that received the message",
    ),
    (
        "congestion control",
        "The algorithm that limits the sending rate",
    ),
    (
        "cannot be set",
        "Timers and behaviour of the library that no setting changes",
    ),
    ("implementation", "The library and its version"),
];

/// Appends the section; nothing where no lane states its terms.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let lanes: Vec<_> = ranking::in_order(view.document, view.about.limit_ms)
        .into_iter()
        .filter_map(|lane| Some((lane, lane.properties.as_ref()?)))
        .collect();
    if lanes.is_empty() {
        return;
    }
    let id = view.id("properties");
    append!(
        out,
        r#"<section class="properties" aria-labelledby="{id}"><h2 id="{id}">Transport properties</h2>
<p class="note">What each lane guarantees, and at what cost: weaker guarantees need fewer retransmissions and less waiting, encryption adds bytes to each packet.</p>
<div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table><tbody>"#
    );
    for (lane, properties) in lanes {
        let place = view.place(lane);
        append!(
            out,
            r#"<tr data-row="{place}" class="{}"><th scope="row"><span class="name">{}{}</span></th>"#,
            view.look(place).classes(),
            view.look(place).swatch(),
            esc(&lane.lane)
        );
        let bytes = |bytes: String| format!("{bytes} B");
        let cells = [
            promise(properties.reliable).to_owned(),
            promise(properties.ordered).to_owned(),
            promise(properties.encrypted).to_owned(),
            bytes(known_bytes(properties.mtu_bytes)),
            bytes(properties.header_bytes.to_string()),
            esc(&properties.head_of_line).to_string(),
            esc(&properties.peer_timeout).to_string(),
            esc(&properties.acks).to_string(),
            esc(&properties.late_answer).to_string(),
            esc(&properties.congestion_control).to_string(),
            fixed(properties),
            esc(&lane.library).to_string(),
        ];
        for ((heading, meaning), cell) in COLUMNS.iter().zip(cells) {
            append!(
                out,
                r#"<td title="{meaning}"><small>{heading}</small>{cell}</td>"#
            );
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div></section>\n";
}

/// What of a transport cannot be set, and what of its packets is another each time.
fn fixed(properties: &TransportProperties) -> String {
    let fixed = esc(&properties.fixed);
    if properties.varies.is_empty() {
        return fixed.to_string();
    }
    format!(
        "{fixed}; not the same bytes when a seed is played again, yet the same sizes and times: {}",
        esc(&properties.varies)
    )
}

/// Whether something is promised.
const fn promise(kept: bool) -> &'static str {
    if kept { "yes" } else { "no" }
}
