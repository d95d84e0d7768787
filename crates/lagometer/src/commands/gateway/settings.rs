//! The gateway's settings: the file, and the command line over it.

use lagometer_gateway::server::config::{
    CompressionName, Config, ConfigError, FileConfig, ListenAddress, LogLevel, Wire,
};
use lagometer_gateway::server::processors;
use lagometer_units::{Span, line_of_key};

use crate::cli::GatewayArguments;
use crate::failure::{self, Failure};

/// Where channeld listens for game servers unless asked otherwise.
const SERVERS_PORT: u16 = 11288;

/// Where it listens for clients.
const CLIENTS_PORT: u16 = 12108;

/// What the file and the command line say together.
pub(super) struct Settings {
    pub(super) file: FileConfig,
    /// The file's name and text, if one is named.
    origin: Option<(String, String)>,
}

impl Settings {
    /// Reads the file, if one is named, and sets what the command line says.
    pub(super) fn read(arguments: &GatewayArguments) -> Result<Self, Failure> {
        let origin = match &arguments.config {
            Some(path) => Some((path.display().to_string(), failure::read(path)?)),
            None => None,
        };
        let mut file = match &origin {
            Some((name, text)) => FileConfig::parse(name, text).map_err(Failure::input)?,
            None => FileConfig::default(),
        };
        set_own(&mut file, arguments)?;
        set_channelds(&mut file, arguments)?;
        Ok(Self { file, origin })
    }

    /// What a gateway is started with.
    pub(super) fn resolve(&self) -> Result<Config, Failure> {
        self.file
            .resolve(processors())
            .map_err(|error| self.failure(&error))
    }

    /// A mistake, with the line of the file where its key stands.
    fn failure(&self, error: &ConfigError) -> Failure {
        let place = self.origin.as_ref().zip(error.key());
        let place = place.and_then(|((name, text), key)| {
            let path: Vec<&str> = key.split('.').collect();
            Some((name, line_of_key(text, &path)?))
        });
        match place {
            Some((name, line)) => Failure::Input(format!("{name}:{line}: {error}")),
            None => Failure::input(error),
        }
    }
}

fn set_own(file: &mut FileConfig, arguments: &GatewayArguments) -> Result<(), Failure> {
    file.channels
        .schema
        .extend(arguments.schema.iter().cloned());
    match arguments.web.as_deref() {
        None => {}
        Some("none") => file.web.enabled = false,
        Some(at) => {
            file.web.enabled = true;
            file.web.listen = address("--web", at)?;
        }
    }
    if let Some(threads) = arguments.threads {
        file.threads.connections = Some(threads);
    }
    file.auth.anti_ddos |= arguments.anti_ddos;
    Ok(())
}

/// What channeld's own flags say, under their names there.
fn set_channelds(file: &mut FileConfig, arguments: &GatewayArguments) -> Result<(), Failure> {
    set(&mut file.dev, arguments.dev);
    set_log(file, arguments);
    set_servers(file, arguments)?;
    set_clients(file, arguments)?;
    set_channels(file, arguments);
    set_auth(file, arguments);
    Ok(())
}

fn set_log(file: &mut FileConfig, arguments: &GatewayArguments) {
    set(
        &mut file.log.level,
        arguments.loglevel.map(|level| match level {
            ..=-2 => LogLevel::Trace,
            -1 => LogLevel::Debug,
            0 => LogLevel::Info,
            1 => LogLevel::Warn,
            2 => LogLevel::Error,
            3.. => LogLevel::Off,
        }),
    );
    if arguments.logfile.is_some() {
        file.log.file.clone_from(&arguments.logfile);
        // As channeld does: the file is beside standard error, not in its place.
        file.log.stderr = Some(true);
    }
}

fn set_servers(file: &mut FileConfig, arguments: &GatewayArguments) -> Result<(), Failure> {
    let (network, at) = (arguments.sn.as_deref(), arguments.sa.as_deref());
    let servers = listen(["-sn", "-sa"], network, at, SERVERS_PORT)?;
    set_option(&mut file.servers.listen, servers);
    set_option(&mut file.servers.state_machine, arguments.sfsm.clone());
    set(&mut file.servers.bypass_auth, arguments.sba);
    set(&mut file.servers.recovery, arguments.scr);
    if let Some(millis) = arguments.scrt {
        file.servers.recovery_within = u64::try_from(millis)
            .ok()
            .filter(|&millis| millis > 0)
            .map(Span::from_millis);
    }
    Ok(())
}

fn set_clients(file: &mut FileConfig, arguments: &GatewayArguments) -> Result<(), Failure> {
    let clients = if let Some(at) = arguments.ws.as_deref() {
        listen(["-ws", "-ws"], Some("ws"), Some(at), CLIENTS_PORT)?
    } else {
        let (network, at) = (arguments.cn.as_deref(), arguments.ca.as_deref());
        listen(["-cn", "-ca"], network, at, CLIENTS_PORT)?
    };
    set_option(&mut file.clients.listen, clients);
    set_option(&mut file.clients.state_machine, arguments.cfsm.clone());
    set(&mut file.clients.wait_for_owner, arguments.cwm);
    if arguments.erp == Some(true) {
        let folder = arguments.rspd.clone().unwrap_or_else(|| "replays".into());
        file.clients.record_to = Some(folder);
    }
    set(
        &mut file.clients.compression,
        arguments.ct.map(|number| match number {
            0 => CompressionName::None,
            _ => CompressionName::Snappy,
        }),
    );
    Ok(())
}

fn set_channels(file: &mut FileConfig, arguments: &GatewayArguments) {
    if arguments.chs.is_some() {
        file.channels.settings.clone_from(&arguments.chs);
        file.channels.settings_may_be_missing = true;
    }
    set_option(&mut file.channels.grid, arguments.scc.clone());
    set(&mut file.channels.spatial_from, arguments.scs);
    set(&mut file.channels.entities_from, arguments.ecs);
    set(&mut file.channels.connection_id_bits, arguments.mcb);
}

fn set_auth(file: &mut FileConfig, arguments: &GatewayArguments) {
    let within = arguments
        .cat
        .map(|millis| Span::from_millis(u64::from(millis)));
    set(&mut file.auth.login_within, within);
    set(&mut file.auth.max_failed, arguments.mfaa.map(limit));
    set(&mut file.auth.max_refused, arguments.mfd.map(limit));
}

/// The address that two of channeld's flags, of these `names`, give together: the network
/// and where on it, everywhere at channeld's `port` where only the network is given. None
/// where neither is.
fn listen(
    names: [&str; 2],
    network: Option<&str>,
    at: Option<&str>,
    port: u16,
) -> Result<Option<Vec<ListenAddress>>, Failure> {
    if network.is_none() && at.is_none() {
        return Ok(None);
    }
    let everywhere = format!(":{port}");
    let at = at.unwrap_or(&everywhere);
    // An address may name its network itself.
    let read = match network.filter(|_| !at.contains("://")) {
        Some(network) => ListenAddress::on(network, at).map_err(|why| match Wire::named(network) {
            Err(unknown) if !["tcp4", "tcp6"].contains(&network) => {
                format!("{}: {unknown}", names[0])
            }
            _ => format!("{}: {why}", names[1]),
        }),
        None => at.parse().map_err(|why| format!("{}: {why}", names[1])),
    };
    read.map(|at: ListenAddress| Some(vec![at]))
        .map_err(Failure::Input)
}

/// A limit as channeld reads it: nothing below 1 is one.
fn limit(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn set_option<T>(place: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *place = value;
    }
}

fn address(option: &str, text: &str) -> Result<ListenAddress, Failure> {
    text.parse()
        .map_err(|why| Failure::Input(format!("{option}: {why}")))
}
