//! Two ends of a connection, and a CA for their certificates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::buffer::Buffer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use weir_tls::certificate::Certificate;
use weir_tls::connection::LARGEST_FLIGHT;
use weir_tls::names::Row;
use weir_tls::resumption::{Resumption, Tickets};
use weir_tls::server::{Entry, Settings};
use weir_tls::verify::Authorities;
use weir_tls::{Client, Connection, Failure, HandshakeProgress, RecordContent, Server};

/// Number of authorities so far: each has a name of its own.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A CA that issues certificates.
pub struct Authority(pub CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority {number}"));
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn certificate(&self, names: &[&str]) -> Arc<Certificate> {
        let params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.0).unwrap();
        let text = signed.pem() + &key.serialize_pem();
        Arc::new(Certificate::read("test.pem", text.as_bytes(), None).unwrap())
    }

    pub fn authorities(&self) -> Arc<Authorities> {
        let roots = vec![CertificateDer::from(self.0.der().to_vec())];
        Arc::new(Authorities { roots, ..Authorities::default() })
    }
}

pub fn server(certificates: &[Arc<Certificate>], settings: Settings, strict: bool) -> Arc<Server> {
    server_with(certificates, settings, strict, true)
}

pub fn server_with(
    certificates: &[Arc<Certificate>],
    settings: Settings,
    strict: bool,
    has_tickets: bool,
) -> Arc<Server> {
    let settings = Arc::new(settings);
    let entries = certificates.iter().enumerate().map(|(place, certificate)| Entry {
        row: Row {
            kind: certificate.kind,
            names: certificate.names.clone(),
            excluded: Vec::new(),
            is_default: place == 0,
        },
        certificate: Arc::clone(certificate),
        is_filtered: false,
        settings: Arc::clone(&settings),
        line: None,
    });
    let tickets = if has_tickets { Tickets::Own } else { Tickets::None };
    let resumption = Resumption { tickets, ..Resumption::default() };
    Arc::new(Server::new(entries.collect(), strict, resumption).unwrap())
}

pub fn name(name: &str) -> ServerName<'static> {
    ServerName::try_from(name.to_owned()).unwrap()
}

/// One end, and the bytes that it has received.
pub struct End {
    pub connection: Connection,
    pub input: Buffer,
    pub out: Vec<u8>,
    pub failure: Option<Failure>,
    /// Early data at the front of the input.
    plain: usize,
}

impl End {
    pub fn new(connection: Connection) -> Self {
        Self { connection, input: Buffer::with_capacity(LARGEST_FLIGHT), out: Vec::new(), failure: None, plain: 0 }
    }

    pub fn go_on(&mut self) {
        if self.failure.is_none() && !self.connection.is_open() {
            match self.connection.shake(&mut self.input, &mut self.out) {
                Ok(HandshakeProgress::Open { plain }) => self.plain = plain,
                Ok(_) => {}
                Err(failure) => self.failure = Some(failure),
            }
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        let mut sent = 0;
        while sent < bytes.len() && self.connection.is_early() {
            let rest = [&bytes[sent..], &[]];
            let count = self.connection.send_early(&mut self.input, rest, usize::MAX, &mut self.out).unwrap();
            assert!(count > 0, "{sent} bytes went early");
            sent += count;
        }
        while sent < bytes.len() {
            sent += self.connection.send([&bytes[sent..], &[]], usize::MAX, &mut self.out).unwrap();
        }
    }

    /// Returns all received plain bytes, and whether the peer has closed.
    pub fn receive(&mut self) -> Result<(Vec<u8>, bool), Failure> {
        let mut all = self.connection.early_data().map(std::mem::take).unwrap_or_default();
        all.extend_from_slice(&self.input.data()[..self.plain]);
        self.input.consume(std::mem::take(&mut self.plain));
        if !self.connection.is_open() && self.failure.is_none() {
            return Ok((all, false));
        }
        loop {
            match self.connection.receive(&mut self.input, &mut self.out)? {
                RecordContent::Part => return Ok((all, false)),
                RecordContent::End => return Ok((all, true)),
                RecordContent::Own => {}
                RecordContent::Data { plain, behind } => {
                    all.extend_from_slice(&self.input.data()[..plain]);
                    self.input.consume(plain + behind);
                }
            }
        }
    }
}

/// Moves the pending output of one side to the other, `piece` bytes at a time.
pub fn carry(from: &mut End, to: &mut End, piece: usize) {
    let bytes = std::mem::take(&mut from.out);
    for part in bytes.chunks(piece) {
        to.input.compact();
        assert!(to.input.push(part));
        to.go_on();
    }
}

pub fn shake(server: &Arc<Server>, client: &Client, asked: ServerName<'static>, piece: usize) -> (End, End) {
    let mut near = End::new(Connection::of_client(client, asked, None).unwrap());
    let mut far = End::new(Connection::of_server(Arc::clone(server)));
    near.go_on();
    for _ in 0..8 {
        carry(&mut near, &mut far, piece);
        carry(&mut far, &mut near, piece);
    }
    (near, far)
}
