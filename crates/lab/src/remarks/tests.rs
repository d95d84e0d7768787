use lagometer_link::Profile;
use lagometer_testbed::Testbed;

use super::*;
use crate::experiment::Experiment;
use crate::resolve::resolve;

/// Ten seconds of a lane over 2 Mbit/s each way, and what else is said of the network.
fn resolved(rest: &str) -> Resolved {
    let network =
        format!("summary = \"t\"\n[both]\ndelay = \"20 ms\"\nrate = \"2 Mbit/s\"\n{rest}");
    let experiment = "name = \"t\"\nsummary = \"t\"\nnetwork = \"t\"\nfor = \"10 s\"\ngrace = \"5 s\"\n\
                      lanes = [\"udp\"]\n\
                      [workload.paced-echo]\nsize = \"200 B\"\ninterval = \"50 ms\"\n";
    let profile = Profile::from_text("t.toml", &network).unwrap_or_else(|why| panic!("{why}"));
    let experiment = Experiment::parse("t.toml", experiment).unwrap_or_else(|why| panic!("{why}"));
    resolve(experiment, "t".to_owned(), profile, Testbed::Sim).unwrap_or_else(|why| panic!("{why}"))
}

/// The same for so long.
fn resolved_for(duration: &str, rest: &str) -> Resolved {
    let mut resolved = resolved(rest);
    resolved.plan.duration = duration.parse::<Span>().unwrap().duration();
    resolved
}

#[test]
fn what_a_network_does_at_fixed_times_beyond_a_seed_is_said() {
    let remarks = |duration: &str, rule: &str| {
        let network = format!("[[both.outages]]\n{rule}for = \"1 s\"\n");
        resolved_for(duration, &network).remarks(&[1, 2, 3])
    };
    let at = "at = \"47 s\"\nevery = \"2 min\"\n";
    for (duration, says) in [
        ("30 s", "has at 47 s is in no seed of 30 s: play for longer"),
        ("47 s", "is in no seed"),
        (
            "48 s",
            "has every 2 min is in each seed of 48 s 1 time, where 0.40 would be its share",
        ),
    ] {
        let found = remarks(duration, at);
        assert!(found.len() == 1 && found[0].contains(says), "{found:?}");
        assert!(found[0].contains("outage") && !found[0].contains('\n'));
    }
    assert_eq!(remarks("2 min", at), [""; 0]);
    assert_eq!(remarks("48 s", "at = \"47 s\"\n"), [""; 0], "comes once");
    assert_eq!(remarks("1 s", "mean_gap = \"2 min\"\n"), [""; 0], "drawn");
    let often = remarks("30 s", "at = \"15 s\"\nevery = \"15 s\"\n");
    let says = "is in each seed of 30 s 1 time, where 2.00 would be its share";
    assert!(often.len() == 1 && often[0].contains(says), "{often:?}");
    assert_eq!(
        remarks("2 min", "at = \"15 s\"\nevery = \"15 s\"\n"),
        [""; 0]
    );
}

#[test]
fn what_each_seed_draws_is_said_where_no_seed_has_it() {
    let network = "[[both.stalls]]\nevery = \"2 min\"\nfor = \"100 ms\"\n";
    let mut resolved = resolved(network);
    let first = |seed| resolved.profile.scheduled(seed)[0].first;
    let seeds: Vec<u64> = (1..=20).collect();
    let earliest = seeds.iter().map(|&seed| first(seed)).min().unwrap();
    let of_first = first(1);
    // Both directions stand still together, so it is one.
    assert_eq!(resolved.profile.scheduled(1).len(), 1);
    resolved.plan.duration = earliest;
    let found = resolved.remarks(&seeds);
    let says = "once in 2 min, at a time that each seed draws, is in none of these 20 seeds of";
    assert!(found.len() == 1 && found[0].contains(says), "{found:?}");
    resolved.plan.duration = earliest + Duration::from_nanos(1);
    assert_eq!(resolved.remarks(&seeds), [""; 0]);
    resolved.plan.duration = of_first;
    assert!(resolved.remarks(&[1])[0].contains("is not in this seed's"));
}

#[test]
fn what_is_perhaps_not_meant_is_said() {
    let remarks = |network: &str| resolved(network).remarks(&[1]);
    let bulk = |queue: &str, rest: &str| {
        format!("{queue}[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n{rest}")
    };
    let queue = "queue = \"200 ms\"\n";
    assert_eq!(remarks(&bulk(queue, "")), [""; 0]);
    for (network, says) in [
        (
            bulk(queue, "when = [{ at = \"10 s\", for = \"1 s\" }]\n"),
            "`bulk` is never on: it begins after the run's 10 s",
        ),
        (
            bulk("", "flows = 64\n"),
            "queue without a bound down: up to 201 MB of it, 805 s at the rate",
        ),
        (
            bulk("queue = \"200 ms\"\nmtu = \"1400 B\"\n", ""),
            "which vanish down: the `mtu` there is below that",
        ),
    ] {
        let remarks = remarks(&network);
        assert!(
            remarks.len() == 1 && remarks[0].contains(says) && !remarks[0].contains('\n'),
            "{remarks:?}"
        );
    }
    // One that each seed draws: none of a few within ten seconds, and some within an hour.
    let drawn = bulk(queue, "when = [{ mean_gap = \"10 min\", for = \"1 s\" }]\n");
    let found = remarks(&drawn);
    let says =
        "`bulk` is on at times that each seed draws, and this one never has it within its 10 s";
    assert!(found.len() == 1 && found[0].contains(says), "{found:?}");
    let of_several = |duration: &str| resolved_for(duration, &drawn).remarks(&[1, 2, 3]);
    assert!(of_several("10 s")[0].contains("and none of these 3 has it"));
    assert_eq!(of_several("1 h"), [""; 0]);
    let at_last = bulk(
        queue,
        "when = [{ at = \"9 s\", for = \"1 s\" }, { at = \"1 h\", for = \"1 s\" }]\n",
    );
    assert_eq!(remarks(&at_last), [""; 0]);
}
