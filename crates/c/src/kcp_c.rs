//! A KCP endpoint for C: made, fed with datagrams and time, asked for both, and freed.
//!
//! There are no callbacks: what is to be sent is taken out, one datagram after the
//! other, so that nothing of the program's runs inside the library.

use std::ffi::c_char;
use std::panic::catch_unwind;
use std::ptr;

use lagometer_kcp::Config;

use crate::boundary::{Held, Status, bytes, explain, free, hand_over, with};
use crate::conversation::{Conversation, check};

/// One end of a KCP conversation. C holds it by a pointer alone.
#[derive(Debug)]
pub struct LagometerKcp {
    _opaque: [u8; 0],
}

/// How a conversation behaves; `lagometer_kcp_default_settings` fills in what the
/// reference's `ikcp_create` sets. Both ends should have the same.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LagometerKcpSettings {
    /// 0, 1 or 2, as `ikcp_nodelay` has it: how long a first acknowledgement is waited
    /// for, and how fast the timeout grows.
    pub nodelay: u8,
    /// Whether the congestion window limits sending: 0, or 1 and anything else.
    pub congestion_control: u8,
    /// Whether messages are one stream of bytes without borders: 0, or 1 and anything
    /// else.
    pub stream: u8,
    /// Milliseconds between flushes; 10 to 5000.
    pub interval_ms: u32,
    /// Skips after which a segment is sent again before its timeout; 0: never.
    pub resend: u32,
    /// Segments that may be in flight; 1 or more.
    pub send_window: u16,
    /// Segments kept for the application and for reassembly; 128 or more.
    pub receive_window: u16,
    /// The largest datagram, in bytes; 50 to 65507.
    pub mtu: u32,
    /// The least timeout in milliseconds, at most 60000; 0: 100 without `nodelay`, 30
    /// with it.
    pub minimum_rto_ms: u32,
    /// Transmissions of one segment after which the conversation is dead; 0: never.
    pub dead_link: u32,
}

impl LagometerKcpSettings {
    fn of(config: &Config) -> Self {
        Self {
            nodelay: config.nodelay,
            congestion_control: u8::from(config.congestion_control),
            stream: u8::from(config.stream),
            interval_ms: config.interval_ms,
            resend: config.resend,
            send_window: config.send_window,
            receive_window: config.receive_window,
            mtu: config.mtu as u32,
            minimum_rto_ms: config.minimum_rto_ms.unwrap_or(0),
            dead_link: config.dead_link,
        }
    }

    fn config(self) -> Config {
        Config {
            nodelay: self.nodelay,
            interval_ms: self.interval_ms,
            resend: self.resend,
            congestion_control: self.congestion_control != 0,
            send_window: self.send_window,
            receive_window: self.receive_window,
            mtu: self.mtu as usize,
            minimum_rto_ms: (self.minimum_rto_ms != 0).then_some(self.minimum_rto_ms),
            stream: self.stream != 0,
            dead_link: self.dead_link,
            ..Config::default()
        }
    }
}

/// Fills in the settings that `ikcp_create` of the reference sets; null is left alone.
///
/// # Safety
///
/// `settings` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_default_settings(settings: *mut LagometerKcpSettings) {
    if !settings.is_null() {
        // SAFETY: by this function's contract; what was there need not be initialised.
        unsafe { settings.write(LagometerKcpSettings::of(&Config::default())) };
    }
}

/// Makes one end of the conversation so numbered; the other end must have the same
/// number. `settings` may be null: the reference's. Null where a setting is out of its
/// range: `why` then says which on one line, cut to `why_bytes`; it may be null.
///
/// # Safety
///
/// `settings` is null or can be read, all of it initialised; `why` is null or has room
/// for `why_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_new(
    conversation: u32,
    settings: *const LagometerKcpSettings,
    why: *mut c_char,
    why_bytes: usize,
) -> *mut LagometerKcp {
    // SAFETY: by this function's contract.
    let config = unsafe { settings.as_ref() }.map_or_else(Config::default, |it| it.config());
    let refused = match check(&config) {
        Ok(()) => match catch_unwind(|| Conversation::new(conversation, &config)) {
            Ok(made) => return Held::give(made).cast(),
            Err(_) => "a defect of the library: please report the settings".to_owned(),
        },
        Err(out_of_range) => out_of_range.to_string(),
    };
    // SAFETY: by this function's contract.
    unsafe { explain(&refused, why, why_bytes) };
    ptr::null_mut()
}

/// Ends a conversation; null is nothing to end.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new` and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_free(kcp: *mut LagometerKcp) {
    // SAFETY: by this function's contract.
    unsafe { free(kcp.cast::<Held<Conversation>>()) }
}

/// Queues a message, or bytes of a stream, for the next flush, and answers how many
/// bytes were taken: all; or, where the rest of a stream's would be 128 segments or more,
/// those that filled up the last one that waits; or a negative status,
/// `LAGOMETER_STATUS_TOO_LARGE` where there are none. How much waits,
/// `lagometer_kcp_waiting` says: a program stops sending where the peer does not keep
/// up.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
/// now; `message` is null or can be read for `message_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_send(
    kcp: *mut LagometerKcp,
    message: *const u8,
    message_bytes: usize,
) -> i64 {
    // SAFETY: by this function's contract.
    let Some(message) = (unsafe { bytes(message, message_bytes) }) else {
        return Status::InvalidArgument.as_length();
    };
    let send = |kcp: &mut Conversation| {
        let taken = kcp.send(message);
        taken.map_or(Status::TooLarge.as_length(), |bytes| bytes as i64)
    };
    // SAFETY: by this function's contract.
    unsafe { with(kcp.cast(), Status::as_length, send) }
}

/// Takes in a datagram that came from the peer.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
/// now; `datagram` is null or can be read for `datagram_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_input(
    kcp: *mut LagometerKcp,
    datagram: *const u8,
    datagram_bytes: usize,
) -> Status {
    // SAFETY: by this function's contract.
    let Some(datagram) = (unsafe { bytes(datagram, datagram_bytes) }) else {
        return Status::InvalidArgument;
    };
    let input = |kcp: &mut Conversation| match kcp.input(datagram) {
        Ok(()) => Status::Ok,
        Err(_) => Status::BadDatagram,
    };
    // SAFETY: by this function's contract.
    unsafe { with(kcp.cast(), |status| status, input) }
}

/// Sets the clock, which may wrap, and makes the datagrams that are due by it: they are
/// taken out by `lagometer_kcp_take_datagram`.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
/// now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_update(kcp: *mut LagometerKcp, now_ms: u32) -> Status {
    let update = |kcp: &mut Conversation| {
        kcp.update(now_ms);
        Status::Ok
    };
    // SAFETY: by this function's contract.
    unsafe { with(kcp.cast(), |status| status, update) }
}

/// Writes to `due_ms` when, on the program's clock, `lagometer_kcp_update` has
/// something to do next.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
/// now; `due_ms` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_check(
    kcp: *mut LagometerKcp,
    now_ms: u32,
    due_ms: *mut u32,
) -> Status {
    let look = |kcp: &mut Conversation| {
        // SAFETY: by this function's contract it is null or can be written.
        let Some(room) = (unsafe { due_ms.as_mut() }) else {
            return Status::InvalidArgument;
        };
        *room = kcp.check(now_ms);
        Status::Ok
    };
    // SAFETY: by this function's contract.
    unsafe { with(kcp.cast(), |status| status, look) }
}

/// Takes out the next datagram to be sent, and answers its length, or a negative
/// status: `LAGOMETER_STATUS_NOTHING` when there is none, `LAGOMETER_STATUS_ROOM_TOO_SMALL` when it is
/// longer than `room_bytes` (it stays). The `mtu` of the settings is room for any.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
/// now; `room` is null or can be written for `room_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_take_datagram(
    kcp: *mut LagometerKcp,
    room: *mut u8,
    room_bytes: usize,
) -> i64 {
    let take = |kcp: &mut Conversation| {
        let Some(datagram) = kcp.outgoing() else {
            return Status::Nothing.as_length();
        };
        // SAFETY: by this function's contract.
        match unsafe { hand_over(datagram, room, room_bytes) } {
            Ok(length) => {
                kcp.sent();
                length
            }
            Err(refused) => refused.as_length(),
        }
    };
    // SAFETY: by this function's contract.
    unsafe { with(kcp.cast(), Status::as_length, take) }
}

/// Takes out the next message, or the next bytes of a stream, and answers its length,
/// or a negative status as `lagometer_kcp_take_datagram` does.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
/// now; `room` is null or can be written for `room_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_receive(
    kcp: *mut LagometerKcp,
    room: *mut u8,
    room_bytes: usize,
) -> i64 {
    let receive = |kcp: &mut Conversation| {
        let Some(message) = kcp.message() else {
            return Status::Nothing.as_length();
        };
        // SAFETY: by this function's contract.
        match unsafe { hand_over(message, room, room_bytes) } {
            Ok(length) => {
                kcp.taken();
                length
            }
            Err(refused) => refused.as_length(),
        }
    };
    // SAFETY: by this function's contract.
    unsafe { with(kcp.cast(), Status::as_length, receive) }
}

/// How many segments wait to be sent or acknowledged; or a negative status.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
/// now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_waiting(kcp: *mut LagometerKcp) -> i64 {
    // SAFETY: by this function's contract.
    unsafe {
        with(kcp.cast(), Status::as_length, |kcp: &mut Conversation| {
            kcp.waiting() as i64
        })
    }
}

/// Whether a segment was sent as often as `dead_link` allows: 1 or 0; or a negative
/// status.
///
/// # Safety
///
/// `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
/// now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_kcp_is_dead(kcp: *mut LagometerKcp) -> i32 {
    // SAFETY: by this function's contract.
    unsafe {
        with(
            kcp.cast(),
            |status| status as i32,
            |kcp: &mut Conversation| i32::from(kcp.is_dead()),
        )
    }
}
