//! Peers that make each record of TLS 1.3 themselves (RFC 8446, sections 5 and 7): empty ones, handshake messages after
//! the end of the handshake, records sent in part. Must never be what is under test: handshakes are those of rustls.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, default_provider};
use rustls::crypto::cipher::{AeadKey, Iv, MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::crypto::tls13::OkmBlock;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::server::Acceptor;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, Connection, ContentType, KeyLog, ProtocolVersion, RootCertStore, ServerConfig,
    ServerConnection, Tls13CipherSuite,
};
use testkit::Peer;

use crate::secure::read_file;

/// The traffic secret of this side, once it is known.
#[derive(Debug)]
struct Secret {
    label: &'static str,
    bytes: Mutex<Vec<u8>>,
}

impl KeyLog for Secret {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if label == self.label {
            *self.bytes.lock().unwrap() = secret.to_vec();
        }
    }
}

impl Secret {
    fn new(label: &'static str) -> Arc<Secret> {
        Arc::new(Secret { label, bytes: Mutex::default() })
    }

    fn sealer(&self) -> Sealer {
        Sealer::new(self.bytes.lock().unwrap().clone())
    }
}

/// One cipher suite, with a key length for which rustls accepts foreign keys.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { cipher_suites: vec![TLS13_CHACHA20_POLY1305_SHA256], ..default_provider() })
}

fn suite() -> &'static Tls13CipherSuite {
    TLS13_CHACHA20_POLY1305_SHA256.tls13().unwrap()
}

/// Seals the records of one direction.
pub struct Sealer {
    secret: Vec<u8>,
    encrypter: Box<dyn MessageEncrypter>,
    count: u64,
}

/// HKDF-Expand-Label without a context (RFC 8446, section 7.1).
fn expand<const LENGTH: usize>(secret: &[u8], label: &[u8]) -> [u8; LENGTH] {
    let mut out = [0; LENGTH];
    let length = u16::try_from(LENGTH).unwrap().to_be_bytes();
    let label = [b"tls13 ", label].concat();
    let info: [&[u8]; 4] = [&length, &[u8::try_from(label.len()).unwrap()], &label, &[0]];
    suite().hkdf_provider.expander_for_okm(&OkmBlock::new(secret)).expand_slice(&info, &mut out).unwrap();
    out
}

impl Sealer {
    fn new(secret: Vec<u8>) -> Sealer {
        let (key, iv) = (expand::<32>(&secret, b"key"), expand::<12>(&secret, b"iv"));
        let encrypter = suite().aead_alg.encrypter(AeadKey::from(key), Iv::from(iv));
        Sealer { secret, encrypter, count: 0 }
    }

    /// Seals a record with that content. After a KeyUpdate message the next one has new keys.
    pub fn seal(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        let (typ, payload) = (ContentType::from(kind), OutboundChunks::Single(content));
        let message = OutboundPlainMessage { typ, version: ProtocolVersion::TLSv1_2, payload };
        let sealed = self.encrypter.encrypt(message, self.count).unwrap().encode();
        self.count += 1;
        if typ == ContentType::Handshake && content.first() == Some(&24) {
            *self = Sealer::new(expand::<32>(&self.secret, b"traffic upd").to_vec());
        }
        sealed
    }
}

/// Completes a handshake. Returns whether data was received after it.
async fn shake(peer: &mut Peer, mut own: Connection) -> bool {
    loop {
        let mut out = Vec::new();
        while own.wants_write() {
            own.write_tls(&mut out).unwrap();
        }
        peer.send(out).await;
        if !own.is_handshaking() {
            return own.process_new_packets().unwrap().plaintext_bytes_to_read() > 0;
        }
        let bytes = peer.receive_some().await;
        assert!(!bytes.is_empty(), "no handshake");
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            own.read_tls(&mut rest).unwrap();
            own.process_new_packets().unwrap();
        }
    }
}

/// Completes a handshake as a client that offers these protocols.
pub async fn connect(peer: &mut Peer, alpn: &[&str]) -> Sealer {
    let mut roots = RootCertStore::empty();
    let authority = read_file("ca.pem").unwrap();
    roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]).unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let secret = Secret::new("CLIENT_TRAFFIC_SECRET_0");
    config.key_log = Arc::clone(&secret) as _;
    let own = ClientConnection::new(Arc::new(config), ServerName::try_from("a.example").unwrap()).unwrap();
    shake(peer, own.into()).await;
    secret.sealer()
}

/// Completes a handshake as a server with `a.pem`, and answers the first data. Returns the server name sent by the
/// client, even if it rejects the certificate.
pub async fn answer(peer: &mut Peer, answer: &str) -> Option<String> {
    let mut acceptor = Acceptor::default();
    let accepted = loop {
        let bytes = peer.receive_some().await;
        if bytes.is_empty() {
            return None;
        }
        acceptor.read_tls(&mut &bytes[..]).unwrap();
        if let Some(accepted) = acceptor.accept().ok()? {
            break accepted;
        }
    };
    let name = accepted.client_hello().server_name().map(str::to_owned);
    let Ok(mut own) = accepted.into_connection(Arc::new(server())) else { return name };
    loop {
        let mut out = Vec::new();
        while own.wants_write() {
            own.write_tls(&mut out).unwrap();
        }
        let bytes = if peer.try_send(out).await { peer.receive_some().await } else { Vec::new() };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            own.read_tls(&mut rest).unwrap();
            match own.process_new_packets() {
                Ok(state) if state.plaintext_bytes_to_read() > 0 => {
                    own.reader().read_to_end(&mut Vec::new()).ok();
                    own.writer().write_all(answer.as_bytes()).unwrap();
                }
                Ok(state) if !state.peer_has_closed() => {}
                _ => return name,
            }
        }
        if bytes.is_empty() {
            return name;
        }
    }
}

/// A server with `a.pem`, without session tickets.
fn server() -> ServerConfig {
    let text = read_file("a.pem").unwrap();
    let chain = vec![CertificateDer::from_pem_slice(&text).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(&text).unwrap();
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]).unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.send_tls13_tickets = 0;
    config
}

/// Completes a handshake as a server with `a.pem`, and waits for a request.
pub async fn accept(peer: &mut Peer) -> Sealer {
    let mut config = server();
    let secret = Secret::new("SERVER_TRAFFIC_SECRET_0");
    config.key_log = Arc::clone(&secret) as _;
    let own = ServerConnection::new(Arc::new(config)).unwrap();
    if !shake(peer, own.into()).await {
        peer.receive_some().await;
    }
    secret.sealer()
}
