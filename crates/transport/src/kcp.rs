//! KCP as a transport: endpoints and streams on the engine of the crate
//! [`lagometer_kcp`], which is the C reference call for call.
//!
//! An endpoint carries messages, framed where the conversation is a stream of bytes
//! (`framing`); a [`Stream`] is such a conversation as channel gateways speak it.
//! kcp-go's error correction goes around the datagrams of either (`fec`).

mod cookie;
mod endpoint;
mod fec;
mod fec_stream;
mod framing;
mod presets;
mod settings;
mod stream;
mod transport;

pub use cookie::{AddressProof, Cookie, Prover};
pub use endpoint::{KcpEndpoint, pair};
pub use fec::FecGroup;
pub use fec_stream::FecStream;
pub(crate) use presets::PRESETS;
pub use settings::{Overrides, Settings, Side};
pub use stream::{Stream, StreamProfile};
