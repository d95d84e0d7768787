//! What Linux lists of sockets that listen.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use rustix::fs::fstat;

use crate::core::Peer;

/// Where Linux lists the sockets of TCP, those that listen first (proc(5)).
const LISTS: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// What is read of each: some four hundred listeners' worth.
const READ_BYTES: usize = 64 << 10;

/// The state of a socket that listens, as it is listed (`TCP_LISTEN`).
const LISTENS: &str = "0A";

/// The listening sockets, and the lists that they are in.
#[derive(Debug)]
pub(super) struct Listed {
    /// The system's lists, opened while there are files.
    lists: Vec<File>,
    /// The listening sockets, by the number of their file.
    listening: Mutex<Vec<(u64, Peer)>>,
}

impl Listed {
    pub(super) fn new() -> Self {
        Self {
            lists: LISTS
                .iter()
                .filter_map(|path| File::open(path).ok())
                .collect(),
            listening: Mutex::default(),
        }
    }

    /// A socket listens for that kind of peer from now on.
    pub(super) fn listens(&self, socket: &impl AsFd, peer: Peer) {
        if let Ok(file) = fstat(socket) {
            let mut listening = self
                .listening
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            listening.push((file.st_ino, peer));
        }
    }

    /// How many of each kind of peer wait now.
    pub(super) fn waiting(&self) -> [u64; 2] {
        let listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut waiting = [0; 2];
        let mut buffer = vec![0; READ_BYTES];
        for list in &self.lists {
            let mut bytes = 0;
            while bytes < buffer.len() {
                match list.read_at(&mut buffer[bytes..], bytes as u64) {
                    Ok(more) if more > 0 => bytes += more,
                    _ => break,
                }
            }
            let text = String::from_utf8_lossy(&buffer[..bytes]);
            for (file, count) in text.lines().skip(1).map_while(listener) {
                if let Some((_, peer)) = listening.iter().find(|(of, _)| *of == file) {
                    waiting[peer.index()] += count;
                }
            }
        }
        waiting
    }
}

/// The number of the file of a listening socket and how many wait before it, as
/// a line of the list shows it; `None` for a socket that does not listen.
fn listener(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace();
    // sl, local_address and rem_address stand before the state.
    let state = fields.nth(3)?;
    // tx_queue:rx_queue, of which the second is the length of the queue.
    let (_, waiting) = fields.next()?.split_once(':')?;
    // Two timers, retransmits, uid and timeout stand before the inode.
    let file = fields.nth(4)?;
    let waiting = u64::from_str_radix(waiting, 16).ok()?;
    (state == LISTENS).then_some((file.parse().ok()?, waiting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_none_of_a_listener_is_passed_over() {
        let of = |state| {
            format!(
                "   0: 0100007F:2F4C 00000000:0000 {state} 00000000:00000011 00:00000000 00000000 \
                 0        0 4711 1 0000000000000000 100 0 0 10 0"
            )
        };
        assert_eq!(listener(&of("0A")), Some((4711, 17)));
        assert_eq!(listener(&of("01")), None);
        assert_eq!(listener("0: 0100007F:2F4C"), None);
        assert_eq!(listener(""), None);
    }
}
