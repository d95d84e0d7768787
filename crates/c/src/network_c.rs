//! Networks for C: made by name or from TOML, sent through, and freed by their handle.

use std::ffi::c_char;
use std::panic::catch_unwind;
use std::ptr;

use lagometer_units::Time;

use crate::boundary::{Held, Status, bytes, direction, explain, free, hand_over, text, with};
use crate::network::{Network, Sent};

/// A seeded network between a player, who sends up, and a server, who sends down, with
/// the datagrams on their way. C holds it by a pointer alone.
#[derive(Debug)]
pub struct LagometerNetwork {
    _opaque: [u8; 0],
}

/// Makes the network that `description` names, such as `busy-wifi`, or describes in
/// TOML, with the dice of `seed`. It begins at `start_ns` of the program's clock and
/// lasts 30 days: an instant before is taken as its begin, one after its end is refused.
/// Null where there is no such network: `why` then says why on one line, cut to
/// `why_bytes`; it may be null.
///
/// # Safety
///
/// `description` is null or ends in a zero byte; `why` is null or has room for
/// `why_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_network_new(
    description: *const c_char,
    seed: u64,
    start_ns: u64,
    why: *mut c_char,
    why_bytes: usize,
) -> *mut LagometerNetwork {
    // SAFETY: by this function's contract.
    let refused = match unsafe { text(description) } {
        None => "the description is no text in UTF-8: give the name of a network".to_owned(),
        Some(description) => {
            let made = catch_unwind(|| Network::new(description, seed, Time::from_nanos(start_ns)));
            match made {
                Ok(Ok(network)) => return Held::give(network).cast(),
                Ok(Err(refused)) => refused.to_string(),
                Err(_) => "a defect of the library: please report the description".to_owned(),
            }
        }
    };
    // SAFETY: by this function's contract.
    unsafe { explain(&refused, why, why_bytes) };
    ptr::null_mut()
}

/// Ends a network and what is on its way; null is nothing to end.
///
/// # Safety
///
/// `network` is null, or of `lagometer_network_new` and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_network_free(network: *mut LagometerNetwork) {
    // SAFETY: by this function's contract.
    unsafe { free(network.cast::<Held<Network>>()) }
}

/// Puts a datagram on the network at `now_ns`, upwards (0) or downwards (1); headers of
/// UDP and IPv4 are counted with it. `LAGOMETER_STATUS_OK` if it arrives, `LAGOMETER_STATUS_LOST` if it
/// does not, which a game on a real network is not notified.
///
/// # Safety
///
/// `network` is null, or of `lagometer_network_new`, not freed, and used by no other
/// thread now; `datagram` is null or can be read for `datagram_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_network_send(
    network: *mut LagometerNetwork,
    direction_number: u32,
    now_ns: u64,
    datagram: *const u8,
    datagram_bytes: usize,
) -> Status {
    // SAFETY: by this function's contract.
    let datagram = unsafe { bytes(datagram, datagram_bytes) };
    let (Some(direction), Some(datagram)) = (direction(direction_number), datagram) else {
        return Status::InvalidArgument;
    };
    let send =
        |network: &mut Network| match network.send(direction, Time::from_nanos(now_ns), datagram) {
            Sent::OnItsWay => Status::Ok,
            Sent::Lost => Status::Lost,
            Sent::TooLarge => Status::TooLarge,
            Sent::NoRoom => Status::NoRoom,
            Sent::Ended => Status::InvalidArgument,
        };
    // SAFETY: by this function's contract.
    unsafe { with(network.cast(), |status| status, send) }
}

/// Takes out the next datagram that has come in that direction by `now_ns`, and answers
/// its length, or a negative status: `LAGOMETER_STATUS_NOTHING` when none is due,
/// `LAGOMETER_STATUS_ROOM_TOO_SMALL` when it is longer than `room_bytes` (it stays). 65,507 bytes
/// are room for any.
///
/// # Safety
///
/// `network` is null, or of `lagometer_network_new`, not freed, and used by no other
/// thread now; `room` is null or can be written for `room_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_network_receive(
    network: *mut LagometerNetwork,
    direction_number: u32,
    now_ns: u64,
    room: *mut u8,
    room_bytes: usize,
) -> i64 {
    let Some(direction) = direction(direction_number) else {
        return Status::InvalidArgument.as_length();
    };
    let receive = |network: &mut Network| {
        let Some(datagram) = network.due(direction, Time::from_nanos(now_ns)) else {
            return Status::Nothing.as_length();
        };
        // SAFETY: by this function's contract.
        match unsafe { hand_over(datagram, room, room_bytes) } {
            Ok(length) => {
                network.take(direction);
                length
            }
            Err(refused) => refused.as_length(),
        }
    };
    // SAFETY: by this function's contract.
    unsafe { with(network.cast(), Status::as_length, receive) }
}

/// Writes to `at_ns` when the next datagram of any direction arrives: until then there
/// is nothing to receive. `LAGOMETER_STATUS_NOTHING` when none is on its way.
///
/// # Safety
///
/// `network` is null, or of `lagometer_network_new`, not freed, and used by no other
/// thread now; `at_ns` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_network_next_arrival(
    network: *mut LagometerNetwork,
    at_ns: *mut u64,
) -> Status {
    let look = |network: &mut Network| {
        let Some(at) = network.next_arrival() else {
            return Status::Nothing;
        };
        // SAFETY: by this function's contract it is null or can be written.
        match unsafe { at_ns.as_mut() } {
            Some(room) => {
                *room = at.as_nanos();
                Status::Ok
            }
            None => Status::InvalidArgument,
        }
    };
    // SAFETY: by this function's contract.
    unsafe { with(network.cast(), |status| status, look) }
}

/// How many datagrams are on their way in that direction, copies included; or a
/// negative status.
///
/// # Safety
///
/// `network` is null, or of `lagometer_network_new`, not freed, and used by no other
/// thread now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lagometer_network_waiting(
    network: *mut LagometerNetwork,
    direction_number: u32,
) -> i64 {
    let Some(direction) = direction(direction_number) else {
        return Status::InvalidArgument.as_length();
    };
    // SAFETY: by this function's contract.
    unsafe {
        with(
            network.cast(),
            Status::as_length,
            |network: &mut Network| network.waiting(direction) as i64,
        )
    }
}
