//! The messages as plain values, generated from this crate's `.proto` files.
//!
//! Cold messages (log in, create, subscribe, …) are encoded and decoded with
//! these; each implements [`prost::Message`]. What every packet of a busy
//! gateway holds (envelopes, channel data updates, forwards) also has a
//! hand-written view that borrows: [`Packet`](crate::Packet),
//! [`ChannelDataUpdate`](crate::ChannelDataUpdate) and
//! [`ServerForward`](crate::ServerForward).

macro_rules! generated {
    ($(#[doc = $doc:literal] $package:ident,)*) => {$(
        #[doc = $doc]
        #[allow(
            missing_docs,
            clippy::all,
            clippy::pedantic,
            reason = "generated; a field is explained by its name or in its .proto file"
        )]
        pub mod $package {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($package), ".rs"));
        }
    )*};
}

generated! {
    /// The gateway's own messages.
    channeldpb,
    /// Messages and states of Unreal games.
    unrealpb,
    /// Channel data of the shooter that the published benchmarks use.
    tpspb,
    /// Chat rooms.
    chatpb,
    /// The tanks game.
    tankspb,
    /// Recorded client sessions (`.cpr` files).
    replaypb,
}
