//! Requests and answers over a made-up side: when who asks, what answers, and what becomes
//! of losses.

use lagometer_results::MessageRecord;
use lagometer_transport::{Delivery, Offer};

use super::*;
use crate::workload::made_up_path::{End, Way};
use crate::workload::{Findings, Workload, act};

fn terms(text: &str) -> RequestResponse {
    let terms: RequestResponse = toml::from_str(text).unwrap();
    terms.check().unwrap();
    terms
}

const PAUSED: &str = "request = \"100 B\"\nresponse = \"100 B\"\npause = \"100 ms\"\n";

fn plan(terms: RequestResponse) -> Plan {
    Plan {
        workload: Workload::RequestResponse(Box::new(terms)),
        offer: Offer::Datagrams,
        duration: Duration::from_secs(1),
        grace: Duration::from_secs(1),
        seed: 7,
        offset: Duration::ZERO,
    }
}

struct Played {
    found: Findings,
    sizes: [Vec<usize>; 2],
    is_complete: bool,
}

/// Plays from 5 s on over a path that loses so of what goes up, and down.
fn play(plan: &Plan, loses: [&dyn Fn(usize) -> bool; 2]) -> Played {
    let start = Time::from_secs(5);
    let mut client = Workload::client(plan, start);
    let mut server = Workload::server(plan);
    server.begin(start);
    let (mut up, mut down) = (Way::default(), Way::default());
    let copies = loses.map(|loses| {
        move |delivery, nth| {
            assert_eq!(delivery, Delivery::Reliable);
            usize::from(!loses(nth))
        }
    });
    for ms in 4_990..8_000 {
        let now = Time::from_millis(ms);
        let mut end = End {
            out: &mut up,
            into: &mut down,
            copies: &copies[0],
            is_full: false,
        };
        act(&mut end, |side| client.turn(now, side));
        let mut end = End {
            out: &mut down,
            into: &mut up,
            copies: &copies[1],
            is_full: false,
        };
        act(&mut end, |side| server.turn(now, side));
    }
    assert_eq!(
        client.misdeliveries().damaged + server.misdeliveries().damaged,
        0
    );
    Played {
        found: client.findings(server.arrivals()),
        sizes: [up.sizes(), down.sizes()],
        is_complete: client.is_complete(),
    }
}

fn play_well(text: &str) -> Played {
    play(&plan(terms(text)), [&|_| false, &|_| false])
}

fn millis(time: Option<Time>) -> Option<u64> {
    time.map(|time| time.as_nanos() / 1_000_000)
}

/// When each request was meant to leave, and when its answer had come.
fn exchanges(records: &[MessageRecord]) -> Vec<(u64, Option<u64>)> {
    let each = records.iter();
    each.map(|record| {
        (
            millis(Some(record.intended)).unwrap(),
            millis(record.returned),
        )
    })
    .collect()
}

#[test]
fn the_next_request_leaves_a_pause_after_the_answer() {
    let played = play_well(&format!("{PAUSED}think = \"7 ms\"\n"));
    let asked = exchanges(&played.found.records);
    assert_eq!(
        asked[..3],
        [(0, Some(47)), (147, Some(194)), (294, Some(341))]
    );
    assert_eq!(asked.len(), 7);
    assert!(played.is_complete);
    assert_eq!(millis(played.found.records[1].arrived), Some(167));
    let flows = played.found.flows.unwrap();
    assert!(flows.answers);
    assert_eq!(millis(flows.ways[0][1].record.returned), Some(167));
    assert_eq!(millis(flows.ways[1][1].record.returned), Some(194));
}

#[test]
fn each_place_asks_by_itself() {
    let played = play_well(&format!("{PAUSED}outstanding = 2\n"));
    let asked = exchanges(&played.found.records);
    let expected = [(0, 40), (50, 90), (140, 180), (190, 230)];
    assert_eq!(asked[..4], expected.map(|(at, came)| (at, Some(came))));
}

#[test]
fn at_a_rate_requests_leave_in_time_and_those_beyond_the_limit_wait() {
    let at_rate = "request = \"100 B\"\nresponse = \"100 B\"\nrate = 50.0\n";
    let free = play_well(&format!("{at_rate}outstanding = 10\n"));
    let asked = exchanges(&free.found.records);
    assert_eq!(asked.len(), 50);
    assert_eq!(asked[..3], [(0, Some(40)), (20, Some(60)), (40, Some(80))]);
    // One at a time, 40 ms each: the tenth is meant for 180 ms and answered at 400 ms.
    let one = play_well(at_rate);
    let asked = exchanges(&one.found.records);
    assert_eq!(asked[9], (180, Some(400)));
}

#[test]
fn an_answer_that_does_not_come_is_given_up_after_the_timeout() {
    let plan = plan(terms(&format!("{PAUSED}timeout = \"300 ms\"\n")));
    let played = play(&plan, [&|nth| nth == 1, &|_| false]);
    let asked = exchanges(&played.found.records);
    let expected = [
        (0, Some(40)),
        (140, None),
        (540, Some(580)),
        (680, Some(720)),
    ];
    assert_eq!(asked[..4], expected);
    // Nobody waits for it any more.
    assert!(played.is_complete);
}

#[test]
fn an_answer_after_the_timeout_is_lost() {
    let played = play_well(&format!(
        "{PAUSED}think = \"320 ms\"\ntimeout = \"300 ms\"\n"
    ));
    let asked = exchanges(&played.found.records);
    assert_eq!(asked, [(0, None), (400, None), (800, None)]);
    assert!(played.found.records.iter().all(|it| it.arrived.is_some()));
    let flows = played.found.flows.unwrap();
    assert!(flows.ways[1].iter().all(|it| it.record.returned.is_none()));
    // One that comes just before is not.
    let played = play_well(&format!(
        "{PAUSED}think = \"250 ms\"\ntimeout = \"300 ms\"\n"
    ));
    assert_eq!(exchanges(&played.found.records)[0], (0, Some(290)));
}

#[test]
fn the_timeout_runs_from_when_a_request_takes_its_place() {
    let text = "request = \"100 B\"\nresponse = \"100 B\"\nrate = 50.0\ntimeout = \"100 ms\"\n";
    // One at a time, 40 ms each: the tenth waits for 180 ms, and then for its answer.
    let played = play_well(text);
    assert_eq!(exchanges(&played.found.records)[9], (180, Some(400)));
    let plan = plan(terms(text));
    let lossy = play(&plan, [&|nth| nth == 0, &|_| false]);
    let asked = exchanges(&lossy.found.records);
    assert_eq!(asked[..3], [(0, None), (20, Some(140)), (40, Some(180))]);
}

#[test]
fn a_dead_connection_loses_what_would_have_been_asked() {
    let plan = plan(terms(&format!("{PAUSED}timeout = \"300 ms\"\n")));
    let mut client = Workload::client(&plan, Time::from_secs(5));
    client.abandon();
    let asked = exchanges(&client.findings(&[]).records);
    assert_eq!(asked, [(0, None), (400, None), (800, None)]);
    assert!(client.has_sent_all() && client.next_send().is_none());
}

#[test]
fn what_is_large_travels_in_pieces_and_is_lost_with_any_of_them() {
    let text =
        "request = \"1151 B\"\nresponse = \"5000 B\"\npause = \"100 ms\"\ntimeout = \"200 ms\"\n";
    let played = play_well(text);
    assert_eq!(played.sizes[0][..2], [576, 575]);
    assert_eq!(played.sizes[1][..5], [1000; 5]);
    assert_eq!(exchanges(&played.found.records)[0], (0, Some(40)));
    let lossy = play(&plan(terms(text)), [&|_| false, &|nth| nth == 3]);
    let asked = exchanges(&lossy.found.records);
    assert_eq!(asked[..2], [(0, None), (300, Some(340))]);
    assert_eq!(millis(lossy.found.records[0].arrived), Some(20));
}

#[test]
fn sizes_of_answers_vary_by_the_seed_and_are_known_to_both() {
    let text = format!("{PAUSED}spread = 1.0\nresponse = \"3 KB\"\n")
        .replace("response = \"100 B\"\n", "");
    let played = play_well(&text);
    let down = played.found.flows.unwrap().ways[1].clone();
    let sizes: Vec<u32> = down.iter().map(|message| message.bytes).collect();
    assert!(sizes.iter().any(|&size| size != sizes[0]), "{sizes:?}");
    let sent: usize = played.sizes[1].iter().sum();
    assert_eq!(sizes.iter().sum::<u32>() as usize, sent);
    let again = play_well(&text).found;
    assert_eq!(again.records, played.found.records);
}

#[test]
fn values_that_contradict_each_other_are_named() {
    let base = "request = \"100 B\"\nresponse = \"100 B\"\n";
    for (more, key) in [
        ("", "pause"),
        ("pause = \"1 s\"\nrate = 3.0\n", "pause"),
        ("pause = \"0 s\"\n", "pause"),
        ("rate = 0.0\n", "rate"),
        ("rate = 1.0\noutstanding = 0\n", "outstanding"),
        ("rate = 1.0\nspread = 3.0\n", "spread"),
        ("rate = 1.0\nthink = \"1 h\"\n", "think"),
        ("rate = 1.0\ntimeout = \"1 ms\"\n", "timeout"),
        ("rate = 1.0\nwithin = \"1 h\"\n", "within"),
    ] {
        let terms: RequestResponse = toml::from_str(&format!("{base}{more}")).unwrap();
        assert_eq!(terms.check().unwrap_err().0, key, "{more}");
    }
    let small = base.replace("request = \"100 B\"", "request = \"20 B\"") + "rate = 1.0\n";
    let terms: RequestResponse = toml::from_str(&small).unwrap();
    assert_eq!(terms.check().unwrap_err().0, "request");
}

#[test]
fn requests_that_are_given_up_before_the_server_has_thought_are_expected_by_it() {
    let text = format!("{PAUSED}think = \"10 min\"\ntimeout = \"10 ms\"\n");
    // One each 110 ms; that none is damaged is held by `play`.
    let played = play_well(&text);
    assert!(played.found.records.len() > 8);
    assert!(played.found.records.iter().all(|it| it.arrived.is_some()));
}
