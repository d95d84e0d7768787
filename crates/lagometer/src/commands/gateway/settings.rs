//! The gateway's settings: the file, and the command line over it.

use lagometer_gateway::server::config::{
    CompressionName, FileConfig, ListenAddress, LogLevel, Wire,
};
use lagometer_units::Span;

use crate::cli::GatewayArguments;
use crate::failure::{self, Failure};

/// Reads the file, if one is named, and sets what the command line says.
pub(super) fn read(arguments: &GatewayArguments) -> Result<FileConfig, Failure> {
    let mut file = match &arguments.config {
        Some(path) => {
            let text = failure::read(path)?;
            FileConfig::parse(&path.display().to_string(), &text).map_err(Failure::input)?
        }
        None => FileConfig::default(),
    };
    set_own(&mut file, arguments)?;
    set_channelds(&mut file, arguments)?;
    Ok(file)
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

fn set_channelds(file: &mut FileConfig, arguments: &GatewayArguments) -> Result<(), Failure> {
    set(&mut file.dev, arguments.dev);
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
    set_option(&mut file.log.file, arguments.logfile.clone());
    let listen = |names: [&str; 2], network: &Option<String>, at: &Option<String>, port| {
        if network.is_none() && at.is_none() {
            return Ok(None);
        }
        let at = match at {
            Some(at) => address(names[1], at)?,
            None => ListenAddress::tcp(port),
        };
        match network.as_deref().filter(|_| at.wire == Wire::Tcp) {
            Some(network) => match Wire::named(network) {
                Ok(wire) => Ok(Some(vec![at.over(wire)])),
                Err(why) => Err(Failure::Input(format!("{}: {why}", names[0]))),
            },
            None => Ok(Some(vec![at])),
        }
    };
    let servers = listen(["-sn", "-sa"], &arguments.sn, &arguments.sa, 11288)?;
    set_option(&mut file.servers.listen, servers);
    set_option(&mut file.servers.state_machine, arguments.sfsm.clone());
    set(&mut file.servers.bypass_auth, arguments.sba);
    set(&mut file.servers.recovery, arguments.scr);
    if let Some(millis) = arguments.scrt {
        file.servers.recovery_within = (millis > 0).then(|| Span::from_millis(u64::from(millis)));
    }
    let clients = listen(["-cn", "-ca"], &arguments.cn, &arguments.ca, 12108)?;
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
    set_option(&mut file.channels.settings, arguments.chs.clone());
    set_option(&mut file.channels.grid, arguments.scc.clone());
    set(&mut file.channels.spatial_from, arguments.scs);
    set(&mut file.channels.entities_from, arguments.ecs);
    set(&mut file.channels.connection_id_bits, arguments.mcb);
    let within = arguments
        .cat
        .map(|millis| Span::from_millis(u64::from(millis)));
    set(&mut file.auth.login_within, within);
    set(&mut file.auth.max_failed, arguments.mfaa);
    set(&mut file.auth.max_refused, arguments.mfd);
    Ok(())
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
