//! What a side that connects to servers asks for: who they have to be, algorithms, protocols. Must never speak with a
//! server.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;

use crate::certificate::Certificate;
use crate::details::{Wanted, key_log};
use crate::limits::RecordLimits;
use crate::provider::Algorithms;
use crate::signature;
use crate::trust::TrustFile;
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
    /// The files that the line names where it verifies nothing: they are kept in memory.
    pub unused: Option<Arc<Authorities>>,
    /// `verifyhost`: the name of the certificate where a connection asks for none.
    pub host: Option<String>,
    /// `crt`: what is shown to a server that asks.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether sessions are resumed.
    pub resumes: bool,
    /// `allow-0rtt`: early data may be sent, where a connection asks for that.
    pub early_data: bool,
    /// Bounds of each connection.
    pub limits: RecordLimits,
}

/// A side that connects to servers.
pub struct Client {
    ready: RwLock<Arc<Ready>>,
    wanted: Arc<Wanted>,
    /// The protocol that the last handshake agreed on, by the name that it asked for; as many as sessions.
    protocols: Mutex<HashMap<ServerName<'static>, Vec<u8>>>,
}

/// What is made of settings: exchanged as a whole.
struct Ready {
    settings: Settings,
    config: Arc<ClientConfig>,
    nameless: Arc<ClientConfig>,
    /// Both with early data, where that may be sent.
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
    /// Makes it ready.
    ///
    /// # Errors
    /// What rustls does not take together.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let ready = RwLock::new(Arc::new(Ready::new(settings)?));
        Ok(Self { ready, wanted: Arc::default(), protocols: Mutex::default() })
    }

    /// The same, with what is kept of handshakes.
    #[must_use]
    pub fn noting(self, wanted: &Arc<Wanted>) -> Self {
        Self { wanted: Arc::clone(wanted), ..self }
    }

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    fn ready(&self) -> Arc<Ready> {
        Arc::clone(&self.ready.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The certificate that servers are shown which ask for one.
    pub fn certificate(&self) -> Option<Arc<Certificate>> {
        self.ready().settings.certificate.clone()
    }

    /// Whether early data may be sent, where a connection asks for that.
    pub fn may_send_early(&self) -> bool {
        self.ready().settings.early_data
    }

    /// The same name, with early data, if the protocol is known before the server chooses it: because no other one is offered, or
    /// because the last handshake has agreed on it. Then that one alone is offered, so that the server either takes the data as
    /// what it is, or not at all.
    #[must_use]
    pub fn with_early_data(&self, asked: Asked) -> Asked {
        let ready = self.ready();
        let alpn = &ready.settings.alpn;
        if alpn.iter().all(|name| name.starts_with(b"http/1.")) {
            return asked.with_early_data(true);
        }
        let known = match &alpn[..] {
            [only] => Some(only.clone()),
            _ => self.protocols.lock().unwrap_or_else(PoisonError::into_inner).get(&asked.name).cloned(),
        };
        match known.filter(|name| name == b"h2" || name.starts_with(b"http/1.")) {
            Some(protocol) => Asked { early: true, protocol: Some(protocol), ..asked },
            None => asked,
        }
    }

    /// What a handshake has agreed on. It is kept where early data may need it.
    pub fn note_protocol(&self, asked: &Asked, protocol: Option<&[u8]>) {
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

    /// A server has chosen another protocol than before: none is known from here on.
    pub fn forget_protocols(&self) {
        self.protocols.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether a protocol is among those that are offered.
    pub fn offers(&self, protocol: &[u8]) -> bool {
        self.ready().settings.alpn.iter().any(|name| name == protocol)
    }

    /// The files that servers are verified by, or that the line names without verifying them, with their content.
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

    /// Shows a certificate in the place of the one that is called like it, in handshakes that begin from now on. Whether that
    /// one is shown here.
    ///
    /// # Errors
    /// What rustls does not take; nothing has changed.
    pub fn replace(&self, certificate: &Arc<Certificate>) -> Result<bool, String> {
        let before = self.ready();
        if before.settings.certificate.as_ref().is_none_or(|own| own.name != certificate.name) {
            return Ok(false);
        }
        self.exchange(Settings { certificate: Some(Arc::clone(certificate)), ..before.settings.clone() })
    }

    /// Verifies servers by another content of a file, in handshakes that begin from now on; sessions that began before are
    /// not resumed. Whether they are verified by that file.
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

    pub(crate) fn config(&self, asked: &Asked) -> Arc<ClientConfig> {
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

    /// For a server whose certificate has to be for a name that no handshake can ask for. No session is resumed: another one
    /// with the same server may have been for another name. Where servers are not verified, names do not count.
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

/// Who a server has to be: its name, or its address where there is no name, by which sessions are remembered then.
#[derive(Debug, Clone)]
pub struct Asked {
    pub(crate) name: ServerName<'static>,
    /// What its certificate has to be for, where that is no name that a handshake can ask for.
    wanted: Option<Box<str>>,
    /// Early data is sent, if the server has said before that it takes some.
    early: bool,
    /// The protocol of early data, which alone is offered then.
    pub(crate) protocol: Option<Vec<u8>>,
}

impl Asked {
    /// The same, with early data or without.
    #[must_use]
    pub fn with_early_data(self, early: bool) -> Self {
        Self { early, ..self }
    }
}

impl From<ServerName<'static>> for Asked {
    fn from(name: ServerName<'static>) -> Self {
        Self { name, wanted: None, early: false, protocol: None }
    }
}

/// What is asked for in a handshake: a host's name where there is one that may be asked for (RFC 6066, section 3), else nothing.
/// The certificate has to be for the host in any case.
pub fn asked_name(host: Option<&str>, address: Option<IpAddr>) -> Asked {
    let host = host.filter(|host| !host.is_empty());
    if let Some(name @ ServerName::DnsName(_)) = host.and_then(|host| ServerName::try_from(host.to_owned()).ok()) {
        return name.into();
    }
    let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    Asked { name: ServerName::from(address), wanted: host.map(Into::into), early: false, protocol: None }
}
