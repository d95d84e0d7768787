//! What the tests that hold our KCP engine against the C reference share.

pub(crate) mod dice;
pub(crate) mod scenario;
pub(crate) mod twin;
