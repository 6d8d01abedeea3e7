//! The TLS settings of connections to servers: whom to trust, algorithms, protocols. Must never communicate with a
//! server.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;

use crate::certificate::Certificate;
use crate::details::{DetailSet, key_log};
use crate::limits::RecordLimits;
use crate::provider::Algorithms;
use crate::signature;
use crate::trust::TrustFile;
use crate::verify::{Authorities, OfServers};

/// Maximum number of sessions with servers that each client configuration remembers.
const SESSIONS: usize = 256;

/// The TLS settings of a `server` line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    pub algorithms: Algorithms,
    /// ALPN protocols, in order of preference.
    pub alpn: Vec<Vec<u8>>,
    /// The trusted authorities; `None`: certificates are not verified (`verify none`).
    pub authorities: Option<Arc<Authorities>>,
    /// The files on a line that verifies nothing: they are kept in memory.
    pub unused: Option<Arc<Authorities>>,
    /// `verifyhost`: the name required in the certificate if a connection sends no SNI.
    pub host: Option<String>,
    /// `crt`: the certificate for servers that request one.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether sessions are resumed.
    pub resumes: bool,
    /// `allow-0rtt`: early data may be sent, if a connection requests it.
    pub early_data: bool,
    /// Limits of each connection.
    pub limits: RecordLimits,
}

/// The client side of connections to servers.
pub struct Client {
    ready: RwLock<Arc<Ready>>,
    wanted: Arc<DetailSet>,
    /// The protocol that the last handshake negotiated, by server name; bounded like sessions.
    protocols: Mutex<HashMap<ServerName<'static>, Vec<u8>>>,
}

/// The state derived from the settings, replaced as a whole.
struct Ready {
    settings: Settings,
    config: Arc<ClientConfig>,
    nameless: Arc<ClientConfig>,
    /// Both with early data, if that may be sent.
    early: Option<[Arc<ClientConfig>; 2]>,
    verifier: Arc<OfServers>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("settings", &self.ready().settings).finish_non_exhaustive()
    }
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.ready().settings == other.ready().settings
    }
}

impl Client {
    /// Prepares a client.
    ///
    /// # Errors
    /// Settings that rustls refuses to combine.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let ready = RwLock::new(Arc::new(Ready::new(settings)?));
        Ok(Self { ready, wanted: Arc::default(), protocols: Mutex::default() })
    }

    /// Sets which handshake details are kept.
    #[must_use]
    pub fn noting(self, wanted: &Arc<DetailSet>) -> Self {
        Self { wanted: Arc::clone(wanted), ..self }
    }

    pub(crate) fn wanted(&self) -> &DetailSet {
        &self.wanted
    }

    fn ready(&self) -> Arc<Ready> {
        Arc::clone(&self.ready.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the certificate for servers that request one.
    pub fn certificate(&self) -> Option<Arc<Certificate>> {
        self.ready().settings.certificate.clone()
    }

    /// Whether early data may be sent, if a connection requests it.
    pub fn may_send_early(&self) -> bool {
        self.ready().settings.early_data
    }

    /// Adds early data to a request if the protocol is known before the server selects it: because no other one is
    /// offered, or because the last handshake negotiated it. Then only that one is offered, so that the server either
    /// accepts the data under that protocol, or not at all.
    #[must_use]
    pub fn with_early_data(&self, asked: ServerIdentity) -> ServerIdentity {
        let ready = self.ready();
        let alpn = &ready.settings.alpn;
        if alpn.iter().all(|name| name.starts_with(b"http/1.")) {
            return asked.with_early_data(true);
        }
        let known = match &alpn[..] {
            [only] => Some(only.clone()),
            _ => self.protocols.lock().unwrap_or_else(PoisonError::into_inner).get(&asked.name).cloned(),
        };
        match known.filter(|name| name == b"h2" || name == b"h3" || name.starts_with(b"http/1.")) {
            Some(protocol) => ServerIdentity { early: true, protocol: Some(protocol), ..asked },
            None => asked,
        }
    }

    /// Records the negotiated protocol, if early data may need it.
    pub fn note_protocol(&self, asked: &ServerIdentity, protocol: Option<&[u8]>) {
        if !self.may_send_early() {
            return;
        }
        let mut protocols = self.protocols.lock().unwrap_or_else(PoisonError::into_inner);
        match protocol {
            Some(protocol) => {
                if protocols.len() >= SESSIONS {
                    protocols.clear();
                }
                protocols.insert(asked.name.clone(), protocol.to_vec());
            }
            None => drop(protocols.remove(&asked.name)),
        }
    }

    /// Discards the recorded protocols, after a server has selected another one than before.
    pub fn forget_protocols(&self) {
        self.protocols.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether a protocol is among those offered.
    pub fn offers(&self, protocol: &[u8]) -> bool {
        self.ready().settings.alpn.iter().any(|name| name == protocol)
    }

    /// Returns the files that servers are verified with, or that the line contains without verifying, with their
    /// content.
    pub fn trust_files(&self) -> Vec<TrustFile> {
        let ready = self.ready();
        let all = ready.settings.authorities.iter().chain(&ready.settings.unused);
        all.flat_map(|authorities| authorities.files()).collect()
    }

    /// Resumes sessions that the same server has given in the configuration before this one, if nothing differs that it is asked.
    pub fn resume_for(&self, before: &Self) {
        let former = before.ready();
        if self.ready().settings == former.settings {
            *self.ready.write().unwrap_or_else(PoisonError::into_inner) = former;
        }
    }

    fn exchange(&self, settings: Settings) -> Result<bool, String> {
        let ready = Arc::new(Ready::new(settings)?);
        *self.ready.write().unwrap_or_else(PoisonError::into_inner) = ready;
        Ok(true)
    }

    /// Replaces the certificate of the same name, in handshakes from now on. Returns whether that certificate is used
    /// here.
    ///
    /// # Errors
    /// Settings that rustls refuses; nothing has changed.
    pub fn replace(&self, certificate: &Arc<Certificate>) -> Result<bool, String> {
        let before = self.ready();
        if before.settings.certificate.as_ref().is_none_or(|own| own.name != certificate.name) {
            return Ok(false);
        }
        self.exchange(Settings { certificate: Some(Arc::clone(certificate)), ..before.settings.clone() })
    }

    /// Replaces the content of a trust file, in handshakes from now on; earlier sessions are not resumed. Returns
    /// whether that file is used here.
    ///
    /// # Errors
    /// As for [`Self::replace`].
    pub fn replace_trust(&self, file: &TrustFile) -> Result<bool, String> {
        let before = self.ready();
        let with = |authorities: &Option<Arc<Authorities>>| authorities.as_ref()?.with(file).map(Arc::new);
        let (authorities, unused) = (with(&before.settings.authorities), with(&before.settings.unused));
        if authorities.is_none() && unused.is_none() {
            return Ok(false);
        }
        let settings = before.settings.clone();
        let authorities = authorities.or(settings.authorities);
        self.exchange(Settings { authorities, unused: unused.or(settings.unused), ..before.settings.clone() })
    }

    pub(crate) fn limits(&self) -> RecordLimits {
        self.ready().settings.limits
    }

    pub(crate) fn config(&self, asked: &ServerIdentity) -> Arc<ClientConfig> {
        let ready = self.ready();
        let [named, nameless] = match &ready.early {
            Some([named, nameless]) if asked.early => [named, nameless],
            _ => [&ready.config, &ready.nameless],
        };
        match (&asked.name, &asked.wanted) {
            (ServerName::DnsName(_), _) => Arc::clone(named),
            (_, Some(wanted)) => ready.wanting(wanted),
            _ => Arc::clone(nameless),
        }
    }
}

impl Ready {
    fn new(settings: Settings) -> Result<Self, String> {
        let provider = settings.algorithms.provider();
        let versions = settings.algorithms.protocol_versions();
        let verifier = OfServers::new(
            settings.authorities.as_deref(),
            settings.host.as_deref(),
            &provider,
            settings.algorithms.signatures.of_peer.clone(),
        )?;
        let verifier = Arc::new(verifier);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::<OfServers>::clone(&verifier));
        let mut config = match &settings.certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                let key = match &settings.algorithms.signatures.own {
                    None => Arc::clone(certificate.unstapled()),
                    Some(schemes) => signature::restricted(certificate.unstapled(), schemes),
                };
                let key = SingleCertAndKey::from(key);
                builder.with_client_cert_resolver(Arc::new(key))
            }
        };
        config.alpn_protocols = settings.alpn.clone();
        config.enable_secret_extraction = true;
        config.key_log = key_log();
        if !settings.limits.compresses {
            (config.cert_compressors, config.cert_decompressors) = (Vec::new(), Vec::new());
        }
        config.resumption =
            if settings.resumes { Resumption::in_memory_sessions(SESSIONS) } else { Resumption::disabled() };
        let mut nameless = config.clone();
        nameless.enable_sni = false;
        let early = settings.early_data.then(|| {
            [&config, &nameless].map(|config| {
                let mut config = config.clone();
                config.enable_early_data = true;
                Arc::new(config)
            })
        });
        Ok(Self { settings, config: Arc::new(config), nameless: Arc::new(nameless), early, verifier })
    }

    /// Returns the configuration for a server whose certificate must be valid for a name that cannot be sent as SNI. No
    /// session is resumed: one with the same server may have been for another name. If servers are not verified, names
    /// are not checked.
    fn wanting(&self, wanted: &str) -> Arc<ClientConfig> {
        if self.settings.authorities.is_none() {
            return Arc::clone(&self.nameless);
        }
        let mut config = ClientConfig::clone(&self.nameless);
        config.dangerous().set_certificate_verifier(Arc::new(self.verifier.asking(wanted)));
        config.resumption = Resumption::disabled();
        Arc::new(config)
    }
}

/// The expected identity of a server: its name, or its address if there is no name, which is also the key of remembered
/// sessions.
#[derive(Debug, Clone)]
pub struct ServerIdentity {
    pub(crate) name: ServerName<'static>,
    /// The name required in its certificate, if it cannot be sent as SNI.
    wanted: Option<Box<str>>,
    /// Early data is sent, if the server has advertised support in a previous session.
    early: bool,
    /// The protocol of early data, which is then the only one offered.
    pub(crate) protocol: Option<Vec<u8>>,
}

impl ServerIdentity {
    /// Returns a copy with early data enabled or disabled.
    #[must_use]
    pub fn with_early_data(self, early: bool) -> Self {
        Self { early, ..self }
    }
}

impl From<ServerName<'static>> for ServerIdentity {
    fn from(name: ServerName<'static>) -> Self {
        Self { name, wanted: None, early: false, protocol: None }
    }
}

/// Returns the identity for a handshake: the host's name as SNI if permitted (RFC 6066, section 3), otherwise no SNI.
/// The certificate must be valid for the host in any case.
pub fn asked_name(host: Option<&str>, address: Option<IpAddr>) -> ServerIdentity {
    let host = host.filter(|host| !host.is_empty());
    if let Some(name @ ServerName::DnsName(_)) = host.and_then(|host| ServerName::try_from(host.to_owned()).ok()) {
        return name.into();
    }
    let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    ServerIdentity { name: ServerName::from(address), wanted: host.map(Into::into), early: false, protocol: None }
}
