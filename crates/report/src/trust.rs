//! How far a run made in real time is to be trusted: what the emulator says
//! of its own errors, and the machine's noise floor, in words that table,
//! page and comparison share.

use lagometer_results::{Audit, Document, Noise};

use crate::written::{factor, milliseconds};

/// The words in which an invalid run is reported, beginning with `NOT VALID`;
/// nothing for a run whose emulator has no fault to confess.
pub(crate) fn invalid(document: &Document) -> Option<String> {
    let audit = document.audit.as_ref().filter(|audit| !audit.valid)?;
    Some(format!(
        "NOT VALID: {}. The figures describe this machine as much as of the transports.",
        audit.faults.join("; ")
    ))
}

/// What the emulator did against what it was asked, in a sentence or two.
pub(crate) fn emulator(audit: &Audit) -> String {
    let lost: u64 = audit
        .lanes
        .iter()
        .map(|lane| lane.up.lost_by_accident + lane.down.lost_by_accident)
        .sum();
    let lost = match lost {
        0 => "no packet lost by accident".to_owned(),
        1 => "1 packet lost by accident".to_owned(),
        more => format!("{more} packets lost by accident"),
    };
    let outside = by_the_stamps(audit);
    let router_cpu = audit.router_cpu_pct.map_or_else(String::new, |used| {
        format!(" on {} % of a core", factor(used))
    });
    format!(
        "{}: packets released {} µs late (p50), {} µs (p99), {} µs at worst{outside}; mean delay {} ms \
         of {} ms asked, loss {} % of {} %, {lost}; the router slept and {} at {} \
         precedence{router_cpu}, over {}",
        if audit.valid {
            "within its band"
        } else {
            "outside its band"
        },
        factor(audit.release_error_us.p50),
        factor(audit.release_error_us.p99),
        factor(audit.release_error_us.max),
        milliseconds(audit.realised.delay_ms.mean),
        milliseconds(audit.asked.delay_ms.mean),
        factor(audit.realised.loss_pct),
        factor(audit.asked.loss_pct),
        match audit.waiting.as_str() {
            "hybrid" => "spun",
            "spin" => "only spun",
            _ => "never spun",
        },
        audit.precedence,
        match audit.device.as_str() {
            "tun" => "TUN devices",
            "relay" => "a relay of UDP datagrams",
            _ => "virtual Ethernet",
        },
    )
}

/// What the kernel's stamps say, as the end of a sentence, or that there are none. On a
/// clock that stands still while anybody computes they would have nothing to say.
fn by_the_stamps(audit: &Audit) -> String {
    match audit.outside_error_us {
        Some(seen) => format!(
            "; by the kernel's stamps, from sent to arrived, {} µs off (p50), {} µs (p99), {} µs \
             at worst",
            factor(seen.p50),
            factor(seen.p99),
            factor(seen.max),
        ),
        None if audit.waiting == "sleep" => String::new(),
        None => ", by its own clock alone, not audited by the kernel's stamps".to_owned(),
    }
}

/// The machine's noise floor, and what cannot be distinguished below it.
pub(crate) fn machine(document: &Document, noise: &Noise) -> String {
    format!(
        "a sleeper wakes {} µs late (p50), {} µs (p99), and {} % of the time is taken away: \
         differences below {} ms are the machine's",
        factor(noise.wake_us.p50),
        factor(noise.wake_us.p99),
        factor(noise.steal_pct),
        milliseconds(lagometer_results::noise_ms(document)),
    )
}

#[cfg(test)]
mod tests {
    use lagometer_results::AuditSpread;

    use super::*;

    /// What is said of an emulator whose router waited so.
    fn said(waiting: &str, change: impl FnOnce(&mut Audit)) -> String {
        let mut audit = Audit {
            waiting: waiting.to_owned(),
            device: "tun".to_owned(),
            ..Audit::default()
        };
        change(&mut audit);
        emulator(&audit)
    }

    #[test]
    fn hosts_that_could_not_be_tapped_are_said_to_be_not_audited_by_stamps() {
        let words = "not audited by the kernel's stamps";
        assert!(said("hybrid", |_| {}).contains(words));
        let tapped = said("hybrid", |audit| {
            audit.outside_error_us = Some(AuditSpread::default());
        });
        assert!(!tapped.contains(words), "{tapped}");
        // Where computing takes no time stamps have nothing to say.
        assert!(!said("sleep", |_| {}).contains(words));
    }

    #[test]
    fn a_share_of_a_core_that_is_not_known_is_not_said() {
        assert!(!said("sleep", |_| {}).contains("of a core"));
        let known = said("hybrid", |audit| audit.router_cpu_pct = Some(20.5));
        assert!(known.contains("on 20.5 % of a core"), "{known}");
    }
}
