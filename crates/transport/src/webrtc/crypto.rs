//! The cryptography that the WebRTC library asks for, on *ring*: hashes for
//! ICE and for fingerprints, and DTLS with everything random in it seeded.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use ring::{digest, hmac};
use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, ProtocolVersion,
};
use str0m::crypto::{
    CryptoError, CryptoProvider, Sha1HmacProvider, Sha1Provider, Sha256Provider, SrtpProvider,
    SupportedAeadAes128Gcm, SupportedAeadAes256Gcm, SupportedAes128CmSha1_80,
};

use super::dtls;
use crate::entropy;

/// The provider that is handed to the WebRTC library.
pub(super) static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    Arc::new(CryptoProvider {
        srtp_provider: &NoMedia,
        sha1_hmac_provider: &Hashes,
        sha1_provider: &Hashes,
        sha256_provider: &Hashes,
        dtls_provider: &SeededDtls,
    })
});

#[derive(Debug)]
struct Hashes;

impl Sha1HmacProvider for Hashes {
    fn sha1_hmac(&self, key: &[u8], payloads: &[&[u8]]) -> [u8; 20] {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key);
        let mut context = hmac::Context::with_key(&key);
        for payload in payloads {
            context.update(payload);
        }
        sized(context.sign().as_ref())
    }
}

impl Sha1Provider for Hashes {
    fn sha1(&self, data: &[u8]) -> [u8; 20] {
        sized(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, data).as_ref())
    }
}

impl Sha256Provider for Hashes {
    fn sha256(&self, data: &[u8]) -> [u8; 32] {
        sized(digest::digest(&digest::SHA256, data).as_ref())
    }
}

fn sized<const N: usize>(hash: &[u8]) -> [u8; N] {
    hash.try_into()
        .expect("the algorithm's output has this size")
}

/// DTLS 1.2 whose greetings, nonces and timers follow from the entropy lent
/// when the connection is made.
#[derive(Debug)]
struct SeededDtls;

impl DtlsProvider for SeededDtls {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        // The certificate is always given.
        None
    }

    fn new_dtls(
        &self,
        certificate: &DtlsCert,
        now: Instant,
        version: DtlsVersion,
        mtu: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let other = |reason: String| CryptoError::Other(reason);
        if version != DtlsVersion::Dtls12 {
            return Err(other(format!("{version} is not provided")));
        }
        let mut seed = [0; 8];
        entropy::draw(&mut seed).map_err(|error| other(error.to_string()))?;
        let mut config = dimpl::Config::builder()
            .with_crypto_provider(dtls::provider())
            .dangerously_set_rng_seed(u64::from_le_bytes(seed))
            // ICE has shown that the peer is where it says.
            .use_server_cookie(false);
        if let Some(mtu) = mtu {
            config = config.mtu(mtu);
        }
        let config = config.build().map_err(|error| other(error.to_string()))?;
        Ok(Box::new(DataOnly {
            dtls: dimpl::Dtls::new_12(Arc::new(config), certificate.clone(), now),
            made: now,
        }))
    }
}

/// DTLS that keeps the keys for media to itself.
struct DataOnly {
    dtls: dimpl::Dtls,
    made: Instant,
}

impl fmt::Debug for DataOnly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DataOnly").finish_non_exhaustive()
    }
}

impl DtlsInstance for DataOnly {
    fn set_active(&mut self, active: bool) {
        self.dtls.set_active(active);
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.dtls.handle_packet(packet)
    }

    fn poll_output<'a>(&mut self, buffer: &'a mut [u8]) -> DtlsOutput<'a> {
        match self.dtls.poll_output(buffer) {
            // "Ask again at once."
            DtlsOutput::KeyingMaterial(..) => DtlsOutput::Timeout(self.made),
            output => output,
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.dtls.handle_timeout(now)
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        self.dtls.send_application_data(data)
    }

    fn is_active(&self) -> bool {
        self.dtls.is_active()
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.dtls.protocol_version()
    }

    fn is_closing(&self) -> bool {
        self.dtls.is_closing()
    }

    fn is_closed(&self) -> bool {
        self.dtls.is_closed()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        self.dtls.close()
    }
}

/// Ciphers for audio and video, of which there is none: they are asked for
/// with the keys that [`DataOnly`] does not hand out.
#[derive(Debug)]
struct NoMedia;

const NO_MEDIA: &str = "no keys for media are handed out";

impl SrtpProvider for NoMedia {
    fn aes_128_cm_sha1_80(&self) -> &'static dyn SupportedAes128CmSha1_80 {
        unreachable!("{NO_MEDIA}")
    }

    fn aead_aes_128_gcm(&self) -> &'static dyn SupportedAeadAes128Gcm {
        unreachable!("{NO_MEDIA}")
    }

    fn aead_aes_256_gcm(&self) -> &'static dyn SupportedAeadAes256Gcm {
        unreachable!("{NO_MEDIA}")
    }

    fn srtp_aes_128_ecb_round(&self, _key: &[u8], _input: &[u8], _output: &mut [u8]) {
        unreachable!("{NO_MEDIA}")
    }

    fn srtp_aes_256_ecb_round(&self, _key: &[u8], _input: &[u8], _output: &mut [u8]) {
        unreachable!("{NO_MEDIA}")
    }
}
