//! Plays flows through a queueing discipline of this guest's kernel and writes down
//! what happens.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use nix::sys::socket::{setsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Protocol, Socket, Type};

use super::plan::{FlowPlan, Habit, QueueKind, QueuePlan, QueueSettings, plan};
use super::trace::{Happened, Line, QueueTrace};
use crate::host::{Alarm, Namespace, clock, packet};

const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const DEVICE: &str = "tun0";
const MTU: usize = 1500;
/// Packets that may wait to be read.
const QUEUE: usize = 20_000;
/// IPv4 and UDP.
const HEADER_BYTES: u64 = 28;
/// The discipline's handle, in whose classes the flows are: so no two share one.
const HANDLE: u32 = 0x10;
/// What one flow may have waiting is twice as many bytes of the kernel's memory: the
/// most that may be had without privileges (`net.core.wmem_max`).
const SEND_BUFFER: usize = 212_992;
/// Nothing more comes after so long.
const QUIET: u64 = 3_000_000_000;
/// From one packet that a flow with a window sends unasked to the next.
const AGAIN: u64 = 1_000_000_000;
/// Packets a flow with a window has on the way at most.
const WIDEST: f64 = 400.0;

/// Plays the seeds of a kind, from the first on, and writes the traces to `path`;
/// `played` is handed the name of each.
///
/// # Errors
///
/// What the system refuses.
pub fn record_queues(
    kind: QueueKind,
    (first, count): (u64, u64),
    path: &Path,
    played: &mut dyn FnMut(&str),
) -> io::Result<()> {
    lagometer_emu::Permission::acquire().map_err(io::Error::other)?;
    let _namespace = Namespace::new()?;
    // Whose kernel else says something by itself now and then.
    fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
    let mut file = File::create(path)?;
    for seed in first..first + count {
        let name = format!("{}-{seed}", kind.name());
        let trace = play(&name, &plan(kind, seed))
            .map_err(|why| io::Error::new(why.kind(), format!("{name}: {why}")))?;
        file.write_all(trace.to_text().as_bytes())?;
        played(&name);
    }
    Ok(())
}

fn play(name: &str, plan: &QueuePlan) -> io::Result<QueueTrace> {
    let device = lagometer_emu::open_tun(DEVICE, LOCAL.into(), PEER.into(), MTU, QUEUE)
        .map_err(|why| io::Error::new(why.kind(), format!("making {DEVICE}: {why}")))?;
    install(&plan.settings)?;
    let mut playing = Playing {
        device,
        flows: (0..)
            .zip(&plan.flows)
            .map(|(number, flow)| Sender::new(number, flow))
            .collect::<io::Result<_>>()?,
        due: BTreeMap::new(),
        ordered: 0,
        tags: 0,
        lines: Vec::new(),
        alarm: Alarm::new()?,
        room: vec![0; MTU],
    };
    // What the device itself had to say at first is nobody's.
    while packet(&playing.device, &mut playing.room)?.is_some() {}
    playing.run(plan)?;
    Ok(QueueTrace {
        name: name.to_owned(),
        settings: plan.settings,
        lines: playing.lines,
    })
}

/// Puts a shaper and the discipline in front of the device.
fn install(settings: &QueueSettings) -> io::Result<()> {
    let bits = settings.rate * 8;
    tc(&format!(
        "qdisc add dev {DEVICE} root handle 1: htb default 1"
    ))?;
    tc(&format!(
        "class add dev {DEVICE} parent 1: classid 1:1 htb rate {bits}bit burst 1 cburst 1 \
         quantum 1500"
    ))?;
    let QueueSettings {
        kind,
        limit,
        target_us,
        interval_us,
        quantum,
        ecn,
        ..
    } = settings;
    let kinds = match kind {
        QueueKind::CoDel => String::new(),
        QueueKind::FqCodel => format!("flows 1024 quantum {quantum} "),
    };
    tc(&format!(
        "qdisc add dev {DEVICE} parent 1:1 handle {HANDLE:x}: {} limit {limit} {kinds}target \
         {target_us}us interval {interval_us}us {}",
        kind.name(),
        if *ecn { "ecn" } else { "noecn" },
    ))
}

fn tc(words: &str) -> io::Result<()> {
    let ended = Command::new("tc").args(words.split(' ')).output()?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(io::Error::other(format!("tc {words}: {}", said.trim())))
}

/// A flow's socket, and its window where it has one.
struct Sender {
    number: u32,
    socket: Socket,
    plan: FlowPlan,
    window: f64,
    /// Its packets that are on their way, in order.
    outstanding: std::collections::VecDeque<u64>,
    /// The latest packet when the window was last halved.
    halved_at: u64,
}

impl Sender {
    fn new(number: u32, plan: &FlowPlan) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        socket.set_send_buffer_size(SEND_BUFFER)?;
        if plan.is_ecn_capable {
            setsockopt(&socket, sockopt::Ipv4Tos, &2)?;
        }
        // After the type of service, which sets it too.
        let class = HANDLE << 16 | (number + 1);
        setsockopt(&socket, sockopt::Priority, &class.cast_signed())
            .map_err(|why| io::Error::other(format!("choosing a flow's class: {why}")))?;
        let port = 7_000 + u16::try_from(number).unwrap_or_default();
        socket.connect(&SocketAddr::new(IpAddr::V4(PEER), port).into())?;
        Ok(Self {
            number,
            socket,
            plan: plan.clone(),
            window: 4.0,
            outstanding: std::collections::VecDeque::new(),
            halved_at: 0,
        })
    }
}

/// What is due.
enum Due {
    /// A packet of a flow leaves.
    Send(usize),
    /// A flow with a window is notified of its packet, and whether it was marked.
    Acknowledge(usize, u64, bool),
}

struct Playing {
    device: OwnedFd,
    flows: Vec<Sender>,
    /// By when and the order in which it was made due.
    due: BTreeMap<(u64, u64), Due>,
    ordered: u64,
    tags: u64,
    lines: Vec<Line>,
    alarm: Alarm,
    room: Vec<u8>,
}

impl Playing {
    fn run(&mut self, plan: &QueuePlan) -> io::Result<()> {
        let began = clock() + 1_000_000;
        let ends = began + plan.lasts;
        for (number, flow) in plan.flows.iter().enumerate() {
            match &flow.habit {
                Habit::Open(times) => {
                    for at in times {
                        self.order(began + at, Due::Send(number));
                    }
                }
                Habit::Window(_) => {
                    // Again and again, for a window may have been lost as a whole.
                    for at in (began..ends).step_by(AGAIN as usize) {
                        self.order(at, Due::Send(number));
                    }
                }
            }
        }
        let mut latest = began;
        loop {
            self.drain()?;
            while let Some(entry) = self.due.first_entry() {
                if entry.key().0 > clock() {
                    break;
                }
                match entry.remove() {
                    Due::Send(flow) => self.send(flow)?,
                    Due::Acknowledge(flow, tag, marked) => {
                        self.acknowledge(flow, tag, marked);
                        self.fill(flow, ends)?;
                    }
                }
                self.drain()?;
            }
            let now = clock();
            latest = latest.max(self.lines.last().map_or(began, |line| line.at));
            if self.due.is_empty() && now > latest.max(ends) + QUIET {
                return Ok(());
            }
            let next = self.due.first_key_value().map(|((at, _), _)| *at);
            self.alarm.set(next.unwrap_or(now + QUIET))?;
            let mut events = [
                PollFd::new(self.alarm.fd(), PollFlags::IN),
                PollFd::new(&self.device, PollFlags::IN),
            ];
            poll(&mut events, None)?;
        }
    }

    fn order(&mut self, at: u64, due: Due) {
        self.ordered += 1;
        self.due.insert((at, self.ordered), due);
    }

    /// Sends one packet; one that finds no room in the socket is none.
    fn send(&mut self, flow: usize) -> io::Result<()> {
        let sender = &mut self.flows[flow];
        let mut payload = vec![0; (sender.plan.bytes - HEADER_BYTES) as usize];
        self.tags += 1;
        payload[..8].copy_from_slice(&self.tags.to_be_bytes());
        let at = clock();
        match sender.socket.send(&payload) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // A full queue may be reported, though what was sent is counted.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => {}
            Err(error) => return Err(error),
        }
        let what = Happened::In {
            tag: self.tags,
            flow: sender.number,
            bytes: sender.plan.bytes,
            is_ecn_capable: sender.plan.is_ecn_capable,
        };
        if matches!(sender.plan.habit, Habit::Window(_)) {
            sender.outstanding.push_back(self.tags);
        }
        self.lines.push(Line { at, what });
        Ok(())
    }

    /// Takes what has come out.
    fn drain(&mut self) -> io::Result<()> {
        loop {
            let Some(bytes) = packet(&self.device, &mut self.room)? else {
                return Ok(());
            };
            let (Some(&[tos]), Some(port), Some(tag)) = (
                bytes.get(1..2).and_then(<[u8]>::first_chunk),
                bytes.get(22..).and_then(<[u8]>::first_chunk),
                bytes.get(28..).and_then(<[u8]>::first_chunk),
            ) else {
                continue;
            };
            let flow = usize::from(u16::from_be_bytes(*port).wrapping_sub(7_000));
            let tag = u64::from_be_bytes(*tag);
            let is_marked = tos & 3 == 3;
            let at = clock();
            let what = Happened::Out { tag, is_marked };
            self.lines.push(Line { at, what });
            if let Some(Habit::Window(round_trip)) = self.flows.get(flow).map(|it| &it.plan.habit) {
                self.order(at + round_trip, Due::Acknowledge(flow, tag, is_marked));
            }
        }
    }

    /// A flow learns what became of its packet, and of those before it that did not
    /// come.
    fn acknowledge(&mut self, flow: usize, tag: u64, is_marked: bool) {
        let latest = self.tags;
        let sender = &mut self.flows[flow];
        let mut is_bad = is_marked;
        while let Some(first) = sender.outstanding.pop_front() {
            if first == tag {
                break;
            }
            is_bad = true;
        }
        if !is_bad {
            sender.window = (sender.window + 1.0 / sender.window).min(WIDEST);
        } else if tag > sender.halved_at {
            sender.window = (sender.window / 2.0).max(2.0);
            sender.halved_at = latest;
        }
    }

    /// Sends what the window of a flow has room for.
    fn fill(&mut self, flow: usize, ends: u64) -> io::Result<()> {
        while clock() < ends {
            let sender = &self.flows[flow];
            if sender.outstanding.len() as f64 >= sender.window {
                return Ok(());
            }
            let before = self.lines.len();
            self.send(flow)?;
            self.drain()?;
            if self.lines.len() == before {
                return Ok(());
            }
        }
        Ok(())
    }
}
