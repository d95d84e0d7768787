//! What is reported to an application: whether there is room to write, and since when; which error
//! ended the connection; `TCP_INFO`.

use lagometer_tcp::{CloseReason, Connection, Event};

use super::{Difference, Replay, TOLERANCE_NS, first_difference, of_connection};

/// Error numbers of Linux.
const EPIPE: u32 = 32;
const ECONNRESET: u32 = 104;
const ETIMEDOUT: u32 = 110;
const ECONNREFUSED: u32 = 111;

/// What the end of ours has reported.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// A write found too little room, and was not tried again yet.
    is_blocked: bool,
    /// When it reported that there is room since, in nanoseconds of the guest's clock. There may
    /// be for an instant alone: what leaves with it may need a buffer more.
    writable_at: Option<u64>,
    /// The peer had ended its stream, and the application here had not.
    is_half_closed: bool,
    has_finished: bool,
}

impl Reported {
    /// Takes what the connection has to report at this time.
    pub(super) fn collect(&mut self, connection: &mut Connection, at: u64) {
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Writable => self.writable_at = self.writable_at.or(Some(at)),
                Event::PeerFinished => self.is_half_closed = !self.has_finished,
                _ => {}
            }
        }
    }

    pub(super) const fn finish(&mut self) {
        self.has_finished = true;
        self.is_half_closed = false;
    }

    /// The kernel's application writes at this time. If it waited for room, room is reported to
    /// it just now.
    pub(super) fn check_writable(
        &mut self,
        connection: &mut Connection,
        at: u64,
    ) -> Result<(), String> {
        if !self.is_blocked {
            return Ok(());
        }
        if !connection.poll_writable() {
            return Err("there is no room yet".to_owned());
        }
        match self.writable_at {
            Some(reported) if at.abs_diff(reported) > TOLERANCE_NS => {
                Err(format!("room was reported at {reported}"))
            }
            _ => Ok(()),
        }
    }

    /// So many bytes of so many found room.
    pub(super) const fn written(&mut self, of: u32, taken: u32) {
        self.is_blocked = taken < of;
        self.writable_at = None;
    }

    /// The number of the error with which a call would fail; 0 for none.
    fn error(&self, reason: Option<CloseReason>) -> u32 {
        match reason {
            Some(CloseReason::TimedOut) => ETIMEDOUT,
            Some(CloseReason::Refused) => ECONNREFUSED,
            // Linux 6.1 `tcp_reset`.
            Some(CloseReason::Reset) if self.is_half_closed => EPIPE,
            Some(CloseReason::Reset) => ECONNRESET,
            Some(CloseReason::Finished | CloseReason::Aborted) | None if self.has_finished => EPIPE,
            Some(CloseReason::Finished | CloseReason::Aborted) | None => 0,
        }
    }
}

impl Replay<'_> {
    /// The kernel has no room to write.
    pub(super) fn check_full(&mut self) -> Result<(), Difference> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        if connection.poll_writable() {
            return Err(self.difference("writable at another time", "there is room to write"));
        }
        self.reported.writable_at = None;
        Ok(())
    }

    /// A call failed in the kernel with this error, or none waits.
    pub(super) fn check_error(&self, theirs: u32) -> Result<(), Difference> {
        let reason = self.connection.as_ref().and_then(Connection::close_reason);
        let ours = self.reported.error(reason);
        // What a write after the end of the stream fails with does not wait.
        if ours == theirs || (theirs == 0 && ours == EPIPE && reason.is_none()) {
            return Ok(());
        }
        let text = format!("the error is {ours}, in the kernel {theirs}");
        Err(self.difference("another error", &text))
    }

    /// What the kernel reports of the connection now.
    pub(super) fn check_info(&self, theirs: &str) -> Result<(), Difference> {
        let Some(connection) = &self.connection else {
            return Ok(());
        };
        let ours = of_connection(&connection.info());
        match first_difference(&ours, theirs) {
            Some((name, ..)) => Err(self.difference(&format!("TCP_INFO, {name}"), &ours)),
            None => Ok(()),
        }
    }
}
