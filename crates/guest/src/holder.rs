//! Which thread of a guest has its processor, found out from outside.
//!
//! While a thread computes the guest's clock stands still, so nothing within the
//! guest can say who it is. The kernel is an ordinary program: the thread it
//! runs stands in its variable `cpu_tasks`, and where a thread's name is in what
//! that points to can be seen from `init_task`, whose name is known. That needs
//! no help of the guest, and no knowledge of how its version lays things out.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use object::{Object as _, ObjectSymbol as _};

/// How often is looked.
const SAMPLES: usize = 20;
/// From one look to the next.
const BETWEEN: Duration = Duration::from_millis(10);
/// How the kernel's own idle thread is called, whose description the program
/// holds.
const IDLE: &[u8] = b"swapper";
/// The longest name of a thread, `TASK_COMM_LEN`.
const NAME_BYTES: usize = 16;
/// The largest description of a thread that is searched for its name.
const DESCRIPTION_BYTES: u64 = 64 << 10;

/// The name of the thread that has the processor most of the time now, in the
/// guest whose kernel is `program` in process `process`; nothing if none has, or
/// if it is not known.
pub(crate) fn busiest_thread(program: &Path, process: u32) -> Option<String> {
    let look = Look::new(program, process)?;
    let mut seen = BTreeMap::new();
    for _ in 0..SAMPLES {
        if let Some(name) = look.name() {
            *seen.entry(name).or_insert(0) += 1;
        }
        thread::sleep(BETWEEN);
    }
    let (name, _) = seen.into_iter().max_by_key(|(_, times)| *times)?;
    Some(name)
}

/// Where to look in a kernel's memory.
struct Look {
    memory: File,
    /// Where it stands which thread is running.
    current: u64,
    /// Where a thread's name is in its description.
    name_at: u64,
}

impl Look {
    fn new(program: &Path, process: u32) -> Option<Self> {
        let bytes = fs::read(program).ok()?;
        let program = object::File::parse(&*bytes).ok()?;
        let idle = program.symbol_by_name("init_task")?;
        let tasks = program.symbol_by_name("cpu_tasks")?;
        // A number and a pointer, or in newer versions the pointer alone.
        let current = tasks.address() + tasks.size().checked_sub(8)?.min(8);
        let memory = File::open(format!("/proc/{process}/mem")).ok()?;
        let mut description = vec![0; idle.size().min(DESCRIPTION_BYTES) as usize];
        memory
            .read_exact_at(&mut description, idle.address())
            .ok()?;
        let name_at = description
            .windows(IDLE.len())
            .position(|window| window == IDLE)?;
        Some(Self {
            memory,
            current,
            name_at: name_at as u64,
        })
    }

    /// The name of the running thread, unless that is the idle one.
    fn name(&self) -> Option<String> {
        let mut pointer = [0; 8];
        self.memory.read_exact_at(&mut pointer, self.current).ok()?;
        let mut name = [0; NAME_BYTES];
        let at = u64::from_le_bytes(pointer).checked_add(self.name_at)?;
        self.memory.read_exact_at(&mut name, at).ok()?;
        let name = name.split(|&byte| byte == 0).next()?;
        let is_one = !name.is_empty() && !name.starts_with(IDLE);
        // It is the guest's to choose, and goes to a terminal.
        is_one.then(|| String::from_utf8_lossy(name).escape_debug().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_no_kernel_reports_nothing() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(busiest_thread(&own, std::process::id()), None);
        assert_eq!(busiest_thread(Path::new("/dev/null"), 1), None);
    }
}
