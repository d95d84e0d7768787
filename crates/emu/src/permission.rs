//! Whether this process may have namespaces of its own, and getting to where
//! it may: with the privileges it has, or as the owner of a user namespace.

use std::fs;
use std::io;
use std::sync::OnceLock;

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{CapabilitySet, capabilities};

use crate::refusal::Refusal;
use crate::sys::init::try_unshare;

/// By what right the process makes namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// It had the privileges already.
    Privileged,
    /// It lives in a user namespace of its own and has the privileges there.
    OwnUserNamespace,
}

static GRANTED: OnceLock<Permission> = OnceLock::new();

impl Permission {
    /// Gets the right to make namespaces, once for the whole process.
    ///
    /// Without privileges this moves the process into a user namespace of its
    /// own, in which it keeps its user and group. The system permits that
    /// only while the process has a single thread: call it at the start of
    /// `main`.
    ///
    /// # Errors
    ///
    /// [`Refusal`], with what to enable.
    pub fn acquire() -> Result<Self, Refusal> {
        if let Some(&granted) = GRANTED.get() {
            return Ok(granted);
        }
        let permission = if has_privileges() {
            // A container's filter may refuse what the capability permits.
            try_unshare(CloneFlags::CLONE_NEWNET).map_err(|error| refuse(&error))?;
            Self::Privileged
        } else {
            enter_user_namespace().map_err(|error| refuse(&error))?;
            Self::OwnUserNamespace
        };
        Ok(*GRANTED.get_or_init(|| permission))
    }

    /// Whether [`Permission::acquire`] would succeed in a process with a
    /// single thread; changes nothing.
    ///
    /// # Errors
    ///
    /// [`Refusal`], with what to enable.
    pub fn probe() -> Result<Self, Refusal> {
        if let Some(&granted) = GRANTED.get() {
            return Ok(granted);
        }
        let (kinds, permission) = if has_privileges() {
            (CloneFlags::CLONE_NEWNET, Self::Privileged)
        } else {
            (
                CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET,
                Self::OwnUserNamespace,
            )
        };
        try_unshare(kinds)
            .map(|()| permission)
            .map_err(|error| refuse(&error))
    }
}

fn has_privileges() -> bool {
    capabilities(None).is_ok_and(|sets| {
        sets.effective
            .contains(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN)
    })
}

fn enter_user_namespace() -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    // Network and user in one call, so that a system which grants the one
    // without power over the other is found out before anything has changed.
    try_unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    unshare(CloneFlags::CLONE_NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Why it was refused and what to enable, as far as the system says.
fn refuse(error: &io::Error) -> Refusal {
    let off =
        |path: &str, bad: &str| fs::read_to_string(path).is_ok_and(|value| value.trim() == bad);
    let mend = if error.raw_os_error() == Some(nix::libc::EINVAL) {
        "the right must be acquired before the process has a second thread"
    } else if off(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        "enable them with `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or run as root"
    } else if off("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "enable them with `sudo sysctl kernel.unprivileged_userns_clone=1`, or run as root"
    } else if off("/proc/sys/user/max_user_namespaces", "0") {
        "enable them with `sudo sysctl user.max_user_namespaces=10000`, or run as root"
    } else if off("/proc/sys/user/max_net_namespaces", "0") {
        "enable them with `sudo sysctl user.max_net_namespaces=10000`"
    } else {
        "run as root, or in a container give it \
         `--cap-add SYS_ADMIN --cap-add NET_ADMIN --device /dev/net/tun --security-opt seccomp=unconfined`"
    };
    Refusal {
        reason: error.to_string(),
        mend: mend.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_that_says_what_to_do() {
        let said = refuse(&io::Error::from_raw_os_error(nix::libc::EPERM)).to_string();
        assert!(!said.contains('\n'), "{said}");
        assert!(
            said.contains("enable") || said.contains("run as root"),
            "{said}"
        );
    }
}
