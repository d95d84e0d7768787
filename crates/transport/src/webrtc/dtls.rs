//! The cryptography of DTLS 1.2 as WebRTC uses it, on *ring*, which QUIC
//! brings along: one cipher suite, one key exchange, one kind of key. Random
//! bytes and key shares are drawn from the lent [`entropy`].

use std::fmt;

use dimpl::crypto::{
    Aad, ActiveKeyExchange, Buf, Cipher, CryptoProvider, Dtls12CipherSuite, Dtls13CipherSuite,
    HashAlgorithm, HashContext, HashProvider, HmacProvider, KeyProvider, NamedGroup, Nonce,
    SecureRandom, SignatureAlgorithm, SignatureVerifier, SigningKey, SupportedDtls12CipherSuite,
    SupportedDtls13CipherSuite, SupportedKxGroup, TmpBuf,
};
use dimpl::{CryptoError, CryptoOperation};
use ring::aead::{self, LessSafeKey, UnboundKey, quic::HeaderProtectionKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use ring::{digest, hmac};
use rustls::pki_types::CertificateDer;
use x25519_dalek::{PublicKey, StaticSecret};

use crate::entropy;

/// The provider that is handed to the DTLS library.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: &[&LentX25519],
        signature_verification: &P256,
        key_provider: &P256,
        secure_random: &LentRandom,
        hash_provider: &Sha2,
        hmac_provider: &Sha2,
        cipher_suites: &[&Aes128Gcm],
        // Not negotiated, but the library refuses a provider without one.
        dtls13_cipher_suites: &[&ChaCha20Poly1305],
    }
}

fn failed(operation: CryptoOperation) -> CryptoError {
    CryptoError::OperationFailed(operation)
}

/// Random bytes from the lent entropy.
#[derive(Debug)]
struct LentRandom;

impl SecureRandom for LentRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), CryptoError> {
        entropy::draw(buffer).map_err(|_| failed(CryptoOperation::FillRandom))
    }
}

/// X25519 whose ephemeral key comes from the lent entropy.
#[derive(Debug)]
struct LentX25519;

impl SupportedKxGroup for LentX25519 {
    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }

    fn start_exchange(&self, _buffer: Buf) -> Result<Box<dyn ActiveKeyExchange>, CryptoError> {
        let mut bytes = [0; 32];
        LentRandom.fill(&mut bytes)?;
        let secret = StaticSecret::from(bytes);
        let public = PublicKey::from(&secret);
        Ok(Box::new(X25519Exchange { secret, public }))
    }
}

struct X25519Exchange {
    secret: StaticSecret,
    public: PublicKey,
}

impl fmt::Debug for X25519Exchange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("X25519Exchange")
            .finish_non_exhaustive()
    }
}

impl ActiveKeyExchange for X25519Exchange {
    fn pub_key(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn complete(self: Box<Self>, peer: &[u8], out: &mut Buf) -> Result<(), CryptoError> {
        let refused = || CryptoError::InvalidPublicKey(NamedGroup::X25519);
        let peer: [u8; 32] = peer.try_into().map_err(|_| refused())?;
        let shared = self.secret.diffie_hellman(&PublicKey::from(peer));
        if !shared.was_contributory() {
            return Err(refused());
        }
        out.clear();
        out.extend_from_slice(shared.as_bytes());
        Ok(())
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// ECDSA on P-256 with SHA-256, the signature every WebRTC peer knows.
#[derive(Debug)]
struct P256;

impl SignatureVerifier for P256 {
    fn verify_signature(
        &self,
        certificate: &[u8],
        data: &[u8],
        signature: &[u8],
        hash: HashAlgorithm,
        algorithm: SignatureAlgorithm,
    ) -> Result<(), CryptoError> {
        if algorithm != SignatureAlgorithm::ECDSA {
            return Err(CryptoError::UnsupportedSignatureAlgorithm(algorithm));
        }
        let wrong = || CryptoError::SignatureVerificationFailed {
            signature: algorithm,
            hash,
            group: NamedGroup::Secp256r1,
        };
        if hash != HashAlgorithm::SHA256 {
            return Err(wrong());
        }
        let certificate = CertificateDer::from(certificate);
        let certificate = webpki::EndEntityCert::try_from(&certificate)
            .map_err(|_| CryptoError::CertificateParseFailed)?;
        certificate
            .verify_signature(webpki::ring::ECDSA_P256_SHA256, data, signature)
            .map_err(|_| wrong())
    }
}

impl KeyProvider for P256 {
    fn load_private_key(&self, key: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key, &random)
            .map_err(|_| CryptoError::InvalidPrivateKey)?;
        Ok(Box::new(P256Key(pair)))
    }
}

#[derive(Debug)]
struct P256Key(EcdsaKeyPair);

/// The length that half of all signatures have in DER: two numbers of 32
/// bytes each, one of which needs a leading zero.
const SIGNATURE_BYTES: usize = 71;

/// Signing so often without meeting [`SIGNATURE_BYTES`] has a chance of one
/// in 2^128.
const SIGNATURE_ATTEMPTS: usize = 128;

impl SigningKey for P256Key {
    /// A signature that is always [`SIGNATURE_BYTES`] long. *ring* insists on
    /// the operating system's randomness for its nonces, so the bytes are
    /// never the same; the size must be.
    fn sign(&mut self, data: &[u8], hash: HashAlgorithm, out: &mut Buf) -> Result<(), CryptoError> {
        if hash != HashAlgorithm::SHA256 {
            return Err(CryptoError::SigningKeyUnsupportedHash {
                group: NamedGroup::Secp256r1,
                hash,
            });
        }
        let random = SystemRandom::new();
        let signature = (0..SIGNATURE_ATTEMPTS)
            .filter_map(|_| self.0.sign(&random, data).ok())
            .find(|signature| signature.as_ref().len() == SIGNATURE_BYTES)
            .ok_or(failed(CryptoOperation::Sign))?;
        out.clear();
        out.extend_from_slice(signature.as_ref());
        Ok(())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &[HashAlgorithm::SHA256]
    }
}

/// SHA-256, alone and in HMAC: all that the cipher suites here ask for.
#[derive(Debug)]
struct Sha2;

impl HashProvider for Sha2 {
    fn create_hash(&self, algorithm: HashAlgorithm) -> Box<dyn HashContext> {
        assert_eq!(
            algorithm,
            HashAlgorithm::SHA256,
            "the suites that are offered use SHA-256"
        );
        Box::new(Sha256(digest::Context::new(&digest::SHA256)))
    }
}

impl HmacProvider for Sha2 {
    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        if hash != HashAlgorithm::SHA256 {
            return Err(CryptoError::UnsupportedHmacHash(hash));
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let tag = hmac::sign(&key, data);
        let tag = tag.as_ref();
        out[..tag.len()].copy_from_slice(tag);
        Ok(tag.len())
    }
}

struct Sha256(digest::Context);

impl fmt::Debug for Sha256 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sha256").finish_non_exhaustive()
    }
}

impl HashContext for Sha256 {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn clone_and_finalize(&self, out: &mut Buf) {
        out.clear();
        out.extend_from_slice(self.0.clone().finish().as_ref());
    }
}

/// `TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256` (RFC 5289).
#[derive(Debug)]
struct Aes128Gcm;

impl SupportedDtls12CipherSuite for Aes128Gcm {
    fn suite(&self) -> Dtls12CipherSuite {
        Dtls12CipherSuite::ECDHE_ECDSA_AES128_GCM_SHA256
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn key_lengths(&self) -> (usize, usize, usize) {
        // No key for a MAC; the key; the fixed part of the nonce.
        (0, 16, 4)
    }

    fn explicit_nonce_len(&self) -> usize {
        8
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        Sealed::create(&aead::AES_128_GCM, key)
    }
}

/// `TLS_CHACHA20_POLY1305_SHA256` (RFC 8446).
#[derive(Debug)]
struct ChaCha20Poly1305;

impl SupportedDtls13CipherSuite for ChaCha20Poly1305 {
    fn suite(&self) -> Dtls13CipherSuite {
        Dtls13CipherSuite::CHACHA20_POLY1305_SHA256
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn key_len(&self) -> usize {
        32
    }

    fn iv_len(&self) -> usize {
        aead::NONCE_LEN
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        Sealed::create(&aead::CHACHA20_POLY1305, key)
    }

    /// Record numbers take at most 2 bytes of the mask; *ring* gives 5.
    fn encrypt_sn(&self, key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
        let mut mask = [0; 16];
        let five = HeaderProtectionKey::new(&aead::quic::CHACHA20, key)
            .and_then(|key| key.new_mask(sample))
            .expect("the key has the suite's length, the sample the algorithm's");
        mask[..five.len()].copy_from_slice(&five);
        mask
    }
}

/// Bytes of both suites' authentication tags.
const TAG_BYTES: usize = 16;

struct Sealed(LessSafeKey);

impl Sealed {
    fn create(
        algorithm: &'static aead::Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Cipher>, CryptoError> {
        let key =
            UnboundKey::new(algorithm, key).map_err(|_| failed(CryptoOperation::CreateCipher))?;
        Ok(Box::new(Self(LessSafeKey::new(key))))
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sealed").finish_non_exhaustive()
    }
}

impl Cipher for Sealed {
    fn encrypt(&mut self, text: &mut Buf, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        self.0
            .seal_in_place_append_tag(nonce, aead::Aad::from(&aad[..]), text)
            .map_err(|_| failed(CryptoOperation::Encrypt))
    }

    fn decrypt(
        &mut self,
        text: &mut TmpBuf<'_>,
        aad: Aad,
        nonce: Nonce,
    ) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let plain = self
            .0
            .open_in_place(nonce, aead::Aad::from(&aad[..]), text.as_mut())
            .map_err(|_| failed(CryptoOperation::Decrypt))?
            .len();
        text.truncate(plain);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::Entropy;

    /// The library checks each part against test vectors of its own.
    #[test]
    fn the_provider_computes_what_it_must() {
        Entropy::new(1, 0).lend(|| provider().validate()).unwrap();
    }

    #[test]
    fn signatures_are_valid_and_all_of_one_size() {
        let mut key = P256
            .load_private_key(super::super::wiring::PRIVATE_KEY)
            .unwrap();
        for round in 0..50_u32 {
            let mut signature = Buf::new();
            let data = round.to_be_bytes();
            key.sign(&data, HashAlgorithm::SHA256, &mut signature)
                .unwrap();
            assert_eq!(signature.len(), SIGNATURE_BYTES);
            let verify = |data: &[u8]| {
                P256.verify_signature(
                    super::super::wiring::CERTIFICATE,
                    data,
                    &signature,
                    HashAlgorithm::SHA256,
                    SignatureAlgorithm::ECDSA,
                )
            };
            assert!(verify(&data).is_ok());
            assert!(verify(b"something else").is_err());
        }
    }
}
