//! Fuzzes `merging`: see `fuzz/bodies/merging.rs` for what must hold.
#![no_main]

#[path = "../bodies/merging.rs"]
mod merging;

libfuzzer_sys::fuzz_target!(|data: &[u8]| merging::body(data));
