#![no_main]

#[path = "../bodies/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| packets::body(data));
