//! Why a process may not have namespaces.

use thiserror::Error;

/// The system does not let this process have namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("this system does not let the process have network namespaces ({reason}); {mend}")]
pub struct Refusal {
    /// What was refused and how.
    pub reason: String,
    /// What to enable, as an instruction.
    pub mend: String,
}
