//! The kernel's own TCP on other systems than Linux: none of it is a lane, for no
//! program can choose its congestion control there.

use std::io;
use std::net::TcpStream;

use lagometer_transport::Spec;
use rustix::fd::AsFd;

use crate::spec::SocketSpec;
use crate::transport::Unavailable;

/// None: see above.
pub(crate) const fn in_kernel(_: &Spec) -> Option<SocketSpec> {
    None
}

/// Does nothing: a reader of `stream` is woken for whatever has come.
///
/// # Errors
///
/// None; Linux has some.
pub const fn gather(_: &impl AsFd, _: usize) -> io::Result<()> {
    Ok(())
}

/// Always `None`: only Linux reports the congestion control.
#[must_use]
pub const fn congestion(_: &TcpStream) -> Option<String> {
    None
}

/// Never asked here: no lane of this system's TCP is there to ask.
///
/// # Errors
///
/// None; Linux has some.
pub const fn machine_asks_for_ecn() -> Result<(), Unavailable> {
    Ok(())
}

/// No program can choose it.
///
/// # Errors
///
/// [`io::ErrorKind::Unsupported`], with what to do.
pub fn set_congestion(_: &TcpStream, _: &str) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only Linux lets a program choose; leave it out for the system's own",
    ))
}
