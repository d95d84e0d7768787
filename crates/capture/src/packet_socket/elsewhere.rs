//! Systems without packet sockets.

use std::convert::Infallible;
use std::io;

use lagometer_platform::Waker;

use super::KernelPacket;
use crate::Conversation;

/// None is ever made.
pub(super) struct Socket(Infallible);

pub(super) fn probe() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Socket {
    pub(super) fn open(_: Conversation) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn drain(&mut self, _: &mut impl FnMut(KernelPacket<'_>)) {
        match self.0 {}
    }

    pub(super) fn wait(&mut self, _: &Waker) {
        match self.0 {}
    }

    pub(super) fn lost(&self) -> u64 {
        match self.0 {}
    }
}
