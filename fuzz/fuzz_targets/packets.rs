//! Fuzzes `packets`: see `fuzz/bodies/packets.rs` for what must hold.
#![no_main]

#[path = "../bodies/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| packets::body(data));
