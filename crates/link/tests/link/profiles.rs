//! Mistakes in profiles are answered with file, line and what was expected;
//! what is right is read, and written back the same.

use std::path::{Path, PathBuf};

use lagometer_link::{Direction, LoadError, Profile, catalogue, written::Written};
use proptest::prelude::*;

use crate::any_profile::any_profile;

fn mistake(text: &str) -> (usize, String) {
    match Profile::from_text("net.toml", text) {
        Ok(_) => panic!("was accepted:\n{text}"),
        Err(error) => {
            assert_eq!(error.origin, "net.toml");
            assert!(!error.message.contains('\n'));
            (error.line, error.message)
        }
    }
}

/// Asserts that the mistake in `section`, whose text starts at line 3, is found at `line`
/// and explained with `words`.
#[track_caller]
fn assert_mistake(section: &str, line: usize, words: &str) {
    let text = format!("summary = \"a test\"\n\n{section}\n");
    let (found, message) = mistake(&text);
    assert_eq!(found, line, "{message}\n{text}");
    assert!(message.contains(words), "{message}");
}

#[test]
fn unknown_keys_and_wrong_units_name_their_line() {
    assert_mistake("[both]\ndellay = \"1 ms\"", 4, "dellay");
    assert_mistake("[both]\nloss = \"1 %\"\ndelay = 20", 5, "ns, us, ms");
    assert_mistake("[up]\nrate = \"5 MB\"", 4, "Mbit/s");
    assert_mistake("[up]\nloss = \"200 %\"", 4, "100 %");
    assert_mistake("[up]\nqueue = \"12 parsec\"", 4, "100 ms");
    assert_mistake("[sideways]\ndelay = \"1 ms\"", 3, "sideways");
    assert_mistake("[both.bursts]\nmean_good = \"1 s\"", 3, "mean_bad");
    assert_mistake("[both]\noversize = \"explode\"", 4, "vanish");
    assert_mistake(
        "[both]\njitter = { distribution = \"cauchy\" }",
        4,
        "pareto",
    );
    let (line, message) = mistake("[both]\ndelay = \"1 ms\"\n");
    assert_eq!((line, message.contains("summary")), (1, true), "{message}");
}

#[test]
fn impossible_values_name_their_line_and_what_was_expected() {
    let jitter = |rest: &str| format!("[both]\njitter = {{ {rest} }}");
    let spell = |rest: &str| format!("[both]\ndelay = \"1 ms\"\n[[both.stalls]]\n{rest}");
    for (section, line, words) in [
        (jitter("distribution = \"uniform\""), 4, "maximum"),
        (
            jitter("distribution = \"uniform\", maximum = \"0\""),
            4,
            "maximum",
        ),
        (
            jitter("distribution = \"normal\", maximum = \"1 ms\""),
            4,
            "mean",
        ),
        (
            jitter("distribution = \"normal\", maximum = \"1 ms\", mean = \"1 ms\""),
            4,
            "deviation",
        ),
        (
            jitter("distribution = \"pareto\", maximum = \"1 ms\", mean = \"1 ms\", shape = 1.0"),
            4,
            "shape",
        ),
        (
            jitter("distribution = \"uniform\", maximum = \"1 ms\", shape = 2.0"),
            4,
            "no `shape`",
        ),
        (
            jitter("distribution = \"uniform\", maximum = \"1 ms\", correlation = \"1 us\""),
            4,
            "correlation",
        ),
        (
            jitter(
                "distribution = \"normal\", maximum = \"1 ms\", mean = \"1 s\", \
                 deviation = \"1 ms\"",
            ),
            4,
            "1 %",
        ),
        (spell("at = \"1 s\""), 5, "how long"),
        (spell("for = \"1 s\""), 5, "when it starts"),
        (
            spell("at = \"1 s\"\nmean_gap = \"1 s\"\nfor = \"1 s\""),
            5,
            "when it starts",
        ),
        (
            spell("at = \"1 s\"\nfor = \"2 s\"\nup_to = \"1 s\""),
            5,
            "longer `up_to`",
        ),
        (
            spell("at = \"1 s\"\nfor = \"2 s\"\nevery = \"1 s\""),
            5,
            "longer than it lasts",
        ),
        (
            spell("at = \"1 s\"\nmean_for = \"2 s\"\nevery = \"9 s\""),
            5,
            "instead of `mean_for`",
        ),
        (
            spell("mean_gap = \"1 s\"\nmean_for = \"30 s\""),
            5,
            "at most 90 %",
        ),
        (
            "[both.bursts]\nmean_good = \"1 us\"\nmean_bad = \"1 s\"\nloss_bad = \"1 %\"".into(),
            3,
            "mean_good",
        ),
        (
            "[both]\nhandover = { every = \"0\", extra = \"1 ms\" }".into(),
            4,
            "every",
        ),
        ("[up]\nmtu = \"0 B\"".into(), 4, "MTU"),
        ("[up]\nqueue = \"10 ms\"".into(), 4, "needs a `rate`"),
        (
            "[both]\nqueue = \"10 ms\"\n[up]\nrate = \"1 Mbit/s\"".into(),
            4,
            "needs a `rate`",
        ),
        (
            "[both]\nqueue = { discipline = \"cake\" }\n[up]\nrate = \"1 Mbit/s\"".into(),
            4,
            "`[down]` has no `rate`",
        ),
        ("[up]\noversize = \"vanish\"".into(), 4, "mtu"),
        ("[up]\ntrace = \"x\"".into(), 4, "read from a file"),
    ] {
        assert_mistake(&section, line, words);
    }
}

#[test]
fn a_period_alone_takes_what_a_period_from_a_given_time_does() {
    for (rule, words) in [
        ("for = \"2 s\"\nevery = \"2 s\"", "longer than it lasts"),
        (
            "every = \"9 s\"\nmean_gap = \"1 s\"\nfor = \"2 s\"",
            "when it starts",
        ),
        (
            "mean_for = \"2 s\"\nevery = \"9 s\"",
            "instead of `mean_for`",
        ),
    ] {
        let section = format!("[both]\ndelay = \"1 ms\"\n[[both.stalls]]\n{rule}");
        assert_mistake(&section, 5, words);
    }
}

#[test]
fn what_a_trace_says_is_not_said_twice() {
    let recorded = "lagometer-trace/1\nlasts 1\nup 0 - 0 0\ndown 0 - 0 0\n";
    let parse = |trace: &str, key: &str| {
        let text = format!("summary = \"x\"\n[both]\ntrace = \"t\"\n[down]\n{key}\n");
        Profile::parse("net.toml", &text, &mut |_| Ok(trace.to_owned()))
    };
    for key in [
        "rate = \"1 Mbit/s\"",
        "delay = \"1 ms\"",
        "loss = \"1 %\"",
        "stalls = [{ at = \"1 s\", for = \"1 s\" }]",
    ] {
        let error = parse(recorded, key).unwrap_err();
        assert_eq!(error.line, 5, "{error}");
        assert!(error.message.contains("the trace says"), "{error}");
    }
    assert!(parse("1\n2\n", "delay = \"1 ms\"").is_ok());
    assert!(parse("1\n2\n", "rate = \"1 Mbit/s\"").is_err());
    let error = parse("1\nx\n", "").unwrap_err();
    assert_eq!((error.origin.as_str(), error.line), ("t", 2));
}

#[test]
fn a_profile_is_loaded_with_its_traces_from_its_folder() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("profiles");
    std::fs::create_dir_all(folder.join("traces")).unwrap();
    let file = folder.join("net.toml");
    std::fs::write(folder.join("traces/up"), "1\n2\n").unwrap();
    std::fs::write(&file, "summary = \"x\"\n[up]\ntrace = \"traces/up\"\n").unwrap();
    assert_eq!(Profile::load(&file).unwrap().summary(), "x");

    std::fs::write(&file, "summary = \"x\"\n[up]\ntrace = \"traces/none\"\n").unwrap();
    let LoadError::Bad(bad) = Profile::load(&file).unwrap_err() else {
        panic!("the profile can be read");
    };
    assert_eq!(bad.line, 3);
    assert!(bad.message.contains("traces/none"), "{bad}");

    let missing = Profile::load(Path::new("no/such.toml")).unwrap_err();
    assert!(
        missing.to_string().starts_with("no/such.toml: "),
        "{missing}"
    );
}

#[test]
fn every_profile_of_the_catalogue_is_written_back_the_same() {
    for name in catalogue::names() {
        let profile = catalogue::named(name).unwrap();
        let written = toml::to_string(&profile).unwrap();
        let back: Written = toml::from_str(&written).unwrap();
        assert_eq!(&back, profile.written(), "{name}");
    }
}

const MANUAL: &str = include_str!("../../../../docs/link-model.md");

#[test]
fn the_manuals_example_is_read() {
    let example = MANUAL.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let profile = Profile::from_text("docs/link-model.md", example).unwrap();
    assert_eq!(profile.base_rtt().as_millis(), 36);
}

#[test]
fn the_manual_explains_every_key() {
    let text = "summary = \"\"\n[both]\ndelay = \"0\"\nloss = \"0 %\"\nrate = \"1 bit/s\"\n\
        queue = \"0 B\"\ncorruption = \"0 %\"\nmtu = \"1 B\"\noversize = \"vanish\"\n\
        trace = \"t\"\njitter = { distribution = \"none\", maximum = \"0\", mean = \"0\", \
        deviation = \"0\", shape = 2.0, correlation = \"0\", reorder = true }\n\
        bursts = { mean_good = \"0\", mean_bad = \"0\", loss_bad = \"0 %\", loss_good = \"0 %\" }\n\
        duplication = { share = \"0 %\", apart = \"0\" }\n\
        reordering = { share = \"0 %\", extra = \"0\" }\n\
        handover = { every = \"0\", extra = \"0\" }\n\
        outages = [{ at = \"0\", every = \"0\", mean_gap = \"0\" }]\n\
        stalls = [{ for = \"0\", up_to = \"0\", mean_for = \"0\" }]\n";
    let written: Written = toml::from_str(text).unwrap();
    // Destructured, so that a new key makes this fail to compile.
    let lagometer_link::written::Way {
        delay: Some(_),
        jitter: Some(_),
        loss: Some(_),
        bursts: Some(_),
        rate: Some(_),
        queue: Some(_),
        duplication: Some(_),
        reordering: Some(_),
        corruption: Some(_),
        outages: _,
        stalls: _,
        handover: Some(_),
        mtu: Some(_),
        oversize: Some(_),
        trace: Some(_),
    } = written.both
    else {
        panic!("the text above says every key");
    };
    let before_equals = text.split(" =").filter_map(|part| {
        let name = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        part.rsplit(name).next().filter(|key| !key.is_empty())
    });
    for key in before_equals {
        let explained =
            MANUAL.contains(&format!("`{key}`")) || MANUAL.contains(&format!("`{key} = "));
        assert!(explained, "the manual does not explain `{key}`");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "(\\[(both|up|down)(\\.(jitter|bursts))?\\]\n|\\[\\[both.stalls\\]\\]\n\
                 |(summary|delay|rate|queue|loss|for|at|every|mean_gap|maximum|distribution) = \
                 \"([0-9]{1,3} (ms|s|%|Mbit/s|KB)|uniform|normal)\"\n|.{0,5})*"
    ) {
        let _ = Profile::from_text("net.toml", &text);
    }

    #[test]
    fn right_profiles_are_accepted(text in any_profile()) {
        crate::profile(&text);
    }
}

#[cfg(unix)]
#[test]
fn a_network_or_a_trace_that_never_ends_is_refused() {
    let error = Profile::load(Path::new("/dev/zero"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("the most that is read"), "{error}");
    let folder =
        std::env::temp_dir().join(format!("lagometer-link-endless-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let network = folder.join("endless.toml");
    let text = "summary = \"x\"\n[up]\ntrace = \"/dev/zero\"\n[down]\n";
    std::fs::write(&network, text).unwrap();
    let error = Profile::load(&network).unwrap_err().to_string();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(error.contains("the most that is read"), "{error}");
}

#[test]
fn what_a_link_and_tcp_cannot_do_over_a_network_is_told_by_its_profile() {
    let network = |text: &str| {
        Profile::from_text(
            "net.toml",
            &format!("summary = \"a network\"\n[both]\n{text}"),
        )
        .unwrap()
    };
    let plain = network("rate = \"5 Mbit/s\"\nmtu = \"1500 B\"\n");
    assert!(!plain.has_managed_queue());
    assert!(!plain.swallows_full_packets(Direction::Up));
    let managed = network("rate = \"5 Mbit/s\"\nqueue = { discipline = \"fq-codel\" }\n");
    assert!(managed.has_managed_queue());
    let small = network("mtu = \"1280 B\"\noversize = \"vanish\"\n");
    assert!(small.swallows_full_packets(Direction::Down));
    let refusing = network("mtu = \"1280 B\"\noversize = \"refuse\"\n");
    assert!(!refusing.swallows_full_packets(Direction::Down));
}
