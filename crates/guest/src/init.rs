//! A guest from inside: its first process. It puts the file systems together,
//! gives up what the job must not have, runs the job, and turns the guest off.
//!
//! The root is the machine's own file system, read-only, beneath one in memory
//! that takes what is written. What is written to the shared folder alone
//! reaches the machine. The job is the user it is outside and has no
//! privileges, so it cannot mount the machine's files in another way; in a user
//! namespace of its own it may have all it wants of the guest's network.
//!
//! What the job says is written to a file of the machine that the job cannot
//! see, and not to the console: writing to a file takes no time by the guest's
//! clock however slow the machine is, where a console that is full would let the
//! clock run on.

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, PipeReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lagometer_platform::spawn_first;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{
    CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use rustix::time::{ClockId, clock_gettime};

use crate::copy::copy_tree;
use crate::protocol::{
    ENDED, End, Errand, JOB, KEPT, OUTPUT, OUTSIDE, OWN_OUTSIDE, SHARE, SHARE_OUTSIDE, Said,
    Stream, User, next_line,
};

/// Where the file system in memory is put together: a folder that every
/// machine has and of which a guest has no use.
const SITE: &str = "/proc";
/// The highest real-time priority that a guest's programs may take.
const FIRST: u64 = 1;
/// The most of what a job says that is written to the machine, in bytes.
const MOST_OUTPUT: u64 = 1 << 30;
/// What is said in place of the rest.
const TOO_MUCH: &[u8] = b"lagometer: this is 1 GiB of output; the rest is left out";
/// No capability has a number so high.
const CAPABILITIES: u32 = 64;

/// Is the guest's first process: the process that was started with
/// [`INIT`](crate::INIT) calls this. It returns only where it is no guest's
/// first process, with what the system said.
#[must_use]
pub fn init() -> io::Error {
    if std::process::id() != 1 {
        return io::Error::other("this is for the first process of a guest");
    }
    if let Err(error) = run() {
        log_to_kernel(&format!("the guest could not be set up: {error}"));
    }
    match reboot(RebootMode::RB_POWER_OFF) {
        Err(error) => error.into(),
        Ok(never) => match never {},
    }
}

fn run() -> io::Result<()> {
    let folder = fs::read_link(OUTSIDE)?;
    let errand: Errand = serde_json::from_slice(&fs::read(folder.join(JOB))?)?;
    let hidden = make_root(&folder)?;
    let output = File::create(hidden.own().join(OUTPUT))?;
    let output = Arc::new(Mutex::new(Record::new(output)));
    let (from_output, job_output) = io::pipe()?;
    let (from_error, job_error) = io::pipe()?;
    let start_relay = |stream, from| {
        let output = Arc::clone(&output);
        // What was said is to be on the machine before the job goes on: it may compute for
        // ever, and then the clock stands still and nobody else has the processor.
        spawn_first("init", move || relay(stream, from, &output))
    };
    let relays = [
        start_relay(Stream::Output, from_output)?,
        start_relay(Stream::Error, from_error)?,
    ];
    let (code, not_started) = match start(&errand, job_output, job_error) {
        Ok(mut child) => (exit_code(child.wait()?), None),
        Err(error) => (127, Some(error.to_string())),
    };
    let mut end = End {
        code,
        not_started,
        at: clock(),
        not_kept: None,
    };
    // Whatever it has left behind, so that nobody holds the pipes.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    for relay in relays {
        let _ = relay.join();
    }
    let kept = hidden.own().join(KEPT);
    if errand.job.keeps_files {
        let ours = Path::new(SHARE.trim_start_matches('/'));
        let copied = copy_tree(&hidden.written(), &kept, &[ours]);
        end.not_kept = copied.map_or_else(|why| Some(why.to_string()), |it| it.in_words());
    }
    // Files that fill the machine's disk leave no room to say how the job ended.
    if let Err(why) = write_end(&hidden, &end) {
        fs::remove_dir_all(&kept)?;
        end.not_kept = Some(why.to_string());
        write_end(&hidden, &end)?;
    }
    rustix::fs::sync();
    Ok(())
}

/// Leaves to the machine how the job ended.
fn write_end(hidden: &Hidden, end: &End) -> io::Result<()> {
    let mut file = File::create(hidden.own().join(ENDED))?;
    file.write_all(&serde_json::to_vec(end)?)?;
    file.sync_all()
}

/// Folders that the job cannot see, held open from before the root was moved.
struct Hidden {
    /// Where the first process leaves what is for the machine.
    own: File,
    /// What the job wrote.
    written: File,
}

impl Hidden {
    fn own(&self) -> PathBuf {
        held(&self.own)
    }

    fn written(&self) -> PathBuf {
        held(&self.written)
    }
}

/// The path to a folder that is held open.
fn held(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/.", folder.as_raw_fd()))
}

/// Puts the root together and moves into it.
fn make_root(folder: &Path) -> io::Result<Hidden> {
    let site = Path::new(SITE);
    // The folder is known by its path through the root that is left.
    let (share, own) = (folder.join(SHARE_OUTSIDE), folder.join(OWN_OUTSIDE));
    mount_at("tmpfs", site, Some("mode=755"))?;
    let root = site.join("root");
    for folder in ["upper", "work", "root", "own"] {
        fs::create_dir(site.join(folder))?;
    }
    mount_host_folder(&own, &site.join("own"))?;
    let hidden = Hidden {
        own: File::open(site.join("own"))?,
        written: File::open(site.join("upper"))?,
    };
    let layers = format!("lowerdir=/,upperdir={SITE}/upper,workdir={SITE}/work");
    mount_at("overlay", &root, Some(&layers))?;
    for (kind, at) in [("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev")] {
        let at = root.join(at);
        make_folder(&at)?;
        mount_at(kind, &at, None)?;
    }
    for (kind, at, options) in [
        ("devpts", "dev/pts", "mode=620,ptmxmode=666"),
        ("tmpfs", "dev/shm", "mode=1777"),
    ] {
        let at = root.join(at);
        make_folder(&at)?;
        mount_at(kind, &at, Some(options))?;
    }
    open_devices(&root.join("dev"))?;
    take_rights_of_helpers(&root.join("proc"))?;
    turn_loopback_on(&root.join("sys"))?;
    let inside = root.join(SHARE.trim_start_matches('/'));
    make_folder(&inside)?;
    mount_host_folder(&share, &inside)?;
    std::env::set_current_dir(&root)?;
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>)?;
    rustix::process::chroot(".")?;
    std::env::set_current_dir("/")?;
    Ok(hidden)
}

/// Mounts a folder of the machine, to be written to.
fn mount_host_folder(folder: &Path, at: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("folder"), at, Some("hostfs"), flags, Some(folder))?;
    Ok(())
}

/// Takes all rights from what the kernel starts by itself, as for a core file: which
/// program that is the job may write where its user is root, and a program with rights
/// could mount the machine's files to be written to. The kernel is configured to start
/// none; one that was built otherwise starts them without rights.
fn take_rights_of_helpers(proc: &Path) -> io::Result<()> {
    for set in ["bset", "inheritable"] {
        fs::write(proc.join("sys/kernel/usermodehelper").join(set), "0 0")?;
    }
    Ok(())
}

/// Programs that talk to each other in the guest expect it.
fn turn_loopback_on(sys: &Path) -> io::Result<()> {
    // IFF_UP and IFF_LOOPBACK, as in the kernel's `if.h`.
    fs::write(sys.join("class/net/lo/flags"), "0x9")
}

fn mount_at(kind: &str, at: &Path, options: Option<&str>) -> io::Result<()> {
    mount(Some(kind), at, Some(kind), MsFlags::empty(), options)
        .map_err(|error| io::Error::other(format!("mounting {kind} at {}: {error}", at.display())))
}

/// Makes a folder where there is none.
fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Lets everybody use the devices that are everybody's on other machines.
fn open_devices(dev: &Path) -> io::Result<()> {
    for device in [
        "null", "zero", "full", "random", "urandom", "tty", "ptmx", "net/tun",
    ] {
        let path: PathBuf = dev.join(device);
        if path.exists() {
            fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        }
    }
    for (name, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        std::os::unix::fs::symlink(to, dev.join(name))?;
    }
    Ok(())
}

/// Starts the job as its user and without privileges.
fn start(errand: &Errand, output: io::PipeWriter, error: io::PipeWriter) -> io::Result<Child> {
    let Some((program, arguments)) = errand.job.command.split_first() else {
        return Err(io::Error::other("there is no command"));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&errand.job.directory);
    command.env_clear();
    command.envs(
        errand
            .job
            .environment
            .iter()
            .map(|(key, value)| (key, value)),
    );
    command.stdin(Stdio::null());
    command.stdout(output).stderr(error);
    let user = errand.user.clone();
    // Privileges are a thread's, and what it starts inherits them.
    let spawned = thread::spawn(move || {
        give_up_privileges()?;
        become_user(&user)?;
        command.spawn()
    });
    spawned
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended")))
}

/// Programs that the calling thread starts from now on have no privileges,
/// whatever their user is; but their threads may be first. Of two that wake at
/// one instant, a router must be: what is due then has come before anybody looks.
fn give_up_privileges() -> io::Result<()> {
    let first = Some(FIRST);
    let limit = Rlimit {
        current: first,
        maximum: first,
    };
    setrlimit(Resource::Rtprio, limit)?;
    for number in 0..CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        // Root needs it to be root of a user namespace of its own. It is of no
        // other use: programs gain nothing from files' capabilities here.
        if capability == CapabilitySet::SETFCAP {
            continue;
        }
        // The system knows fewer than there are numbers.
        let _ = remove_capability_from_bounding_set(capability);
    }
    Ok(set_no_new_privs(true)?)
}

/// Makes the calling thread the user's, with all groups: what the user may read is read
/// in the guest, too.
fn become_user(user: &User) -> io::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().copied().map(Gid::from_raw).collect();
    set_thread_groups(&groups)?;
    let gid = Gid::from_raw(user.gid);
    set_thread_res_gid(gid, gid, gid)?;
    let uid = Uid::from_raw(user.uid);
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

/// What the job has said, as it is written down.
struct Record {
    file: File,
    /// For how many bytes more there is room.
    room: u64,
}

impl Record {
    const fn new(file: File) -> Self {
        Self {
            file,
            room: MOST_OUTPUT,
        }
    }

    fn write(&mut self, said: &Said<'_>) {
        let record = said.record();
        if let Some(room) = self.room.checked_sub(record.len() as u64) {
            self.room = room;
            // There is nowhere to complain of a full disk.
            let _ = self.file.write_all(&record);
        } else if self.room > 0 {
            self.room = 0;
            let end = Said {
                line: TOO_MUCH,
                stream: Stream::Error,
                is_whole: true,
                ..*said
            };
            let _ = self.file.write_all(&end.record());
        }
    }
}

/// Writes down what the job says, line by line, with the time.
fn relay(stream: Stream, from: PipeReader, output: &Mutex<Record>) {
    let mut reader = BufReader::new(from);
    while let Some(line) = next_line(&mut reader) {
        let said = Said {
            at: clock(),
            stream,
            line: line.strip_suffix(b"\n").unwrap_or(&line),
            is_whole: line.ends_with(b"\n"),
        };
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write(&said);
    }
}

/// Says why there is no guest, among what the kernel says.
fn log_to_kernel(words: &str) {
    // The root may not have been made: then the console is the first output.
    let _ = io::stdout().write_all(format!("{words}\n").as_bytes());
}

/// The guest's clock, since it booted.
fn clock() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32)
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}
