//! Fuzzes `frames`: see `fuzz/bodies/frames.rs` for what must hold.
#![no_main]

#[path = "../bodies/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| frames::body(data));
