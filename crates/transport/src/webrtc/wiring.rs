//! Two ends that know of each other what browsers would exchange
//! through a signalling server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use lagometer_units::Time;
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use str0m::config::DtlsCert;
use str0m::{Candidate, IceCreds, Rtc, RtcConfig};

use super::crypto::PROVIDER;
use super::settings::Settings;
use crate::entropy::Entropy;
use crate::origin::to_instant;
use crate::{Offer, Transport};

/// A self-signed P-256 certificate, valid from 2026 to 2126, made with
/// `openssl req -x509`; both ends have it, for peers are known by its
/// fingerprint alone.
pub(super) const CERTIFICATE: &[u8] = include_bytes!("../identity/p256-cert.der");

/// Its key, public like all of this repository: it authenticates a benchmark
/// to itself.
pub(super) const PRIVATE_KEY: &[u8] = include_bytes!("../identity/p256-key.der");

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    /// Where the library believes this end to be. Addresses for documentation
    /// (RFC 5737): what carries the datagrams is the driver's affair.
    pub(super) const fn address(self) -> SocketAddr {
        match self {
            Self::Client => SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 50_000),
            Self::Server => SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 3478),
        }
    }

    pub(super) const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The ICE credentials of this end, which both know.
    fn credentials(self, seed: u64) -> IceCreds {
        let mut entropy = Entropy::new(seed, self as u64 + 3);
        IceCreds {
            ufrag: format!("{:08x}", u32::from_le_bytes(entropy.bytes())),
            pass: format!("{:032x}", u128::from_le_bytes(entropy.bytes())),
        }
    }
}

/// An end's channels.
#[derive(Clone, Copy)]
pub(super) struct Channels {
    /// Carries messages as the settings say.
    pub(super) main: ChannelId,
    /// Carries unreliable messages beside reliable ones, where both are offered.
    pub(super) unreliable: Option<ChannelId>,
}

/// One end, connected as far as it goes without a datagram, and its channels.
pub(super) fn end(
    settings: &Settings,
    side: Side,
    seed: u64,
    start: Time,
    entropy: &mut Entropy,
) -> (Rtc, Channels) {
    let certificate = DtlsCert {
        certificate: CERTIFICATE.to_vec(),
        private_key: PRIVATE_KEY.to_vec(),
    };
    let mut config = RtcConfig::new()
        .set_crypto_provider(PROVIDER.clone())
        .set_dtls_cert(certificate)
        .set_local_ice_credentials(side.credentials(seed))
        .clear_codecs()
        .set_sctp_max_buffered_amount(settings.send_buffer.0 as usize)
        .set_mtu(usize::from(settings.mtu)..=usize::from(settings.mtu).max(1280));
    config.set_initial_stun_rto(settings.stun_initial_rto.0);
    config.set_max_stun_rto(settings.stun_max_rto.0);
    config.set_max_stun_retransmits(usize::from(settings.stun_max_retransmits));

    entropy.lend(|| {
        let mut rtc = config.build(to_instant(start));
        rtc.add_local_candidate(candidate(side));
        rtc.add_remote_candidate(candidate(side.peer()));
        let is_client = side == Side::Client;
        let mut direct = rtc.direct_api();
        // The peer has the same certificate.
        let fingerprint = direct.local_dtls_fingerprint().clone();
        direct.set_remote_fingerprint(fingerprint);
        direct.set_remote_ice_credentials(side.peer().credentials(seed));
        direct.set_ice_controlling(is_client);
        direct
            .start_dtls(is_client)
            .expect("the first flight needs nothing that could be missing");
        direct.start_sctp(is_client);
        // Both ends make the channels; nothing of them is negotiated on the wire.
        let main = direct.create_data_channel(channel(settings, 0));
        let unreliable = (settings.offer() == Offer::Channels)
            .then(|| direct.create_data_channel(channel(&Settings::UNRELIABLE, 1)));
        (rtc, Channels { main, unreliable })
    })
}

/// A channel that promises what the settings say.
fn channel(settings: &Settings, number: u16) -> ChannelConfig {
    let reliability = match settings.max_retransmits {
        None => Reliability::Reliable,
        Some(retransmits) => Reliability::MaxRetransmits { retransmits },
    };
    ChannelConfig {
        label: "lagometer".to_owned(),
        ordered: settings.ordered,
        reliability,
        negotiated: Some(number),
        protocol: String::new(),
    }
}

fn candidate(side: Side) -> Candidate {
    Candidate::host(side.address(), "udp").expect("an address that is neither 0 nor a group's")
}
