//! What a connection that has not logged in keeps in memory beneath its frames,
//! and where that ends.
//!
//! The libraries of TLS and WebSocket do not say how much they keep. They keep
//! no more than they were given since the last message that came out of them, and
//! what they are given is counted by [`Metered`].

use super::{Beneath, Metered, StreamTransport};

/// What a handshake may take, that of TLS, the request of a WebSocket or both,
/// and what they may add to `login_bytes`. Those of browsers with many cookies
/// have half of it.
const HANDSHAKE_BYTES: usize = 16 << 10;

/// What one connection takes by itself, beside what has come of it. Measured as the
/// growth of a gateway with 800 that had shaken hands and were silent: 0.9 KiB over
/// TCP, 8.8 over TLS, 5.6 for a WebSocket, 13.7 for one over TLS, 2.8 over KCP.
const TCP_BYTES: usize = 2 << 10;
const TLS_BYTES: usize = 12 << 10;
const WEBSOCKET_BYTES: usize = 6 << 10;
const KCP_BYTES: usize = 4 << 10;

/// Buffers grow by doubling.
const GROWTH: usize = 2;

impl StreamTransport {
    /// The most bytes of memory that the connection and what it keeps beneath its
    /// frames take.
    pub(in crate::server) fn held_bytes(&self) -> usize {
        let unfinished = |socket: &Metered| GROWTH * socket.unfinished_bytes();
        match self {
            Self::Tcp(_) => TCP_BYTES,
            Self::Tls(stream) => TLS_BYTES + unfinished(&stream.sock),
            Self::WebSocket(stream) => {
                let beneath = stream.stream();
                let tls = beneath.is_some_and(Beneath::is_secure);
                WEBSOCKET_BYTES
                    + if tls { TLS_BYTES } else { 0 }
                    + beneath.map_or(0, |beneath| unfinished(beneath.metered()))
            }
            Self::Kcp(session) => KCP_BYTES + session.held_bytes(),
        }
    }

    /// Lets no more be read of a connection that has not logged in than it may
    /// send. Returns whether it has sent more: in its handshake; in all, which is
    /// `login_bytes` and a handshake; or, over KCP, in what cannot be put in order
    /// yet, which is `unfinished_bytes`.
    pub(in crate::server) fn exceeds(
        &mut self,
        login_bytes: usize,
        unfinished_bytes: usize,
    ) -> bool {
        if let Self::Kcp(session) = self {
            return session.unread_bytes() > unfinished_bytes;
        }
        let is_opening = match self {
            Self::Tls(stream) => stream.conn.is_handshaking(),
            Self::WebSocket(stream) => stream.is_opening(),
            Self::Tcp(_) | Self::Kcp(_) => false,
        };
        let most = if is_opening {
            HANDSHAKE_BYTES
        } else {
            login_bytes.saturating_add(HANDSHAKE_BYTES)
        };
        // One byte more shows those who send more from those who do not.
        self.allow_in_all(most.saturating_add(1));
        let metered = self.metered_mut();
        metered.is_some_and(|metered| metered.received_bytes() > most)
    }

    /// So many bytes of what carries the frames may be read in all.
    pub(super) fn allow_in_all(&mut self, bytes: usize) {
        if let Some(metered) = self.metered_mut() {
            metered.allow_in_all(bytes);
        }
    }

    fn metered_mut(&mut self) -> Option<&mut Metered> {
        match self {
            Self::Tls(stream) => Some(&mut stream.sock),
            Self::WebSocket(stream) => Some(stream.stream_mut()?.metered_mut()),
            Self::Tcp(_) | Self::Kcp(_) => None,
        }
    }
}
