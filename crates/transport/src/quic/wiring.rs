//! From settings and a seed to the library's configuration objects.

use std::hash::Hasher;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lagometer_units::{Size, Time};
use quinn_proto::congestion::NewRenoConfig;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig,
    IdleTimeout, InvalidCid, MtuDiscoveryConfig, QlogConfig, QlogStream, ServerConfig, TimeSource,
    TransportConfig, ValidationTokenConfig, VarInt,
};
use ring::{hkdf, hmac};

use super::cubic::CubicFactory;
use super::settings::{CongestionControl, MessageMapping, Settings};
use super::tls;
use crate::entropy::Entropy;
use crate::origin::to_instant;
use crate::{End, LogWriter};

/// Where the library believes the client to be. Addresses for documentation
/// (RFC 5737): what carries the datagrams is the driver's affair, and each
/// endpoint has exactly one peer.
pub(super) const CLIENT: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 50_000);

/// Where the library believes the server to be.
pub(super) const SERVER: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 443);

/// What an endpoint does whatever its role.
pub(super) fn endpoint(settings: &Settings, entropy: &mut Entropy) -> EndpointConfig {
    let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &entropy.bytes::<64>());
    let mut config = EndpointConfig::new(Arc::new(reset_key));
    config.rng_seed(Some(entropy.bytes()));
    let cids = Entropy::new(u64::from_le_bytes(entropy.bytes()), 0);
    config.cid_generator(move || Box::new(SeededCids::new(cids.clone())));
    let largest = settings
        .max_mtu
        .max(settings.initial_mtu)
        .clamp(1472, 65_527);
    // Within the limits of the call, by the clamp: it cannot refuse.
    let _ = config.max_udp_payload_size(largest);
    config
}

/// How the client connects.
pub(super) fn client(
    settings: &Settings,
    entropy: &mut Entropy,
    log: Option<QlogStream>,
) -> ClientConfig {
    let crypto = QuicClientConfig::try_from(tls::client()).expect("ring has the first suite");
    let mut config = ClientConfig::new(Arc::new(crypto));
    let first_cid = ConnectionId::new(&entropy.bytes::<20>());
    config.initial_dst_cid_provider(Arc::new(move || first_cid));
    config.transport_config(Arc::new(transport(settings, log)));
    config
}

/// How the server accepts.
pub(super) fn server(
    settings: &Settings,
    entropy: &mut Entropy,
    log: Option<QlogStream>,
) -> ServerConfig {
    let crypto = QuicServerConfig::try_from(tls::server()).expect("ring has the first suite");
    let token_key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&entropy.bytes::<64>());
    let mut config = ServerConfig::new(Arc::new(crypto), Arc::new(token_key));
    let mut tokens = ValidationTokenConfig::default();
    // Tokens serve a client's next connection, and there is none.
    tokens.sent(0);
    config.validation_token_config(tokens);
    config.time_source(Arc::new(FixedTime));
    config.migration(false);
    config.transport_config(Arc::new(transport(settings, log)));
    config
}

/// What one end writes its log into; none where nothing can be written there. Its
/// instants are those of the run.
pub(super) fn qlog(writer: LogWriter, end: End) -> Option<QlogStream> {
    let mut config = QlogConfig::default();
    config
        .writer(writer)
        .title(Some(format!("quic {end}")))
        .start_time(to_instant(Time::ZERO));
    config.into_stream()
}

fn transport(settings: &Settings, log: Option<QlogStream>) -> TransportConfig {
    let mut config = TransportConfig::default();
    config.qlog_stream(log);
    let idle = settings.max_idle_timeout.0;
    let idle = IdleTimeout::try_from(idle).ok().filter(|_| !idle.is_zero());
    let keep_alive = settings.keep_alive.0;
    let streams = match settings.mapping {
        MessageMapping::OneStream => 1,
        MessageMapping::StreamEach => settings.max_streams,
        MessageMapping::Datagram => 0,
    };
    config
        .max_idle_timeout(idle)
        .keep_alive_interval((!keep_alive.is_zero()).then_some(keep_alive))
        .initial_rtt(settings.initial_rtt.0)
        .packet_threshold(settings.packet_threshold)
        .time_threshold(settings.time_threshold)
        .initial_mtu(settings.initial_mtu)
        .stream_receive_window(window(settings.stream_receive_window))
        .receive_window(window(settings.receive_window))
        .send_window(settings.send_window.0)
        .max_concurrent_bidi_streams(0_u32.into())
        .max_concurrent_uni_streams(streams.into())
        .datagram_send_buffer_size(bytes(settings.datagram_send_buffer))
        .datagram_receive_buffer_size(Some(bytes(settings.datagram_receive_buffer)))
        .enable_segmentation_offload(false);
    config.mtu_discovery_config(settings.mtu_discovery.then(|| {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(settings.max_mtu);
        discovery
    }));
    config.ack_frequency_config(settings.ack_frequency.map(|asked| {
        let mut frequency = AckFrequencyConfig::default();
        frequency
            .ack_eliciting_threshold(asked.ack_eliciting_threshold.into())
            .max_ack_delay(Some(asked.max_ack_delay.0))
            .reordering_threshold(asked.reordering_threshold.into());
        frequency
    }));
    match settings.congestion_control {
        CongestionControl::Cubic => config.congestion_controller_factory(Arc::new(CubicFactory)),
        CongestionControl::NewReno => {
            config.congestion_controller_factory(Arc::new(NewRenoConfig::default()))
        }
    };
    config
}

/// A window as the wire carries it.
fn window(size: Size) -> VarInt {
    VarInt::from_u64(size.0).unwrap_or(VarInt::MAX)
}

fn bytes(size: Size) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// Makes connection IDs from the seed: 4 bytes at random, 4 by which an ID
/// that was damaged on the way is distinguished from one of ours, so that it is
/// dropped instead of answered.
struct SeededCids {
    entropy: Entropy,
    key: u64,
}

impl SeededCids {
    fn new(mut entropy: Entropy) -> Self {
        let key = u64::from_le_bytes(entropy.bytes());
        Self { entropy, key }
    }

    fn check(&self, nonce: [u8; 4]) -> [u8; 4] {
        // SipHash with fixed keys: the standard hasher as it is when not
        // seeded from the operating system.
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_u64(self.key);
        hasher.write(&nonce);
        let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
        [a, b, c, d]
    }
}

impl ConnectionIdGenerator for SeededCids {
    fn generate_cid(&mut self) -> ConnectionId {
        let nonce = self.entropy.bytes();
        ConnectionId::new(&[nonce, self.check(nonce)].concat())
    }

    fn validate(&self, cid: &ConnectionId) -> Result<(), InvalidCid> {
        match cid.split_first_chunk::<4>() {
            Some((&nonce, check)) if self.check(nonce) == *check => Ok(()),
            _ => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A clock that stands still: tokens never age in a run.
struct FixedTime;

impl TimeSource for FixedTime {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_connection_id_is_recognised() {
        let mut cids = SeededCids::new(Entropy::new(7, 0));
        let cid = cids.generate_cid();
        assert!(cids.validate(&cid).is_ok());
        for byte in 0..8 {
            let mut damaged = *cid.first_chunk::<8>().unwrap();
            damaged[byte] ^= 1;
            assert!(cids.validate(&ConnectionId::new(&damaged)).is_err());
        }
    }
}
