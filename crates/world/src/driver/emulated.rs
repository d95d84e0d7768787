//! A world over real sockets: all players on one host, gateway and game server
//! on the other, and between them an emulated link for each player, with
//! addresses of its own.
//!
//! Until everybody is in, links are calm; then impairments start, the same
//! that each player meets in virtual time.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_client::swarm::Wire;
use lagometer_emu::{Error, LaneAddresses, LaneAudit, LogSummary, SentTotals, WayAudit};
use lagometer_link::{Profile, Reason};
use lagometer_results::{Audit, World, WorldPath, WorldWay};
use lagometer_testbed::{Emulated, Testbed};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use thiserror::Error as ThisError;

use crate::driver::player_transport::PlayerStream;
use crate::real::{Connector, MetricsSource, play_over};
use crate::{Moment, PlayError, PlayerTransport, Scenario, assemble, player_link, with_path};

/// How long a view may take to become right beyond what a calm path takes:
/// several of a kernel's longest waits before it sends again.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Why a world could not be played over real sockets.
#[derive(Debug, ThisError)]
pub enum EmuError {
    /// The hosts or the path between them.
    #[error(transparent)]
    Network(#[from] Error),
    /// The hosts' kernel cannot be given a congestion control.
    #[error(
        "the emulated hosts cannot use the congestion control `{name}`: {why}; \
         where it is loaded (`sudo modprobe tcp_{name}`), add it to those that hosts may use: \
         `sudo sysctl net.ipv4.tcp_allowed_congestion_control`"
    )]
    CongestionControl {
        /// The algorithm's name, as in `bbr`.
        name: &'static str,
        /// What the system says.
        #[source]
        why: io::Error,
    },
    /// The course of the world broke off.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// Where the gateway listens on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// For game servers, which are on its host.
    pub servers: SocketAddr,
    /// For whoever asks for metrics, on its host; `None` where they are not to be asked
    /// for.
    pub metrics: Option<SocketAddr>,
    /// The port for players, at every address of the host.
    pub clients_port: u16,
}

/// Two hosts with a path for each player, before anybody is on it.
#[derive(Debug)]
pub struct Landscape {
    path: Emulated<'static>,
}

/// What was found over real sockets.
#[derive(Debug)]
pub struct EmulatedWorld {
    /// The world as the document has it.
    pub world: World,
    /// What the emulator says of its own work.
    pub audit: Audit,
    /// It was stopped before its time.
    pub partial: bool,
    /// What became of the log of packets, if one was asked for.
    pub log: Option<LogSummary>,
}

impl Landscape {
    /// Makes the hosts of `testbed`, which is `Emu` or `Kernel`, with the TCP of
    /// `transport`, and a calm path for each player. Packets and their fates are logged
    /// into the file `log`, each player as a lane.
    ///
    /// Call [`Permission::acquire`](lagometer_emu::Permission::acquire) before
    /// the process has a second thread.
    ///
    /// # Errors
    ///
    /// What the system refuses; [`Error::TooManyLanes`] for more players than
    /// there are addresses.
    pub fn build(
        scenario: &Scenario,
        profile: &Profile,
        transport: PlayerTransport,
        testbed: Testbed,
        log: Option<PathBuf>,
    ) -> Result<Self, EmuError> {
        let names = (0..scenario.players).map(|player| format!("player {player}"));
        let (profile, seed) = (profile.clone(), scenario.seed);
        let link = move |player, starts| player_link(&profile, seed, player as u32, starts);
        let path = Emulated::build(testbed, false, log, names, link)?;
        if let Some(name) = transport.congestion_control() {
            let both = [
                path.run_local(move || use_congestion_control(name))?,
                path.run_remote(move || use_congestion_control(name))?,
            ];
            for done in both {
                done.map_err(|why| EmuError::CongestionControl { name, why })?;
            }
        }
        Ok(Self { path })
    }

    /// Does `work` on the host that the gateway and the game server are on.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the host has ended.
    pub fn run_remote<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.path.run_remote(work)
    }

    /// The gateway's metrics at `at` of the server host.
    fn metrics_source(&self, at: SocketAddr) -> Result<MetricsSource, Error> {
        let entrance = self.path.entrance_remote()?;
        let enter = entrance.map(|entrance| Box::new(|| entrance.enter()) as _);
        Ok(MetricsSource { at, enter })
    }

    /// Plays `scenario` on the gateway, which runs on the server host by now.
    ///
    /// # Errors
    ///
    /// [`EmuError`].
    pub fn play(
        self,
        scenario: &Arc<Scenario>,
        gateway: Gateway,
        transport: PlayerTransport,
        progress: &mut dyn FnMut(&Moment),
        stop: &AtomicBool,
    ) -> Result<EmulatedWorld, EmuError> {
        let metrics = gateway
            .metrics
            .map(|at| self.metrics_source(at))
            .transpose()?;
        let mut connector = Emulator {
            path: self.path,
            gateway,
            transport,
            sent: Default::default(),
        };
        let outcome = play_over(scenario, &mut connector, metrics, progress, stop)?;
        let rates = connector.rates(outcome.measured);
        let between = connector.path.collect()?;
        let mut world = assemble(scenario, "own".to_owned(), &outcome);
        world.transport = Some(transport.name().to_owned());
        let world = with_path(scenario, world, path(&between.lanes, rates));
        Ok(EmulatedWorld {
            world,
            audit: between.audit,
            partial: outcome.partial,
            log: between.log,
        })
    }
}

/// Sockets in the hosts.
struct Emulator {
    path: Emulated<'static>,
    gateway: Gateway,
    transport: PlayerTransport,
    /// What both sides had sent when measuring began, and when it ended.
    sent: [Option<[SentTotals; 2]>; 2],
}

/// What one side sent each second.
#[derive(Clone, Copy)]
struct SentRate {
    packets_per_s: f64,
    bytes_per_s: f64,
}

impl Emulator {
    /// What players, and the gateway, sent while it was measured.
    fn rates(&self, measured: Duration) -> Option<[SentRate; 2]> {
        let [began, ended] = self.sent;
        let (began, ended) = (began?, ended?);
        let seconds = measured.as_secs_f64().max(1e-9);
        Some([0, 1].map(|side| {
            let sent = ended[side] - began[side];
            SentRate {
                packets_per_s: sent.packets as f64 / seconds,
                bytes_per_s: sent.bytes as f64 / seconds,
            }
        }))
    }

    /// Does `work` on the players' host.
    fn on_local<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.path.run_local(work).map_err(io::Error::other)?
    }
}

impl Connector for Emulator {
    fn connect_server(&mut self) -> io::Result<Wire> {
        let servers = self.gateway.servers;
        self.path
            .run_remote(move || TcpStream::connect(servers))
            .map_err(io::Error::other)?
            .map(Wire::Tcp)
    }

    fn connect_player(&mut self, number: u32) -> io::Result<Wire> {
        // There is a lane for each player, and a number for each lane.
        let lane = u8::try_from(number).map_err(io::Error::other)?;
        let LaneAddresses {
            local_v4,
            remote_v4,
            ..
        } = LaneAddresses::of(lane);
        let to = SocketAddrV4::new(remote_v4, self.gateway.clients_port);
        let tcp = || self.on_local(move || tcp_on_its_way(local_v4, to));
        match self.transport.stream {
            PlayerStream::Tcp(_) => tcp().map(Wire::Tcp),
            PlayerStream::WebSocket(_) => tcp().map(Wire::WebSocket),
            PlayerStream::Kcp(profile) => {
                let socket = self.on_local(move || udp(local_v4, to))?;
                Ok(Wire::Kcp(socket, profile))
            }
        }
    }

    fn place(&self) -> String {
        format!("port {} of the server host", self.gateway.clients_port)
    }

    fn begin_impairments(&mut self) -> io::Result<()> {
        let now = self.path.clock().now();
        self.path
            .begin_impairments(|_| now)
            .map_err(io::Error::other)?;
        self.sent[0] = self.path.sent().map_err(io::Error::other)?;
        Ok(())
    }

    fn end_measuring(&mut self) -> io::Result<()> {
        self.sent[1] = self.path.sent().map_err(io::Error::other)?;
        Ok(())
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}

/// What the players' links did from the beginning of the impairments on, and what was
/// sent each second while it was measured.
fn path(lanes: &[LaneAudit], rates: Option<[SentRate; 2]>) -> WorldPath {
    let [up, down] = rates.map_or([None; 2], |rates| rates.map(Some));
    WorldPath {
        up: way(lanes.iter().map(|lane| &lane.up), up),
        down: way(lanes.iter().map(|lane| &lane.down), down),
    }
}

fn way<'a>(lanes: impl Iterator<Item = &'a WayAudit> + Clone, rate: Option<SentRate>) -> WorldWay {
    let sum = |count: fn(&WayAudit) -> u64| lanes.clone().map(count).sum::<u64>() as f64;
    let packets = sum(|way| way.packets).max(1.0);
    let lost = sum(|way| way.dropped.values().sum::<u64>() + way.refused + way.lost_by_accident());
    let full = sum(|way| way.dropped.get(Reason::QueueFull.name()).map_or(0, |&n| n));
    let waited: Duration = lanes.map(|way| way.waited).sum();
    WorldWay {
        packets_per_s: rate.map(|rate| rate.packets_per_s),
        bytes_per_s: rate.map(|rate| rate.bytes_per_s),
        lost_share: lost / packets,
        full_share: Some(full / packets),
        wait_ms: Some(1e3 * waited.as_secs_f64() / packets),
    }
}

/// Lets sockets that are made from now on in the calling thread's namespace use
/// this congestion control.
fn use_congestion_control(name: &str) -> io::Result<()> {
    const SETTING: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
    // It may be read-only where it is right already.
    if fs::read_to_string(SETTING)?.trim() == name {
        return Ok(());
    }
    fs::write(SETTING, name)
}

/// A TCP connection that may still be on its way: a player that waits would
/// hold up all the others.
fn tcp_on_its_way(from: Ipv4Addr, to: SocketAddrV4) -> io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket: OwnedFd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

fn udp(from: Ipv4Addr, to: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddrV4::new(from, 0))?;
    socket.connect(to)?;
    Ok(socket)
}
