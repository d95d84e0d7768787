//! What is changed in the kernel's source before it is built, and why.
//!
//! Few lines, found by their text, so that they hold for many versions. Where
//! a version does without what one of them mends, it is left alone.

use std::fs;
use std::path::Path;

use crate::error::{Doing as _, Error};

/// One change.
#[derive(Clone)]
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

/// How often the clock may be read at one instant before reading it costs
/// anything.
const FREE_READS: u32 = 1000;

/// What a reading of the clock costs beyond that, in nanoseconds: as much as it
/// costs unedited from the first on.
const READ_COST_NS: u32 = 256;

fn edits(hz: u16) -> Vec<Edit> {
    [
        pinned(hz),
        vec![roomy()],
        timed().into(),
        time_stamps().into(),
    ]
    .concat()
}

/// What would differ from machine to machine and from run to run.
fn pinned(hz: u16) -> Vec<Edit> {
    vec![
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

/// What a kernel with few drivers does otherwise than one with all: it leaves less
/// room for headers in every packet that TCP sends (192 bytes rather than 320, as
/// with wireless networks and tunnels), so that more packets fit into a send buffer.
fn roomy() -> Edit {
    Edit {
        file: "include/net/tcp.h",
        find: "L1_CACHE_ALIGN(128 + MAX_HEADER)".to_owned(),
        replace: "L1_CACHE_ALIGN(128 + 128 + 48)".to_owned(),
        concerns: Some("define MAX_TCP_HEADER"),
    }
}

/// What keeps things from happening at the very instant at which they are due,
/// as in a simulation.
fn timed() -> [Edit; 7] {
    [
        // Computing takes no time, but reading the clock would: 256 ns each, so
        // that a loop that waits for the clock ends. A packet's way through
        // hosts and router would take some microseconds by that, which no
        // simulation has. Only who reads it without end at one instant pays.
        Edit {
            file: "arch/um/kernel/time.c",
            find: "\t\t    !time_travel_ext_waiting)\n\
                   \t\t\ttime_travel_update_time_rel(TIMER_MULTIPLIER);\n"
                .to_owned(),
            replace: format!(
                "\t\t    !time_travel_ext_waiting) {{\n\
                 \t\t\tstatic unsigned long long read_at;\n\
                 \t\t\tstatic unsigned int reads;\n\n\
                 \t\t\tif (read_at != time_travel_time)\n\
                 \t\t\t\treads = 0;\n\
                 \t\t\tif (++reads > {FREE_READS})\n\
                 \t\t\t\ttime_travel_update_time_rel({READ_COST_NS});\n\
                 \t\t\tread_at = time_travel_time;\n\
                 \t\t}}\n"
            ),
            concerns: Some("time_travel_update_time_rel"),
        },
        // A timer fires when it is due, not a nanosecond later.
        Edit {
            file: "arch/um/kernel/time.c",
            find: "\tdelta += 1;\n\n\tif (time_travel_mode".to_owned(),
            replace: "\tdelta += time_travel_mode == TT_MODE_OFF;\n\n\tif (time_travel_mode"
                .to_owned(),
            concerns: Some("delta += 1"),
        },
        // Nor may a timer be late so that its processor wakes less often: by
        // 50 us or, of `poll`, a thousandth of the wait.
        Edit {
            file: "init/init_task.c",
            find: ".timer_slack_ns = 50000,".to_owned(),
            replace: ".timer_slack_ns = 0,".to_owned(),
            concerns: Some("timer_slack_ns"),
        },
        Edit {
            file: "fs/select.c",
            find: "#define MAX_SLACK\t(100 * NSEC_PER_MSEC)".to_owned(),
            replace: "#define MAX_SLACK\t0".to_owned(),
            concerns: Some("MAX_SLACK"),
        },
        // A system call that fails would take a microsecond, so that a loop that
        // tries until it does not fail ends. It is a reading of the clock.
        Edit {
            file: "arch/um/kernel/skas/syscall.c",
            find: "\t\t\tum_udelay(1);\n".to_owned(),
            replace: "\t\t\tktime_get_ns();\n".to_owned(),
            concerns: Some("um_udelay"),
        },
        // The clock goes by nanoseconds, not by steps of 256.
        Edit {
            file: "arch/um/include/linux/time-internal.h",
            find: "#define TIMER_MULTIPLIER 256\n".to_owned(),
            replace: "#define TIMER_MULTIPLIER 1\n".to_owned(),
            concerns: Some("TIMER_MULTIPLIER"),
        },
        // So do timers, not by 500 at least.
        Edit {
            file: "arch/um/include/linux/time-internal.h",
            find: "#define TIMER_MIN_DELTA  500\n".to_owned(),
            replace: "#define TIMER_MIN_DELTA  1\n".to_owned(),
            concerns: Some("TIMER_MIN_DELTA"),
        },
    ]
}

/// What a program finds that reads the processor's time-stamp counter: the guest's
/// clock in nanoseconds instead of the machine's cycles, and as on a processor never
/// the same twice. Libraries of transports keep time by it (UDT does), and would see
/// hours of waiting pass in an instant.
///
/// The machine's processor is asked (`PR_SET_TSC`, prctl(2)) to fault on `rdtsc` and
/// `rdtscp` in the guest's processes, which inherit this from the first; the fault
/// is answered where page faults are.
fn time_stamps() -> [Edit; 4] {
    [
        Edit {
            file: "arch/um/os-Linux/skas/process.c",
            find: "#include <sys/mman.h>\n#include <sys/wait.h>\n".to_owned(),
            replace: "#include <sys/mman.h>\n#include <sys/prctl.h>\n#include <sys/wait.h>\n"
                .to_owned(),
            concerns: Some("#include <sys/mman.h>"),
        },
        Edit {
            file: "arch/um/os-Linux/skas/process.c",
            find: "\tsignal(SIGTERM, SIG_DFL);\n".to_owned(),
            replace: "\tprctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);\n\
                      \tsignal(SIGTERM, SIG_DFL); /* the counter first */\n"
                .to_owned(),
            concerns: Some("static int userspace_tramp"),
        },
        Edit {
            file: "arch/um/kernel/trap.c",
            find: "static void show_segv_info(struct uml_pt_regs *regs)\n{\n".to_owned(),
            replace: "/* Answers rdtsc (0f 31) and rdtscp (0f 01 f9); trap 13 is theirs. */\n\
                      static bool time_stamp_read(struct faultinfo *fi, struct uml_pt_regs *regs)\n\
                      {\n\
                      \tstatic unsigned long long last;\n\
                      \tunsigned char code[3] = { 0 };\n\
                      \tunsigned long unread;\n\
                      \tint length;\n\n\
                      \tif (fi->trap_no != 13)\n\
                      \t\treturn false;\n\
                      \tunread = copy_from_user(code, (void __user *) UPT_IP(regs), 3);\n\
                      \tif (unread <= 1 && code[0] == 0x0f && code[1] == 0x31)\n\
                      \t\tlength = 2;\n\
                      \telse if (!unread && code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9)\n\
                      \t\tlength = 3;\n\
                      \telse\n\
                      \t\treturn false;\n\
                      \tlast = max_t(unsigned long long, last + 1, ktime_get_ns());\n\
                      \tregs->gp[HOST_AX] = last & 0xffffffff;\n\
                      \tregs->gp[HOST_DX] = last >> 32;\n\
                      \tif (length == 3)\n\
                      \t\tregs->gp[HOST_CX] = 0;\n\
                      \tUPT_IP(regs) += length;\n\
                      \treturn true;\n\
                      }\n\n\
                      static void\nshow_segv_info(struct uml_pt_regs *regs)\n{\n"
                .to_owned(),
            concerns: Some("show_segv_info"),
        },
        Edit {
            file: "arch/um/kernel/trap.c",
            find: "\tif (UPT_IS_USER(regs) && !SEGV_IS_FIXABLE(fi)) {\n".to_owned(),
            replace: "\tif (UPT_IS_USER(regs) && time_stamp_read(fi, regs))\n\
                      \t\treturn;\n\
                      \tif (!SEGV_IS_FIXABLE(fi) && UPT_IS_USER(regs)) {\n"
                .to_owned(),
            concerns: Some("!SEGV_IS_FIXABLE"),
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
        .iter()
        .map(|edit| [edit.file, &edit.find, &edit.replace].join("\n"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KCONFIG: &str = "config HZ\n\tint\n\tdefault 100\n\nconfig NR_CPUS\n";
    const UTIL: &str = "ssize_t os_getrandom()\n{\n\treturn getrandom(buf, len, flags);\n}\n";
    const PROCESS: &str = "#include <sys/mman.h>\n#include <sys/wait.h>\n\
                           static int userspace_tramp(void *stack)\n\
                           \tsignal(SIGTERM, SIG_DFL);\n\
                           ptrace(X, pid, 0, (void *) PTRACE_O_TRACESYSGOOD) < 0\n\
                           ptrace(X, pid, 0, (void *)PTRACE_O_TRACESYSGOOD) < 0\n";

    const TRAP: &str = "static void show_segv_info(struct uml_pt_regs *regs)\n{\n}\n\
                        \tif (UPT_IS_USER(regs) && !SEGV_IS_FIXABLE(fi)) {\n";
    const TCP: &str = "#define MAX_TCP_HEADER\tL1_CACHE_ALIGN(128 + MAX_HEADER)\n";
    const TIME: &str = "\tdelta += 1;\n\n\tif (time_travel_mode != TT_MODE_OFF) {\n\
                        \t\tif (!in_softirq() &&\n\
                        \t\t    !time_travel_ext_waiting)\n\
                        \t\t\ttime_travel_update_time_rel(TIMER_MULTIPLIER);\n";
    const INTERNAL: &str = "#define TIMER_MULTIPLIER 256\n#define TIMER_MIN_DELTA  500\n";

    fn tree(kconfig: &str, util: &str, process: &str) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for edit in edits(1000) {
            let text = match edit.file {
                "arch/um/Kconfig" => kconfig,
                "arch/um/os-Linux/util.c" => util,
                "arch/um/os-Linux/skas/process.c" => process,
                "arch/um/kernel/time.c" => TIME,
                "arch/um/kernel/trap.c" => TRAP,
                "arch/um/include/linux/time-internal.h" => INTERNAL,
                "include/net/tcp.h" => TCP,
                "init/init_task.c" => "\t.timer_slack_ns = 50000, /* 50 usec */\n",
                "fs/select.c" => "#define MAX_SLACK\t(100 * NSEC_PER_MSEC)\n",
                "arch/um/kernel/skas/syscall.c" => "\t\t\tum_udelay(1);\n",
                other => panic!("no text for {other}"),
            };
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
    fn reading_the_clock_is_free_at_first_timers_are_exact_and_headers_have_room() {
        let tree = tree(KCONFIG, UTIL, PROCESS);
        for _ in 0..2 {
            apply(tree.path(), 1000).unwrap();
        }
        let time = read(&tree, "arch/um/kernel/time.c");
        assert_eq!(time.matches("if (++reads > 1000)").count(), 1, "{time}");
        assert_eq!(
            time.matches("delta += time_travel_mode == TT_MODE_OFF;")
                .count(),
            1
        );
        let internal = read(&tree, "arch/um/include/linux/time-internal.h");
        let exact = "#define TIMER_MULTIPLIER 1\n#define TIMER_MIN_DELTA  1\n";
        assert_eq!(internal, exact);
        assert!(read(&tree, "init/init_task.c").contains("slack_ns = 0,"));
        assert_eq!(read(&tree, "fs/select.c"), "#define MAX_SLACK\t0\n");
        assert!(read(&tree, "include/net/tcp.h").contains("L1_CACHE_ALIGN(128 + 128 + 48)"));
        let failing = read(&tree, "arch/um/kernel/skas/syscall.c");
        assert_eq!(failing, "\t\t\tktime_get_ns();\n");
    }

    #[test]
    fn a_guest_that_reads_the_time_stamp_counter_is_answered_by_its_kernel() {
        let tree = tree(KCONFIG, UTIL, PROCESS);
        for _ in 0..2 {
            apply(tree.path(), 1000).unwrap();
        }
        let process = read(&tree, "arch/um/os-Linux/skas/process.c");
        assert_eq!(process.matches("PR_TSC_SIGSEGV").count(), 1, "{process}");
        assert_eq!(process.matches("<sys/prctl.h>").count(), 1, "{process}");
        let trap = read(&tree, "arch/um/kernel/trap.c");
        assert_eq!(trap.matches("static bool time_stamp_read").count(), 1);
        assert_eq!(trap.matches("&& time_stamp_read(fi, regs)").count(), 1);
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
