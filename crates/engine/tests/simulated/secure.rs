//! TLS peers, and the files of tests' configurations: `a.pem` is the certificate of `a.example` and its key, `ca.pem`
//! its issuer's, `address.pem` that of 10.0.0.1, `client.pem` a client's, `other.pem` that of an unknown issuer;
//! `none.crl` revokes nothing, `client.crl` that client's; `o0.pem` to `o13.pem` have OCSP responders; `certs.list`
//! names `a.pem`, `ticket.keys` contains ticket keys.

use std::io;
use std::sync::{Arc, OnceLock};

use base::buffer::Buffer;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, CustomExtension, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::ServerName;
use testkit::Peer;
use tls::certificate::Certificate;
use tls::connection::LARGEST_FLIGHT;
use tls::names::Row;
use tls::provider::{Algorithms, Version};
use tls::resumption::Resumption;
use tls::server::{Entry, Settings};
use tls::{Client, Connection, Failure, HandshakeProgress, RecordContent, Server, client};

struct Files {
    authority: String,
    server: String,
    client: String,
    other: String,
    address: String,
    revoking_none: String,
    revoking_client: String,
    /// With OCSP responders: four with the same one, then each with its own.
    with_responders: Vec<String>,
}

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let signed = |name: &str, serial: u64| {
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.serial_number = Some(SerialNumber::from(serial));
            let key = KeyPair::generate().unwrap();
            params.signed_by(&key, &authority).unwrap().pem() + &key.serialize_pem()
        };
        let list = |revoked: &[u64]| {
            let revoked = revoked.iter().map(|serial| RevokedCertParams {
                serial_number: SerialNumber::from(*serial),
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            });
            let params = CertificateRevocationListParams {
                this_update: date_time_ymd(2020, 1, 1),
                next_update: date_time_ymd(4000, 1, 1),
                crl_number: SerialNumber::from(1_u64),
                issuing_distribution_point: None,
                revoked_certs: revoked.collect(),
                key_identifier_method: KeyIdMethod::Sha256,
            };
            params.signed_by(&authority).unwrap().pem().unwrap()
        };
        let with_responder = |number: u8| {
            let mut params = CertificateParams::new(vec![format!("o{number}.example")]).unwrap();
            params.serial_number = Some(SerialNumber::from(100 + u64::from(number)));
            let uri = format!("http://10.0.1.7:{}/", 8000 + u16::from(number).saturating_sub(3));
            // Authority Information Access (RFC 5280, section 4.2.2.1): id-ad-ocsp, and a URI.
            let length = u8::try_from(uri.len()).unwrap();
            let method = [6, 8, 43, 6, 1, 5, 5, 7, 48, 1, 0x86, length];
            let content = [&[0x30, length + 14, 0x30, length + 12], &method[..], uri.as_bytes()].concat();
            let access = CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], content);
            params.custom_extensions.push(access);
            let key = KeyPair::generate().unwrap();
            params.signed_by(&key, &authority).unwrap().pem() + &authority.pem() + &key.serialize_pem()
        };
        let key = KeyPair::generate().unwrap();
        let other = CertificateParams::new(vec!["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
        Files {
            server: signed("a.example", 1),
            client: signed("client.example", 2),
            revoking_none: list(&[]),
            revoking_client: list(&[2]),
            address: signed("10.0.0.1", 3),
            other: other.pem() + &key.serialize_pem(),
            with_responders: (0..14).map(with_responder).collect(),
            authority: authority.pem(),
        }
    })
}

/// The contents of a file read by configurations.
pub fn read_file(name: &str) -> io::Result<Vec<u8>> {
    let text = match name {
        "a.pem" => &files().server,
        "ca.pem" => &files().authority,
        "client.pem" => &files().client,
        "other.pem" => &files().other,
        "address.pem" => &files().address,
        "none.crl" => &files().revoking_none,
        "client.crl" => &files().revoking_client,
        "certs.list" => &"# names\na.pem [alpn http/1.1] a.example\n".to_owned(),
        "routes.map" => &crate::routing::TABLE.to_owned(),
        "ticket.keys" => &TICKET_KEYS.map(|key| key.repeat(16) + "\n").concat(),
        _ => {
            let number = name.strip_prefix('o').and_then(|name| name.strip_suffix(".pem")?.parse::<usize>().ok());
            number.and_then(|number| files().with_responders.get(number)).ok_or(io::ErrorKind::NotFound)?
        }
    };
    Ok(text.clone().into_bytes())
}

/// Keys of 48 bytes, each a repeated group of four Base64 letters.
const TICKET_KEYS: [&str; 4] = ["AAAA", "BBBB", "CCCC", "DDDD"];

/// A client with these versions, which sends `client.pem` to servers that request a certificate.
pub fn known_client(versions: (Version, Version)) -> Client {
    let algorithms = Algorithms { versions, ..Algorithms::default() };
    let certificate = Certificate::read("client.pem", files().client.as_bytes(), None).unwrap();
    let certificate = Some(std::sync::Arc::new(certificate));
    Client::new(client::Settings { algorithms, certificate, resumes: true, ..client::Settings::default() }).unwrap()
}

/// A client with these versions that accepts any certificate.
pub fn client(versions: (Version, Version)) -> Client {
    let algorithms = Algorithms { versions, ..Algorithms::default() };
    Client::new(client::Settings { algorithms, resumes: true, ..client::Settings::default() }).unwrap()
}

/// The first flight of a client for `a.example`.
pub fn hello() -> Vec<u8> {
    let asked = ServerName::try_from("a.example").unwrap();
    let client = client((Version::Tls12, Version::Tls13));
    let mut connection = Connection::of_client(&client, asked, None).unwrap();
    let (mut input, mut out) = (Buffer::with_capacity(LARGEST_FLIGHT), Vec::new());
    connection.shake(&mut input, &mut out).unwrap();
    out
}

/// A client that sends early data, with these protocols.
pub fn early_client(alpn: &[&str]) -> Client {
    let alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Client::new(client::Settings { alpn, resumes: true, early_data: true, ..client::Settings::default() }).unwrap()
}

/// A server with `a.pem`.
fn server() -> &'static Arc<Server> {
    static SERVER: OnceLock<Arc<Server>> = OnceLock::new();
    SERVER.get_or_init(|| server_with(Settings::default()))
}

fn server_with(settings: Settings) -> Arc<Server> {
    let certificate = Arc::new(Certificate::read("a.pem", files().server.as_bytes(), None).unwrap());
    let row = Row { kind: certificate.kind, names: certificate.names.clone(), excluded: Vec::new(), is_default: true };
    let entry = Entry { certificate, row, is_filtered: false, settings: Arc::new(settings), line: None };
    Arc::new(Server::new(vec![entry], false, Resumption::default()).unwrap())
}

/// A server with `a.pem` that accepts early data with these protocols, and has no sessions yet.
pub fn early_server(alpn: &[&str]) -> Arc<Server> {
    let alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    server_with(Settings { early_data: 10_000, alpn, ..Settings::default() })
}

/// A server with `a.pem` for QUIC connections.
pub fn quic_server() -> Arc<Server> {
    server_with(Settings { alpn: vec![b"h3".to_vec()], is_quic: true, ..Settings::default() })
}

/// A server with `a.pem` for QUIC connections that accepts early data, and has no sessions yet.
pub fn early_quic_server() -> Arc<Server> {
    server_with(Settings { early_data: 10_000, alpn: vec![b"h3".to_vec()], is_quic: true, ..Settings::default() })
}

/// A server with `a.pem` for QUIC connections with which clients of HTTP/3 agree on no protocol.
pub fn foreign_quic_server() -> Arc<Server> {
    server_with(Settings { alpn: vec![b"h9".to_vec()], is_quic: true, ..Settings::default() })
}

/// A peer on a TLS connection.
pub struct Secure {
    /// The connection below TLS.
    pub peer: Peer,
    connection: Connection,
    input: Buffer,
    out: Vec<u8>,
    /// Plain bytes received.
    received: Vec<u8>,
    /// Set at the end of the input; whether there was a `close_notify` alert.
    ended: Option<bool>,
}

impl Secure {
    /// Connects, and completes the handshake; bytes are sent in pieces of that size.
    pub async fn connect(to: &str, client: &Client, piece: usize) -> Result<Secure, Failure> {
        let asked = ServerName::try_from("a.example").unwrap();
        let mut own = Secure {
            peer: Peer::connect(to).await,
            connection: Connection::of_client(client, asked, None).unwrap(),
            input: Buffer::with_capacity(LARGEST_FLIGHT),
            out: Vec::new(),
            received: Vec::new(),
            ended: None,
        };
        loop {
            let shaken = own.connection.shake(&mut own.input, &mut own.out);
            for part in std::mem::take(&mut own.out).chunks(piece) {
                own.peer.send(part).await;
            }
            if shaken?.is_open() {
                return Ok(own);
            }
            if !own.read().await {
                return Err(Failure::Alert(0));
            }
        }
    }

    /// Connects, and sends bytes as early data: the server has to have given a session for it before. Returns the bytes
    /// sent as well, for a replay.
    pub async fn connect_early(to: &str, client: &Client, bytes: &str) -> (Secure, Vec<u8>) {
        let asked = tls::asked_name(Some("a.example"), None).with_early_data(true);
        let mut own = Secure {
            peer: Peer::connect(to).await,
            connection: Connection::of_client(client, asked, None).unwrap(),
            input: Buffer::with_capacity(LARGEST_FLIGHT),
            out: Vec::new(),
            received: Vec::new(),
            ended: None,
        };
        let shaken = own.connection.shake(&mut own.input, &mut own.out);
        assert_eq!(shaken, Ok(HandshakeProgress::Early), "the server takes no early data");
        let pieces = [bytes.as_bytes(), &[]];
        let sent = own.connection.send_early(&mut own.input, pieces, usize::MAX, &mut own.out).unwrap();
        assert_eq!(sent, bytes.len());
        let said = std::mem::take(&mut own.out);
        own.peer.send(&said).await;
        (own, said)
    }

    /// Completes a handshake.
    pub async fn finish(&mut self) {
        loop {
            let shaken = self.connection.shake(&mut self.input, &mut self.out);
            self.flush().await;
            if shaken.unwrap().is_open() {
                return;
            }
            assert!(self.read().await, "the handshake was not finished");
        }
    }

    /// Completes a handshake as the server, with `a.pem`.
    ///
    /// # Errors
    /// The handshake failed; an alert of the other side is reported in the error.
    pub async fn accept(peer: Peer) -> Result<Secure, Failure> {
        Self::accept_with(peer, server()).await
    }

    /// Completes a handshake as this server. Early data is received before the end of the handshake.
    ///
    /// # Errors
    /// As for [`Self::accept`].
    pub async fn accept_with(peer: Peer, server: &Arc<Server>) -> Result<Secure, Failure> {
        let mut own = Secure {
            peer,
            connection: Connection::of_server(Arc::clone(server)),
            input: Buffer::with_capacity(LARGEST_FLIGHT),
            out: Vec::new(),
            received: Vec::new(),
            ended: None,
        };
        loop {
            let shaken = own.connection.shake(&mut own.input, &mut own.out);
            own.flush().await;
            if let HandshakeProgress::Open { plain } = shaken? {
                own.received.extend_from_slice(&own.input.data()[..plain]);
                own.input.consume(plain);
                return Ok(own);
            }
            if !own.read().await {
                return Err(Failure::Alert(0));
            }
        }
    }

    /// Whether early data was received; only the first call.
    pub fn was_early(&mut self) -> bool {
        self.connection.take_handshake_info().is_some_and(|state| state.early.is_some())
    }

    /// Receives plain bytes up to the end of a head.
    pub async fn receive_head(&mut self) -> String {
        loop {
            if let Some(end) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                return String::from_utf8(self.received.drain(..end + 4).collect()).unwrap();
            }
            assert!(self.fill().await, "no head");
        }
    }

    /// The server name sent by the other side.
    pub fn asked_name(&mut self) -> Option<String> {
        let name = self.connection.take_handshake_info()?.server_name?;
        Some(String::from_utf8_lossy(&name).into_owned())
    }

    /// Reads some bytes. Returns false at the end of the connection.
    async fn read(&mut self) -> bool {
        let bytes = self.peer.receive_some().await;
        self.input.compact();
        assert!(self.input.push(&bytes));
        !bytes.is_empty()
    }

    /// Sends plain bytes, in records of at most `most` bytes.
    pub async fn send_in(&mut self, bytes: impl AsRef<[u8]>, most: usize) {
        let bytes = bytes.as_ref();
        let mut sent = 0;
        while sent < bytes.len() {
            sent += self.connection.send([&bytes[sent..], &[]], most, &mut self.out).unwrap();
        }
        self.flush().await;
    }

    /// Sends plain bytes.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.send_in(bytes, usize::MAX).await;
    }

    /// Sends `close_notify`.
    pub async fn say_goodbye(&mut self) {
        self.connection.close(&mut self.out);
        self.flush().await;
    }

    async fn flush(&mut self) {
        self.peer.send(std::mem::take(&mut self.out)).await;
    }

    /// Decrypts received bytes, and waits for more if there are none. Returns false at the end.
    async fn fill(&mut self) -> bool {
        loop {
            match self.connection.receive(&mut self.input, &mut self.out).unwrap() {
                RecordContent::Data { plain, behind } => {
                    self.received.extend_from_slice(&self.input.data()[..plain]);
                    self.input.consume(plain + behind);
                    return true;
                }
                RecordContent::Own => {}
                RecordContent::End => {
                    self.ended = Some(true);
                    return false;
                }
                RecordContent::Part => {
                    if !self.read().await {
                        self.ended.get_or_insert(false);
                        return false;
                    }
                }
            }
        }
    }

    /// Expects these plain bytes next.
    pub async fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let all = self.receive(bytes.len()).await;
        assert_eq!(String::from_utf8_lossy(&all), String::from_utf8_lossy(bytes));
    }

    /// Receives `count` plain bytes.
    pub async fn receive(&mut self, count: usize) -> Vec<u8> {
        while self.received.len() < count {
            assert!(self.fill().await, "only {} of {count} bytes", self.received.len());
        }
        self.received.drain(..count).collect()
    }

    /// Sends a request, and returns the plain bytes received until the other side closes or fails.
    pub async fn exchange(&mut self, request: &str) -> Vec<u8> {
        let sent = self.connection.send([request.as_bytes(), &[]], usize::MAX, &mut self.out).unwrap();
        assert_eq!(sent, request.len());
        let bytes = std::mem::take(&mut self.out);
        self.peer.try_send(bytes).await;
        let mut all = Vec::new();
        loop {
            match self.connection.receive(&mut self.input, &mut self.out) {
                Ok(RecordContent::Data { plain, behind }) => {
                    all.extend_from_slice(&self.input.data()[..plain]);
                    self.input.consume(plain + behind);
                }
                Ok(RecordContent::Own) => {}
                Ok(RecordContent::Part) => {
                    if !self.read().await {
                        return all;
                    }
                }
                Ok(RecordContent::End) | Err(_) => return all,
            }
        }
    }

    /// Sends plain bytes as far as the other side accepts them. Returns whether it has accepted all.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        for part in bytes.chunks(100_000) {
            let mut sent = 0;
            while sent < part.len() {
                sent += self.connection.send([&part[sent..], &[]], usize::MAX, &mut self.out).unwrap();
            }
            if !self.peer.try_send(std::mem::take(&mut self.out)).await {
                return false;
            }
        }
        true
    }

    /// Receives the next plain bytes, of any number; none at the end.
    pub async fn receive_some(&mut self) -> Vec<u8> {
        if self.received.is_empty() {
            self.fill().await;
        }
        std::mem::take(&mut self.received)
    }

    /// Whether the other side has sent `close_notify`, as far as the end was read.
    pub fn has_closed_in_order(&self) -> bool {
        self.ended == Some(true)
    }

    /// Expects the end, after a `close_notify`.
    pub async fn expect_end(&mut self) {
        while self.fill().await {}
        assert_eq!(String::from_utf8_lossy(&self.received), "");
        assert_eq!(self.ended, Some(true), "the end came without a word");
    }
}
