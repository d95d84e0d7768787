//! Copying what a guest's programs wrote, which may be anything.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// The permissions that are kept of a file: nobody becomes somebody else by it.
const MODE: u32 = 0o777;

/// Copies files, folders and links from `from` into `to`, which is made where it
/// is missing; `but` are left out, by their paths beneath `from`. Links are
/// copied and never followed, neither in what is read nor in what is written.
/// Device files, pipes and sockets are left out: by a device file a file system
/// in layers marks what was removed.
pub(crate) fn copy_tree(from: &Path, to: &Path, but: &[&Path]) -> io::Result<()> {
    fs::create_dir_all(to)?;
    // A list instead of recursion: folders may be as deep as they like.
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(from.join(&folder))? {
            let entry = entry?;
            let beneath = folder.join(entry.file_name());
            if but.contains(&beneath.as_path()) {
                continue;
            }
            let target = to.join(&beneath);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                fs::create_dir(&target)?;
                folders.push(beneath);
            } else if kind.is_symlink() {
                symlink(fs::read_link(entry.path())?, &target)?;
            } else if kind.is_file() {
                let mode = entry.metadata()?.permissions().mode();
                let mut file = fs::File::create_new(&target)?;
                io::copy(&mut fs::File::open(entry.path())?, &mut file)?;
                file.set_permissions(Permissions::from_mode(mode & MODE))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_copied_with_links_as_links_and_no_special_rights() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("deep/er")).unwrap();
        fs::create_dir(from.join("ours")).unwrap();
        fs::write(from.join("ours/secret"), "x").unwrap();
        fs::write(from.join("deep/er/file"), "text").unwrap();
        let rights = Permissions::from_mode(0o4755);
        fs::set_permissions(from.join("deep/er/file"), rights).unwrap();
        symlink("/etc", from.join("deep/link")).unwrap();
        copy_tree(&from, &to, &[Path::new("ours")]).unwrap();
        assert_eq!(fs::read_to_string(to.join("deep/er/file")).unwrap(), "text");
        let mode = fs::metadata(to.join("deep/er/file")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o7777, 0o755);
        assert_eq!(
            fs::read_link(to.join("deep/link")).unwrap(),
            Path::new("/etc")
        );
        assert!(!to.join("ours").exists());
    }

    #[test]
    fn nothing_is_written_through_what_is_there_already() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        let outside = place.path().join("outside");
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("file"), "new").unwrap();
        fs::write(&outside, "mine").unwrap();
        symlink(&outside, to.join("file")).unwrap();
        assert!(copy_tree(&from, &to, &[]).is_err());
        assert_eq!(fs::read_to_string(outside).unwrap(), "mine");
    }
}
