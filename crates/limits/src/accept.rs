//! Taking the next connection from a listener, also without a file left for it.

use std::io::{self, ErrorKind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;

/// The next connection that waits at a non-blocking listener, as `accept` takes
/// it from there; `None` if nobody waits.
///
/// Linux's `accept` takes a file descriptor before it looks at the queue, so it
/// fails with `EMFILE` or `ENFILE` even where nobody waits, and says nothing then
/// of whether there is somebody to make room for. An error is therefore returned
/// only while the listener is readable. Connections that went again before they
/// were accepted are passed over.
///
/// # Errors
///
/// The system's, while somebody waits: files or memory have run out.
pub fn accept_pending<L: AsFd, C>(
    listener: &L,
    mut accept: impl FnMut(&L) -> io::Result<C>,
) -> io::Result<Option<C>> {
    loop {
        match accept(listener) {
            Ok(connection) => return Ok(Some(connection)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Ok(None),
                ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                _ if is_anybody_waiting(listener) => return Err(error),
                _ => return Ok(None),
            },
        }
    }
}

/// Whether a connection waits to be accepted. If that cannot be found out, as
/// when the listener itself has failed, it is assumed.
fn is_anybody_waiting(listener: &impl AsFd) -> bool {
    let mut files = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut files, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn listener() -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }

    /// Fails as the system does without a file left.
    fn without_a_file(_: &TcpListener) -> io::Result<TcpStream> {
        Err(rustix::io::Errno::MFILE.into())
    }

    #[test]
    fn without_a_file_left_nobody_waiting_is_no_error() {
        let listener = listener();
        assert!(accept_pending(&listener, without_a_file).unwrap().is_none());
    }

    #[test]
    fn without_a_file_left_somebody_waiting_is_an_error() {
        let listener = listener();
        let _waits = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let error = accept_pending(&listener, without_a_file).unwrap_err();
        let no_file = rustix::io::Errno::MFILE.raw_os_error();
        assert_eq!(error.raw_os_error(), Some(no_file), "{error}");
    }

    #[test]
    fn whoever_went_again_is_passed_over_and_the_next_is_accepted() {
        let listener = listener();
        let _waits = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut gone = [ErrorKind::ConnectionAborted, ErrorKind::Interrupted].into_iter();
        let mut accept = |listener: &TcpListener| match gone.next() {
            Some(kind) => Err(kind.into()),
            None => listener.accept(),
        };
        assert!(accept_pending(&listener, &mut accept).unwrap().is_some());
        assert!(accept_pending(&listener, accept).unwrap().is_none());
    }
}
