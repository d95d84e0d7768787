//! Other traffic that cannot be meant, refused where it is said.

use lagometer_link::Profile;

/// The line and the words with which a network with this is refused.
fn refused(text: &str) -> (usize, String) {
    let error = Profile::from_text("t.toml", text).unwrap_err();
    assert!(!error.message.contains('\n'), "{error}");
    (error.line, error.message)
}

#[test]
fn a_key_without_a_default_is_asked_for_with_what_it_may_say() {
    for (says, line, expected) in [
        (
            "direction = \"down\"\n",
            3,
            "needs a `kind`: `bulk`, `web`, `call` or `constant`",
        ),
        ("kind = \"bulk\"\n", 3, "needs a `direction`: `up`"),
    ] {
        let (at, message) = refused(&format!("summary = \"t\"\n\n[[cross]]\n{says}"));
        assert_eq!(at, line, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_schedule_without_an_entry_is_refused() {
    let (at, message) =
        refused("summary = \"t\"\n[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\nwhen = []\n");
    assert_eq!(at, 5, "{message}");
    assert!(message.contains("leave `when` out for always"), "{message}");
}

#[test]
fn what_is_said_in_another_form_or_place_is_refused_with_the_right_one() {
    let cross = "[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n";
    for (says, line, expected) in [
        (
            format!("{cross}when = {{ at = \"1 s\", for = \"2 s\" }}\n"),
            5,
            "expected a list of times, as in [{ at = \"10 s\", for = \"20 s\" }]",
        ),
        (
            "[down]\nqueue = { limit = \"1 KB\" }\n".to_owned(),
            3,
            "needs a `discipline`: `drop-tail`, `codel`, `fq-codel`, `cake` or `red`",
        ),
        (
            "[down]\ncross = 3\n".to_owned(),
            3,
            "move it out, under `[[cross]]`",
        ),
    ] {
        let (at, message) = refused(&format!("summary = \"t\"\n{says}"));
        assert_eq!(at, line, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn packets_above_the_mtu_of_their_line_are_refused() {
    let network = |mtu: &str, direction: &str, size: &str| {
        format!(
            "summary = \"t\"\n[down]\nmtu = \"{mtu}\"\n[[cross]]\nkind = \"constant\"\n\
             direction = \"{direction}\"\nrate = \"1 Mbit/s\"\n{size}"
        )
    };
    let (at, message) = refused(&network("1000 B", "down", ""));
    assert_eq!(at, 4, "{message}");
    assert!(
        message.contains("has packets of 1200 B, above the `mtu` down of 1000 B"),
        "{message}"
    );
    let (at, message) = refused(&network("1000 B", "down", "size = \"1001 B\"\n"));
    assert_eq!(at, 8, "{message}");
    for fits in [
        network("1200 B", "down", ""),
        network("1000 B", "up", ""),
        network("1000 B", "down", "size = \"1000 B\"\n"),
    ] {
        Profile::from_text("t.toml", &fits).unwrap();
    }
}

#[test]
fn constant_traffic_above_what_stalls_leave_of_an_unbounded_line_is_refused() {
    let network = |rate: &str| {
        format!(
            "summary = \"t\"\n[down]\nrate = \"100 Mbit/s\"\n\
             stalls = [{{ at = \"0 s\", every = \"1 s\", for = \"850 ms\" }}]\n\
             [[cross]]\nkind = \"constant\"\ndirection = \"down\"\nrate = \"{rate}\"\n"
        )
    };
    let (_, message) = refused(&network("16 Mbit/s"));
    assert!(message.contains("the queue has no bound"), "{message}");
    Profile::from_text("t.toml", &network("14 Mbit/s")).unwrap();
}

#[test]
fn names_that_cannot_be_printed_on_a_line_are_refused() {
    for (says, key) in [
        ("name = \"a\\nb\"", "name"),
        ("name = \"\\u001b[31mred\"", "name"),
        ("name = \"  \"", "name"),
        ("host = \"\"", "host"),
        ("host = \"a\\tb\"", "host"),
    ] {
        let text =
            format!("summary = \"t\"\n[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n{says}\n");
        let (at, message) = refused(&text);
        assert_eq!(at, 5, "{message}");
        assert!(
            message.contains(&format!("`{key}` must be something to see")),
            "{message}"
        );
    }
}
