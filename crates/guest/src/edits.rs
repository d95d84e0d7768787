//! What is changed in the kernel's source before it is built, and why.
//!
//! Few lines, found by their text, so that they hold for many versions. Where
//! a version does without what one of them mends, it is left alone.

mod clock;
mod counter;

use std::fs;
use std::iter;
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
    /// The same two as other versions have them.
    otherwise: Vec<(String, String)>,
    /// Text in the file by which it is known that the edit is needed, though
    /// `find` may be worded otherwise.
    concerns: Option<&'static str>,
}

/// Where the seed of the kernel's random numbers starts; any number would do.
const RANDOM_START: u64 = 0x6c61_676f_6d65_7465;

/// What a version may lack: the vDSO, without which the clock is read by system calls
/// and all is only slower; and what the kernel puts into processes that are not traced.
const MAY_LACK: [&str; 2] = ["arch/x86/um/vdso/", "arch/um/kernel/skas/stub.c"];

fn edits(hz: u16) -> Vec<Edit> {
    [
        pinned(hz),
        vec![roomy(), wide_registers()],
        processor_number().to_vec(),
        clock::edits(),
        counter::edits(),
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
            otherwise: Vec::new(),
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
            otherwise: Vec::new(),
            concerns: Some("getrandom("),
        },
        // The guest's processes are traced ones of the machine. If the kernel
        // is killed they must die with it: let go, they would run on as
        // processes of the machine. (1 << 20) is PTRACE_O_EXITKILL.
        Edit {
            file: "arch/um/os-Linux/skas/process.c",
            find: "PTRACE_O_TRACESYSGOOD)".to_owned(),
            replace: "(PTRACE_O_TRACESYSGOOD | (1 << 20)))".to_owned(),
            otherwise: Vec::new(),
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
        otherwise: Vec::new(),
        concerns: Some("define MAX_TCP_HEADER"),
    }
}

/// What a processor with more registers asks: its machine takes the vector registers of
/// a process whole only, and with AMX's tiles these are four times as long as what
/// versions before 6.13 keep of them. A guest's process has no tiles, for nobody asks the
/// machine for them, so what is kept is put in front of nothing. The machine takes as
/// much of it as it has. The word at 512 B says which registers follow; bits 17 and 18
/// are the tiles'.
fn wide_registers() -> Edit {
    Edit {
        file: "arch/x86/um/os-Linux/registers.c",
        find: "\t\tiov.iov_base = fp_regs;\n\
               \t\tiov.iov_len = FP_SIZE * sizeof(unsigned long);\n\
               \t\tif (ptrace(PTRACE_SETREGSET,"
            .to_owned(),
        replace: "\t\tstatic unsigned long whole[FP_SIZE + 2048];\n\
                  \t\tsize_t at;\n\n\
                  \t\tfor (at = 0; at < FP_SIZE; at++)\n\
                  \t\t\twhole[at] = fp_regs[at];\n\
                  \t\twhole[64] &= ~(3UL << 17);\n\
                  \t\tiov.iov_base = whole;\n\
                  \t\tiov.iov_len = sizeof(whole);\n\
                  \t\tif (ptrace(PTRACE_SETREGSET,"
            .to_owned(),
        otherwise: Vec::new(),
        concerns: Some("FP_SIZE * sizeof(unsigned long)"),
    }
}

/// What programs expect of a vDSO: which processor they are on, of which there is one.
/// Versions that have it themselves (the strong symbol) keep theirs.
fn processor_number() -> [Edit; 2] {
    [
        Edit {
            file: "arch/x86/um/vdso/vdso-note.S",
            find: "\t.long LINUX_VERSION_CODE\nELFNOTE_END\n".to_owned(),
            replace: format!(
                "\t.long LINUX_VERSION_CODE /* and code */\nELFNOTE_END\n{}",
                include_str!("edits/getcpu.S")
            ),
            otherwise: Vec::new(),
            concerns: None,
        },
        Edit {
            file: "arch/x86/um/vdso/vdso.lds.S",
            find: "\t\t__vdso_gettimeofday;\n\t\ttime;\n".to_owned(),
            replace: "\t\t__vdso_gettimeofday;\n\t\t__vdso_getcpu;\n\t\ttime;\n".to_owned(),
            otherwise: Vec::new(),
            concerns: None,
        },
    ]
}

/// Makes the changes in the source below `tree`.
pub(crate) fn apply(tree: &Path, hz: u16) -> Result<(), Error> {
    for edit in edits(hz) {
        let path = tree.join(edit.file);
        let may_lack = MAY_LACK.iter().any(|part| edit.file.starts_with(part));
        if may_lack && !path.exists() {
            continue;
        }
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
        let found = self.ways().find(|(find, _)| text.contains(*find));
        if let Some((find, replace)) = found {
            return Some(text.replace(find, replace));
        }
        let concerned = self.concerns.is_some_and(|mark| text.contains(mark));
        let has_it_already = self.ways().any(|(_, replace)| text.contains(replace));
        (!concerned || has_it_already).then(|| text.to_owned())
    }

    /// What is found, and what is to stand there, in each of the versions.
    fn ways(&self) -> impl Iterator<Item = (&str, &str)> {
        let otherwise = self
            .otherwise
            .iter()
            .map(|(find, replace)| (&**find, &**replace));
        iter::once((&*self.find, &*self.replace)).chain(otherwise)
    }
}

/// All of them as a text, to distinguish kernels by.
pub(crate) fn description(hz: u16) -> String {
    edits(hz)
        .iter()
        .flat_map(|edit| {
            let ways = edit.ways().flat_map(|(find, replace)| [find, replace]);
            iter::once(edit.file)
                .chain(ways)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
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
                           void userspace(struct uml_pt_regs *regs, unsigned long *aux)\n\
                           \t\t\tcase SIGSEGV:\n\t\t\t\tif (PTRACE_FULL_FAULTINFO) {\n\
                           \tsignal(SIGTERM, SIG_DFL);\n\
                           ptrace(X, pid, 0, (void *) PTRACE_O_TRACESYSGOOD) < 0\n\
                           ptrace(X, pid, 0, (void *)PTRACE_O_TRACESYSGOOD) < 0\n";
    /// As from 6.16 on.
    const NEWER_PROCESS: &str = "#include <sys/mman.h>\n#include <sys/wait.h>\n\
                           static int userspace_tramp(void *data)\n\
                           \tsyscall(__NR_execveat, stub_exe_fd, 0);\n\
                           void userspace(struct uml_pt_regs *regs)\n\
                           \t\t\tproc_data->syscall_data_len = mm_id->syscall_data_len;\n\n\
                           \t\t\twait_stub_done_seccomp(mm_id, 0, 0);\n\
                           \t\t\tregs->is_user = 1;\n\n\t\t\t/* Fill in ORIG_RAX */\n\
                           \t\t\t\tcase SIGSEGV:\n\t\t\t\t\tget_skas_faultinfo(pid, 0);\n\
                           \t\t\t\tif (using_seccomp || PTRACE_FULL_FAULTINFO)\n\
                           ptrace(X, pid, 0, (void *) PTRACE_O_TRACESYSGOOD) < 0\n";
    const STUB: &str = "void __section(\".__syscall_stub\")\nstub_signal_interrupt(int sig)\n{\n\
                        \tlong res;\n\n\td->signal = sig;\n";

    const TRAP: &str = "static void show_segv_info(struct uml_pt_regs *regs)\n{\n}\n";
    const VMA: &str = "int arch_setup_additional_pages(struct linux_binprm *bprm, int uses_interp)\n\
                       \tif (mmap_write_lock_killable(mm))\n\t\treturn -EINTR;\n\n";
    const VDSO: &str = "int __vdso_clock_gettime(clockid_t clock, struct __kernel_old_timespec *ts)\n\
                        {\n\tlong ret;\n";
    const REGISTERS: &str = "\t\tiov.iov_base = fp_regs;\n\
                             \t\tiov.iov_len = FP_SIZE * sizeof(unsigned long);\n\
                             \t\tif (ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov) < 0)\n";
    const TCP: &str = "#define MAX_TCP_HEADER\tL1_CACHE_ALIGN(128 + MAX_HEADER)\n";
    const TIME: &str = "static struct clocksource timer_clocksource = {\n\
                        static u64 timer_read(struct clocksource *cs)\n{\n\
                        \tdelta += 1;\n\n\tif (time_travel_mode != TT_MODE_OFF) {\n\
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
                "arch/x86/um/os-Linux/registers.c" => REGISTERS,
                "arch/um/kernel/process.c" => "void interrupt_end(void)\n{\n}\n",
                "arch/x86/um/vdso/vma.c" => VMA,
                "arch/x86/um/vdso/um_vdso.c" => VDSO,
                "arch/x86/um/vdso/vdso-note.S" => "\t.long LINUX_VERSION_CODE\nELFNOTE_END\n",
                "arch/x86/um/vdso/vdso.lds.S" => "\t\t__vdso_gettimeofday;\n\t\tgetcpu;\n",
                "arch/um/kernel/skas/stub.c" => STUB,
                "arch/um/include/shared/skas/stub-data.h" => "\tshort restart_wait;\n",
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
        assert_eq!(
            time.matches("if (++um_clock_asked > 1000)").count(),
            1,
            "{time}"
        );
        assert_eq!(time.matches("static struct um_clock *um_clock;").count(), 1);
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
    fn registers_that_are_not_kept_are_put_back_empty() {
        let tree = tree(KCONFIG, UTIL, PROCESS);
        for _ in 0..2 {
            apply(tree.path(), 1000).unwrap();
        }
        let registers = read(&tree, "arch/x86/um/os-Linux/registers.c");
        assert_eq!(
            registers.matches("iov_base = whole;").count(),
            1,
            "{registers}"
        );
        assert!(!registers.contains("iov_base = fp_regs"), "{registers}");
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
        assert_eq!(process.matches("if (time_stamp_read(pid,").count(), 1);
        let trap = read(&tree, "arch/um/kernel/trap.c");
        assert_eq!(trap.matches("regs->gp[HOST_AX] =").count(), 1);
    }

    #[test]
    fn the_clock_is_read_from_a_page_where_there_is_a_vdso() {
        let tree = tree(KCONFIG, UTIL, PROCESS);
        for _ in 0..2 {
            apply(tree.path(), 1000).unwrap();
        }
        let vma = read(&tree, "arch/x86/um/vdso/vma.c");
        assert_eq!(vma.matches("\tmap_clock(mm);\n").count(), 1, "{vma}");
        let vdso = read(&tree, "arch/x86/um/vdso/um_vdso.c");
        assert_eq!(vdso.matches("if (read_clock(clock, &ns))").count(), 1);
        let process = read(&tree, "arch/um/kernel/process.c");
        assert_eq!(process.matches("\tum_clock_publish();\n").count(), 1);
        let script = read(&tree, "arch/x86/um/vdso/vdso.lds.S");
        assert!(!script.contains("__vdso_getcpu"), "{script}");
        fs::remove_dir_all(tree.path().join(MAY_LACK[0])).unwrap();
        fs::remove_file(tree.path().join(MAY_LACK[1])).unwrap();
        apply(tree.path(), 1000).unwrap();
    }

    #[test]
    fn newer_versions_are_edited_where_they_word_it_otherwise() {
        let tree = tree(KCONFIG, UTIL, NEWER_PROCESS);
        let [script, vdso] = ["vdso.lds.S", "um_vdso.c"].map(|file| {
            let path = format!("arch/x86/um/vdso/{file}");
            let newer = read(&tree, &path)
                .replace("\t\tgetcpu;\n", "\t\ttime;\n")
                .replace("__kernel_old_timespec", "__kernel_timespec");
            fs::write(tree.path().join(&path), newer).unwrap();
            path
        });
        for _ in 0..2 {
            apply(tree.path(), 1000).unwrap();
        }
        let process = read(&tree, "arch/um/os-Linux/skas/process.c");
        for once in [
            "PR_TSC_SIGSEGV",
            "(void) syscall(__NR_execveat",
            "if (time_stamp_read(pid, &si_local, regs))",
            "lent = um_time_stamps_lend(",
            "um_time_stamps_settle(proc_data->",
        ] {
            assert_eq!(process.matches(once).count(), 1, "{once}: {process}");
        }
        let stub = read(&tree, "arch/um/kernel/skas/stub.c");
        assert_eq!(stub.matches("time_stamp_read(d, info, uc)").count(), 1);
        let data = read(&tree, "arch/um/include/shared/skas/stub-data.h");
        assert_eq!(data.matches("time_stamps_left").count(), 1, "{data}");
        assert_eq!(read(&tree, &script).matches("__vdso_getcpu;").count(), 1);
        assert!(read(&tree, &vdso).contains("if (read_clock(clock, &ns))"));
    }

    #[test]
    fn a_trap_in_other_words_is_refused_rather_than_left_without_a_clock() {
        for (known, other) in [
            ("get_skas_faultinfo(pid, 0)", "fault(pid)"),
            ("\tsyscall(__NR_execveat", "\texecveat("),
            ("/* Fill in ORIG_RAX */", "/* more */"),
        ] {
            let tree = tree(KCONFIG, UTIL, &NEWER_PROCESS.replace(known, other));
            let refused = apply(tree.path(), 1000).unwrap_err();
            assert!(refused.is_input(), "{known}: {refused}");
        }
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
