//! Fuzzes `sessions`: see `fuzz/bodies/sessions.rs` for what must hold.
#![no_main]

#[path = "../bodies/sessions.rs"]
mod sessions;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sessions::body(data));
