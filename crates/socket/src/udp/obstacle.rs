//! What keeps a datagram from leaving, or from coming in.

/// What an error of the system means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(
        dead_code,
        reason = "offloads are Linux's, and what keeps them from working"
    )
)]
pub(super) enum Obstacle {
    /// The kernel's buffers are full, or empty.
    Full,
    /// A signal came.
    Again,
    /// The peer, or the way to it, is not there.
    Unreachable,
    /// Too long for the path.
    TooLong,
    /// Something in the request does not fit.
    Invalid,
    /// The device cannot do its part of an offload.
    NoOffload,
    /// The kernel, or what guards it, lacks the call.
    NoSuchCall,
    /// None of these.
    Failure,
}
