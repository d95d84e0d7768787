//! Results that would be written over each other, or over what was read: refused before
//! anything is played.

use std::path::{Path, PathBuf};

use crate::cli::ResultArguments;
use crate::failure::Failure;

/// What a command reads and writes, as far as the user named it.
pub(crate) struct Files<'a> {
    /// Files that are read.
    pub(crate) read: Vec<&'a Path>,
    /// Files that are written.
    pub(crate) written: Vec<Option<&'a PathBuf>>,
}

impl Files<'_> {
    /// Whether each result has a file of its own, which is none that is read. Devices may
    /// be written as often as one likes.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let read: Vec<PathBuf> = self.read.iter().filter_map(|path| place(path)).collect();
        let mut taken = Vec::new();
        let named = self.written.iter().copied().flatten();
        for path in named.filter(|path| path.as_os_str() != "-") {
            let Some(place) = place(path) else { continue };
            let refuse = |why: &str| {
                Err(Failure::Input(format!(
                    "{} {why}: name another file for the result",
                    path.display()
                )))
            };
            if read.contains(&place) {
                return refuse("is read and would be written over");
            }
            if taken.contains(&place) {
                return refuse("would be written twice");
            }
            taken.push(place);
        }
        Ok(())
    }
}

impl ResultArguments {
    /// [`Files::check`], of an instrument's result.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let files = Files {
            read: Vec::new(),
            written: vec![self.json.as_ref(), self.html.as_ref()],
        };
        files.check()
    }
}

/// Where a file is or would be, whatever it is called; nothing for a device or a folder.
fn place(path: &Path) -> Option<PathBuf> {
    match path.metadata() {
        Ok(about) if !about.is_file() => None,
        Ok(_) => path.canonicalize().ok(),
        Err(_) => std::path::absolute(path).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_files_of_their_own_and_leave_what_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        std::fs::write(of("read.toml"), "").unwrap();
        let (read, new, again) = (of("read.toml"), of("new.json"), of("./new.json"));
        let (stdout, device) = (PathBuf::from("-"), PathBuf::from("/dev/null"));
        let check = |written: &[&PathBuf]| {
            let files = Files {
                read: vec![&read],
                written: written.iter().map(|path| Some(*path)).collect(),
            };
            files.check().err().map(|why| why.to_string())
        };
        assert_eq!(check(&[&new, &stdout, &stdout, &device, &device]), None);
        assert!(check(&[&new, &again]).unwrap().contains("written twice"));
        assert!(check(&[&read]).unwrap().contains("is read"));
    }
}
