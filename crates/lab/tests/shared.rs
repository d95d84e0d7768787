//! Links with others on them: other traffic, lanes that share, queues with a
//! discipline.

mod support;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_lab::sim::{SharedLinkSim, SimLane};
use lagometer_lab::{
    Experiment, LaneRun, Plan, ResolveError, Resolved, RunOptions, digest, play, resolve,
};
use lagometer_link::{Link, Profile, Regime, SharedLink};
use lagometer_results::{Bottleneck, BottleneckSender, Document};
use lagometer_testbed::Testbed;
use lagometer_transport::Spec;
use lagometer_units::Time;

use support::document;

/// 2 Mbit/s each way behind 20 ms, and what else is said.
fn profile(rest: &str) -> Profile {
    let text = format!("summary = \"t\"\n[both]\ndelay = \"20 ms\"\nrate = \"2 Mbit/s\"\n{rest}");
    Profile::from_text("t.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn experiment(rest: &str) -> Experiment {
    let text = format!(
        "name = \"t\"\nsummary = \"t\"\nnetwork = \"t\"\nfor = \"10 s\"\ngrace = \"5 s\"\n{rest}\n\
         [workload.paced-echo]\nsize = \"200 B\"\ninterval = \"50 ms\"\n"
    );
    Experiment::parse("t.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn resolved(experiment: Experiment, profile: Profile) -> Resolved {
    resolve(experiment, "t".to_owned(), profile, Testbed::Sim)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn found(rest: &str, network: &str) -> Document {
    document(&resolved(experiment(rest), profile(network)), &[1], 1)
}

fn sender<'a>(document: &'a Document, link: usize, name: &str) -> &'a BottleneckSender {
    let Bottleneck { up, down, .. } = &document.bottlenecks[link];
    let senders = down.senders.iter().chain(&up.senders);
    senders
        .filter(|sender| sender.contends)
        .find(|sender| sender.name == name)
        .unwrap()
}

const BULK: &str = "queue = \"200 ms\"\n[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n";

/// The named networks, with what 10 s of them find.
const GOLDEN: &[(&str, &str)] = &[
    ("home-film", "ab1eb915cf45f36f"),
    ("home-film-fq", "e2690d9cd6cac873"),
    ("home-upload", "faa7c25d98bbc4cd"),
];

#[test]
fn a_seed_finds_on_a_shared_link_what_it_always_found_whatever_the_threads() {
    let digests: Vec<_> = GOLDEN
        .iter()
        .map(|&(network, _)| {
            let profile = lagometer_link::catalogue::named(network).unwrap();
            let experiment = experiment("lanes = [\"udp\", \"kcp\", \"tcp-bbr\"]");
            let resolved = resolved(experiment, profile);
            let one = digest(&document(&resolved, &[1, 2], 1));
            assert_eq!(one, digest(&document(&resolved, &[1, 2], 3)), "{network}");
            (network, one)
        })
        .collect();
    for (&(network, golden), (_, digest)) in GOLDEN.iter().zip(&digests) {
        assert_eq!(golden, digest, "{network}; all that was found: {digests:?}");
    }
}

#[test]
fn alone_on_a_shared_link_a_lane_finds_what_it_finds_alone() {
    let network = lagometer_link::catalogue::named("busy-wifi").unwrap();
    for name in ["udp", "kcp", "tcp-cubic", "quic"] {
        let plan = Plan {
            grace: Duration::from_secs(3),
            ..resolved(experiment("lanes = [\"udp\"]"), network.clone()).plan
        };
        let spec = Spec::preset(name).unwrap();
        let starts = plan.measuring_starts();
        let link = Link::new(&network, 1, Regime::Time, starts);
        let mut alone = SimLane::new(&plan, &spec, link);
        alone.run_until(Time::MAX);
        let simulation = || {
            let link = SharedLink::new(&network, 1, Regime::Time, starts);
            let lane = SimLane::on_shared_link(&plan, &spec);
            SharedLinkSim::new(&plan, vec![(name.to_owned(), lane)], &[], link)
        };
        let mut at_once = simulation();
        assert!(at_once.run_until(Time::MAX));
        let shared = at_once.outcomes().remove(0);
        assert_eq!(shared.records, alone.outcome().records, "{name}");
        assert_eq!(shared.wire, alone.outcome().wire, "{name}");
        let mut sliced = simulation();
        let mut until = Time::ZERO;
        while !sliced.run_until(until) {
            until += Duration::from_millis(317);
        }
        assert_eq!(
            sliced.outcomes().remove(0).records,
            shared.records,
            "{name}"
        );
    }
}

#[test]
fn a_download_fills_the_bottleneck_and_delays_the_game_by_its_queue() {
    let alone = found("lanes = [\"udp\"]", "queue = \"200 ms\"\n");
    let beside = found("lanes = [\"udp\"]", BULK);
    assert!(alone.bottlenecks.is_empty());
    let bulk = sender(&beside, 0, "bulk");
    assert!((1_700.0..1_960.0).contains(&bulk.kbit_per_s), "{bulk:?}");
    let goodput = bulk.goodput_kbit_per_s.unwrap();
    assert!(
        (0.8..0.97).contains(&(goodput / bulk.kbit_per_s)),
        "{bulk:?}"
    );
    let p50 = |document: &Document| document.lanes[0].rtt_ms.p50.unwrap();
    let grown = p50(&beside) - p50(&alone);
    assert!((50.0..210.0).contains(&grown), "{grown}");
    let waited: u64 = bulk.waiting_bytes.iter().sum::<u64>() / bulk.waiting_bytes.len() as u64;
    // 200 ms at 2 Mbit/s are 50 kB.
    assert!((10_000..50_000).contains(&waited), "{waited}");
}

#[test]
fn fair_queues_keep_the_download_from_delaying_the_game() {
    for discipline in ["fq-codel", "cake"] {
        let network = BULK.replace(
            "\"200 ms\"",
            &format!("{{ discipline = \"{discipline}\" }}"),
        );
        let document = found("lanes = [\"udp\"]", &network);
        let p99 = document.lanes[0].rtt_ms.p99.unwrap();
        // 40 ms, and a packet of 1500 bytes before it.
        assert!(p99 < 40.0 + 3.0 * 6.0, "{discipline}: {p99}");
        let bulk = sender(&document, 0, "bulk");
        assert!(bulk.kbit_per_s > 1_500.0, "{discipline}: {bulk:?}");
    }
}

#[test]
fn marks_reach_the_tcp_that_asked_for_them() {
    let managed = "queue = { discipline = \"codel\", ecn = true }\n[[cross]]\nkind = \"bulk\"\n\
                   direction = \"down\"\necn = ";
    let marked = found("lanes = [\"udp\"]", &format!("{managed}true\n"));
    let bulk = sender(&marked, 0, "bulk");
    assert!(bulk.marked > 0 && bulk.dropped == 0, "{bulk:?}");
    assert!(bulk.kbit_per_s > 1_500.0, "{bulk:?}");
    let deaf = found("lanes = [\"udp\"]", &format!("{managed}false\n"));
    let bulk = sender(&deaf, 0, "bulk");
    assert!(bulk.marked == 0 && bulk.dropped > 0, "{bulk:?}");
}

#[test]
fn a_lane_that_asks_for_marks_is_marked_where_another_loses() {
    let queue = "queue = { discipline = \"codel\", ecn = true }\n[[cross]]\nkind = \"bulk\"\n\
                 direction = \"down\"\necn = true\n";
    // Acknowledgements alone, which nobody marks, do not go down before the data.
    let lane = |name: &str, ecn: bool| {
        format!(
            "[[lane]]\nname = \"{name}\"\ntransport = \"tcp-cubic\"\n\
             settings = {{ quick_ack = false, ecn = {ecn} }}\n"
        )
    };
    let lanes = format!("lanes = []\n{}{}", lane("deaf", false), lane("asks", true));
    let mut experiment = experiment(&lanes);
    experiment.duration = "60 s".parse().unwrap();
    let document = document(&resolved(experiment, profile(queue)), &[1], 1);
    let of = |link: usize, name: &str| sender(&document, link, name).clone();
    let (deaf, asks) = (of(0, "deaf"), of(1, "asks"));
    assert!(deaf.marked == 0 && deaf.dropped > 0, "{deaf:?}");
    assert!(asks.marked > 0 && asks.dropped == 0, "{asks:?}");
    // What is not lost is not waited for.
    let slowest = |lane: usize| document.lanes[lane].rtt_ms.p99.unwrap();
    assert!(slowest(1) < slowest(0), "{} {}", slowest(1), slowest(0));
}

#[test]
fn each_lane_has_a_copy_of_the_traffic_and_lanes_that_share_meet_each_other() {
    let lanes = "lanes = [\"udp\", \"kcp\"]";
    let apart = found(lanes, BULK);
    assert_eq!(apart.bottlenecks.len(), 2);
    // What a lane meets does not depend on which lanes there are.
    let alone = found("lanes = [\"udp\"]", BULK);
    assert_eq!(apart.lanes[0], alone.lanes[0]);
    assert_eq!(apart.bottlenecks[0], alone.bottlenecks[0]);
    let shared = found(&format!("shared = true\n{lanes}"), BULK);
    assert_eq!(shared.bottlenecks.len(), 1);
    assert_eq!(shared.bottlenecks[0].lanes, ["udp", "kcp"]);
    let down = &shared.bottlenecks[0].down;
    let names: Vec<_> = down.senders.iter().map(|sender| &*sender.name).collect();
    assert_eq!(names, ["udp", "kcp", "bulk"]);
    // Both lanes get all they ask for; only the download could do with more.
    assert_eq!(down.jain, None);
    assert!(shared.lanes.iter().all(|lane| lane.failure.is_none()));
}

#[test]
fn traffic_that_is_on_for_a_part_is_compared_while_it_is_on() {
    // Two downloads, of which one is there for the second half.
    let two = |when: &str| {
        format!("{BULK}[[cross]]\nname = \"late\"\nkind = \"bulk\"\ndirection = \"down\"\n{when}")
    };
    let jain = |network: &str| {
        let mut experiment = experiment("lanes = [\"udp\"]");
        experiment.duration = "60 s".parse().unwrap();
        let document = document(&resolved(experiment, profile(network)), &[1], 1);
        document.bottlenecks[0].down.jain
    };
    let half = jain(&two("when = [{ at = \"30 s\", for = \"30 s\" }]\n")).unwrap();
    // Over the whole run the first has thrice what the second has: 0.8.
    assert!(half > 0.9, "{half}");
    // Before and after each other they compete for nothing.
    let apart = two("when = [{ at = \"30 s\", for = \"30 s\" }]\n").replacen(
        "direction = \"down\"\n",
        "direction = \"down\"\nwhen = [{ at = \"0 s\", for = \"30 s\" }]\n",
        1,
    );
    assert_eq!(jain(&apart), None);
    // One that is never on is no competitor.
    assert_eq!(
        jain(&two("when = [{ at = \"90 s\", for = \"30 s\" }]\n")),
        jain(BULK)
    );
}

#[test]
fn constant_traffic_has_its_rate_while_its_schedule_is_on() {
    let network = "queue = \"200 ms\"\n[[cross]]\nkind = \"constant\"\ndirection = \"up\"\n\
                   rate = \"800 kbit/s\"\nwhen = [{ at = \"2 s\", for = \"5 s\" }]\n";
    let document = found("lanes = [\"udp\"]", network);
    let constant = sender(&document, 0, "constant");
    // Half of the ten seconds.
    assert!((constant.kbit_per_s - 400.0).abs() < 4.0, "{constant:?}");
    assert!((constant.goodput_kbit_per_s.unwrap() - 400.0).abs() < 4.0);
}

#[test]
fn a_call_that_adapts_by_delay_leaves_the_queue_short_and_one_by_loss_fills_it() {
    let wait = |adapts: &str| {
        let network = format!(
            "queue = \"400 ms\"\n[[cross]]\nkind = \"call\"\ndirection = \"down\"\n\
             rate = \"6 Mbit/s\"\nadapts = \"{adapts}\"\n"
        );
        let mut experiment = experiment("lanes = [\"udp\"]");
        experiment.duration = "90 s".parse().unwrap();
        let document = document(&resolved(experiment, profile(&network)), &[1], 1);
        let call = sender(&document, 0, "call");
        assert!(
            (500.0..2_000.0).contains(&call.kbit_per_s),
            "{adapts}: {call:?}"
        );
        call.waiting_bytes.iter().max().copied().unwrap()
    };
    let (delay, loss) = (wait("delay"), wait("loss"));
    // 100 kB at most.
    assert!(loss > 60_000, "{loss}");
    assert!(delay < 50_000, "{delay}");
}

#[test]
fn pages_come_in_bursts() {
    let network = "queue = \"200 ms\"\n[[cross]]\nkind = \"web\"\ndirection = \"down\"\n\
                   size = \"100 KB\"\npause = \"1 s\"\n";
    let mut experiment = experiment("lanes = [\"udp\"]");
    experiment.duration = "60 s".parse().unwrap();
    let document = document(&resolved(experiment, profile(network)), &[1], 1);
    let web = sender(&document, 0, "web");
    assert!((150.0..1_500.0).contains(&web.kbit_per_s), "{web:?}");
    let idle = web
        .waiting_bytes
        .iter()
        .filter(|&&bytes| bytes == 0)
        .count();
    assert!(idle > 30 && idle < web.waiting_bytes.len() - 10, "{web:?}");
}

#[test]
fn other_traffic_goes_on_where_a_lane_is_lost() {
    let lane =
        "[[lane]]\nname = \"tcp\"\ntransport = \"tcp-game\"\nsettings = { user_timeout = \"1 s\" }";
    let outage = "[[both.outages]]\nat = \"1 s\"\nfor = \"3 s\"\n";
    let found = found(lane, &format!("{BULK}{outage}"));
    assert!(found.lanes[0].failure.is_some());
    // A packet is 5 ms of the rate: in the second before the outage there are 200.
    let bulk = sender(&found, 0, "bulk");
    assert!(bulk.packets > 800, "{bulk:?}");
}

#[test]
fn a_run_that_is_to_stop_stops_within_seconds_of_virtual_time() {
    let mut experiment = experiment("lanes = [\"udp\", \"kcp\"]");
    experiment.duration = "10 min".parse().unwrap();
    for network in ["", BULK] {
        let resolved = resolved(experiment.clone(), profile(network));
        let starts = resolved.plan.measuring_starts();
        let options = RunOptions {
            seeds: vec![1],
            threads: 1,
        };
        let stop = AtomicBool::new(true);
        let runs = play(&resolved, &options, &|_| {}, &stop);
        assert_eq!(runs[0].lanes.len(), 2);
        for lane in &runs[0].lanes {
            let LaneRun::Cut(outcome, at) = lane else {
                panic!("{lane:?}");
            };
            assert!(at.since(starts) < Duration::from_secs(3), "{at:?}");
            assert!(outcome.records.iter().any(|it| it.returned.is_some()));
        }
    }
}

#[test]
fn what_cannot_be_played_is_refused_in_one_line() {
    let lanes = "lanes = [\"udp\"]";
    let in_testbed = |experiment, profile, testbed| {
        resolve(experiment, "t".to_owned(), profile, testbed).unwrap_err()
    };
    for (experiment, profile) in [
        (experiment(lanes), profile(BULK)),
        (experiment(&format!("shared = true\n{lanes}")), profile("")),
        (
            experiment(lanes),
            profile("queue = { discipline = \"codel\" }"),
        ),
    ] {
        for testbed in [Testbed::Emu, Testbed::Relay, Testbed::Kernel] {
            let found = resolve(experiment.clone(), "t".to_owned(), profile.clone(), testbed);
            assert!(found.is_ok(), "{found:?}");
        }
        let error = in_testbed(experiment, profile, Testbed::Net);
        assert!(
            matches!(error, ResolveError::NotOverARealPath { .. }),
            "{error}"
        );
        assert!(!error.to_string().contains('\n'));
    }
    let error = in_testbed(experiment(lanes), profile(BULK), Testbed::Net);
    let wording = "cannot be played over a real path; use the testbed `sim`, `kernel` or `emu`";
    assert!(error.to_string().contains(wording), "{error}");
    let on_its_machine = format!("{BULK}host = \"game\"\n");
    let game = profile(&on_its_machine);
    resolved(experiment(lanes), game.clone());
    assert_eq!(
        in_testbed(
            experiment(&format!("shared = true\n{lanes}")),
            game,
            Testbed::Sim
        ),
        ResolveError::WhichGame {
            name: "bulk".to_owned()
        }
    );
    let called_as_a_lane = profile(&format!("{BULK}name = \"udp\"\n"));
    assert_eq!(
        in_testbed(experiment(lanes), called_as_a_lane, Testbed::Sim),
        ResolveError::LaneAndCross {
            name: "udp".to_owned()
        }
    );
    let cross = "[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n";
    let text = format!(
        "name = \"t\"\nsummary = \"t\"\nnetwork = \"t\"\n{lanes}\n[workload.paced-echo]\n\
         size = \"200 B\"\ninterval = \"50 ms\"\n{cross}"
    );
    let asked = Experiment::parse("t.toml", &text).unwrap();
    let same = in_testbed(asked.clone(), profile(BULK), Testbed::Sim);
    assert_eq!(
        same,
        ResolveError::SameCross {
            name: "bulk".to_owned()
        }
    );
    let endless = Profile::from_text("t.toml", "summary = \"t\"\n").unwrap();
    let error = in_testbed(asked, endless, Testbed::Sim);
    assert!(
        matches!(error, ResolveError::NoBottleneck { .. }),
        "{error}"
    );
    let says = "the network `t` has no `rate` down: say one there, under `[down]`";
    assert!(error.to_string().contains(says), "{error}");
    let constant = text.replace("bulk", "constant") + "rate = \"2 Mbit/s\"\n";
    let constant = Experiment::parse("t.toml", &constant).unwrap();
    let unbounded = "summary = \"t\"\n[down]\nrate = \"2 Mbit/s\"\n";
    let unbounded = Profile::from_text("t.toml", unbounded).unwrap();
    let error = in_testbed(constant, unbounded, Testbed::Sim);
    let says = "over the network `t`, other traffic (`constant`) sends 2 Mbit/s down";
    assert!(error.to_string().starts_with(says), "{error}");
    let one = text.replace("[[cross]]", "[cross]");
    let error = Experiment::parse("t.toml", &one).unwrap_err();
    assert!(error.message.contains("two brackets"), "{error}");
    let error = Experiment::parse("t.toml", &format!("{text}size = \"1 KB\"\n")).unwrap_err();
    assert_eq!(error.line, 11, "{error}");
    assert!(error.message.contains("has no `size`"), "{error}");
}
