//! Fuzzes `masks`: see `fuzz/bodies/masks.rs` for what must hold.
#![no_main]

#[path = "../bodies/masks.rs"]
mod masks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| masks::body(data));
