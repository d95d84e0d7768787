//! The C reference of KCP behind a thin safe wrapper, to compare our engine
//! with, byte for byte. Only tests and benchmarks link it: nothing that ships
//! contains it.
//!
//! The C source (`ikcp.c` by Lin Wei, MIT licence) and its declarations come
//! from the package `kcp-io`, which compiles it without optimisation in debug
//! builds and with `-O2` otherwise. Its signed arithmetic on absurd timestamps
//! overflows; only the unoptimised build is known to wrap there, so the
//! differential test belongs in a debug build.

//!
//! A source of another year is played from a shared library of it, which whoever
//! has one names: [`Reference::load_2015`].

pub mod dice;
mod reference;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use kcp_io::sys::IKCPCB;

pub use reference::{CannotLoad, Reference};

/// One end of a connection, run by the C reference.
///
/// Return codes are the reference's own: zero or more is success, less than
/// zero is one of its errors.
#[derive(Debug)]
pub struct Oracle {
    /// Of the current source. The block of 2015 is shorter and the same up to
    /// `fastresend`, so that no Rust reference to the whole is ever made.
    block: NonNull<IKCPCB>,
    reference: Reference,
}

/// A field of the block that every reference has in the same place.
macro_rules! field {
    ($oracle:expr, $name:ident) => {
        // SAFETY: the block lives as long as the oracle, nobody else has it, and
        // the field lies as in C, which a test checks.
        unsafe { (*$oracle.block.as_ptr()).$name }
    };
    ($oracle:expr, $name:ident = $value:expr) => {{
        let value = $value;
        // SAFETY: as above.
        unsafe { (*$oracle.block.as_ptr()).$name = value }
    }};
}

/// What the C code calls for each datagram, as long as a [`with_output`] lasts.
struct Output<'a>(&'a mut dyn FnMut(&[u8]));

impl Oracle {
    /// `ikcp_create` of the current reference.
    ///
    /// # Panics
    ///
    /// When the C code has no memory.
    #[must_use]
    pub fn new(conversation: u32) -> Self {
        Self::of(Reference::current(), conversation)
    }

    /// `ikcp_create` of any reference.
    ///
    /// # Panics
    ///
    /// When the C code has no memory.
    #[must_use]
    pub fn of(reference: Reference, conversation: u32) -> Self {
        // SAFETY: the call takes no pointer that it follows.
        let block = unsafe { (reference.create)(conversation, std::ptr::null_mut()) };
        let block = NonNull::new(block).expect("ikcp_create has memory");
        // SAFETY: the block is fresh and ours, and of this reference.
        unsafe { (reference.set_output)(block.as_ptr(), emit) };
        Self { block, reference }
    }

    /// `ikcp_nodelay`.
    pub fn nodelay(&mut self, nodelay: i32, interval: i32, resend: i32, nc: i32) {
        // SAFETY: the block lives as long as `self`.
        unsafe { (self.reference.nodelay)(self.block.as_ptr(), nodelay, interval, resend, nc) };
    }

    /// `ikcp_wndsize`.
    pub fn wndsize(&mut self, send: i32, receive: i32) {
        // SAFETY: the block lives as long as `self`.
        unsafe { (self.reference.wndsize)(self.block.as_ptr(), send, receive) };
    }

    /// `ikcp_setmtu`. Returns its code.
    pub fn setmtu(&mut self, mtu: i32) -> i32 {
        // SAFETY: the block lives as long as `self`.
        unsafe { (self.reference.setmtu)(self.block.as_ptr(), mtu) }
    }

    /// Sets `rx_minrto`, for which the reference has no function.
    pub fn set_minrto(&mut self, millis: i32) {
        field!(self, rx_minrto = millis);
    }

    /// Sets `fastlimit`, for which the reference has no function. 2015 had none.
    pub fn set_fastlimit(&mut self, limit: i32) {
        if self.reference.of_2015 {
            return;
        }
        field!(self, fastlimit = limit);
    }

    /// Sets `dead_link`, for which the reference has no function.
    pub fn set_dead_link(&mut self, transmissions: u32) {
        field!(self, dead_link = transmissions);
    }

    /// Sets `stream`, for which the reference has no function.
    ///
    /// # Panics
    ///
    /// When a stream is asked of 2015's, which had none.
    pub fn set_stream(&mut self, stream: bool) {
        if self.reference.of_2015 {
            assert!(!stream, "KCP had no streams in 2015");
            return;
        }
        field!(self, stream = i32::from(stream));
    }

    /// Sets `current`, as applications do before they hand in a datagram.
    pub fn set_current(&mut self, now: u32) {
        field!(self, current = now);
    }

    /// Sets the first numbers that are sent and expected, as if as many
    /// segments had gone before. Only for a block that is still fresh.
    pub fn set_first_sequence(&mut self, sequence: u32) {
        field!(self, snd_una = sequence);
        field!(self, snd_nxt = sequence);
        field!(self, rcv_nxt = sequence);
    }

    /// `ikcp_send`. Returns its code: the bytes taken, or 0 where all were in 2015.
    pub fn send(&mut self, bytes: &[u8]) -> i32 {
        let length = i32::try_from(bytes.len()).unwrap_or(-1);
        // SAFETY: the block lives as long as `self`; the C code reads
        // `length` bytes and copies them.
        unsafe { (self.reference.send)(self.block.as_ptr(), bytes.as_ptr().cast(), length) }
    }

    /// `ikcp_recv` into all of `room`. Returns its code.
    pub fn recv(&mut self, room: &mut [u8]) -> i32 {
        let length = i32::try_from(room.len()).unwrap_or(i32::MAX);
        // SAFETY: the block lives as long as `self`; the C code writes at
        // most `length` bytes.
        unsafe { (self.reference.recv)(self.block.as_ptr(), room.as_mut_ptr().cast(), length) }
    }

    /// `ikcp_peeksize`.
    #[must_use]
    pub fn peeksize(&self) -> i32 {
        // SAFETY: the block lives as long as `self`.
        unsafe { (self.reference.peeksize)(self.block.as_ptr()) }
    }

    /// `ikcp_input`. Returns its code.
    pub fn input(&mut self, datagram: &[u8]) -> i32 {
        // SAFETY: the block lives as long as `self`; the C code reads at most
        // as many bytes as it is asked for.
        unsafe {
            (self.reference.input)(
                self.block.as_ptr(),
                datagram.as_ptr().cast(),
                datagram.len().cast_signed() as std::ffi::c_long,
            )
        }
    }

    /// `ikcp_update`.
    pub fn update(&mut self, now: u32, mut output: impl FnMut(&[u8])) {
        let update = self.reference.update;
        self.with_output(&mut output, |block| {
            // SAFETY: the block lives as long as `self`, and its `user` as
            // long as the call.
            unsafe { (update)(block, now) }
        });
    }

    /// `ikcp_flush`.
    pub fn flush(&mut self, mut output: impl FnMut(&[u8])) {
        let flush = self.reference.flush;
        self.with_output(&mut output, |block| {
            // SAFETY: the block lives as long as `self`, and its `user` as
            // long as the call.
            unsafe { (flush)(block) }
        });
    }

    /// `ikcp_check`.
    #[must_use]
    pub fn check(&self, now: u32) -> u32 {
        // SAFETY: the block lives as long as `self`.
        unsafe { (self.reference.check)(self.block.as_ptr(), now) }
    }

    /// `ikcp_waitsnd`.
    #[must_use]
    pub fn waitsnd(&self) -> i32 {
        // SAFETY: the block lives as long as `self`.
        unsafe { (self.reference.waitsnd)(self.block.as_ptr()) }
    }

    /// `state`: 0, or -1 (as unsigned) once the link counts as dead.
    #[must_use]
    pub fn state(&self) -> u32 {
        field!(self, state)
    }

    /// `rx_srtt` and `rx_rto`, in milliseconds.
    #[must_use]
    pub fn round_trip(&self) -> (i32, i32) {
        (field!(self, rx_srtt), field!(self, rx_rto))
    }

    /// `cwnd`, `ssthresh` and `incr`.
    #[must_use]
    pub fn congestion(&self) -> (u32, u32, u32) {
        (
            field!(self, cwnd),
            field!(self, ssthresh),
            field!(self, incr),
        )
    }

    /// `interval`, in milliseconds: what was asked for, or the floor under it.
    #[must_use]
    pub fn interval(&self) -> u32 {
        field!(self, interval)
    }

    fn with_output(&mut self, output: &mut dyn FnMut(&[u8]), call: impl FnOnce(*mut IKCPCB)) {
        let mut output = Output(output);
        field!(self, user = (&raw mut output).cast::<c_void>());
        call(self.block.as_ptr());
        field!(self, user = std::ptr::null_mut());
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // SAFETY: the block came from `ikcp_create` and is released once.
        unsafe { (self.reference.release)(self.block.as_ptr()) };
    }
}

// SAFETY: the C code has no state outside the block but its allocator hooks,
// which nobody sets, and the block belongs to this value alone.
unsafe impl Send for Oracle {}

/// The reference's output callback.
///
/// # Safety
///
/// `bytes` must be `length` readable bytes, and `user` null or the `Output`
/// of a `with_output` that is running.
unsafe extern "C" fn emit(
    bytes: *const c_char,
    length: c_int,
    _: *mut IKCPCB,
    user: *mut c_void,
) -> c_int {
    let (Ok(count), Some(mut output)) = (
        usize::try_from(length),
        NonNull::new(user.cast::<Output<'_>>()),
    ) else {
        return -1;
    };
    // SAFETY: the C code hands out `length` bytes of its buffer, and `user`
    // points to the `Output` that `with_output` keeps on its stack during the
    // call that got us here.
    unsafe { (output.as_mut().0)(std::slice::from_raw_parts(bytes.cast(), count)) };
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_laid_out_as_in_c() {
        let mut oracle = Oracle::new(7);
        assert_eq!(oracle.round_trip(), (0, 200));
        assert_eq!(oracle.congestion(), (0, 2, 0));
        assert_eq!(field!(oracle, fastlimit), 5);
        assert_eq!(field!(oracle, dead_link), 20);
        oracle.nodelay(1, 20, 3, 1);
        assert_eq!(
            (field!(oracle, rx_minrto), field!(oracle, interval)),
            (30, 20)
        );
        assert_eq!((field!(oracle, fastresend), field!(oracle, nocwnd)), (3, 1));
    }

    #[test]
    fn a_message_crosses() {
        let (mut here, mut there) = (Oracle::new(7), Oracle::new(7));
        assert_eq!(here.send(b"hello"), 5);
        here.nodelay(0, 10, 0, 1);
        let mut wire = Vec::new();
        here.update(0, |datagram| wire.push(datagram.to_vec()));
        assert_eq!(wire.len(), 1);
        assert_eq!(there.input(&wire[0]), 0);
        let mut room = [0; 16];
        assert_eq!(there.recv(&mut room), 5);
        assert_eq!(&room[..5], b"hello");
    }
}
