//! TLS 1.3 for QUIC by rustls, such that a handshake repeats byte for byte:
//! random bytes and key shares are drawn from the lent [`entropy`], the
//! server has always the same certificate, and the time is always the same.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret,
    SupportedKxGroup, WebPkiSupportedAlgorithms, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, NamedGroup, PeerMisbehaved, ServerConfig,
    SignatureScheme,
};
use x25519_dalek::{PublicKey, StaticSecret};

use crate::entropy;

/// The name in the certificate; `.invalid` never resolves.
pub(super) const SERVER_NAME: &str = "lagometer.invalid";

/// What the application speaks, by ALPN: without it a real server would
/// refuse the connection, so its bytes belong into the handshake.
const ALPN: &[u8] = b"lagometer";

/// A self-signed certificate for [`SERVER_NAME`], valid from 2026 to 2126,
/// made with `openssl req -x509`.
const CERTIFICATE: &[u8] = include_bytes!("../identity/ed25519-cert.der");

/// Its key, public like all of this repository: it authenticates a benchmark
/// to itself.
const PRIVATE_KEY: &[u8] = include_bytes!("../identity/ed25519-key.der");

/// Early in 2030, within the certificate's validity.
const TIME: UnixTime = UnixTime::since_unix_epoch(Duration::from_hours(60 * 365 * 24));

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    Arc::new(CryptoProvider {
        kx_groups: vec![&LentX25519],
        secure_random: &LentRandom,
        ..rustls::crypto::ring::default_provider()
    })
});

/// The client's side of TLS.
pub(super) fn client() -> ClientConfig {
    let verifier = OneCertificate {
        algorithms: PROVIDER.signature_verification_algorithms,
    };
    let mut config = ClientConfig::builder_with_details(PROVIDER.clone(), Arc::new(FixedTime))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring knows TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    config
}

/// The server's side of TLS.
pub(super) fn server() -> ServerConfig {
    let mut config = ServerConfig::builder_with_details(PROVIDER.clone(), Arc::new(FixedTime))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring knows TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(CERTIFICATE)],
            PrivatePkcs8KeyDer::from(PRIVATE_KEY).into(),
        )
        .expect("the key is the certificate's");
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

/// Random bytes from the lent entropy.
#[derive(Debug)]
struct LentRandom;

impl SecureRandom for LentRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        entropy::draw(buffer).map_err(|_| GetRandomFailed)
    }
}

/// X25519 whose ephemeral key comes from the lent entropy.
#[derive(Debug)]
struct LentX25519;

impl SupportedKxGroup for LentX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut bytes = [0; 32];
        entropy::draw(&mut bytes).map_err(|_| Error::FailedToGetRandomBytes)?;
        let secret = StaticSecret::from(bytes);
        let public = PublicKey::from(&secret);
        Ok(Box::new(X25519Exchange { secret, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct X25519Exchange {
    secret: StaticSecret,
    public: PublicKey,
}

impl ActiveKeyExchange for X25519Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let refused = || Error::from(PeerMisbehaved::InvalidKeyShare);
        let peer: [u8; 32] = peer.try_into().map_err(|_| refused())?;
        let shared = self.secret.diffie_hellman(&PublicKey::from(peer));
        if !shared.was_contributory() {
            return Err(refused());
        }
        Ok(SharedSecret::from(&shared.as_bytes()[..]))
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// Trusts [`CERTIFICATE`] and no other, and checks that the server has its
/// key.
#[derive(Debug)]
struct OneCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for OneCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if end_entity.as_ref() == CERTIFICATE {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::CertificateError::UnknownIssuer.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // QUIC knows TLS 1.3 alone.
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// A clock that stands still: tickets and certificates never age in a run.
#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_share_that_contributes_nothing_is_refused() {
        let exchange = entropy::Entropy::new(1, 0)
            .lend(|| LentX25519.start())
            .unwrap();
        assert!(exchange.complete(&[0; 32]).is_err());
    }
}
