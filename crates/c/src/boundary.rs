//! What comes from C made safe, and panics caught: every function that C calls goes
//! through here.

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use lagometer_link::Direction;

/// What a function answers where it does not answer a length: 0 or more is success.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done; of a datagram that was sent: it arrives, once or twice.
    Ok = 0,
    /// The datagram was lost on the way; a sender on a real network is not notified.
    Lost = 1,
    /// There is nothing: no datagram is due, no message is whole.
    Nothing = -1,
    /// An argument cannot be: a null pointer, a direction that is neither up nor down,
    /// a length beyond what there can be. Nothing was done.
    InvalidArgument = -2,
    /// The memory that was given is too small for what there is. Nothing was taken.
    RoomTooSmall = -3,
    /// The datagram is larger than the path takes (`EMSGSIZE` of a socket), or the
    /// message has more segments than KCP takes.
    TooLarge = -4,
    /// More is on its way already than is kept. Nothing was taken.
    NoRoom = -5,
    /// The datagram is none of this conversation. What came before in it was taken.
    BadDatagram = -6,
    /// A defect of this library was met earlier: whatever this is about does nothing
    /// any more, and is to be freed.
    Broken = -7,
}

impl Status {
    /// As a length is answered: negative.
    pub(crate) const fn as_length(self) -> i64 {
        self as i64
    }
}

/// The version of the library: major × 1,000,000 + minor × 1,000 + patch.
#[unsafe(no_mangle)]
pub extern "C" fn lagometer_version() -> u32 {
    const fn number(text: &str) -> u32 {
        let (bytes, mut at, mut value) = (text.as_bytes(), 0, 0);
        while at < bytes.len() {
            value = value * 10 + (bytes[at] - b'0') as u32;
            at += 1;
        }
        value
    }
    const MAJOR: u32 = number(env!("CARGO_PKG_VERSION_MAJOR"));
    const MINOR: u32 = number(env!("CARGO_PKG_VERSION_MINOR"));
    const PATCH: u32 = number(env!("CARGO_PKG_VERSION_PATCH"));
    MAJOR * 1_000_000 + MINOR * 1_000 + PATCH
}

/// A thing that C holds by a pointer.
#[derive(Debug)]
pub(crate) struct Held<T> {
    inner: T,
    broken: bool,
}

impl<T> Held<T> {
    /// For C to hold until it is [`freed`](free).
    pub(crate) fn give(inner: T) -> *mut Self {
        let held = Self {
            inner,
            broken: false,
        };
        Box::into_raw(Box::new(held))
    }
}

/// Ends what [`Held::give`] gave; a null pointer is nothing to free.
///
/// # Safety
///
/// `held` is null, or of `give` and not freed yet.
pub(crate) unsafe fn free<T>(held: *mut Held<T>) {
    if !held.is_null() {
        // SAFETY: by the function's contract it came from `Box::into_raw`.
        let held = unsafe { Box::from_raw(held) };
        let _ = catch_unwind(AssertUnwindSafe(move || drop(held)));
    }
}

/// Has `act` do its work on what C holds.
///
/// # Safety
///
/// `held` is null, or of [`Held::give`], not freed, and used by nobody else now.
pub(crate) unsafe fn with<T, R>(
    held: *mut Held<T>,
    refuse: impl FnOnce(Status) -> R,
    act: impl FnOnce(&mut T) -> R,
) -> R {
    // SAFETY: by the function's contract it points to a `Held` that is ours alone now.
    let Some(held) = (unsafe { held.as_mut() }) else {
        return refuse(Status::InvalidArgument);
    };
    if held.broken {
        return refuse(Status::Broken);
    }
    if let Ok(answer) = catch_unwind(AssertUnwindSafe(|| act(&mut held.inner))) {
        return answer;
    }
    held.broken = true;
    refuse(Status::Broken)
}

/// The bytes that C points to; none may be a null pointer.
///
/// # Safety
///
/// `bytes` is null, or so many bytes can be read there for `'a`.
pub(crate) unsafe fn bytes<'a>(bytes: *const u8, length: usize) -> Option<&'a [u8]> {
    if length == 0 {
        return Some(&[]);
    }
    if bytes.is_null() || length > isize::MAX as usize {
        return None;
    }
    // SAFETY: by the function's contract; the length was held against the limit.
    Some(unsafe { std::slice::from_raw_parts(bytes, length) })
}

/// The text that C points to, if it is UTF-8.
///
/// # Safety
///
/// `text` is null, or ends in a zero byte and can be read for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by the function's contract.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Copies what there is into the memory that C gave for it, and says its length.
///
/// # Safety
///
/// `room` is null, or so many bytes can be written there.
pub(crate) unsafe fn hand_over(
    from: &[u8],
    room: *mut u8,
    room_bytes: usize,
) -> Result<i64, Status> {
    if from.len() > room_bytes {
        return Err(Status::RoomTooSmall);
    }
    if from.is_empty() {
        return Ok(0);
    }
    if room.is_null() {
        return Err(Status::InvalidArgument);
    }
    // SAFETY: by the function's contract there is room for `room_bytes`, which are no
    // fewer; memory of C's is not ours, so the two do not overlap.
    unsafe { ptr::copy_nonoverlapping(from.as_ptr(), room, from.len()) };
    Ok(from.len() as i64)
}

/// Writes why something was refused, cut to the memory that C gave for it and ended by
/// a zero byte. It is one line to its end, whatever a description put into it.
///
/// # Safety
///
/// `room` is null, or so many bytes can be written there.
pub(crate) unsafe fn explain(why: &str, room: *mut c_char, room_bytes: usize) {
    if room.is_null() || room_bytes == 0 {
        return;
    }
    let why = why.replace(char::is_control, " ");
    let mut length = why.len().min(room_bytes - 1);
    while !why.is_char_boundary(length) {
        length -= 1;
    }
    // SAFETY: by the function's contract; the length leaves room for the zero byte.
    unsafe {
        ptr::copy_nonoverlapping(why.as_ptr(), room.cast(), length);
        room.add(length).write(0);
    }
}

/// The direction of that number.
pub(crate) const fn direction(number: u32) -> Option<Direction> {
    match number {
        0 => Some(Direction::Up),
        1 => Some(Direction::Down),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_stays_inside_and_what_it_was_about_answers_broken() {
        let held = Held::give(1_u32);
        let refuse = |status: Status| status;
        // SAFETY: `held` is ours, and freed at the end.
        let (first, second) = unsafe {
            (
                with(held, refuse, |_| panic!("a defect")),
                with(held, refuse, |_| Status::Ok),
            )
        };
        assert_eq!((first, second), (Status::Broken, Status::Broken));
        // SAFETY: as above.
        unsafe { free(held) };
    }

    #[test]
    fn what_is_too_long_for_its_room_is_cut_between_characters() {
        let mut room = [1_u8; 4];
        // SAFETY: the length is the array's.
        unsafe { explain("ab\u{e9}d", room.as_mut_ptr().cast(), room.len()) };
        assert_eq!(room, *b"ab\0\x01");
        // SAFETY: the length is the array's.
        unsafe { explain("\0\r", room.as_mut_ptr().cast(), room.len()) };
        assert_eq!(room, *b"  \0\x01");
        // SAFETY: nothing is written.
        unsafe { explain("ab", ptr::null_mut(), 10) };
    }
}
