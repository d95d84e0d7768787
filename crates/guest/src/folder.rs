//! A guest's folder on the machine: what the two share, and what goes with the guest.
//!
//! A guest's programs may leave folders there that nobody can enter, and whoever
//! started the guest may be killed before it removes anything. So folders are opened
//! before they are removed, and what nobody holds any more is removed when the next guest
//! is started.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{self, Path, PathBuf};

use tempfile::TempDir;

/// How the names of guests' folders begin.
const PREFIX: &str = "lagometer-guest-";
/// The file that is locked for as long as somebody is there.
const LOCK: &str = "lock";
/// What that file is called until it is locked.
const LOCK_TO_BE: &str = "lock-to-be";

/// The folder of one guest, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct GuestFolder {
    folder: TempDir,
    _lock: File,
}

impl GuestFolder {
    /// Makes a folder for temporary files, beside which those that were abandoned are removed.
    pub(crate) fn new() -> io::Result<Self> {
        // The kernel is started from within the folder.
        Self::within(&path::absolute(std::env::temp_dir())?)
    }

    fn within(place: &Path) -> io::Result<Self> {
        remove_abandoned(place);
        // What a guest's programs leave here is their user's on the machine, too, and may
        // be a program with the user's rights for whoever starts it: nobody else may enter.
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(place)?;
        // Whoever finds the lock, and can have it, takes the folder for abandoned: it must
        // not be there for one moment before it is held.
        let to_be = folder.path().join(LOCK_TO_BE);
        let lock = File::create_new(&to_be)?;
        lock.lock()?;
        fs::rename(to_be, folder.path().join(LOCK))?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for GuestFolder {
    fn drop(&mut self) {
        open_folders(self.path());
    }
}

/// Removes this user's folders that nobody holds.
fn remove_abandoned(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry
                .metadata()
                .is_ok_and(|about| about.is_dir() && about.uid() == user);
        if is_ours && is_abandoned(&entry.path()) {
            open_folders(&entry.path());
            // Somebody else may be at it, too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether nobody holds the folder. One without its lock is just being made, or removed.
fn is_abandoned(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else {
        return false;
    };
    !matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

/// Gives the owner all rights to every folder beneath, so that it can be removed.
fn open_folders(folder: &Path) {
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        // What cannot be opened stays, and nothing can be done about it.
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        // The kind of an entry is never that of what a link leads to.
        let deeper = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(deeper.map(|entry| entry.path()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(place: &Path) -> usize {
        fs::read_dir(place).unwrap().count()
    }

    /// A folder whose owner was killed: its lock is there and nobody has it.
    fn abandoned(place: &Path) -> PathBuf {
        let folder = place.join(format!("{PREFIX}abandoned"));
        fs::create_dir(&folder).unwrap();
        File::create(folder.join(LOCK)).unwrap();
        fs::create_dir(folder.join("sealed")).unwrap();
        fs::set_permissions(folder.join("sealed"), Permissions::from_mode(0o000)).unwrap();
        folder
    }

    #[test]
    fn a_folder_that_nobody_can_enter_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = GuestFolder::within(place.path()).unwrap();
        let sealed = folder.path().join("sealed/deeper");
        fs::create_dir_all(&sealed).unwrap();
        fs::write(sealed.join("file"), "x").unwrap();
        for folder in [&sealed, &folder.path().join("sealed")] {
            fs::set_permissions(folder, Permissions::from_mode(0o000)).unwrap();
        }
        drop(folder);
        assert_eq!(folders(place.path()), 0);
    }

    #[test]
    fn nobody_else_may_enter() {
        let place = tempfile::tempdir().unwrap();
        let folder = GuestFolder::within(place.path()).unwrap();
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn what_was_abandoned_goes_and_what_is_held_stays() {
        let place = tempfile::tempdir().unwrap();
        let held = GuestFolder::within(place.path()).unwrap();
        let abandoned = abandoned(place.path());
        let others = place.path().join("of another program");
        fs::create_dir(&others).unwrap();
        let next = GuestFolder::within(place.path()).unwrap();
        assert!(!abandoned.exists());
        assert!(held.path().exists() && next.path().exists() && others.exists());
    }

    #[test]
    fn nobody_removes_what_another_is_making() {
        let place = tempfile::tempdir().unwrap();
        let make = || {
            for _ in 0..500 {
                let folder = GuestFolder::within(place.path()).unwrap();
                assert!(folder.path().exists());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(make);
            }
        });
    }

    #[test]
    fn links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o500)).unwrap();
        let folder = GuestFolder::within(place.path()).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        drop(folder);
        let mode = fs::metadata(outside.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o500);
    }
}
