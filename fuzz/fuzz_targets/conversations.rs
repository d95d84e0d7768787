//! Conversations with attackers among the well-behaved: the input is what the
//! generator of the gateway's own tests chooses by.
#![no_main]

#[path = "../../crates/gateway/tests/conversations/choices.rs"]
mod choices;
#[path = "../../crates/gateway/tests/conversations/hostile.rs"]
mod hostile;
#[path = "../../crates/gateway/tests/conversations/peer.rs"]
mod peer;
#[path = "../../crates/gateway/tests/conversations/play.rs"]
mod play;
#[path = "../../crates/gateway/tests/conversations/script.rs"]
mod script;
#[path = "../../crates/gateway/tests/conversations/sentinels.rs"]
mod sentinels;

libfuzzer_sys::fuzz_target!(|data: &[u8]| play::body(data));
