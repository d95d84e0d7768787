//! What a program finds that reads the processor's time-stamp counter: the guest's
//! clock in nanoseconds instead of the machine's cycles, and as on a processor never
//! the same twice. Libraries of transports keep time by it (UDT does), and would see
//! hours of waiting pass in an instant.
//!
//! The machine's processor is asked (`PR_SET_TSC`, prctl(2)) to fault on `rdtsc` and
//! `rdtscp` in the guest's processes, which inherit this from the first. The fault is
//! answered by the guest's kernel, before the process is asked where it faulted; where
//! processes are trapped by seccomp, by the process's own handler of signals, which the
//! kernel lends the clock to, as long as reading it costs nothing: that spares the two
//! switches between processes.

use super::Edit;
use super::clock::FREE_READS;

/// Where processes of the guest are started and their traps waited for.
const PROCESS: &str = "arch/um/os-Linux/skas/process.c";

/// What the kernel puts into each of them.
const STUBS: &str = "arch/um/kernel/skas/stub.c";

/// In the kernel's clock: the counter, and what of it is lent.
const COUNTER: &str = include_str!("counter.c");

/// Beside the traps: the answer by the kernel to a traced process.
const TRACED: &str = include_str!("counter_traced.c");

/// In the handler of signals of a process that is not traced.
const STUB: &str = include_str!("counter_stub.c");

/// All of them.
pub(super) fn edits() -> Vec<Edit> {
    [counted().to_vec(), traced().to_vec(), lent().to_vec()].concat()
}

/// The counter itself.
fn counted() -> [Edit; 2] {
    [
        Edit {
            file: "arch/um/kernel/time.c",
            find: "static struct clocksource timer_clocksource = {\n".to_owned(),
            replace: format!(
                "{}\nstatic struct clocksource\ntimer_clocksource = {{\n",
                COUNTER.replace("FREE_READS", &FREE_READS.to_string())
            ),
            otherwise: Vec::new(),
            concerns: Some("timer_clocksource"),
        },
        Edit {
            file: "arch/um/kernel/trap.c",
            find: "static void show_segv_info(struct uml_pt_regs *regs)\n{\n".to_owned(),
            replace:
                "/* The clock as the counter that an instruction of `length` bytes has read. */\n\
                      unsigned long long um_time_stamp_next(void);\n\
                      void um_time_stamp(struct uml_pt_regs *regs, int length);\n\
                      void um_time_stamp(struct uml_pt_regs *regs, int length)\n\
                      {\n\
                      \tunsigned long long now = um_time_stamp_next();\n\n\
                      \tregs->gp[HOST_AX] = now & 0xffffffff;\n\
                      \tregs->gp[HOST_DX] = now >> 32;\n\
                      \tif (length == 3)\n\
                      \t\tregs->gp[HOST_CX] = 0;\n\
                      \tUPT_IP(regs) += length;\n\
                      }\n\n\
                      static void\nshow_segv_info(struct uml_pt_regs *regs)\n{\n"
                    .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("show_segv_info"),
        },
    ]
}

/// That it faults, and that the kernel answers a traced process.
fn traced() -> [Edit; 4] {
    [
        Edit {
            file: PROCESS,
            find: "#include <sys/mman.h>\n#include <sys/wait.h>\n".to_owned(),
            replace: "#include <sys/mman.h>\n#include <sys/prctl.h>\n#include <sys/wait.h>\n"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("#include <sys/mman.h>"),
        },
        // From 6.13 on a program of its own is what becomes the guest's process.
        Edit {
            file: PROCESS,
            find: "\tsignal(SIGTERM, SIG_DFL);\n".to_owned(),
            replace: "\tprctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);\n\
                      \tsignal(SIGTERM, SIG_DFL); /* the counter first */\n"
                .to_owned(),
            otherwise: vec![(
                "\tsyscall(__NR_execveat, stub_exe_fd,".to_owned(),
                "\tprctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);\n\
                 \t(void) syscall(__NR_execveat, stub_exe_fd,"
                    .to_owned(),
            )],
            concerns: Some("static int userspace_tramp"),
        },
        Edit {
            file: PROCESS,
            find: "void userspace(struct uml_pt_regs *regs".to_owned(),
            replace: format!("{TRACED}\nvoid\nuserspace(struct uml_pt_regs *regs"),
            otherwise: Vec::new(),
            concerns: Some("userspace(struct uml_pt_regs *regs"),
        },
        Edit {
            file: PROCESS,
            find: "\t\t\tcase SIGSEGV:\n\t\t\t\tif (PTRACE_FULL_FAULTINFO) {\n".to_owned(),
            replace: "\t\t\tcase SIGSEGV:\n\
                      \t\t\t\tif (time_stamp_read(pid, &si, regs))\n\
                      \t\t\t\t\tbreak;\n\
                      \t\t\t\tif (PTRACE_FULL_FAULTINFO) {\n"
                .to_owned(),
            otherwise: vec![(
                "\t\t\t\tcase SIGSEGV:\n\t\t\t\t\tget_skas_faultinfo(pid,".to_owned(),
                "\t\t\t\tcase SIGSEGV:\n\
                 \t\t\t\t\tptrace(PTRACE_GETSIGINFO, pid, 0, &si_local);\n\
                 \t\t\t\t\tif (time_stamp_read(pid, &si_local, regs)) {\n\
                 \t\t\t\t\t\t/* Nothing else is to be done. */\n\
                 \t\t\t\t\t\tsig = SIGALRM;\n\
                 \t\t\t\t\t\tsi = NULL;\n\
                 \t\t\t\t\t\tbreak;\n\
                 \t\t\t\t\t}\n\
                 \t\t\t\t\tget_skas_faultinfo(pid,"
                    .to_owned(),
            )],
            concerns: Some("PTRACE_FULL_FAULTINFO"),
        },
    ]
}

/// What a process answers by itself that is trapped by seccomp.
fn lent() -> [Edit; 5] {
    [
        Edit {
            file: STUBS,
            find: "void __section(\".__syscall_stub\")\nstub_signal_interrupt(int sig".to_owned(),
            replace: format!(
                "{STUB}\nvoid\n__section(\".__syscall_stub\")\nstub_signal_interrupt(int sig"
            ),
            otherwise: Vec::new(),
            concerns: Some("stub_signal_interrupt"),
        },
        Edit {
            file: STUBS,
            find: "\tlong res;\n\n\td->signal = sig;\n".to_owned(),
            replace: "\tlong res;\n\n\
                      \tif (sig == SIGSEGV && time_stamp_read(d, info, uc))\n\
                      \t\treturn;\n\
                      \td->signal = sig;\n"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("d->signal = sig;"),
        },
        Edit {
            file: "arch/um/include/shared/skas/stub-data.h",
            find: "\tshort restart_wait;\n".to_owned(),
            replace: "\tunsigned long long time_stamp_now, time_stamp_last;\n\
                      \tunsigned int time_stamps_left;\n\
                      \tint time_stamp_length;\n\
                      \tshort restart_wait; /* last */\n"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("restart_wait"),
        },
        Edit {
            file: PROCESS,
            find: "\t\t\tproc_data->syscall_data_len = mm_id->syscall_data_len;\n\n".to_owned(),
            replace: "\t\t\tproc_data->syscall_data_len = mm_id->syscall_data_len;\n\
                      \t\t\tproc_data->time_stamp_length = 0;\n\
                      \t\t\tunsigned int lent = um_time_stamps_lend(\n\
                      \t\t\t\t&proc_data->time_stamp_now, &proc_data->time_stamp_last);\n\
                      \t\t\tproc_data->time_stamps_left = lent;\n\n"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("wait_stub_done_seccomp(mm_id, 0, 0)"),
        },
        Edit {
            file: PROCESS,
            find: "\t\t\tregs->is_user = 1;\n\n\t\t\t/* Fill in ORIG_RAX".to_owned(),
            replace: "\t\t\tregs->is_user = 1;\n\
                      \t\t\tum_time_stamps_settle(proc_data->time_stamp_last,\n\
                      \t\t\t\t\t      lent - proc_data->time_stamps_left);\n\
                      \t\t\tif (sig == SIGSEGV && proc_data->time_stamp_length) {\n\
                      \t\t\t\tum_time_stamp(regs, proc_data->time_stamp_length);\n\
                      \t\t\t\tsig = SIGALRM; /* nothing else is to be done */\n\
                      \t\t\t}\n\n\
                      \t\t\t/* Fill in ORIG_RAX"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("wait_stub_done_seccomp(mm_id, 0, 0)"),
        },
    ]
}
