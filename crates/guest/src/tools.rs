//! What building a kernel needs of the machine, and installing it where that
//! is permitted.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program or a file, and the package of Debian and Ubuntu that has it.
struct Need {
    what: &'static str,
    package: &'static str,
}

const NEEDS: [Need; 8] = [
    Need {
        what: "make",
        package: "make",
    },
    Need {
        what: "gcc",
        package: "gcc",
    },
    Need {
        what: "/usr/include/stdio.h",
        package: "libc6-dev",
    },
    Need {
        what: "flex",
        package: "flex",
    },
    Need {
        what: "bison",
        package: "bison",
    },
    Need {
        what: "bc",
        package: "bc",
    },
    Need {
        what: "tar",
        package: "tar",
    },
    Need {
        what: "xz",
        package: "xz-utils",
    },
];

/// The package that has the distribution's kernel source.
pub(crate) const SOURCE_PACKAGE: &str = "linux-source";

/// What is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) what: Vec<&'static str>,
    pub(crate) packages: Vec<&'static str>,
}

/// What of the needs is not there, when programs are looked for in `path`.
pub(crate) fn missing(path: &[PathBuf], has_source: bool) -> Missing {
    let mut missing = Missing::default();
    let is_there = |what: &str| {
        if what.starts_with('/') {
            return Path::new(what).exists();
        }
        path.iter().any(|folder| folder.join(what).is_file())
    };
    for need in NEEDS.iter().filter(|need| !is_there(need.what)) {
        missing.what.push(need.what);
        missing.packages.push(need.package);
    }
    if !has_source {
        missing.what.push("the kernel's source");
        missing.packages.push(SOURCE_PACKAGE);
    }
    missing
}

/// Where programs are looked for.
pub(crate) fn search_path() -> Vec<PathBuf> {
    env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default()
}

/// Whether packages may be installed: by root, where there is `apt-get`.
pub(crate) fn may_install(path: &[PathBuf]) -> bool {
    is_root() && path.iter().any(|folder| folder.join("apt-get").is_file())
}

#[cfg(target_os = "linux")]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(target_os = "linux"))]
const fn is_root() -> bool {
    false
}

/// The command that installs packages.
pub(crate) fn installing(packages: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command.args(["install", "--yes", "--quiet", "--no-install-recommends"]);
    command.args(packages);
    command
}

/// The command that learns which packages there are.
pub(crate) fn updating() -> Command {
    let mut command = Command::new("apt-get");
    command.args(["update", "--quiet"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_nothing_in_the_path_every_program_is_missing_with_its_package() {
        let missing = missing(&[], false);
        assert!(missing.what.contains(&"gcc") && missing.packages.contains(&"gcc"));
        assert!(missing.what.contains(&"xz") && missing.packages.contains(&"xz-utils"));
        assert_eq!(missing.packages.last(), Some(&SOURCE_PACKAGE));
    }

    #[test]
    fn programs_in_the_path_are_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        for need in &NEEDS {
            if !need.what.starts_with('/') {
                std::fs::write(folder.path().join(need.what), "").unwrap();
            }
        }
        let mut found = missing(&[folder.path().to_owned()], true);
        found.what.retain(|what| !what.starts_with('/'));
        assert!(found.what.is_empty(), "{found:?}");
    }
}
