//! What is changed in the kernel's source before it is built, and why.
//!
//! Few lines, found by their text, so that they hold for many versions. Where
//! a version does without what one of them mends, it is left alone.

use std::fs;
use std::path::Path;

use crate::error::{Doing as _, Error};

/// One change.
struct Edit {
    /// The file, from the top of the source.
    file: &'static str,
    /// What stands there.
    find: String,
    /// What is to stand there.
    replace: String,
    /// Text in the file by which it is known that the edit is needed, though
    /// `find` may be worded otherwise.
    concerns: Option<&'static str>,
}

/// Where the seed of the kernel's random numbers starts; any number would do.
const RANDOM_START: u64 = 0x6c61_676f_6d65_7465;

fn edits(hz: u16) -> [Edit; 3] {
    [
        // The tick has no prompt in this architecture, and so cannot be
        // configured. Versions that have one are configured.
        Edit {
            file: "arch/um/Kconfig",
            find: "config HZ\n\tint\n\tdefault 100\n".to_owned(),
            replace: format!("config HZ\n\tint\n\tdefault {hz}\n"),
            concerns: None,
        },
        // Random numbers come from the machine otherwise, and differ from run
        // to run. The kernel stirs its command line into them, which holds
        // the run's seed.
        Edit {
            file: "arch/um/os-Linux/util.c",
            find: "\treturn getrandom(buf, len, flags);\n".to_owned(),
            replace: format!(
                "\tstatic unsigned long long state = {RANDOM_START}ULL;\n\
                 \tunsigned char *bytes = buf;\n\
                 \tsize_t at;\n\n\
                 \tfor (at = 0; at < len; at++) {{\n\
                 \t\tstate = state * 6364136223846793005ULL + 1442695040888963407ULL;\n\
                 \t\tbytes[at] = state >> 56;\n\
                 \t}}\n\
                 \treturn len;\n"
            ),
            concerns: Some("getrandom("),
        },
        // The guest's processes are traced ones of the machine. If the kernel
        // is killed they must die with it: let go, they would run on as
        // processes of the machine. (1 << 20) is PTRACE_O_EXITKILL.
        Edit {
            file: "arch/um/os-Linux/skas/process.c",
            find: "PTRACE_O_TRACESYSGOOD)".to_owned(),
            replace: "(PTRACE_O_TRACESYSGOOD | (1 << 20)))".to_owned(),
            concerns: Some("PTRACE_O_TRACESYSGOOD"),
        },
    ]
}

/// Makes the changes in the source below `tree`.
pub(crate) fn apply(tree: &Path, hz: u16) -> Result<(), Error> {
    for edit in edits(hz) {
        let path = tree.join(edit.file);
        let text = fs::read_to_string(&path).doing(format!("reading {}", path.display()))?;
        let edited = edit.applied(&text).ok_or_else(|| Error::Source {
            path: path.clone(),
            why: "is not as in the versions that are known; use a released kernel's source"
                .to_owned(),
        })?;
        if edited != text {
            fs::write(&path, edited).doing(format!("writing {}", path.display()))?;
        }
    }
    Ok(())
}

impl Edit {
    /// The text with the change made; nothing if it is needed but its place
    /// is not found.
    fn applied(&self, text: &str) -> Option<String> {
        if text.contains(&self.find) {
            return Some(text.replace(&self.find, &self.replace));
        }
        let concerned = self.concerns.is_some_and(|mark| text.contains(mark));
        let has_it_already = text.contains(&self.replace);
        (!concerned || has_it_already).then(|| text.to_owned())
    }
}

/// All of them as a text, to tell kernels apart by.
pub(crate) fn description(hz: u16) -> String {
    edits(hz)
        .map(|edit| [edit.file, &edit.find, &edit.replace].join("\n"))
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KCONFIG: &str = "config HZ\n\tint\n\tdefault 100\n\nconfig NR_CPUS\n";
    const UTIL: &str = "ssize_t os_getrandom()\n{\n\treturn getrandom(buf, len, flags);\n}\n";
    const PROCESS: &str = "ptrace(X, pid, 0, (void *) PTRACE_O_TRACESYSGOOD) < 0\n\
                           ptrace(X, pid, 0, (void *)PTRACE_O_TRACESYSGOOD) < 0\n";

    fn tree(kconfig: &str, util: &str, process: &str) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (edit, text) in edits(1000).iter().zip([kconfig, util, process]) {
            let path = tree.path().join(edit.file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tree
    }

    fn read(tree: &tempfile::TempDir, file: &str) -> String {
        fs::read_to_string(tree.path().join(file)).unwrap()
    }

    #[test]
    fn tick_random_numbers_and_tracing_are_edited_once() {
        let tree = tree(KCONFIG, UTIL, PROCESS);
        for _ in 0..2 {
            apply(tree.path(), 250).unwrap();
        }
        assert!(read(&tree, "arch/um/Kconfig").contains("\tdefault 250\n\nconfig NR_CPUS"));
        let util = read(&tree, "arch/um/os-Linux/util.c");
        assert!(
            util.contains("state >> 56") && !util.contains("getrandom(buf"),
            "{util}"
        );
        let process = read(&tree, "arch/um/os-Linux/skas/process.c");
        assert_eq!(process.matches("(1 << 20)").count(), 2, "{process}");
    }

    #[test]
    fn a_version_that_does_without_is_left_alone() {
        let tree = tree(
            "source \"kernel/Kconfig.hz\"\n",
            "int other;\n",
            "int seccomp;\n",
        );
        apply(tree.path(), 1000).unwrap();
        assert_eq!(read(&tree, "arch/um/os-Linux/util.c"), "int other;\n");
    }

    #[test]
    fn randomness_in_other_words_is_refused_rather_than_left_unpinned() {
        let tree = tree(KCONFIG, "return getrandom(buffer, size, 0);\n", PROCESS);
        let refused = apply(tree.path(), 1000).unwrap_err();
        assert!(refused.is_input(), "{refused}");
    }
}
