//! Why a node follows no longer.

/// What became of the node that followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::nodes) enum Loss {
    /// It has said that it ends.
    Ended,
    /// It does not speak as it must.
    Nonsense,
    /// It cannot read the channels, or what it has is no longer the same.
    Unlike,
    /// Nothing comes of it.
    Silent,
    /// It takes too long to acknowledge what is done.
    Late,
    /// It takes too long to take the channels.
    Slow,
    /// Too many bytes wait for it.
    Behind,
}

impl Loss {
    pub(in crate::nodes) fn text(self) -> &'static str {
        match self {
            Self::Ended => "it has ended",
            Self::Nonsense => "it speaks nonsense",
            Self::Unlike => "it cannot read the channels, or has others than this node",
            Self::Silent => "nothing comes of it",
            Self::Late => "it does not acknowledge in time what is done",
            Self::Slow => "it does not take the channels in time",
            Self::Behind => "too much waits for it",
        }
    }

    /// Whether it never goes on with the channels as it has them: there is no use in sending it
    /// more.
    pub(in crate::nodes) fn is_final(self) -> bool {
        matches!(self, Self::Ended | Self::Nonsense | Self::Unlike)
    }
}
