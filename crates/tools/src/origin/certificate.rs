//! The origin's TLS certificate: read from files, or generated. Must never write a key
//! anywhere.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256};
use tls::Server;
use tls::certificate::Certificate;
use tls::names::Row;
use tls::provider::{Algorithms, Version};
use tls::resumption::Resumption;
use tls::server::{Entry, Settings};

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 4 << 20;
/// Subject alternative names of a generated certificate.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Key type of a generated certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// ECDSA over P-256.
    #[default]
    P256,
    /// ECDSA over P-384.
    P384,
    /// RSA with this number of bits: 2048, 3072 or 4096.
    Rsa(u16),
}

/// Source of a certificate.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// A file, and optionally a separate file with its key.
    Files(&'a Path, Option<&'a Path>),
    /// A generated certificate.
    Made(Kind),
}

/// The TLS servers of an origin, with the same certificate.
#[derive(Debug, Clone)]
pub struct Offers {
    /// TCP: HTTP/2 and HTTP/1.1 by TLS 1.2 and 1.3.
    pub tcp: Arc<Server>,
    /// QUIC: HTTP/3.
    pub quic: Arc<Server>,
}

/// Builds the TLS servers.
///
/// # Errors
/// One line.
pub fn offer(from: Origin<'_>) -> Result<Offers, String> {
    let (name, text, key) = match from {
        Origin::Files(path, key) => (path.display().to_string(), read(path)?, key.map(read).transpose()?),
        Origin::Made(kind) => ("made".to_owned(), make(kind).map_err(|error| error.to_string())?.into_bytes(), None),
    };
    let certificate = Certificate::read(&name, &text, key.as_deref()).map_err(|error| error.sentence(&name))?;
    let certificate = Arc::new(certificate);
    let server = |settings: Settings| {
        let names = certificate.names.clone();
        let entry = Entry {
            row: Row { kind: certificate.kind, names, excluded: Vec::new(), is_default: true },
            certificate: Arc::clone(&certificate),
            is_filtered: false,
            settings: Arc::new(settings),
            line: None,
        };
        Server::new(vec![entry], false, Resumption::default()).map(Arc::new)
    };
    let of_tcp = Settings { alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()], ..Settings::default() };
    let algorithms = Algorithms { versions: (Version::Tls13, Version::Tls13), ..Algorithms::default() };
    let of_quic = Settings { alpn: vec![b"h3".to_vec()], is_quic: true, algorithms, ..Settings::default() };
    Ok(Offers { tcp: server(of_tcp)?, quic: server(of_quic)? })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text));
    read.map(|_| text).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Generates a self-signed certificate and its key.
fn make(kind: Kind) -> Result<String, rcgen::Error> {
    let key = match kind {
        Kind::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
        Kind::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384)?,
        Kind::Rsa(bits) => {
            let size = match bits {
                4096 => rcgen::RsaKeySize::_4096,
                3072 => rcgen::RsaKeySize::_3072,
                _ => rcgen::RsaKeySize::_2048,
            };
            KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, size)?
        }
    };
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, "weir origin");
    let signed = params.self_signed(&key)?;
    Ok(signed.pem() + &key.serialize_pem())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn certificates_are_made_of_every_kind() {
        for (kind, expected) in [
            (Kind::P256, tls::certificate::Kind::Ecdsa),
            (Kind::P384, tls::certificate::Kind::Ecdsa),
            (Kind::Rsa(2048), tls::certificate::Kind::Rsa),
        ] {
            let server = offer(Origin::Made(kind)).unwrap().tcp;
            let [certificate] = &server.certificates()[..] else { panic!("one certificate") };
            assert_eq!(certificate.kind, expected, "{kind:?}");
            assert!(certificate.names.iter().any(|name| **name == *"localhost"), "{:?}", certificate.names);
        }
    }

    #[test]
    fn files_that_are_no_certificates_are_named() {
        let error = offer(Origin::Files(Path::new("/nonexistent.pem"), None)).unwrap_err();
        assert!(error.contains("/nonexistent.pem"), "{error}");
        let error = offer(Origin::Files(Path::new("/dev/null"), None)).unwrap_err();
        assert!(error.contains("/dev/null"), "{error}");
    }
}
