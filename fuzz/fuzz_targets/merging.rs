#![no_main]

#[path = "../bodies/merging.rs"]
mod merging;

libfuzzer_sys::fuzz_target!(|data: &[u8]| merging::body(data));
