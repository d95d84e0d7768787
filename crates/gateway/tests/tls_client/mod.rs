//! The client's side of TLS with a gateway that has the tests' certificate.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Over a connection that stands.
pub(crate) fn over(stream: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/certificate.pem");
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(path).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(
        ClientConnection::new(Arc::new(config), name).unwrap(),
        stream,
    )
}
