//! Which remote end a command measures, and what a remote end of ours serves.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use lagometer_lab::net::LaneService;
use lagometer_remote::{DEFAULT_PORT, Error, Registry, Remote, Secret};

use crate::cli::{RemoteArguments, SecretArguments};
use crate::failure::{Failure, read};

/// The variable that holds the secret where no file is named.
pub(crate) const SECRET_VARIABLE: &str = "LAGOMETER_SECRET";

/// Everything that a remote end serves.
pub(crate) fn registry() -> Registry {
    lagometer_instruments::services(Registry::new()).with(LaneService)
}

/// The remote end that was asked for, or one of this process's own.
pub(crate) fn reach(arguments: &RemoteArguments) -> Result<Remote, Failure> {
    let Some(to) = &arguments.to else {
        return Ok(Remote::own(registry())?);
    };
    let secret = secret(&arguments.secret)?.ok_or_else(|| {
        Failure::Input(format!(
            "`--to` needs the secret that `lagometer serve` was started with or printed: \
             put it in a file and name it with `--secret FILE`, or set {SECRET_VARIABLE}"
        ))
    })?;
    Ok(Remote::connect(to, &secret)?)
}

/// The secret that the user gave, if any.
pub(crate) fn secret(arguments: &SecretArguments) -> Result<Option<Secret>, Failure> {
    let (origin, text) = match (&arguments.secret, std::env::var(SECRET_VARIABLE)) {
        (Some(path), _) => (path.display().to_string(), read(path)?),
        (None, Ok(text)) => (SECRET_VARIABLE.to_owned(), text),
        (None, Err(_)) => return Ok(None),
    };
    Secret::from_text(&text)
        .map(Some)
        .map_err(|bad| Failure::Input(format!("{origin}: {bad}")))
}

/// An address to listen at, with or without a port.
pub(crate) fn parse_bind(written: &str) -> Result<SocketAddr, String> {
    let ip = written.trim_matches(['[', ']']).parse::<IpAddr>();
    ip.map(|ip| SocketAddr::new(ip, DEFAULT_PORT))
        .or_else(|_| written.parse())
        .map_err(|_| "write an address as in `10.0.0.5`, `10.0.0.5:7711` or `[::]:7711`".to_owned())
}

/// A range of ports.
pub(crate) fn parse_ports(written: &str) -> Result<RangeInclusive<u16>, String> {
    let parsed = written.split_once('-').and_then(|(low, high)| {
        let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low > 0 && low <= high).then_some(low..=high)
    });
    parsed.ok_or_else(|| "write ports as in `7712-7799`".to_owned())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Address { .. }
            | Error::OtherSecret
            | Error::OtherVersion { .. }
            | Error::Refused { .. } => Self::Input(error.to_string()),
            _ => Self::Environment(error.to_string()),
        }
    }
}
