//! Reaching NATS: addresses, users, certificates, and waiting for a server.
//!
//! What is said over it is its users' business: sweeps over many machines, and gateways of
//! several nodes. Protocols that were made for TCP are carried by [`streams`].

mod outages;
pub mod streams;

use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::rustls;
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

pub use outages::Outages;

/// How often a server is asked whether it is there, by who waits for it.
pub const RETRY: Duration = Duration::from_secs(1);

/// Where NATS is, and who asks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its servers, separated by commas.
    pub urls: String,
    /// What all subjects begin with.
    pub prefix: String,
    /// The file with the user's credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// The file with the certificates that servers are held against, in place of the
    /// system's.
    pub authorities: Option<PathBuf>,
    /// How long it may take until a server is there.
    pub wait: Duration,
}

/// Why NATS cannot be reached.
#[derive(Debug, Error)]
pub enum Error {
    /// An address is none.
    #[error(
        "`{url}` is no address of a NATS server: {why}; write nats://HOST:PORT or tls://HOST:PORT"
    )]
    Address {
        /// The text that is no address.
        url: String,
        /// The error, as the library has it.
        #[source]
        why: io::Error,
    },
    /// A prefix that subjects cannot begin with.
    #[error(
        "`{0}` is no prefix of subjects: letters, digits, `-` and `_`, in words joined by dots"
    )]
    Prefix(String),
    /// A file cannot be read.
    #[error("{path}: cannot be read: {why}", path = .path.display())]
    File {
        /// The file's path.
        path: PathBuf,
        /// The error, as the library has it.
        #[source]
        why: io::Error,
    },
    /// No server answers.
    #[error(
        "no NATS server at {urls}: {why}; start one with `nats-server -js`, or name another with --nats"
    )]
    Unreachable {
        /// Where, without passwords.
        urls: String,
        /// The error, as the library has it.
        #[source]
        why: async_nats::ConnectError,
    },
    /// The server does not let this user in.
    #[error(
        "the NATS server at {urls} refuses this user: {why}; name credentials with --nats-creds, or a user in the URL"
    )]
    Refused {
        /// The servers' addresses, without passwords.
        urls: String,
        /// The server's reason.
        #[source]
        why: async_nats::ConnectError,
    },
    /// The server does not show that it is the one that is meant.
    #[error(
        "the NATS server at {urls} is not trusted: {why}; name the file with the certificate of its authority with --nats-ca, and the server as its certificate does"
    )]
    Certificate {
        /// The servers' addresses, without passwords.
        urls: String,
        /// What is wrong with its certificate, or with those that it is held against.
        #[source]
        why: async_nats::ConnectError,
    },
}

impl Error {
    /// Whether what was written on the command line is wrong, rather than the
    /// environment.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Address { .. } | Self::Prefix(_) | Self::File { .. }
        )
    }
}

/// A connection, and what becomes of it.
#[derive(Debug)]
pub struct Connection {
    /// To send and to subscribe with.
    pub client: Client,
    /// What becomes of the connection: it is lost, and comes back by itself.
    pub events: mpsc::UnboundedReceiver<Event>,
    /// Where, without passwords.
    pub urls: String,
}

/// A word for subjects that nobody else has: the part of an inbox that no other has.
#[must_use]
pub fn unique_name(client: &Client) -> String {
    let inbox = client.new_inbox();
    inbox.rsplit('.').next().unwrap_or(&inbox).to_owned()
}

/// That subjects may begin with a prefix.
///
/// # Errors
///
/// [`Error::Prefix`] if not.
pub fn check_prefix(prefix: &str) -> Result<(), Error> {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let is_word = |word: &str| !word.is_empty() && word.chars().all(is_fine);
    if prefix.split('.').all(is_word) {
        return Ok(());
    }
    Err(Error::Prefix(prefix.to_owned()))
}

/// That the settings can be used, as far as that can be seen without a server.
///
/// # Errors
///
/// What is wrong with them.
pub fn check(settings: &Settings) -> Result<(), Error> {
    check_prefix(&settings.prefix)?;
    addresses(&settings.urls)?;
    let files = settings.credentials.iter().chain(&settings.authorities);
    for path in files {
        let read = std::fs::read(path).map(drop);
        read.map_err(|why| Error::File {
            path: path.clone(),
            why,
        })?;
    }
    Ok(())
}

/// Connects; waits as long as the settings say while no server is there, and says so once.
///
/// # Errors
///
/// Where the settings are wrong, the server refuses the user or is not trusted, or none is
/// there in time or before `stop` is set.
pub async fn connect(
    settings: &Settings,
    note: &(dyn Fn(&str) + Sync),
    stop: &AtomicBool,
) -> Result<Connection, Error> {
    check_prefix(&settings.prefix)?;
    let addresses = addresses(&settings.urls)?;
    let urls = shown(&addresses);
    let until = Instant::now() + settings.wait;
    let mut has_said = false;
    loop {
        let (sender, events) = mpsc::unbounded_channel();
        let options = options(settings, &addresses, sender).await?;
        let why = match options.connect(addresses.as_slice()).await {
            Ok(client) => {
                return Ok(Connection {
                    client,
                    events,
                    urls,
                });
            }
            Err(why) => why,
        };
        if matches!(
            why.kind(),
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication
        ) {
            return Err(Error::Refused { urls, why });
        }
        if is_of_certificates(&why) {
            return Err(Error::Certificate { urls, why });
        }
        if Instant::now() >= until || stop.load(Ordering::Relaxed) {
            return Err(Error::Unreachable { urls, why });
        }
        if !has_said {
            note(&format!("waiting for NATS at {urls}: {why}"));
            has_said = true;
        }
        sleep(RETRY).await;
    }
}

/// Whether it is certificates that keep a connection from being made: those that the server
/// shows, or those that it is held against.
fn is_of_certificates(why: &ConnectError) -> bool {
    let of_handshake = why.source().and_then(|why| why.downcast_ref::<io::Error>());
    let of_handshake = of_handshake.and_then(|why| why.get_ref()?.downcast_ref::<rustls::Error>());
    why.kind() == ConnectErrorKind::Tls
        || matches!(of_handshake, Some(rustls::Error::InvalidCertificate(_)))
}

async fn options(
    settings: &Settings,
    addresses: &[ServerAddr],
    events: mpsc::UnboundedSender<Event>,
) -> Result<ConnectOptions, Error> {
    let file = |path: &PathBuf, why| Error::File {
        path: path.clone(),
        why,
    };
    let mut options = ConnectOptions::new()
        .name("lagometer")
        .event_callback(move |event| {
            // Nobody listens any more once the connection is given up.
            let _ = events.send(event);
            std::future::ready(())
        });
    // The client leaves what stands in a URL to its caller.
    let named = addresses.iter().find(|address| address.has_user_pass());
    if let Some((user, password)) = named.and_then(|it| it.username().zip(it.password())) {
        options = options.user_and_password(user.to_owned(), password.to_owned());
    }
    if let Some(path) = &settings.credentials {
        let read = options.credentials_file(path).await;
        options = read.map_err(|why| file(path, why))?;
    }
    if let Some(path) = &settings.authorities {
        std::fs::metadata(path).map_err(|why| file(path, why))?;
        options = options.add_root_certificates(path.clone());
    }
    Ok(options)
}

fn addresses(urls: &str) -> Result<Vec<ServerAddr>, Error> {
    let each = urls.split(',').map(|url| {
        let address = url.trim().parse::<ServerAddr>();
        address.map_err(|why| Error::Address {
            url: without_password(url.trim()),
            why,
        })
    });
    each.collect()
}

/// Addresses for a sentence, without passwords.
fn shown(addresses: &[ServerAddr]) -> String {
    let each = addresses.iter().map(|address| {
        let scheme = if address.tls_required() {
            "tls"
        } else {
            "nats"
        };
        format!("{scheme}://{}:{}", address.host(), address.port())
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A URL as far as it may be shown.
fn without_password(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, host)) => host.to_owned(),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_words_joined_by_dots() {
        for fine in ["lagometer", "team-a.lab_2"] {
            assert!(check_prefix(fine).is_ok(), "{fine}");
        }
        for wrong in ["", "a b", "a..b", "a.*", ">", "a."] {
            assert!(check_prefix(wrong).unwrap_err().is_input(), "{wrong}");
        }
    }

    #[test]
    fn addresses_are_shown_without_passwords() {
        let two = addresses("nats://lab:secret@10.0.0.1:4223, tls://nats.example").unwrap();
        assert_eq!(shown(&two), "nats://10.0.0.1:4223, tls://nats.example:4222");
        let bad = addresses("http://lab:secret@host").unwrap_err();
        assert!(bad.is_input());
        assert!(!bad.to_string().contains("secret"), "{bad}");
    }
}
