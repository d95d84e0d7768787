//! The table of transport properties: what each promises and what it pays for that,
//! so that a reader sees which lanes may be compared with which.

use lagometer_stats::TransportProperties;

use super::markup::esc;
use super::view::View;
use crate::ranking;
use crate::written::known_bytes;

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
<p class="note">What each lane promises, and on what terms: a lane that promises less has an easier life, one that encrypts carries more.</p>
<div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table><thead><tr><th scope="col">lane</th><th scope="col">reliable</th><th scope="col">ordered</th><th scope="col" title="Where what was sent behind a lost message waits for it">behind a loss</th><th scope="col">encrypted</th><th scope="col" class="n">MTU <small>B</small></th><th scope="col" class="n" title="Bytes on the wire beyond the payload for a message that fits one datagram">header <small>B</small></th><th scope="col">acknowledgements</th><th scope="col" title="What it costs on the wire to answer after the turn in which a message was taken in">a late answer costs</th><th scope="col">congestion control</th><th scope="col" title="How long a silent peer is kept: equal wherever it can be set">gives up after</th><th scope="col" title="Timers and habits of the library that no setting changes">cannot be set</th><th scope="col">library</th></tr></thead><tbody>"#
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
        append!(
            out,
            r#"{}{}<td>{}</td>{}<td class="n">{}</td><td class="n">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class="none">{}</td></tr>"#,
            promise(properties.reliable),
            promise(properties.ordered),
            esc(&properties.head_of_line),
            promise(properties.encrypted),
            known_bytes(properties.mtu_bytes),
            properties.header_bytes,
            esc(&properties.acks),
            esc(&properties.late_answer),
            esc(&properties.congestion_control),
            esc(&properties.peer_timeout),
            fixed(properties),
            esc(&lane.library)
        );
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

/// A cell that says whether something is promised.
const fn promise(kept: bool) -> &'static str {
    if kept {
        "<td>yes</td>"
    } else {
        r#"<td class="none">no</td>"#
    }
}
