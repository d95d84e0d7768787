//! What the tests of KCP's endpoints share.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod lane;
