//! The right to have namespaces, where there are none.

use crate::refusal::Refusal;

/// By what right the process makes namespaces: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {}

impl Permission {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// [`Refusal`], with what to use instead.
    pub fn acquire() -> Result<Self, Refusal> {
        Err(Refusal {
            reason: "they are Linux's".to_owned(),
            mend: "use a Linux machine, or virtual time, which needs none: `run` without \
                   `--testbed`"
                .to_owned(),
        })
    }

    /// Refuses likewise.
    ///
    /// # Errors
    ///
    /// [`Refusal`], with what to use instead.
    pub fn probe() -> Result<Self, Refusal> {
        Self::acquire()
    }
}
