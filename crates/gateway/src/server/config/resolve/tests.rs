use super::*;

fn resolve(text: &str) -> Result<Config, String> {
    FileConfig::parse("gateway.toml", text)
        .map_err(|error| error.to_string())?
        .resolve(2)
        .map_err(|error| error.to_string())
}

#[test]
fn an_empty_file_listens_where_channeld_does_and_lets_no_client_in() {
    let config = resolve("").unwrap();
    assert_eq!(config.servers[0].socket().unwrap().port(), 11288);
    assert_eq!(config.clients[0].socket().unwrap().port(), 12108);
    // Whoever is not told of it does not reach metrics and health.
    assert_eq!(config.web, Some(SocketAddr::from(([127, 0, 0, 1], 8080))));
    assert_eq!(config.auth, AuthChoice::Nobody);
    assert_eq!(config.threads.connections, 1);
    assert!(config.warnings[0].contains("--dev"));
}

#[test]
fn mistakes_are_told_on_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.json");
    std::fs::write(&bad, "{ \"States\": [").unwrap();
    let bad = bad.display();
    for (text, expected) in [
        (
            "[clients]\nlisten = [\"wss://:1\"]".to_owned(),
            "certificate",
        ),
        (
            "[slow_readers]\nmerge_from = \"8 MiB\"".to_owned(),
            "close_at",
        ),
        ("[auth]\nprovider = \"shared-token\"".to_owned(), "secret"),
        ("[auth]\nprovider = \"http\"".to_owned(), "http://"),
        ("[limits]\nmax_frame = \"1 MiB\"".to_owned(), "65535"),
        ("[channels]\nconnection_id_bits = 33".to_owned(), "1 to 32"),
        (
            "[channels]\ngrid = \"/nowhere.json\"".to_owned(),
            "/nowhere.json",
        ),
        (format!("[clients]\nstate_machine = \"{bad}\""), "line 1"),
        (format!("[channels]\nschema = [\"{bad}x\"]"), "bad.json"),
    ] {
        let error = resolve(&text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn files_that_never_end_are_refused() {
    for text in [
        "[auth]\nprovider = \"shared-token\"\nsecret_file = \"/dev/zero\"",
        "[clients]\nstate_machine = \"/dev/zero\"",
        "[channels]\ngrid = \"/dev/zero\"",
        "[channels]\nsettings = \"/dev/zero\"",
        "[channels]\nschema = [\"/dev/zero\"]",
        "[clients]\nlisten = [\"tls://:1\"]\n[tls]\ncertificate = \"/dev/zero\"\nkey = \"/dev/zero\"",
    ] {
        let error = resolve(text).unwrap_err();
        assert!(error.contains("the most that is read"), "{text}: {error}");
        assert!(error.contains("/dev/zero"), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn channelds_own_files_need_not_be_there() {
    let config = resolve(
        "dev = true\n[clients]\nstate_machine = \"config/client_authoratative_fsm.json\"\n\
         [channels]\ngrid = \"config/spatial_static_benchmark.json\"",
    )
    .unwrap();
    assert_eq!(config.connections.client_fsm, Fsm::authoritative_client());
    assert!(config.channels.grid.is_some());
    assert_eq!(config.auth, AuthChoice::Everyone);
}
