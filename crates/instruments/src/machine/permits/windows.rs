//! What the doctor finds that Windows grants or refuses.

use lagometer_platform::{TimerResolution, be_punctual, release, timer_resolution};

use super::Permit;

/// The first build whose sleeps need not end at a tick of its clock: Windows 10 of
/// April 2018 (`CREATE_WAITABLE_TIMER_HIGH_RESOLUTION`), which the standard library
/// sleeps with.
const PRECISE_SLEEPS: u32 = 17_134;

pub(super) fn permits() -> Vec<Permit> {
    vec![
        precise_sleeps(&release()),
        short_waits(),
        offloads(),
        loopback_fast_path(),
    ]
}

/// Nothing is asked of the system: what is found is what this program does.
fn offloads() -> Permit {
    Permit {
        name: "offloads of UDP (USO, URO)",
        serves: "many datagrams sent and received in one system call",
        found: Err("not used: each datagram is a call".to_owned()),
        mend: "measure bulk speed on Linux, where they are".to_owned(),
    }
}

/// Likewise.
fn loopback_fast_path() -> Permit {
    Permit {
        name: "loopback fast path",
        serves: "TCP between programs of one machine",
        found: Err("not asked for: UDP has none, and Windows advises against it".to_owned()),
        mend: "nothing: no lane over sockets here is of TCP".to_owned(),
    }
}

fn precise_sleeps(release: &str) -> Permit {
    let build = release.rsplit('.').next().and_then(|it| it.parse().ok());
    Permit {
        name: "sleeps below the clock's tick",
        serves: "messages that leave when they should",
        found: match build {
            Some(PRECISE_SLEEPS..) => Ok("timers of high resolution".to_owned()),
            _ => Err(format!(
                "Windows {release} has no timers of high resolution"
            )),
        },
        mend: "Windows 10 from version 1803 on has them".to_owned(),
    }
}

/// Waits for a socket end at a tick, which programs may have come more often.
fn short_waits() -> Permit {
    let before = timer_resolution();
    let found = be_punctual()
        .map_err(|why| why.to_string())
        .map(|()| described(before, timer_resolution()));
    Permit {
        name: "waits of 1 ms (timeBeginPeriod)",
        serves: "lanes and the relay over real sockets, which wait for datagrams until a deadline",
        found,
        mend: "a power plan that does not hold timers back, or the mains instead of the battery"
            .to_owned(),
    }
}

fn described(before: Option<TimerResolution>, now: Option<TimerResolution>) -> String {
    let millis = |it: std::time::Duration| it.as_secs_f64() * 1e3;
    match before.zip(now) {
        Some((before, now)) => format!(
            "a tick each {:.2} ms while a run asks for it, {:.2} ms before; from {:.2} to {:.2} ms",
            millis(now.current),
            millis(before.current),
            millis(now.finest),
            millis(now.coarsest),
        ),
        None => "granted; the system does not say how often it ticks".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_windows_sleeps_by_its_tick_and_is_shown_what_to_do() {
        for old in ["6.1.7601", "10.0.16299", ""] {
            let permit = precise_sleeps(old);
            assert!(!permit.is_there() && !permit.mend.is_empty(), "{permit:?}");
        }
        assert!(precise_sleeps("10.0.17134").is_there());
        assert!(precise_sleeps("10.0.26100").is_there());
    }
}
