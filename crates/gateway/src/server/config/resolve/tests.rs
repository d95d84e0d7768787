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
    // Whoever does not know it does not reach metrics and health.
    assert_eq!(config.web, Some(SocketAddr::from(([127, 0, 0, 1], 8080))));
    assert_eq!(config.auth, AuthChoice::Nobody);
    assert_eq!(config.threads.connections, 1);
    assert!(config.warnings[0].contains("--dev"));
}

#[test]
fn mistakes_are_reported_on_one_line() {
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
fn settings_that_mean_nothing_or_contradict_each_other_are_refused() {
    for (section, keys) in [
        (
            "limits",
            &[
                "work_per_second = 0",
                "work_per_second = 999",
                "messages_per_second = 0",
                "bytes_per_second = \"0 B\"",
                "messages_per_second_per_address = 0",
                "connections_per_address = 0",
                "connects_per_second_per_address = 0",
                "connections = 0",
                "unauthenticated = 0",
                "unauthenticated_per_address = 0",
                "unauthenticated_memory = \"100 KiB\"",
                "login_bytes = \"8 KiB\"",
                "login_token = \"200 KiB\"",
                "login_token = \"0 B\"",
                "player_name = \"0 B\"",
                "login_within = \"0 s\"",
                "login_work = \"1 ms\"",
                "silent_at_most = \"0 s\"",
                "kcp_silent_at_most = \"0 s\"",
                "max_frame = \"0 B\"",
                "max_packet = \"0 B\"",
                "max_packet = \"32 KiB\"",
                "channel_data = \"3 MiB\"",
                "data = \"0 B\"",
                "shared_data = \"0 B\"",
                "channels = 0\ndata = \"0 B\"",
                "fan_out_within = \"0 s\"",
            ][..],
        ),
        ("servers", &["listen = []", "recovery_within = \"0 s\""]),
        ("clients", &["listen = []", "listen = [\":11288\"]"]),
        ("slow_readers", &["close_after = \"0 s\""]),
        (
            "tcp",
            &["dead_after = \"0 s\"", "unsent_at_most = \"5 GiB\""],
        ),
        ("threads", &["connections = 257", "queue = 0"]),
        ("channels", &["max_data = \"0 B\""]),
        (
            "auth",
            &[
                "provider = \"http\"\nurl = \"http://a/\"\ntimeout = \"0 s\"",
                "anti_ddos = true\nlogin_within = \"0 s\"",
                "anti_ddos = true\nbanned_for = \"0 s\"",
            ],
        ),
    ] {
        for keys in keys {
            let text = format!("[{section}]\n{keys}\n");
            let error = resolve(&text).expect_err(&text);
            assert_eq!(error.lines().count(), 1, "{error}");
            // It names a key that is concerned, and says what would do.
            assert!(error.contains('.') && error.len() > 30, "{text}: {error}");
        }
    }
    let recording = "[clients]\nrecord_to = \"r\"\n[limits]\nrecording = \"0 B\"";
    assert!(resolve(recording).unwrap_err().contains("limits.recording"));
}

#[test]
fn what_turns_something_off_is_no_mistake() {
    for text in [
        "[limits]\nchannels = 0\nentity_channels = 0\ndata = \"0 B\"",
        "[limits]\nsubscriptions = 0\nmasks = 0\nfilters = 0\ngroup_size = 0",
        "[limits]\nrecording = \"0 B\"\nmetadata = \"0 B\"\nreserved_for_servers = 0",
        "[limits]\nconnections = 1",
        "[auth]\nlogin_within = \"0 s\"\nbanned_for = \"0 s\"\nmax_failed = 0",
        "[tcp]\nunsent_at_most = \"0 B\"\n[shutdown]\nwithin = \"0 s\"",
        "[servers]\nlisten = [\"tcp://127.0.0.1:0\"]\n[clients]\nlisten = [\"tcp://127.0.0.1:0\"]",
        "[clients]\nlisten = [\"tcp://:9\", \"kcp://:9\"]",
    ] {
        assert!(resolve(text).is_ok(), "{text}: {:?}", resolve(text).err());
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
