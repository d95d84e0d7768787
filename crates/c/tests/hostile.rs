//! What C may hand in by mistake: any order of calls, null pointers, directions and
//! lengths that cannot be, clocks that jump, datagrams that nobody sent. Nothing panics
//! (a panic would be answered by `Broken`), memory stays bounded, and whoever goes on
//! gets what is his.
//!
//! `LAGOMETER_C_FUZZ=n` plays as many sequences of calls.

use std::ptr;

use lagometer_c::{
    LagometerKcp, LagometerKcpSettings, LagometerNetwork, Status, lagometer_kcp_check,
    lagometer_kcp_default_settings, lagometer_kcp_free, lagometer_kcp_input, lagometer_kcp_is_dead,
    lagometer_kcp_new, lagometer_kcp_receive, lagometer_kcp_send, lagometer_kcp_take_datagram,
    lagometer_kcp_update, lagometer_kcp_waiting, lagometer_network_free, lagometer_network_new,
    lagometer_network_next_arrival, lagometer_network_receive, lagometer_network_send,
    lagometer_network_waiting, lagometer_version,
};
use proptest::prelude::*;

const BROKEN: i64 = Status::Broken as i64;

/// One call, with arguments that may be anything.
#[derive(Clone, Debug)]
struct Call {
    which: u8,
    direction: u32,
    at: u64,
    bytes: Vec<u8>,
    room_bytes: usize,
    null: bool,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let at = prop_oneof![
        0..10_u64,
        any::<u64>(),
        0..5_000_000_000_u64,
        0..100_000_000_000_000_u64
    ];
    let direction = prop_oneof![4 => 0..2_u32, 1 => any::<u32>()];
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        // The start of a header of this conversation.
        prop::collection::vec(any::<u8>(), 20..60).prop_map(|mut bytes| {
            bytes.splice(..4, 7_u32.to_le_bytes());
            bytes[4] = 81 + bytes[4] % 4;
            bytes
        }),
    ];
    let call = (
        0..9_u8,
        direction,
        at,
        bytes,
        0..3_000_usize,
        prop::bool::weighted(0.1),
    );
    let call = call.prop_map(|(which, direction, at, bytes, room_bytes, null)| Call {
        which,
        direction,
        at,
        bytes,
        room_bytes,
        null,
    });
    prop::collection::vec(call, 1..200)
}

/// Plays a call on both; says what was answered.
fn play(network: *mut LagometerNetwork, kcp: *mut LagometerKcp, call: &Call) -> i64 {
    let mut room = vec![0_u8; call.room_bytes];
    let (room, room_bytes) = if call.null {
        (ptr::null_mut(), call.room_bytes)
    } else {
        (room.as_mut_ptr(), room.len())
    };
    let (bytes, length) = if call.null {
        (ptr::null(), call.bytes.len())
    } else {
        (call.bytes.as_ptr(), call.bytes.len())
    };
    let (mut at_ns, mut due_ms) = (0_u64, 0_u32);
    // SAFETY: both are alive and ours; every pointer is null or of a buffer of that
    // length.
    unsafe {
        match call.which {
            0 => lagometer_network_send(network, call.direction, call.at, bytes, length) as i64,
            1 => lagometer_network_receive(network, call.direction, call.at, room, room_bytes),
            2 if call.null => lagometer_network_next_arrival(network, ptr::null_mut()) as i64,
            2 => lagometer_network_next_arrival(network, &raw mut at_ns) as i64,
            3 => lagometer_network_waiting(network, call.direction),
            4 => lagometer_kcp_send(kcp, bytes, length),
            5 => lagometer_kcp_input(kcp, bytes, length) as i64,
            6 => lagometer_kcp_update(kcp, call.at as u32) as i64,
            7 => lagometer_kcp_take_datagram(kcp, room, room_bytes)
                .max(lagometer_kcp_receive(kcp, room, room_bytes)),
            _ => i64::from(lagometer_kcp_is_dead(kcp))
                .max(lagometer_kcp_waiting(kcp))
                .max(lagometer_kcp_check(kcp, call.at as u32, &raw mut due_ms) as i64),
        }
    }
}

fn settings() -> impl Strategy<Value = LagometerKcpSettings> {
    let wide = || prop_oneof![0..200_u32, any::<u32>()];
    let bytes = (0..4_u8, any::<u8>(), any::<u8>());
    let windows = (any::<u16>(), prop_oneof![Just(128), any::<u16>()]);
    let mtu = prop_oneof![45..60_u32, 500..1_500_u32, 65_500..65_510_u32];
    (bytes, windows, mtu, wide(), wide(), wide(), wide()).prop_map(
        |(bytes, windows, mtu, interval_ms, resend, minimum_rto_ms, dead_link)| {
            LagometerKcpSettings {
                nodelay: bytes.0,
                congestion_control: bytes.1,
                stream: bytes.2,
                interval_ms,
                resend,
                send_window: windows.0,
                receive_window: windows.1,
                mtu,
                minimum_rto_ms,
                dead_link,
            }
        },
    )
}

fn sequences() -> u32 {
    let asked = std::env::var("LAGOMETER_C_FUZZ").ok();
    asked.map_or(400, |count| {
        count.parse().expect("LAGOMETER_C_FUZZ is a number")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sequences()))]

    #[test]
    fn no_call_breaks_anything(calls in calls(), seed: u64, network in 0..3_usize) {
        let names = [c"busy-wifi", c"loss-20", c"4g-moving"];
        // SAFETY: the name ends in a zero byte; null is permitted for the rest.
        let (network, kcp) = unsafe {
            (
                lagometer_network_new(names[network].as_ptr(), seed, 0, ptr::null_mut(), 0),
                lagometer_kcp_new(7, ptr::null(), ptr::null_mut(), 0),
            )
        };
        prop_assert!(!network.is_null() && !kcp.is_null());
        for call in &calls {
            prop_assert_ne!(play(network, kcp, call), BROKEN, "{:?}", call);
        }
        // SAFETY: both are ours, and not used any more.
        unsafe {
            lagometer_network_free(network);
            lagometer_kcp_free(kcp);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sequences()))]

    #[test]
    fn no_settings_or_start_break_anything(
        calls in calls(),
        settings in settings(),
        start_ns: u64,
    ) {
        // SAFETY: the name ends in a zero byte, the settings are alive; null is
        // permitted for the rest.
        let (network, kcp) = unsafe {
            (
                lagometer_network_new(c"loss-20".as_ptr(), 1, start_ns, ptr::null_mut(), 0),
                lagometer_kcp_new(7, &raw const settings, ptr::null_mut(), 0),
            )
        };
        prop_assert!(!network.is_null());
        // Settings out of their range make none, and calls on that are refused.
        for call in &calls {
            prop_assert_ne!(play(network, kcp, call), BROKEN, "{:?}", call);
        }
        // SAFETY: both are ours or null, and not used any more.
        unsafe {
            lagometer_network_free(network);
            lagometer_kcp_free(kcp);
        }
    }

    #[test]
    fn what_is_no_network_is_refused_in_one_line(
        description in "(\\[(both|up|down)(\\.(jitter|bursts))?\\]\n|(delay|loss|rate|mtu) = \"[0-9]{1,3} ?(ms|%|Mbit/s)?\"\n|[^\\x00]{0,5}){0,8}"
    ) {
        let text = std::ffi::CString::new(description).unwrap();
        let mut why = [b'x'; 300];
        // SAFETY: the text ends in a zero byte; the room is the array's.
        let network = unsafe {
            lagometer_network_new(text.as_ptr(), 1, 0, why.as_mut_ptr().cast(), why.len())
        };
        if network.is_null() {
            let why = std::ffi::CStr::from_bytes_until_nul(&why).unwrap();
            let why = why.to_str().unwrap();
            prop_assert!(!why.is_empty() && !why.contains(char::is_control), "{why:?}");
            prop_assert!(!why.starts_with("a defect"), "{why}");
        }
        // SAFETY: it is ours or null.
        unsafe { lagometer_network_free(network) }
    }
}

#[test]
fn nothing_is_done_to_what_is_not_there() {
    let invalid = Status::InvalidArgument as i64;
    let calls = (0..9).map(|which| Call {
        which,
        direction: 0,
        at: 0,
        bytes: vec![1],
        room_bytes: 10,
        null: false,
    });
    for call in calls {
        assert_eq!(
            play(ptr::null_mut(), ptr::null_mut(), &call),
            invalid,
            "{call:?}"
        );
    }
    // SAFETY: null is nothing to free.
    unsafe {
        lagometer_network_free(ptr::null_mut());
        lagometer_kcp_free(ptr::null_mut());
        lagometer_kcp_default_settings(ptr::null_mut());
    }
}

#[test]
fn settings_come_back_as_they_were_given_and_bad_ones_are_refused_in_words() {
    let mut settings = std::mem::MaybeUninit::<LagometerKcpSettings>::uninit();
    let mut why = [0_u8; 80];
    // SAFETY: the settings are written before they are read; the room is the array's.
    unsafe {
        lagometer_kcp_default_settings(settings.as_mut_ptr());
        let mut settings = settings.assume_init();
        assert_eq!(
            (settings.interval_ms, settings.mtu, settings.dead_link),
            (100, 1_400, 20)
        );
        settings.mtu = 7;
        let made = lagometer_kcp_new(1, &raw const settings, why.as_mut_ptr().cast(), why.len());
        assert!(made.is_null());
    }
    let why = std::ffi::CStr::from_bytes_until_nul(&why).unwrap();
    assert_eq!(why.to_str(), Ok("mtu is 7; expected 50 to 65507"));
}

#[test]
fn a_message_crosses_a_bad_network_once_and_whole() {
    // SAFETY: all pointers are of buffers here, everything is freed once at the end.
    unsafe {
        let network = lagometer_network_new(c"loss-20".as_ptr(), 3, 0, ptr::null_mut(), 0);
        let ends = [7, 7].map(|number| lagometer_kcp_new(number, ptr::null(), ptr::null_mut(), 0));
        let message = vec![42_u8; 9_000];
        assert_eq!(
            lagometer_kcp_send(ends[0], message.as_ptr(), message.len()),
            9_000
        );
        let mut room = vec![0_u8; 10_000];
        let mut messages = Vec::new();
        for now_ms in 0..20_000_u32 {
            let now_ns = u64::from(now_ms) * 1_000_000;
            for (end, direction) in [(0, 0), (1, 1_u32)] {
                lagometer_kcp_update(ends[end], now_ms);
                loop {
                    let bytes =
                        lagometer_kcp_take_datagram(ends[end], room.as_mut_ptr(), room.len());
                    let Ok(bytes) = usize::try_from(bytes) else {
                        break;
                    };
                    lagometer_network_send(network, direction, now_ns, room.as_ptr(), bytes);
                }
                loop {
                    let bytes = lagometer_network_receive(
                        network,
                        direction,
                        now_ns,
                        room.as_mut_ptr(),
                        room.len(),
                    );
                    let Ok(bytes) = usize::try_from(bytes) else {
                        break;
                    };
                    assert_eq!(
                        lagometer_kcp_input(ends[1 - end], room.as_ptr(), bytes),
                        Status::Ok
                    );
                }
            }
            // Room for less than there is takes nothing.
            let short = lagometer_kcp_receive(ends[1], room.as_mut_ptr(), 8_999);
            if short == Status::RoomTooSmall as i64 {
                let bytes = lagometer_kcp_receive(ends[1], room.as_mut_ptr(), room.len());
                messages.push(room[..usize::try_from(bytes).unwrap()].to_vec());
            }
        }
        assert_eq!(messages, [message]);
        assert_eq!(lagometer_kcp_waiting(ends[0]), 0);
        assert_eq!(lagometer_kcp_is_dead(ends[0]), 0);
        lagometer_network_free(network);
        for end in ends {
            lagometer_kcp_free(end);
        }
    }
}

#[test]
fn the_version_is_the_packages() {
    let mut version = lagometer_version();
    let patch = version % 1_000;
    version /= 1_000;
    let text = format!("{}.{}.{patch}", version / 1_000, version % 1_000);
    assert_eq!(text, env!("CARGO_PKG_VERSION"));
}
