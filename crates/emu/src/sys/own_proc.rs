//! The table of processes as a process namespace has it.

use std::ffi::CStr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Has `command`, which is started in a process namespace other than this process's,
/// find itself and its like in `/proc` under the numbers they have there: debuggers,
/// and whoever looks for a process by its number, find another's otherwise, or none.
///
/// Where the system does not allow it, `/proc` stays what it is.
pub(crate) fn see_own_processes(command: &mut Command) {
    // SAFETY: the closure runs between `fork` and `exec`; it makes system calls alone,
    // with arguments that lie in the program, and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            let _ = mount_own_proc();
            Ok(())
        });
    }
}

/// A mount namespace of its own, and in it the process namespace's own `/proc`.
fn mount_own_proc() -> nix::Result<()> {
    const NOTHING: Option<&CStr> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Else it would be mounted in the namespace that this one was made of, too.
    let alone = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
    mount(NOTHING, c"/", NOTHING, alone, NOTHING)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some(c"proc"), c"/proc", Some(c"proc"), flags, NOTHING)
}
