//! The panel of a run made in real time: what the emulator says of its own
//! work, lane by lane, and the machine's noise floor.

use lagometer_results::{Audit, WayAudit};

use super::markup::esc;
use super::view::View;
use crate::trust;
use crate::written::{NOTHING, factor, milliseconds};

/// Appends the section; nothing for a run that no emulator carried.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let Some(audit) = &view.document.audit else {
        return;
    };
    let id = view.id("audit");
    append!(
        out,
        r#"<section class="audit" aria-labelledby="{id}"><h2 id="{id}">The emulator and the machine</h2>
<p class="note">What the link asked for against what was done, from the router's own counters. The emulator was {}.</p>"#,
        esc(&trust::emulator(audit))
    );
    if let Some(noise) = &view.document.host.noise {
        append!(
            out,
            r#"<p class="note">Noise floor: {}.</p>"#,
            esc(&trust::machine(view.document, noise))
        );
    }
    lanes(&id, audit, out);
    *out += "</section>\n";
}

fn lanes(id: &str, audit: &Audit, out: &mut String) {
    append!(
        out,
        r#"<div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table><thead><tr><th scope="col">lane</th><th scope="col">way</th><th scope="col" class="n">packets</th><th scope="col" class="n">mean delay asked <small>ms</small></th><th scope="col" class="n">done <small>ms</small></th><th scope="col" class="n">loss asked <small>%</small></th><th scope="col" class="n">done <small>%</small></th><th scope="col" class="n">rate <small>Mbit/s</small></th><th scope="col" class="n">lost by accident</th><th scope="col" class="n" title="From where the kernel stamped packets as sent to where it stamped them as arrived, how far from what was asked: median, 99th percentile">off by the kernel's stamps <small>µs</small></th></tr></thead><tbody>"#
    );
    for lane in &audit.lanes {
        for (name, way) in [("up", &lane.up), ("down", &lane.down)] {
            row(&lane.lane, name, way, out);
        }
    }
    *out += "</tbody></table></div>";
}

fn row(lane: &str, name: &str, way: &WayAudit, out: &mut String) {
    let stamps = way.outside_error_us.map_or_else(
        || NOTHING.to_owned(),
        |seen| format!("{}, {}", factor(seen.p50), factor(seen.p99)),
    );
    append!(
        out,
        r#"<tr><th scope="row">{}</th><td>{name}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{stamps}</td></tr>"#,
        esc(lane),
        way.packets,
        milliseconds(way.asked.delay_ms.mean),
        milliseconds(way.realised.delay_ms.mean),
        factor(way.asked.loss_pct),
        factor(way.realised.loss_pct),
        factor(way.realised.rate_mbit_per_s),
        way.lost_by_accident
    );
}
