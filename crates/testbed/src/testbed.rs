//! The list of testbeds.

/// Where lanes run, and what lies between their two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Testbed {
    /// Virtual time.
    Sim,
    /// Real sockets in two hosts behind an emulated link.
    Emu,
    /// Real sockets with a relay of UDP datagrams between them.
    Relay,
    /// Real sockets in two hosts behind an emulated link, all of it within a
    /// kernel in virtual time.
    Kernel,
    /// Real sockets over a real path.
    Net,
}

impl Testbed {
    /// Its name in documents and on the command line; the relay is a manner of
    /// `emu`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Emu | Self::Relay => "emu",
            Self::Kernel => "kernel",
            Self::Net => "net",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Sim => "Virtual time: deterministic, faster than real time",
            Self::Emu => "Real sockets and real kernels behind emulated links, in real time",
            Self::Relay => {
                "Real sockets with a relay of UDP datagrams on the loopback device, in real time"
            }
            Self::Kernel => {
                "Real sockets and a real Linux kernel behind emulated links, in virtual time: \
                 deterministic; needs `lagometer kernel build` once"
            }
            Self::Net => "Real sockets over a real path, to `lagometer serve` on another machine",
        }
    }
}
