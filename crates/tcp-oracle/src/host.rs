//! A host of the guest: a network namespace, and what is needed to be its
//! network and its application.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use lagometer_emu::Ticks;
use nix::sched::{CloneFlags, setns, unshare};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::info::of_kernel;
use crate::settings::{EndSettings, PORT, hosts};
use crate::sys::tcp_info;

/// What every namespace is set to, so that nothing depends on the guest's
/// memory or on conversations before.
const SYSCTLS: [(&str, &str); 4] = [
    ("tcp_rmem", "4096 131072 6291456"),
    ("tcp_wmem", "4096 16384 4194304"),
    ("tcp_no_metrics_save", "1"),
    ("tcp_fastopen", "0"),
];
/// Packets that may wait to be read.
const QUEUE: usize = 20_000;
/// How often a way to the peer is looked for, and how long is waited in between.
const MOST_TRIES: u32 = 1_000;
const NS_BETWEEN_TRIES: u64 = 1_000_000;
/// TCP's state `ESTABLISHED`, as `TCP_INFO` reports it.
const ESTABLISHED: u8 = 1;

/// The guest's monotonic clock, in nanoseconds. Reading it takes no time.
pub(crate) fn clock() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// A tick, and when on the monotonic clock it began.
pub(crate) fn jiffies() -> io::Result<(u64, u64)> {
    let ticks =
        Ticks::find().ok_or_else(|| io::Error::other("the kernel's ticks are not found"))?;
    Ok((ticks.number, ticks.began_ns))
}

/// Wakes whoever polls it at an instant.
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    pub(crate) fn set(&self, at: u64) -> io::Result<()> {
        let at = Duration::from_nanos(at.max(1));
        let value = Timespec {
            tv_sec: at.as_secs().cast_signed(),
            tv_nsec: i64::from(at.subsec_nanos()),
        };
        let none = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let setting = Itimerspec {
            it_interval: none,
            it_value: value,
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }

    pub(crate) const fn fd(&self) -> &OwnedFd {
        &self.0
    }
}

/// The next packet that the kernel has put on a device.
pub(crate) fn packet<'a>(device: &OwnedFd, room: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
    match rustix::io::read(device, &mut *room) {
        Ok(length) => Ok(Some(&room[..length])),
        Err(rustix::io::Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sets something of the calling thread's network namespace.
fn set(name: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/net/ipv4/{name}");
    fs::write(&path, value)
        .map_err(|why| io::Error::new(why.kind(), format!("writing {path}: {why}")))
}

/// A network namespace.
pub(crate) struct Namespace(File);

impl Namespace {
    pub(crate) fn new() -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        for (name, value) in SYSCTLS {
            set(name, value)?;
        }
        Ok(Self(File::open("/proc/thread-self/ns/net")?))
    }

    fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.0, CloneFlags::CLONE_NEWNET)?)
    }
}

/// Waits until the kernel has a way to `peer`: it adds that of an IPv6 address on a thread
/// of its own.
fn await_route(local: IpAddr, peer: IpAddr) -> io::Result<()> {
    let alarm = Alarm::new()?;
    let mut tries = 0;
    loop {
        let found = UdpSocket::bind((local, 0)).and_then(|socket| socket.connect((peer, PORT)));
        tries += 1;
        if found.is_ok() || tries > MOST_TRIES {
            return found;
        }
        alarm.set(clock() + NS_BETWEEN_TRIES)?;
        poll(&mut [PollFd::new(alarm.fd(), PollFlags::IN)], None)?;
    }
}

fn set_options(socket: &Socket, settings: &EndSettings) -> io::Result<()> {
    socket.set_tcp_congestion(settings.control.as_bytes())?;
    socket.set_tcp_nodelay(settings.nodelay)?;
    if let Some(bytes) = settings.send_buffer {
        socket.set_send_buffer_size(bytes as usize)?;
    }
    if let Some(bytes) = settings.receive_buffer {
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    if let Some(bytes) = settings.not_sent_low_water {
        socket.set_tcp_notsent_lowat(bytes)?;
    }
    if let Some(limit) = settings.user_timeout_ms {
        socket.set_tcp_user_timeout(Some(Duration::from_millis(limit.into())))?;
    }
    if let Some([idle, interval, probes]) = settings.keep_alive {
        let keep_alive = TcpKeepalive::new()
            .with_time(Duration::from_secs(idle.into()))
            .with_interval(Duration::from_secs(interval.into()))
            .with_retries(probes);
        socket.set_tcp_keepalive(&keep_alive)?;
    }
    socket.set_tcp_thin_linear_timeouts(settings.thin_linear_timeouts)
}

/// The thread that writes for one end. The kernel copies what a thread writes into pages of
/// the thread's: were both ends written to by one, every write would begin another fragment,
/// and a buffer takes 17 of them (`MAX_SKB_FRAGS`).
struct Writer {
    writes: Sender<(Socket, Vec<u8>)>,
    taken: Receiver<io::Result<usize>>,
}

impl Writer {
    fn new() -> Self {
        let (writes, asked) = channel::<(Socket, Vec<u8>)>();
        let (say, taken) = channel();
        thread::spawn(move || {
            for (mut socket, bytes) in asked {
                let result = socket.write(&bytes);
                // Closed before anybody may close the other.
                drop(socket);
                if say.send(result).is_err() {
                    return;
                }
            }
        });
        Self { writes, taken }
    }

    fn write(&self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let gone = || io::Error::other("the thread that writes is gone");
        let asked = (socket.try_clone()?, bytes.to_vec());
        self.writes.send(asked).map_err(|_| gone())?;
        self.taken.recv().map_err(|_| gone())?
    }
}

/// A host in a conversation.
pub(crate) struct Host {
    pub(crate) device: OwnedFd,
    peer: SocketAddr,
    writer: Writer,
    /// Which listens, or is connected.
    socket: Socket,
    is_listening: bool,
    is_closed: bool,
}

impl Host {
    /// The host of one end: 0 is to connect, 1 listens.
    pub(crate) fn new(
        namespace: &Namespace,
        end: usize,
        settings: &EndSettings,
    ) -> io::Result<Self> {
        namespace.enter()?;
        for (name, value) in settings.sysctls() {
            set(name, &value.to_string())?;
        }
        let hosts = hosts(settings.is_ipv6);
        let [local, peer] = [hosts[end], hosts[1 - end]];
        let device = lagometer_emu::open_tun("tun0", local, peer, settings.mtu, QUEUE)?;
        await_route(local, peer)?;
        let domain = Domain::for_address(SocketAddr::new(local, PORT));
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        set_options(&socket, settings)?;
        if end == 1 {
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::new(local, PORT).into())?;
            socket.listen(1)?;
        }
        Ok(Self {
            device,
            peer: SocketAddr::new(peer, PORT),
            writer: Writer::new(),
            socket,
            is_listening: end == 1,
            is_closed: false,
        })
    }

    /// Connects, which is not done when this returns.
    pub(crate) fn connect(&self) -> io::Result<()> {
        match self.socket.connect(&self.peer.into()) {
            Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the connection stands; takes it if it waits to be accepted.
    pub(crate) fn is_connected(&mut self) -> bool {
        if self.is_listening {
            let Ok((socket, _)) = self.socket.accept() else {
                return false;
            };
            if socket.set_nonblocking(true).is_err() {
                return false;
            }
            self.socket = socket;
            self.is_listening = false;
        }
        tcp_info(self.socket.as_fd()).is_ok_and(|info| info.tcpi_state == ESTABLISHED)
    }

    /// What a poll says now: whether there is something to read, errors and the end, and
    /// whether there is room to write.
    pub(crate) fn ready(&self) -> PollFlags {
        let mut events = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::OUT)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match poll(&mut events, Some(&now)) {
            Ok(_) => events[0].revents(),
            Err(_) => PollFlags::empty(),
        }
    }

    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Writes as much as finds room.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.writer.write(&self.socket, bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }

    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.read(bytes)
    }

    /// The next packet from the kernel.
    pub(crate) fn packet<'a>(&self, room: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        packet(&self.device, room)
    }

    /// Closes the connection, as `close(2)` does.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        // A socket that was never used takes its place.
        self.socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        self.is_listening = false;
        self.is_closed = true;
        Ok(())
    }

    /// Hands the kernel a packet.
    pub(crate) fn deliver(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.device, packet)?;
        Ok(())
    }

    /// What `TCP_INFO` says.
    pub(crate) fn state(&self) -> Option<String> {
        if self.is_listening || self.is_closed {
            return None;
        }
        let info = tcp_info(self.socket.as_fd()).ok()?;
        Some(of_kernel(&info))
    }
}
