//! How the kernel's clock is changed: exact to the nanosecond, and free to read.

use super::Edit;

/// How often the clock may be read at one instant before reading it costs
/// anything.
pub(super) const FREE_READS: u32 = 1000;

/// What a reading of the clock costs beyond that, in nanoseconds: as much as it
/// costs unedited from the first on.
const READ_COST_NS: u32 = 256;

/// All of them.
pub(super) fn edits() -> Vec<Edit> {
    [shared_clock(), timed().to_vec()].concat()
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
                "\t\t    !time_travel_ext_waiting && !um_clock_is_being_set) {{\n\
                 \t\t\tif (um_clock_read_at != time_travel_time)\n\
                 \t\t\t\tum_clock_asked = 0;\n\
                 \t\t\tif (um_clock && um_clock_set_at == time_travel_time &&\n\
                 \t\t\t    READ_ONCE(um_clock->reads) > {FREE_READS})\n\
                 \t\t\t\tum_clock_asked = {FREE_READS};\n\
                 \t\t\tif (++um_clock_asked > {FREE_READS})\n\
                 \t\t\t\ttime_travel_update_time_rel({READ_COST_NS});\n\
                 \t\t\tum_clock_read_at = time_travel_time;\n\
                 \t\t}}\n"
            ),
            otherwise: Vec::new(),
            concerns: Some("time_travel_update_time_rel"),
        },
        // A timer fires when it is due, not a nanosecond later.
        Edit {
            file: "arch/um/kernel/time.c",
            find: "\tdelta += 1;\n\n\tif (time_travel_mode".to_owned(),
            replace: "\tdelta += time_travel_mode == TT_MODE_OFF;\n\n\tif (time_travel_mode"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("delta += 1"),
        },
        // Nor may a timer be late so that its processor wakes less often: by
        // 50 us or, of `poll`, a thousandth of the wait.
        Edit {
            file: "init/init_task.c",
            find: ".timer_slack_ns = 50000,".to_owned(),
            replace: ".timer_slack_ns = 0,".to_owned(),
            otherwise: Vec::new(),
            concerns: Some("timer_slack_ns"),
        },
        Edit {
            file: "fs/select.c",
            find: "#define MAX_SLACK\t(100 * NSEC_PER_MSEC)".to_owned(),
            replace: "#define MAX_SLACK\t0".to_owned(),
            otherwise: Vec::new(),
            concerns: Some("MAX_SLACK"),
        },
        // A system call that fails would take a microsecond, so that a loop that
        // tries until it does not fail ends. It is a reading of the clock.
        Edit {
            file: "arch/um/kernel/skas/syscall.c",
            find: "\t\t\tum_udelay(1);\n".to_owned(),
            replace: "\t\t\tktime_get_ns();\n".to_owned(),
            otherwise: Vec::new(),
            concerns: Some("um_udelay"),
        },
        // The clock goes by nanoseconds, not by steps of 256.
        Edit {
            file: "arch/um/include/linux/time-internal.h",
            find: "#define TIMER_MULTIPLIER 256\n".to_owned(),
            replace: "#define TIMER_MULTIPLIER 1\n".to_owned(),
            otherwise: Vec::new(),
            concerns: Some("TIMER_MULTIPLIER"),
        },
        // So do timers, not by 500 at least.
        Edit {
            file: "arch/um/include/linux/time-internal.h",
            find: "#define TIMER_MIN_DELTA  500\n".to_owned(),
            replace: "#define TIMER_MIN_DELTA  1\n".to_owned(),
            otherwise: Vec::new(),
            concerns: Some("TIMER_MIN_DELTA"),
        },
    ]
}

/// What spares processes of the guest a system call for every reading of the clock,
/// half of all that a game's transport makes, each of which costs two switches of
/// process on the machine.
///
/// The clock stands still while they run. So the kernel writes what it reports into a
/// page that all of them share before it lets one run, and the functions of the vDSO
/// read it there, in the page below their own. They count what they read, and from
/// [`FREE_READS`] on ask the kernel, which lets time pass for them as for all who
/// read it without end.
fn shared_clock() -> Vec<Edit> {
    [published().to_vec(), mapped().to_vec(), vec![read()]].concat()
}

/// The page, and that the kernel writes it.
fn published() -> [Edit; 2] {
    [
        Edit {
            file: "arch/um/kernel/time.c",
            find: "static u64 timer_read(struct clocksource *cs)\n{\n".to_owned(),
            replace: format!(
                "/* Read by the vDSO, which counts how often. */\n\
                 struct um_clock {{\n\
                 \tunsigned long long monotonic_ns, realtime_ns;\n\
                 \tunsigned int reads;\n\
                 }};\n\
                 static struct um_clock *um_clock;\n\
                 static bool um_clock_is_being_set;\n\
                 /* How often the kernel was asked at this instant. */\n\
                 static unsigned long long um_clock_read_at, um_clock_set_at;\n\
                 static unsigned int um_clock_asked;\n\n\
                 /* The page of the clock, for the first process and all that follow. */\n\
                 struct page *um_clock_page(void);\n\
                 struct page *um_clock_page(void)\n\
                 {{\n\
                 \tif (!um_clock)\n\
                 \t\tum_clock = (struct um_clock *) get_zeroed_page(GFP_KERNEL);\n\
                 \treturn um_clock ? virt_to_page(um_clock) : NULL;\n\
                 }}\n\n\
                 /* Before a process runs: the clock stands still while it does. */\n\
                 void um_clock_publish(void);\n\
                 void um_clock_publish(void)\n\
                 {{\n\
                 \tif (!um_clock || time_travel_mode != TT_MODE_INFCPU ||\n\
                 \t    um_clock_set_at == time_travel_time)\n\
                 \t\treturn;\n\
                 \tum_clock_set_at = time_travel_time;\n\
                 \tum_clock_is_being_set = true;\n\
                 \tum_clock->monotonic_ns = ktime_get_ns();\n\
                 \tum_clock->realtime_ns = ktime_get_real_ns();\n\
                 \t/* Who goes on after paying goes on paying. */\n\
                 \tum_clock->reads = um_clock_read_at == time_travel_time &&\n\
                 \t\tum_clock_asked > {FREE_READS} ? {FREE_READS} + 1 : 0;\n\
                 \tum_clock_is_being_set = false;\n\
                 }}\n\n\
                 static u64\ntimer_read(struct clocksource *cs)\n{{\n"
            ),
            otherwise: Vec::new(),
            concerns: Some("timer_read(struct clocksource *cs)"),
        },
        Edit {
            file: "arch/um/kernel/process.c",
            find: "void interrupt_end(void)\n{\n".to_owned(),
            replace: "void um_clock_publish(void);\n\
                      static void handle_pending(void);\n\n\
                      void\ninterrupt_end(void)\n{\n\
                      \thandle_pending();\n\
                      \tum_clock_publish();\n\
                      }\n\n\
                      static void handle_pending(void)\n{\n"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("interrupt_end(void)"),
        },
    ]
}

/// Where processes have it.
fn mapped() -> [Edit; 2] {
    [
        Edit {
            file: "arch/x86/um/vdso/vma.c",
            find: "int arch_setup_additional_pages(struct linux_binprm *bprm, int uses_interp)\n"
                .to_owned(),
            replace: "struct page *um_clock_page(void);\n\n\
                      /* Below the vDSO, where it looks for it. */\n\
                      static void map_clock(struct mm_struct *mm)\n\
                      {\n\
                      \tstatic struct page *pages[2];\n\
                      \tstatic struct vm_special_mapping mapping = {\n\
                      \t\t.name = \"[clock]\",\n\
                      \t\t.pages = pages,\n\
                      \t};\n\
                      \tunsigned long address = um_vdso_addr - PAGE_SIZE;\n\
                      \tstruct vm_area_struct *vma;\n\n\
                      \tpages[0] = um_clock_page();\n\
                      \tBUG_ON(!pages[0]);\n\
                      \tvma = _install_special_mapping(mm, address, PAGE_SIZE,\n\
                      \t\tVM_READ|VM_WRITE|VM_SHARED|\n\
                      \t\tVM_MAYREAD|VM_MAYWRITE|VM_MAYSHARE,\n\
                      \t\t&mapping);\n\
                      \tBUG_ON(IS_ERR(vma));\n\
                      \tBUG_ON(remap_pfn_range(vma, address, page_to_pfn(pages[0]),\n\
                      \t\t\t       PAGE_SIZE, PAGE_SHARED));\n\
                      }\n\n\
                      int\narch_setup_additional_pages(struct linux_binprm *bprm, int uses_interp)\n"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("arch_setup_additional_pages"),
        },
        Edit {
            file: "arch/x86/um/vdso/vma.c",
            find: "\tif (mmap_write_lock_killable(mm))\n\t\treturn -EINTR;\n\n".to_owned(),
            replace: "\tif (mmap_write_lock_killable(mm))\n\t\treturn -EINTR;\n\
                      \tmap_clock(mm);\n\n"
                .to_owned(),
            otherwise: Vec::new(),
            concerns: Some("mmap_write_lock_killable"),
        },
    ]
}

/// How they read it.
fn read() -> Edit {
    // Newer versions call it otherwise; it is the same.
    let [(find, replace), newer] = ["__kernel_old_timespec", "__kernel_timespec"].map(reading);
    Edit {
        file: "arch/x86/um/vdso/um_vdso.c",
        find,
        replace,
        otherwise: vec![newer],
        concerns: Some("__vdso_clock_gettime(clockid_t clock"),
    }
}

/// The vDSO's function, as it is and as it is to be, where a time is a `timespec`.
fn reading(timespec: &str) -> (String, String) {
    let function = format!("__vdso_clock_gettime(clockid_t clock, struct {timespec} *ts)\n{{\n");
    let find = format!("int {function}\tlong ret;\n");
    let replace = format!(
        "/* In the page below this one, shared by all processes; the kernel writes it. */\n\
         struct um_clock {{\n\
         \tunsigned long long monotonic_ns, realtime_ns;\n\
         \tunsigned int reads;\n\
         }};\n\n\
         /* Whether the clock may be read without asking the kernel once more. */\n\
         static inline int read_clock(clockid_t id, unsigned long long *ns)\n\
         {{\n\
         \tvolatile struct um_clock *clock;\n\
         \tunsigned long here;\n\n\
         \tasm(\"lea 0(%%rip), %0\" : \"=r\" (here));\n\
         \tclock = (void *) ((here & ~0xfffUL) - 0x1000);\n\
         \tif (!clock->monotonic_ns || (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME))\n\
         \t\treturn 0;\n\
         \tif (clock->reads > {FREE_READS} || ++clock->reads > {FREE_READS})\n\
         \t\treturn 0;\n\
         \t*ns = id == CLOCK_MONOTONIC ? clock->monotonic_ns : clock->realtime_ns;\n\
         \treturn 1;\n\
         }}\n\n\
         int\n{function}\
         \tunsigned long long ns;\n\
         \tlong ret;\n\n\
         \tif (read_clock(clock, &ns)) {{\n\
         \t\tts->tv_sec = ns / 1000000000;\n\
         \t\tts->tv_nsec = ns % 1000000000;\n\
         \t\treturn 0;\n\
         \t}}\n"
    );
    (find, replace)
}
