//! Copying what a guest's programs wrote, which may be anything.

use std::fs::{self, DirEntry, FileType, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// The permissions that are kept of a file: nobody becomes somebody else by it.
const MODE: u32 = 0o777;

/// What the owner may do with every copy: read it, so that it can be copied on, and
/// write and remove it.
const OWNERS: u32 = 0o600;

/// What of a tree could not be copied.
#[derive(Debug, Default)]
pub(crate) struct Omitted {
    files: u64,
    first: Option<(PathBuf, io::Error)>,
}

impl Omitted {
    fn add(&mut self, path: PathBuf, why: io::Error) {
        self.files += 1;
        self.first.get_or_insert((path, why));
    }

    /// How many files and folders, the first of them, and what the system said; nothing
    /// if all was copied.
    pub(crate) fn in_words(&self) -> Option<String> {
        let (path, why) = self.first.as_ref()?;
        // A guest's program has chosen the name, and it goes to a terminal.
        let path = path.display().to_string();
        let path = path.escape_debug();
        Some(match self.files {
            1 => format!("/{path}: {why}"),
            files => format!("{files} files or folders, the first /{path}: {why}"),
        })
    }
}

/// Copies files, folders and links from `from` into `to`, which is made where it
/// is missing; `but` are left out, by their paths beneath `from`. Links are
/// copied and never followed, neither in what is read nor in what is written.
/// Device files, pipes and sockets are left out: by a device file a file system
/// in layers marks what was removed. What cannot be copied does not keep the rest from
/// it, and is returned.
///
/// # Errors
///
/// What the system says where `to` cannot be made.
pub(crate) fn copy_tree(from: &Path, to: &Path, but: &[&Path]) -> io::Result<Omitted> {
    fs::create_dir_all(to)?;
    let mut omitted = Omitted::default();
    // A list instead of recursion: folders may be as deep as they like.
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(from.join(&folder)) {
            Ok(entries) => entries,
            Err(why) => {
                omitted.add(folder, why);
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(why) => {
                    omitted.add(folder.clone(), why);
                    break;
                }
            };
            let beneath = folder.join(entry.file_name());
            if but.contains(&beneath.as_path()) {
                continue;
            }
            match copy_entry(&entry, &to.join(&beneath)) {
                Ok(kind) if kind.is_dir() => folders.push(beneath),
                Ok(_) => {}
                Err(why) => omitted.add(beneath, why),
            }
        }
    }
    Ok(omitted)
}

/// Copies a file or a link, or makes a folder; what it was.
fn copy_entry(entry: &DirEntry, target: &Path) -> io::Result<FileType> {
    let kind = entry.file_type()?;
    if kind.is_dir() {
        fs::create_dir(target)?;
    } else if kind.is_symlink() {
        symlink(fs::read_link(entry.path())?, target)?;
    } else if kind.is_file() {
        let mode = entry.metadata()?.permissions().mode();
        let mut from = fs::File::open(entry.path())?;
        let mut file = fs::File::create_new(target)?;
        let copied = io::copy(&mut from, &mut file)
            .and_then(|_| file.set_permissions(Permissions::from_mode(mode & MODE | OWNERS)));
        if copied.is_err() {
            // Half a file is taken for a whole one.
            fs::remove_file(target)?;
        }
        copied?;
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir(&from).unwrap();
        (place, from, to)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_tree_is_copied_with_links_as_links_and_no_special_rights() {
        let (_place, from, to) = place();
        fs::create_dir_all(from.join("deep/er")).unwrap();
        fs::create_dir(from.join("ours")).unwrap();
        fs::write(from.join("ours/secret"), "x").unwrap();
        fs::write(from.join("deep/er/file"), "text").unwrap();
        let rights = Permissions::from_mode(0o4755);
        fs::set_permissions(from.join("deep/er/file"), rights).unwrap();
        symlink("/etc", from.join("deep/link")).unwrap();
        let omitted = copy_tree(&from, &to, &[Path::new("ours")]).unwrap();
        assert_eq!(omitted.in_words(), None);
        assert_eq!(fs::read_to_string(to.join("deep/er/file")).unwrap(), "text");
        assert_eq!(mode(&to.join("deep/er/file")), 0o755);
        assert_eq!(
            fs::read_link(to.join("deep/link")).unwrap(),
            Path::new("/etc")
        );
        assert!(!to.join("ours").exists());
    }

    #[test]
    fn the_owner_may_read_and_write_whatever_was_copied() {
        let (_place, from, to) = place();
        fs::write(from.join("sealed"), "text").unwrap();
        fs::set_permissions(from.join("sealed"), Permissions::from_mode(0o400)).unwrap();
        assert_eq!(copy_tree(&from, &to, &[]).unwrap().in_words(), None);
        assert_eq!(mode(&to.join("sealed")), 0o600);
    }

    #[test]
    fn what_cannot_be_copied_is_named_and_keeps_nothing_from_it() {
        let (_place, from, to) = place();
        for name in ["a", "b", "c"] {
            fs::create_dir(from.join(name)).unwrap();
            fs::write(from.join(name).join("file"), name).unwrap();
        }
        fs::create_dir(&to).unwrap();
        for taken in ["a", "b"] {
            fs::write(to.join(taken), "mine").unwrap();
        }
        let words = copy_tree(&from, &to, &[]).unwrap().in_words().unwrap();
        assert!(
            words.starts_with("2 files or folders, the first /"),
            "{words}"
        );
        assert_eq!(fs::read_to_string(to.join("c/file")).unwrap(), "c");
        assert_eq!(fs::read_to_string(to.join("a")).unwrap(), "mine");
    }

    #[test]
    fn nothing_is_written_through_what_is_there_already() {
        let (place, from, to) = place();
        let outside = place.path().join("outside");
        fs::create_dir(&to).unwrap();
        fs::write(from.join("file\n"), "new").unwrap();
        fs::write(&outside, "mine").unwrap();
        symlink(&outside, to.join("file\n")).unwrap();
        let words = copy_tree(&from, &to, &[]).unwrap().in_words().unwrap();
        assert!(words.starts_with("/file\\n: "), "{words}");
        assert_eq!(fs::read_to_string(outside).unwrap(), "mine");
    }
}
