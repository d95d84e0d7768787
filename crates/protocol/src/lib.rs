//! The channel gateway's wire protocol.
//!
//! Game servers and clients talk to the gateway in *frames*, each of which
//! carries one *packet* of *messages*. This crate turns bytes into those and
//! back. It knows nothing of sockets, connections or channels: it is handed
//! bytes and gives back values or bytes, and the same input always gives the
//! same output.
//!
//! | layer | read with | written with |
//! | --- | --- | --- |
//! | frame | [`FrameDecoder`] | [`FrameBuilder`] |
//! | packet, envelope | [`Packet`], [`MessagePack`] | [`MessagePack`] |
//! | hot bodies | [`ChannelDataUpdate`], [`ServerForward`] | the same |
//! | all other bodies | [`ToGateway`], [`FromGateway`] | the same |
//!
//! Channel data, whose types are the games', is merged ([`merge`]) and masked
//! ([`Mask`]) in its encoded form, with types learned at run time ([`schema`]).
//!
//! Whatever arrives may be hostile: every parser answers with a typed error,
//! none panics, and none takes more memory than its limits allow.
//!
//! ```
//! use lagometer_protocol::messages::channeldpb::AuthMessage;
//! use lagometer_protocol::{
//!     FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet, ToGateway,
//! };
//!
//! // A client logs in …
//! let login = ToGateway::Auth(AuthMessage {
//!     player_identifier_token: "player-1".into(),
//!     login_token: "secret".into(),
//! });
//! let mut body = Vec::new();
//! login.encode_body(&mut body);
//! let mut builder = FrameBuilder::new();
//! builder.push(&MessagePack {
//!     stub_id: 1,
//!     msg_type: login.msg_type() as u32,
//!     body: &body,
//!     ..MessagePack::default()
//! })?;
//! let wire = builder.finish().expect("a message was put in").to_vec();
//!
//! // … and the gateway reads it, in whatever pieces it arrives.
//! let mut decoder = FrameDecoder::new(FrameLimits::default());
//! let mut scratch = Vec::new();
//! let mut arrived = Vec::new();
//! for mut piece in wire.chunks(3) {
//!     while let Some(frame) = decoder.next(&mut piece)? {
//!         let bytes = frame.packet_bytes(1 << 20, &mut scratch)?;
//!         for message in Packet::new_checked(bytes)?.messages() {
//!             arrived.push((message.stub_id, ToGateway::decode(&message)?));
//!         }
//!     }
//! }
//! assert_eq!(arrived, [(1, login)]);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub mod any;
mod body;
mod broadcast;
mod compression;
mod forward;
mod frame;
mod mask;
pub mod merge;
pub mod messages;
mod packet;
pub mod schema;
mod update;
pub mod wire;

#[cfg(test)]
mod samples;

pub use any::AnyView;
pub use body::{BodyError, FromGateway, ToGateway};
pub use broadcast::{Audience, Broadcast, Excluded};
pub use compression::{Compression, Compressor, DecompressError, decompress};
pub use forward::ServerForward;
pub use frame::{
    Frame, FrameBuilder, FrameDecoder, FrameError, FrameForm, FrameLimits, HEADER_LEN, MAX_PAYLOAD,
    PushError, TAG, frame_header,
};
pub use mask::{MAX_MASK_DEPTH, Mask, mask_depth};
pub use packet::{MAX_MESSAGE_LEN, MessagePack, Messages, Packet};
pub use update::{ChannelDataUpdate, encode_update_head_in_packet, update_body};
