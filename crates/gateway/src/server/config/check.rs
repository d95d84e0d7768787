//! What settings a gateway cannot do with: values that mean nothing, and keys
//! that contradict each other. What is refused here would start, and then serve
//! nobody, or close everybody, without a word why.

use std::time::Duration;

use lagometer_protocol::MAX_PAYLOAD;
use lagometer_units::Span;

use crate::core::LoginLimits;

use super::address::{ListenAddress, Wire};
use super::file::{AuthSection, FileConfig, LimitsSection, Provider};
use super::resolve::{ConfigError, wrong};

/// The longest that what arrives may be left lying: a tenth of a second is
/// already more than a player puts up with.
const GATHER_AT_MOST: Duration = Duration::from_millis(100);

/// A TLS handshake and a login take this long on a slow processor.
const LOGIN_WORK_AT_LEAST: Duration = Duration::from_millis(5);

/// The least time in which a login can be answered over a path of some length.
const LOGIN_WITHIN_AT_LEAST: Span = Span::from_millis(100);

/// A subscription, the cheapest request that every game makes, costs some units.
const WORK_AT_LEAST: u32 = 1000;

/// Threads for connections that a machine can make sense of.
const THREADS_AT_MOST: u16 = 256;

/// Whether something holds, of which key, and what would mend it.
type Condition = (bool, &'static str, &'static str);

impl FileConfig {
    /// What can be said without reading the files that are named.
    pub(super) fn check(
        &self,
        servers: &[ListenAddress],
        clients: &[ListenAddress],
    ) -> Result<(), ConfigError> {
        let conditions = [
            self.addresses(servers, clients),
            self.channels_hold(),
            self.slow_readers_hold(),
            self.threads_hold(),
            places(&self.limits),
            logins(&self.limits),
            rates(&self.limits),
            budgets(&self.limits),
            authentication(&self.auth),
        ];
        match conditions.into_iter().flatten().find(|(holds, ..)| !holds) {
            Some((_, key, reason)) => Err(wrong(key, reason)),
            None => Ok(()),
        }
    }

    fn addresses(&self, servers: &[ListenAddress], clients: &[ListenAddress]) -> Vec<Condition> {
        let all: Vec<&ListenAddress> = servers.iter().chain(clients).collect();
        let is_twice = all.iter().enumerate().any(|(at, one)| {
            let others = all.iter().skip(at + 1);
            is_fixed(one) && others.into_iter().any(|other| one == other)
        });
        vec![
            (
                self.web.listen.wire == Wire::Tcp,
                "web.listen",
                "must be a plain address, HOST:PORT",
            ),
            (
                !servers.is_empty(),
                "servers.listen",
                "names no address: give one, or leave the key out for tcp://[::]:11288",
            ),
            (
                !clients.is_empty(),
                "clients.listen",
                "names no address: give one, or leave the key out for tcp://[::]:12108",
            ),
            (
                !is_twice,
                "clients.listen",
                "an address stands twice in it and servers.listen: give each a port of its own",
            ),
            (
                is_more_than_nothing(self.servers.recovery_within),
                "servers.recovery_within",
                "no server comes back in \"0 s\": say how long one may take, leave the key out for \
                 ever, or set recovery = false",
            ),
            (
                is_more_than_nothing(self.tcp.dead_after),
                "tcp.dead_after",
                "must be more than \"0 s\"; leave it out to wait for as long as the system does",
            ),
            (
                u32::try_from(self.tcp.unsent_at_most.bytes()).is_ok(),
                "tcp.unsent_at_most",
                "must be less than \"4 GiB\"; \"0 B\" leaves it to the system",
            ),
        ]
    }

    fn channels_hold(&self) -> Vec<Condition> {
        let channels = &self.channels;
        vec![
            (
                (1..=32).contains(&channels.connection_id_bits),
                "channels.connection_id_bits",
                "must be from 1 to 32",
            ),
            (
                channels.spatial_from > 0 && channels.entities_from > channels.spatial_from,
                "channels.entities_from",
                "must be greater than spatial_from, and that greater than 0",
            ),
            (
                channels.max_data.bytes() > 0,
                "channels.max_data",
                "must be at least \"1 B\": no channel could have data",
            ),
            (
                self.clients.record_to.is_none() || self.limits.recording.bytes() > 0,
                "limits.recording",
                "must be at least \"1 B\" where clients.record_to is set: nothing would be recorded",
            ),
        ]
    }

    fn slow_readers_hold(&self) -> Vec<Condition> {
        let slow = &self.slow_readers;
        vec![
            (
                slow.resume_at <= slow.merge_from && slow.merge_from < slow.close_at,
                "slow_readers",
                "resume_at must not be above merge_from, and that below close_at",
            ),
            (
                slow.close_at.bytes() <= slow.server_close_at.bytes(),
                "slow_readers.server_close_at",
                "must not be below close_at",
            ),
            (
                slow.close_after >= Span::from_millis(100),
                "slow_readers.close_after",
                "must be at least \"100 ms\": whoever is not read for a moment would be closed",
            ),
        ]
    }

    fn threads_hold(&self) -> Vec<Condition> {
        vec![
            (
                self.threads.queue > 0,
                "threads.queue",
                "must be at least 1",
            ),
            (
                self.threads.queue_bytes.bytes() > 0,
                "threads.queue_bytes",
                "must be at least \"1 B\"",
            ),
            (
                self.threads.gather.duration() <= GATHER_AT_MOST,
                "threads.gather",
                "must be at most \"100 ms\"",
            ),
            (
                self.threads
                    .connections
                    .is_none_or(|it| it <= THREADS_AT_MOST),
                "threads.connections",
                "must be at most 256; one less than there are processors is usual",
            ),
        ]
    }
}

/// How many may come, and what they may hold before they have logged in.
fn places(limits: &LimitsSection) -> Vec<Condition> {
    vec![
        (
            limits.connections > 0,
            "limits.connections",
            "must be at least 1",
        ),
        (
            limits.unauthenticated > 0 && limits.unauthenticated_per_address > 0,
            "limits.unauthenticated",
            "it and unauthenticated_per_address must be at least 1",
        ),
        (
            limits.unauthenticated_memory.bytes() >= 1 << 20
                && usize::try_from(limits.unauthenticated_memory.bytes()).is_ok(),
            "limits.unauthenticated_memory",
            "must be at least \"1 MiB\", which some dozens of logins at once need",
        ),
        (
            limits.connections_per_address != Some(0),
            "limits.connections_per_address",
            "0 keeps everybody out; leave the key out for no limit",
        ),
        (
            limits.connects_per_second_per_address != Some(0),
            "limits.connects_per_second_per_address",
            "0 keeps everybody out; leave the key out for no limit",
        ),
        (
            limits.kcp_unproven > 0 && limits.kcp_unproven_per_address > 0,
            "limits.kcp_unproven",
            "must be at least 1, and so must kcp_unproven_per_address",
        ),
        (
            limits.kcp_silent_at_most >= Span::from_millis(1_000),
            "limits.kcp_silent_at_most",
            "must be at least 1 s: a peer needs time to answer",
        ),
        (
            is_more_than_nothing(limits.silent_at_most),
            "limits.silent_at_most",
            "must be more than \"0 s\"; leave it out for no limit",
        ),
    ]
}

/// What a login takes has to be allowed by all that limits one.
fn logins(limits: &LimitsSection) -> Vec<Condition> {
    let login = LoginLimits {
        player_bytes: limits.player_name.bytes() as usize,
        token_bytes: limits.login_token.bytes() as usize,
    };
    let login_bytes = login.bytes() as u64;
    vec![
        (
            limits.login_bytes.bytes() >= 1024
                && limits.login_messages > 0
                && limits.login_attempts > 0
                && limits.login_work.duration() >= LOGIN_WORK_AT_LEAST,
            "limits.login_bytes",
            "a login needs login_bytes of \"1 KiB\", login_work of \"5 ms\", and one of \
             login_messages and login_attempts at least",
        ),
        (
            limits.login_within >= LOGIN_WITHIN_AT_LEAST,
            "limits.login_within",
            "must be at least \"100 ms\": nobody could log in in time",
        ),
        (
            login.player_bytes > 0 && login.token_bytes > 0,
            "limits.player_name",
            "it and login_token must be at least \"1 B\": no login would be let in",
        ),
        (
            login_bytes <= limits.login_bytes.bytes(),
            "limits.login_bytes",
            "must be 1 KiB more than player_name and login_token together, or what they allow is \
             never received: raise it, or lower them",
        ),
        (
            login_bytes <= limits.max_packet.bytes(),
            "limits.max_packet",
            "must be 1 KiB more than player_name and login_token together, or what they allow is \
             never received: raise it, or lower them",
        ),
        (
            (1..=MAX_PAYLOAD as u64).contains(&limits.max_frame.bytes()),
            "limits.max_frame",
            "must be from \"1 B\" to \"65535 B\"",
        ),
        (
            limits.max_packet.bytes() >= limits.max_frame.bytes(),
            "limits.max_packet",
            "must not be below max_frame: what a frame may hold it may unpack to",
        ),
    ]
}

/// What is read of a client in a second.
fn rates(limits: &LimitsSection) -> Vec<Condition> {
    vec![
        (
            limits.messages_per_second > 0 && limits.bytes_per_second.bytes() > 0,
            "limits.messages_per_second",
            "it and bytes_per_second must be at least 1: nothing would be read",
        ),
        (
            limits.messages_per_second_per_address != Some(0),
            "limits.messages_per_second_per_address",
            "0 reads nobody; leave the key out for no limit",
        ),
        (
            limits.work_per_second >= WORK_AT_LEAST,
            "limits.work_per_second",
            "must be at least 1000, or clients' requests are dropped that every game makes; it is \
             200000 where it is left out",
        ),
    ]
}

/// What a client may ask of the channels.
fn budgets(limits: &LimitsSection) -> Vec<Condition> {
    vec![
        (
            limits.channels == 0 || limits.channel_data.bytes() <= limits.data.bytes(),
            "limits.channel_data",
            "must not be above data, from which it is set aside: clients could make no channel; set \
             channels = 0 if they are not to",
        ),
        (
            limits.entity_channels == 0 || limits.channel_data.bytes() / 2 <= limits.data.bytes(),
            "limits.channel_data",
            "half of it must not be above data, from which it is set aside: clients could make no \
             entity; set entity_channels = 0 if they are not to",
        ),
        (
            limits.shared_data.bytes() > 0,
            "limits.shared_data",
            "0 B drops all that clients update where a server lets them; 512 KiB where it is left out",
        ),
        (
            limits.fan_out_within >= Span::from_millis(1),
            "limits.fan_out_within",
            "must be at least \"1 ms\": no client could ask for an interval",
        ),
    ]
}

/// Who decides about logins, and who is barred.
fn authentication(auth: &AuthSection) -> Vec<Condition> {
    vec![
        (
            auth.provider != Provider::Http || auth.timeout >= Span::from_millis(1),
            "auth.timeout",
            "must be at least \"1 ms\": no answer would be in time",
        ),
        (
            !auth.anti_ddos || auth.login_within >= LOGIN_WITHIN_AT_LEAST,
            "auth.login_within",
            "must be at least \"100 ms\" with anti_ddos: nobody could log in in time, and all would \
             be barred",
        ),
        (
            !auth.anti_ddos || auth.banned_for > Span::ZERO,
            "auth.banned_for",
            "must be more than \"0 s\" with anti_ddos; leave anti_ddos out to bar nobody",
        ),
    ]
}

fn is_more_than_nothing(span: Option<Span>) -> bool {
    span.is_none_or(|span| span > Span::ZERO)
}

/// Whether an address can be taken only once.
fn is_fixed(at: &ListenAddress) -> bool {
    at.socket().is_none_or(|socket| socket.port() != 0)
}
