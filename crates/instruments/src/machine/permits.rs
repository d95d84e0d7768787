//! Which of the system's facilities are there, and what to do about those
//! that are not.

#[cfg_attr(target_os = "linux", path = "permits/linux.rs")]
#[cfg_attr(windows, path = "permits/windows.rs")]
#[cfg_attr(not(any(target_os = "linux", windows)), path = "permits/other.rs")]
mod system;

/// A facility of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// What it is, in a few words.
    pub name: &'static str,
    /// What it is good for here.
    pub serves: &'static str,
    /// What was found, or why it is missing.
    pub found: Result<String, String>,
    /// What to do where it is missing.
    pub mend: String,
}

impl Permit {
    /// Whether it is there.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        self.found.is_ok()
    }
}

/// Looks for every facility; changes nothing.
#[must_use]
pub fn permits() -> Vec<Permit> {
    system::permits()
}
