//! Certificates, and the TLS settings of both sides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use tls::certificate::Certificate;
use tls::names::Row;
use tls::resumption::{Resumption, Tickets};
use tls::server::{Entry, Settings};
use tls::verify::Authorities;
use tls::{Client, Server, ServerIdentity};

/// Number of authorities so far: each has a name of its own.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A CA that issues certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

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
        Arc::new(Certificate::read(names[0], text.as_bytes(), None).unwrap())
    }

    pub fn authorities(&self) -> Arc<Authorities> {
        let roots = vec![CertificateDer::from(self.0.der().to_vec())];
        Arc::new(Authorities { roots, ..Authorities::default() })
    }
}

/// The usual settings of a server.
pub fn settings() -> Settings {
    Settings { alpn: vec![b"h3".to_vec()], is_quic: true, ..Settings::default() }
}

/// A server with certificates, the first of which is the default.
pub fn server(certificates: &[Arc<Certificate>], settings: Settings, is_strict: bool) -> Arc<Server> {
    let tickets = if settings.early_data > 0 { Tickets::None } else { Tickets::Own };
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
    let resumption = Resumption { tickets, ..Resumption::default() };
    Arc::new(Server::new(entries.collect(), is_strict, resumption).unwrap())
}

/// The usual settings of a client that trusts an authority.
pub fn client_settings(authority: &Authority) -> tls::client::Settings {
    tls::client::Settings {
        alpn: vec![b"h3".to_vec()],
        authorities: Some(authority.authorities()),
        resumes: true,
        ..tls::client::Settings::default()
    }
}

pub fn client(settings: tls::client::Settings) -> Arc<Client> {
    Arc::new(Client::new(settings).unwrap())
}

pub fn identity(name: &str) -> ServerIdentity {
    ServerName::try_from(name.to_owned()).unwrap().into()
}
