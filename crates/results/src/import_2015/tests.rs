use super::*;
use crate::document::Milliseconds;
use proptest::prelude::*;
use std::fmt::Write;
use std::time::Duration;

/// Written for this test in the manner of the programs, with every quirk that
/// their logs are known for.
const FIXTURE: &str = "\
./some_client/some_client SERVER 12345 500 2>./state.log

connect to: SERVER 12345
50  52  48  50  51  50  47  48  47  47  max: 52  average 10: 49  average total: 49 0KB/s(in)
15:9.5 49  49  49  47  49  467 415\t363 311 260 max: 467  average 10: 205  average total: 127
BB
15:13.2 55:1\t56:2\t57:0\t58:1\t59:3\t60:1\t61:1\t62:1\t63:1\t64:9\tmax:64 avrg10:59 max100:467 avrg100:83 avrgall:83
a stray word
15:13.2 N50  52  B48  50  51  50  47  48  47  47  max: 53  average 10: 49  average total: 49 9.6KB/s(in)
15:14.59 51:1\t52:2
";

#[test]
fn every_quirk_of_the_format_is_read() {
    let log = Log::parse(FIXTURE).unwrap();
    assert_eq!(log.echoes.len(), 42);
    let echo = |rtt_ms, sends| Echo { rtt_ms, sends };
    assert_eq!(log.echoes[0], echo(50, None));
    assert_eq!(log.echoes[15], echo(467, None));
    assert_eq!(log.echoes[21], echo(56, Some(2)));
    assert_eq!(log.echoes[22], echo(57, Some(0)));
    assert_eq!(log.echoes[32], echo(48, None));
    assert_eq!(log.echoes[41], echo(52, Some(2)));
    assert_eq!(
        log.stray_lines, 4,
        "the command, the greeting, the letters and the word"
    );
    assert_eq!(log.damaged_lines, 1, "the maximum of 53 is nowhere");
    let clock = log.clock.unwrap();
    assert_eq!(
        (&clock.first[..], &clock.last[..]),
        ("15:09:05", "15:14:59")
    );
    assert_eq!(clock.seconds, 354);
    // The first stamp ends the first ten, the last one ends the fourth.
    assert_eq!(clock.samples, 30);
}

#[test]
fn a_lane_has_both_kinds_of_figures() {
    let lane = Log::parse(FIXTURE)
        .unwrap()
        .to_lane("old", "kcp", Duration::from_millis(50));
    assert_eq!(lane.messages.delivered, 42);
    assert!((lane.rtt_delivered_ms.max - 467.0).abs() < 1e-9);
    assert!((lane.within[&Milliseconds(200)] - 37.0 / 42.0).abs() < 1e-12);
    assert_eq!(lane.episodes.len(), 1);
    assert!(
        (lane.episodes[0].duration_ms - 467.0).abs() < 1e-9,
        "to the last arrival"
    );
    let statistics = lane.imported.unwrap();
    assert_eq!((statistics.samples, statistics.threshold_ms), (42, 150));
    assert_eq!((statistics.episodes, statistics.episodes_from_1s), (1, 0));
    assert!(
        (statistics.worst_episode_ms - 250.0).abs() < 1e-9,
        "five samples"
    );
    assert!((statistics.worst_recovery_ms - 250.0).abs() < 1e-9);
    assert_eq!(statistics.episodes_500ms, 0);
    assert!((statistics.over[1].share - 5.0 / 42.0).abs() < 1e-12);
}

#[test]
fn midnight_passes_and_a_clock_that_is_set_back_does_not_count() {
    let log = Log::parse("23:59.58 1\n0:0.3 2\n0:0.1 3\n0:0.6 4\n").unwrap();
    let clock = log.clock.unwrap();
    assert_eq!(clock.seconds, 5 + 5);
    assert_eq!(clock.samples, 3);
    assert_eq!(clock.rate_per_s(), Some(0.3));
}

#[test]
fn a_text_without_echoes_is_no_log() {
    assert_eq!(Log::parse(""), Err(BadLog::NoEchoes { lines: 0 }));
    assert_eq!(
        Log::parse("connect to: SERVER 1\nBB\n"),
        Err(BadLog::NoEchoes { lines: 2 })
    );
}

#[test]
fn what_no_client_prints_is_a_stray_line() {
    for line in [
        "1 2 x 3",
        "-5 60",
        "+5 60",
        "60:",
        ":1",
        "1.5",
        "99999999999",
        "25:00.00 60",
        "max: 5",
    ] {
        let log = Log::parse(&format!("60\n{line}\n")).unwrap();
        assert_eq!((log.echoes.len(), log.stray_lines), (1, 1), "{line}");
    }
    let endless = "5 ".repeat(10_000);
    assert_eq!(
        Log::parse(&format!("60\n{endless}")).unwrap().stray_lines,
        1
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "([0-9]{1,12}|[:. \t\nAB]|max|\\PC){0,60}") {
        if let Ok(log) = Log::parse(&text) {
            let lane = log.to_lane("any", "any", Duration::from_millis(50));
            prop_assert_eq!(lane.messages.delivered, log.echoes.len() as u64);
        }
    }

    #[test]
    fn what_a_client_would_print_is_read_back(
        tens in proptest::collection::vec(
            (proptest::collection::vec((0_u32..200_000, 0_u32..10), 10), any::<bool>()),
            1..20,
        ),
    ) {
        let mut text = String::new();
        let mut expected = Vec::new();
        for (index, (ten, with_sends)) in tens.iter().enumerate() {
            if index > 0 {
                write!(text, "{}:{}.{} ", index / 60, index % 60, index % 7).unwrap();
            }
            for &(rtt_ms, sends) in ten {
                let sends = with_sends.then_some(sends);
                match sends {
                    Some(sends) => write!(text, "{rtt_ms}:{sends}\t").unwrap(),
                    None => write!(text, "{rtt_ms}  ").unwrap(),
                }
                expected.push(Echo { rtt_ms, sends });
            }
            let max = ten.iter().map(|&(rtt, _)| rtt).max().unwrap_or(0);
            writeln!(text, "max: {max}  average 10: 1").unwrap();
        }
        let log = Log::parse(&text).unwrap();
        prop_assert_eq!(log.echoes, expected);
        prop_assert_eq!((log.stray_lines, log.damaged_lines), (0, 0));
    }
}
