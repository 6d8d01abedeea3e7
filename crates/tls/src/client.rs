//! What a side that connects to servers asks for: who they have to be, algorithms, protocols. Must never speak with a
//! server.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;

use crate::certificate::Certificate;
use crate::provider::Algorithms;
use crate::verify::{Authorities, OfServers};

/// Sessions with servers that are remembered, for each side.
const SESSIONS: usize = 256;

/// What a `server` line says about its connections.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Algorithms.
    pub algorithms: Algorithms,
    /// Protocols, the preferred one first.
    pub alpn: Vec<Vec<u8>>,
    /// Who is believed; `None`: everybody (`verify none`).
    pub authorities: Option<Arc<Authorities>>,
    /// `verifyhost`.
    pub host: Option<String>,
    /// `crt`: what is shown to a server that asks.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether sessions are resumed.
    pub resumes: bool,
}

/// A side that connects to servers.
pub struct Client {
    settings: Settings,
    config: Arc<ClientConfig>,
    nameless: Arc<ClientConfig>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

impl Client {
    /// Makes it ready.
    ///
    /// # Errors
    /// What rustls does not take together.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let provider = settings.algorithms.provider();
        let versions = settings.algorithms.protocol_versions();
        let verifier = OfServers::new(settings.authorities.as_deref(), settings.host.as_deref(), &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &settings.certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                let key = SingleCertAndKey::from(Arc::clone(&certificate.key));
                builder.with_client_cert_resolver(Arc::new(key))
            }
        };
        config.alpn_protocols = settings.alpn.clone();
        config.enable_secret_extraction = true;
        config.resumption =
            if settings.resumes { Resumption::in_memory_sessions(SESSIONS) } else { Resumption::disabled() };
        let mut nameless = config.clone();
        nameless.enable_sni = false;
        Ok(Self { settings, config: Arc::new(config), nameless: Arc::new(nameless) })
    }

    /// What it was made of.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn config(&self, name: &ServerName<'_>) -> &Arc<ClientConfig> {
        match name {
            ServerName::DnsName(_) => &self.config,
            _ => &self.nameless,
        }
    }
}

/// What is asked for in a handshake: a host's name where there is one that may be asked for, else nothing. Sessions are
/// remembered by the address then.
pub fn asked_name(host: Option<&str>, address: Option<IpAddr>) -> ServerName<'static> {
    let named = host.and_then(|host| ServerName::try_from(host.to_owned()).ok());
    named.unwrap_or_else(|| ServerName::from(address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
}
