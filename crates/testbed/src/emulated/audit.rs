//! The emulator's audit as the document has it.

use lagometer_emu::{Audit, Figures, Spread, Waiting, WayAudit};
use lagometer_results as document;

/// The audit, without what only the emulator's own tests ask for.
pub(super) fn of(audit: &Audit) -> document::Audit {
    document::Audit {
        valid: audit.valid,
        faults: audit.faults.clone(),
        device: audit.device.clone(),
        waiting: audit.waiting.clone(),
        precedence: audit.precedence.clone(),
        // In a guest, where the router always sleeps, computing takes no time.
        router_cpu_pct: (audit.waiting != Waiting::Sleep.name())
            .then(|| rounded(audit.router_cpu_pct)),
        release_error_us: spread(audit.release_error_us),
        outside_error_us: audit.outside_error_us.map(spread),
        wake_late_us: spread(audit.wake_late_us),
        longest_absence_us: rounded(audit.longest_absence_us),
        asked: figures(audit.asked),
        realised: figures(audit.realised),
        lanes: audit
            .lanes
            .iter()
            .map(|lane| document::LaneAudit {
                lane: lane.lane.clone(),
                up: way(&lane.up),
                down: way(&lane.down),
            })
            .collect(),
    }
}

/// Keeps of all audits of a run the first, or the first that found a fault.
pub fn keep_audit(kept: &mut Option<document::Audit>, found: document::Audit) {
    if kept.as_ref().is_none_or(|kept| kept.valid && !found.valid) {
        *kept = Some(found);
    }
}

fn way(audit: &WayAudit) -> document::WayAudit {
    document::WayAudit {
        packets: audit.packets,
        lost_by_accident: audit.lost_by_accident(),
        release_error_us: Some(spread(audit.release_error_us)),
        outside_error_us: audit.outside_error_us.map(spread),
        unseen: audit.unseen,
        asked: figures(audit.asked),
        realised: figures(audit.realised),
    }
}

fn figures(figures: Figures) -> document::AuditFigures {
    document::AuditFigures {
        delay_ms: spread(figures.delay_ms),
        loss_pct: rounded(figures.loss_pct),
        rate_mbit_per_s: rounded(figures.rate_mbit_per_s),
    }
}

fn spread(spread: Spread) -> document::AuditSpread {
    document::AuditSpread {
        count: spread.count,
        mean: rounded(spread.mean),
        p50: rounded(spread.p50),
        p99: rounded(spread.p99),
        max: rounded(spread.max),
    }
}

/// To a ten-thousandth: a document need not carry float noise.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
