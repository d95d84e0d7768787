//! Where a kernel's source comes from: a tarball, a tree, or the distribution's
//! package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Doing as _, Error};

/// The first version that is known to serve.
const FIRST: (u32, u32) = (6, 1);

/// Where distributions' packages put sources.
const PACKAGED: &str = "/usr/src";

/// How the names of packaged sources begin.
const PACKAGED_PREFIX: &str = "linux-source-";

/// A kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Tarball(PathBuf),
    Tree(PathBuf),
}

impl Source {
    /// What a user named.
    pub(crate) fn named(path: &Path) -> Result<Self, Error> {
        let bad = |why: &str| Error::Source {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let path =
            fs::canonicalize(path).map_err(|error| bad(&format!("cannot be read: {error}")))?;
        if path.is_file() {
            return Ok(Self::Tarball(path));
        }
        if path.join("arch/um/Kconfig").is_file() {
            return Ok(Self::Tree(path));
        }
        Err(bad(
            "is no kernel source: name a tarball of one, or a tree with arch/um in it",
        ))
    }

    /// The newest that a package of the distribution has put in place.
    pub(crate) fn packaged() -> Option<Self> {
        let entries = fs::read_dir(PACKAGED).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        newest_packaged(names).map(|name| Self::Tarball(Path::new(PACKAGED).join(name)))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Tarball(path) | Self::Tree(path) => path,
        }
    }

    /// Its version, as in `6.1.192`.
    pub(crate) fn version(&self) -> Result<String, Error> {
        let makefile = match self {
            Self::Tree(tree) => {
                let path = tree.join("Makefile");
                fs::read_to_string(&path).doing(format!("reading {}", path.display()))?
            }
            Self::Tarball(tarball) => makefile_in(tarball)?,
        };
        let version = version_in(&makefile).ok_or_else(|| Error::Source {
            path: self.path().to_owned(),
            why: "is no kernel source: there is no version in its Makefile".to_owned(),
        })?;
        if !is_from(&version, FIRST) {
            return Err(Error::Source {
                path: self.path().to_owned(),
                why: format!("is Linux {version}; name a version from 6.1 on"),
            });
        }
        Ok(version)
    }

    /// The command that puts the source into the empty folder `tree`.
    pub(crate) fn unpacking(&self, tree: &Path) -> Command {
        match self {
            Self::Tarball(tarball) => {
                let mut command = Command::new("tar");
                command.arg("--extract").arg("--file").arg(tarball);
                command.arg("--directory").arg(tree);
                command.args(["--strip-components=1", "--no-same-owner"]);
                // Half of a kernel's source, of which a guest has no use.
                command.arg("--exclude=*/drivers/gpu/drm/amd/*.h");
                command.arg("--exclude=*/Documentation/*/*");
                command
            }
            Self::Tree(from) => {
                let mut command = Command::new("cp");
                command.args(["--recursive", "--no-dereference", "--reflink=auto"]);
                command.args(["--preserve=mode,timestamps,links"]);
                command.arg("--no-target-directory").arg("--");
                command.arg(from).arg(tree);
                command
            }
        }
    }
}

/// The top Makefile in a tarball of a kernel.
fn makefile_in(tarball: &Path) -> Result<String, Error> {
    let output = Command::new("tar")
        .args(["--extract", "--to-stdout", "--occurrence=1", "--file"])
        .arg(tarball)
        .args(["--wildcards", "--no-wildcards-match-slash", "*/Makefile"])
        .output()
        .doing("starting tar")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Source {
            path: tarball.to_owned(),
            why: format!(
                "is no tarball of a kernel: {}",
                said.lines().next().unwrap_or("it has no Makefile")
            ),
        });
    }
    Ok(text)
}

/// The newest of packaged sources' file names, by version.
fn newest_packaged(names: impl Iterator<Item = String>) -> Option<String> {
    names
        .filter_map(|name| {
            let rest = name.strip_prefix(PACKAGED_PREFIX)?;
            let version = rest.split_once(".tar.").map(|(version, _)| version)?;
            let numbers: Vec<u32> = version
                .split('.')
                .map(|number| number.parse().ok())
                .collect::<Option<_>>()?;
            Some((numbers, name))
        })
        .max()
        .map(|(_, name)| name)
}

/// The version that a kernel's Makefile begins with.
fn version_in(makefile: &str) -> Option<String> {
    let value = |key: &str| {
        makefile.lines().take(20).find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    let is_number = |text: &String| text.parse::<u32>().is_ok();
    let major = value("VERSION").filter(is_number)?;
    let minor = value("PATCHLEVEL").filter(is_number)?;
    let patch = value("SUBLEVEL").filter(is_number)?;
    // It becomes part of a folder's name.
    let extra = value("EXTRAVERSION").unwrap_or_default();
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_.+".contains(character);
    extra
        .chars()
        .all(is_plain)
        .then(|| format!("{major}.{minor}.{patch}{extra}"))
}

/// Whether a version is `first` or a later one.
pub(crate) fn is_from(version: &str, first: (u32, u32)) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) >= first,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKEFILE: &str = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\n\
                            EXTRAVERSION = -rc1\nNAME = Baby\n";

    #[test]
    fn a_version_is_read_from_the_makefile() {
        assert_eq!(version_in(MAKEFILE).as_deref(), Some("6.12.3-rc1"));
        assert_eq!(version_in("VERSION = $(shell id)\n"), None);
        let nasty = MAKEFILE.replace("-rc1", "/../../x");
        assert_eq!(version_in(&nasty), None);
    }

    #[test]
    fn versions_before_6_1_do_not_serve() {
        for (version, whether) in [
            ("6.1.0", true),
            ("6.0.9", false),
            ("10.0.1", true),
            ("5.19.1", false),
        ] {
            assert_eq!(is_from(version, FIRST), whether, "{version}");
        }
    }

    #[test]
    fn the_newest_packaged_source_is_by_number_not_by_letter() {
        let names = [
            "linux-source-6.1.tar.xz",
            "linux-source-6.12.tar.xz",
            "linux-source-6.8.0.tar.bz2",
            "linux-source-6.8.0",
            "linux-headers-6.18.tar.xz",
        ];
        assert_eq!(
            newest_packaged(names.into_iter().map(str::to_owned)).as_deref(),
            Some("linux-source-6.12.tar.xz")
        );
    }

    #[test]
    fn what_is_no_source_is_refused_in_a_line_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("a text.tar");
        fs::write(&text, "not a tarball").unwrap();
        for path in [folder.path().to_owned(), folder.path().join("absent")] {
            let said = Source::named(&path).unwrap_err();
            assert!(said.is_input() && said.to_string().contains(path.to_str().unwrap()));
        }
        let said = Source::named(&text).unwrap().version().unwrap_err();
        assert!(
            said.is_input() && !said.to_string().contains('\n'),
            "{said}"
        );
    }

    #[test]
    fn an_old_tree_is_refused_by_its_version() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("arch/um")).unwrap();
        fs::write(folder.path().join("arch/um/Kconfig"), "").unwrap();
        fs::write(
            folder.path().join("Makefile"),
            MAKEFILE.replace("VERSION = 6", "VERSION = 5"),
        )
        .unwrap();
        let said = Source::named(folder.path()).unwrap().version().unwrap_err();
        assert!(said.to_string().contains("from 6.1 on"), "{said}");
    }
}
