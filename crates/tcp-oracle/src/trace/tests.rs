use super::*;

#[test]
fn a_trace_survives_its_text() {
    let mut packet = Packet {
        seq: Seq(7),
        ack: Seq(u32::MAX),
        flags: Flags::ACK.with(Flags::PSH),
        window: 502,
        length: 1448,
        ecn: Ecn::CongestionExperienced,
        options: TcpOptions {
            timestamps: Some((5, 6)),
            ..TcpOptions::default()
        },
    };
    packet.options.sack.push(SackBlock {
        start: Seq(1),
        end: Seq(2),
    });
    let end = EndSettings {
        control: "cubic".to_owned(),
        nodelay: true,
        receive_buffer: Some(70_000),
        keep_alive: Some([1, 2, 3]),
        ..EndSettings::default()
    };
    let lines = [
        Happened::Connect,
        Happened::In(packet),
        Happened::Out(packet),
        Happened::Write(10, 5),
        Happened::Read(10, 5),
        Happened::Nodelay(true),
        Happened::Cork(false),
        Happened::QuickAck,
        Happened::TooBig(Seq(u32::MAX), 1280),
        Happened::Finish,
        Happened::Close,
        Happened::Full,
        Happened::Error(110),
        Happened::State("cwnd=10 rto=204".to_owned()),
    ];
    let trace = Trace {
        name: "clean-cubic-1".to_owned(),
        jiffies: (4_294_667_296, 12_000_000),
        ends: [end.clone(), end],
        lines: lines
            .into_iter()
            .enumerate()
            .map(|(index, what)| Line {
                at: index as u64,
                end: index % 2,
                what,
            })
            .collect(),
        ended: 99,
    };
    let both = trace.to_text() + &trace.to_text();
    assert_eq!(Trace::parse_all(&both), Ok(vec![trace.clone(), trace]));
}

#[test]
fn a_conversation_that_is_missing_or_broken_off_is_named() {
    let said =
        "1 0 out 1 0 02 1 0 0 - - 0 - -\n2 1 out 9 2 12 1 0 0 - - 0 - -\n3 0 close\nended 4\n";
    let two = format!("conversation a 1 2\n{said}conversation b 1 2\n{said}");
    let read = |text: &str, names: &[&str]| {
        Trace::parse_whole(text, names.iter().map(|name| (*name).to_owned()))
            .map(|traces| traces.len())
    };
    assert_eq!(read(&two, &["a", "b"]), Ok(2));
    let cut = |lines: usize| -> String { two.split_inclusive('\n').take(lines).collect() };
    for (text, names, says) in [
        (
            String::new(),
            &["a", "b"][..],
            "conversation a was not recorded",
        ),
        (cut(4), &["a", "b"], "conversation a is broken off"),
        (cut(5), &["a", "b"], "conversation b was not recorded"),
        (cut(6), &["a", "b"], "conversation b is broken off"),
        (cut(9), &["a", "b"], "conversation b is broken off"),
        (
            two.clone(),
            &["a", "c"],
            "b where conversation c was asked for",
        ),
        (two.clone(), &["a"], "conversation b was not asked for"),
    ] {
        assert_eq!(read(&text, names), Err(says.to_owned()), "{text}");
    }
}

#[test]
fn a_cut_line_is_named() {
    let said = Trace::parse_all("conversation a 1 2\n5 0 write 10\n").unwrap_err();
    assert!(said.starts_with("line 2 "), "{said}");
}
