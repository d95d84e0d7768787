#![no_main]

#[path = "../bodies/masks.rs"]
mod masks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| masks::body(data));
