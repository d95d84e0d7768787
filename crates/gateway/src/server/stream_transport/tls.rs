//! The certificate with which the gateway proves who it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lagometer_units::{MOST_SETTINGS, read_file};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

/// A certificate chain and its key, ready for use.
#[derive(Clone, Debug)]
pub(in crate::server) struct TlsIdentity {
    pub(in crate::server) config: Arc<ServerConfig>,
}

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
#[error("{path}: {reason}")]
pub struct TlsError {
    path: PathBuf,
    reason: String,
}

impl TlsIdentity {
    /// Reads PEM files: the chain with the gateway's own certificate first,
    /// and the key.
    pub(in crate::server) fn read(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let wrong = |path: &Path, reason: String| TlsError {
            path: path.to_owned(),
            reason,
        };
        let read = |path: &Path| {
            read_file(path, MOST_SETTINGS).map_err(|error| wrong(path, error.to_string()))
        };
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&read(certificates)?)
                .collect::<Result<_, _>>()
                .map_err(|error| wrong(certificates, format!("no certificates in PEM: {error}")))?;
        if chain.is_empty() {
            return Err(wrong(
                certificates,
                "holds no certificate; PEM with BEGIN CERTIFICATE is wanted".into(),
            ));
        }
        let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
            .map_err(|error| wrong(key, format!("no private key in PEM: {error}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(chain, secret)
            })
            .map_err(|error| {
                wrong(
                    certificates,
                    format!("does not go with {}: {error}", key.display()),
                )
            })?;
        Ok(Self {
            config: Arc::new(config),
        })
    }
}
