//! The TLS settings of an address that clients connect to: certificates by name, algorithms, protocols, and whether
//! client certificates are requested. Must never communicate with a client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::UnixTime;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SignatureScheme};
use wire::client_hello::{self, extension};

use crate::certificate::{Certificate, Kind};
use crate::details::{DetailSet, key_log};
use crate::generated_certificate::{self, Cache};
use crate::limits::RecordLimits;
use crate::names::{Names, Row};
use crate::provider::{Algorithms, Version};
use crate::resumption::{Resumption, Ticketer, bound};
use crate::signature;
use crate::trust::{TrustFile, session_context};
use crate::verify::{Authorities, ClientTerms, OfClients};

/// The TLS settings of a `bind` line or of a `crt-list` line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    pub algorithms: Algorithms,
    /// ALPN protocols, in order of preference.
    pub alpn: Vec<Vec<u8>>,
    /// The verification of clients.
    pub verify: Verify,
    /// `prefer-client-ciphers`.
    pub prefers_clients_order: bool,
    /// Number of bytes captured from each ClientHello (`tune.ssl.capture-buffer-size`).
    pub capture: usize,
    /// Limits of each connection.
    pub limits: RecordLimits,
    /// Maximum number of bytes of early data from a client (`allow-0rtt`); 0: rejected.
    pub early_data: u32,
    /// Whether handshakes are QUIC's: an ALPN protocol is needed, flow control limits early data (RFC 9001, sections 4.6, 8).
    pub is_quic: bool,
}

/// The `verify` setting for clients.
#[derive(Debug, Clone, PartialEq)]
pub enum Verify {
    /// No certificate is requested. The files of the terms are kept in memory.
    None(ClientTerms),
    /// A certificate is requested.
    Asked(ClientTerms),
}

impl Default for Verify {
    fn default() -> Self {
        Self::None(ClientTerms::default())
    }
}

impl Verify {
    fn terms(&self) -> &ClientTerms {
        match self {
            Self::None(terms) | Self::Asked(terms) => terms,
        }
    }

    /// Returns a copy with the content of a file replaced. `None`: the file is not used here.
    fn with(&self, file: &TrustFile) -> Option<Self> {
        match self {
            Self::None(terms) => terms.with(file).map(Self::None),
            Self::Asked(terms) => terms.with(file).map(Self::Asked),
        }
    }
}

/// A certificate of a list, with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub certificate: Arc<Certificate>,
    /// The names that it is selected by.
    pub row: Row,
    /// Whether the names are from SNI filters, so that a replacement of the certificate keeps them.
    pub is_filtered: bool,
    /// The settings of its connections.
    pub settings: Arc<Settings>,
    /// The line of a `crt-list` that it is from.
    pub line: Option<ListLine>,
}

/// A line of a `crt-list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListLine {
    /// The file.
    pub list: Arc<str>,
    /// Identifies the line in its file, including lines added at run time.
    pub serial: usize,
}

/// The server side of an address with TLS.
pub struct Server {
    offered: RwLock<Arc<CertificateTable>>,
    is_strict: bool,
    resumption: Resumption,
    ticketer: Option<Arc<Ticketer>>,
    wanted: Arc<DetailSet>,
    proofs: Proofs,
    generator: Option<Generator>,
}

/// Generates certificates for names that have none (`generate-certificates`).
struct Generator {
    authority: Arc<Certificate>,
    made: Mutex<Cache<(Arc<Certificate>, Ready)>>,
}

type Proof = (Arc<Certificate>, Arc<ServerConfig>);

/// Certificates of TLS-ALPN challenges (RFC 8737), by name.
#[derive(Default)]
struct Proofs {
    /// False while there are none, which saves handshakes the lock.
    are_there: AtomicBool,
    all: RwLock<HashMap<Box<str>, Proof>>,
}

/// The ALPN protocol of such a handshake.
pub const PROOF_PROTOCOL: &[u8] = b"acme-tls/1";

/// The available certificates, replaced as a whole.
struct CertificateTable {
    entries: Vec<(Entry, Ready)>,
    names: Names,
}

/// The state derived from an entry.
#[derive(Clone)]
struct Ready {
    config: Arc<ServerConfig>,
    /// The verifier that reports ignored errors of a client's certificate, if any are ignored.
    judge: Option<Arc<OfClients>>,
}

/// The selection for a client.
pub(crate) struct Choice {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) certificate: Arc<Certificate>,
    pub(crate) name: Option<Box<[u8]>>,
    /// Number of bytes captured from the ClientHello.
    pub(crate) capture: usize,
    /// The verifier that reports ignored errors of the client's certificate, if any are ignored.
    pub(crate) judge: Option<Arc<OfClients>>,
    pub(crate) authorities: Option<Arc<Authorities>>,
    pub(crate) limits: RecordLimits,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("entries", &self.offered().entries.len()).finish_non_exhaustive()
    }
}

/// Servers are equal if their entries and settings are.
impl PartialEq for Server {
    fn eq(&self, other: &Self) -> bool {
        let (own, theirs) = (self.offered(), other.offered());
        let entries = own.entries.iter().map(|(entry, _)| entry);
        let authority = |server: &'_ Self| server.generator.as_ref().map(|generator| Arc::clone(&generator.authority));
        (self.is_strict, &self.resumption) == (other.is_strict, &other.resumption)
            && authority(self) == authority(other)
            && entries.eq(theirs.entries.iter().map(|(entry, _)| entry))
    }
}

/// Resolves to the certificate already selected by the ClientHello.
#[derive(Debug)]
struct SelectedCertificate(Arc<Certificate>, Option<Vec<SignatureScheme>>);

impl ResolvesServerCert for SelectedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let key = self.0.shown(UnixTime::now());
        Some(match &self.1 {
            None => key,
            Some(schemes) => signature::restricted(&key, schemes),
        })
    }
}

impl Server {
    /// Prepares a server. `is_strict`: `strict-sni`.
    ///
    /// # Errors
    /// Settings that rustls refuses to combine.
    pub fn new(entries: Vec<Entry>, is_strict: bool, resumption: Resumption) -> Result<Self, String> {
        let ticketer = resumption.ticketer()?;
        let offered = RwLock::new(Arc::new(CertificateTable::new(Vec::new())));
        let (wanted, proofs) = (Arc::default(), Proofs::default());
        let own = Self { offered, is_strict, resumption, ticketer, wanted, proofs, generator: None };
        let mut maker = own.maker();
        let entries: Result<Vec<_>, String> = entries.into_iter().map(|entry| maker.make(entry)).collect();
        own.exchange(entries?);
        Ok(own)
    }

    /// Sets which handshake details are kept.
    #[must_use]
    pub fn noting(self, wanted: &Arc<DetailSet>) -> Self {
        Self { wanted: Arc::clone(wanted), ..self }
    }

    /// Generates certificates for names that have none, signed by `authority`, and caches up to `remembered` of them.
    pub fn generating(self, authority: Arc<Certificate>, remembered: usize) -> Self {
        let generator = Generator { authority, made: Mutex::new(Cache::new(remembered)) };
        Self { generator: Some(generator), ..self }
    }

    /// Resumes sessions that clients have begun with `before`, the same address in the configuration before this one. Each is
    /// bound to what its client was verified by, and to the version, the cipher suite and the name that it was made with: where
    /// these differ, there is a whole handshake.
    pub fn resume_for(&self, before: &Self) {
        self.resumption.follow(&before.resumption, [self, before].map(|server| server.ticketer.as_deref()));
    }

    pub(crate) fn wanted(&self) -> &DetailSet {
        &self.wanted
    }

    fn offered(&self) -> Arc<CertificateTable> {
        Arc::clone(&self.offered.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn exchange(&self, entries: Vec<(Entry, Ready)>) {
        let offered = Arc::new(CertificateTable::new(entries));
        *self.offered.write().unwrap_or_else(PoisonError::into_inner) = offered;
    }

    fn maker(&self) -> Maker<'_> {
        Maker { server: self, known: HashMap::new() }
    }

    /// Whether clients without a known name get no certificate (`strict-sni`).
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Returns the current entries.
    pub fn entries(&self) -> Vec<Entry> {
        self.offered().entries.iter().map(|(entry, _)| entry.clone()).collect()
    }

    /// Returns the current certificates.
    pub fn certificates(&self) -> Vec<Arc<Certificate>> {
        self.offered().entries.iter().map(|(entry, _)| Arc::clone(&entry.certificate)).collect()
    }

    /// Returns the names of each certificate, in order.
    pub fn rows(&self) -> Vec<Row> {
        self.offered().entries.iter().map(|(entry, _)| entry.row.clone()).collect()
    }

    /// Returns the files that clients are verified with, or that lines contain without verifying, with their content.
    pub fn trust_files(&self) -> Vec<TrustFile> {
        let offered = self.offered();
        // Usually all entries share the same settings.
        let mut seen: Vec<*const Settings> = Vec::new();
        let mut files = Vec::new();
        for (entry, _) in &offered.entries {
            let settings = Arc::as_ptr(&entry.settings);
            if !seen.contains(&settings) {
                seen.push(settings);
                files.extend(entry.settings.verify.terms().files());
            }
        }
        files
    }

    /// Replaces some entries, for handshakes from now on. Returns their number.
    fn rebuild(&self, mut change: impl FnMut(&Entry) -> Option<Entry>) -> Result<usize, String> {
        let before = self.offered();
        let mut maker = self.maker();
        let mut changed = 0;
        let entries = before.entries.iter().map(|(entry, made)| match change(entry) {
            None => Ok((entry.clone(), made.clone())),
            Some(entry) => {
                changed += 1;
                maker.make(entry)
            }
        });
        let entries: Result<Vec<_>, String> = entries.collect();
        let entries = entries?;
        if changed > 0 {
            self.exchange(entries);
        }
        Ok(changed)
    }

    /// Replaces all certificates of the same name, for handshakes from now on. Sessions of the previous one can still
    /// be resumed. Returns the number of replaced entries.
    ///
    /// # Errors
    /// An error of rustls; nothing has changed.
    pub fn replace(&self, certificate: &Arc<Certificate>) -> Result<usize, String> {
        self.rebuild(|entry| {
            if entry.certificate.name != certificate.name {
                return None;
            }
            let mut entry = Entry { certificate: Arc::clone(certificate), ..entry.clone() };
            entry.row.kind = certificate.kind;
            if !entry.is_filtered {
                entry.row.names.clone_from(&certificate.names);
            }
            Some(entry)
        })
    }

    /// Replaces the content of a trust file, for handshakes from now on. Earlier sessions are not resumed. Returns the
    /// number of affected entries.
    ///
    /// # Errors
    /// As for [`Self::replace`].
    pub fn replace_trust(&self, file: &TrustFile) -> Result<usize, String> {
        // Settings that were shared remain so.
        let mut made: HashMap<*const Settings, Option<Arc<Settings>>> = HashMap::new();
        self.rebuild(|entry| {
            let settings = made.entry(Arc::as_ptr(&entry.settings)).or_insert_with(|| {
                let verify = entry.settings.verify.with(file)?;
                Some(Arc::new(Settings { verify, ..(*entry.settings).clone() }))
            });
            let settings = settings.as_ref()?;
            Some(Entry { settings: Arc::clone(settings), ..entry.clone() })
        })
    }

    /// Adds certificates.
    ///
    /// # Errors
    /// As for [`Self::replace`].
    pub fn add(&self, entries: Vec<Entry>) -> Result<(), String> {
        let mut maker = self.maker();
        let made: Result<Vec<_>, String> = entries.into_iter().map(|entry| maker.make(entry)).collect();
        let made = made?;
        self.exchange(self.offered().entries.iter().cloned().chain(made).collect());
        Ok(())
    }

    /// Whether a line of a list contains the default certificate.
    pub fn has_default_of(&self, line: &ListLine) -> bool {
        self.offered().entries.iter().any(|(entry, _)| entry.row.is_default && entry.line.as_ref() == Some(line))
    }

    /// Removes the certificates of a line of a list.
    pub fn remove(&self, line: &ListLine) {
        let before = self.offered();
        let others = before.entries.iter().filter(|(entry, _)| entry.line.as_ref() != Some(line));
        self.exchange(others.cloned().collect());
    }

    /// Sets or removes the certificate of a TLS-ALPN challenge for a name (RFC 8737, section 3).
    ///
    /// # Errors
    /// An error of rustls.
    pub fn prove(&self, name: &str, certificate: Option<&Arc<Certificate>>) -> Result<(), String> {
        let made = certificate.map(|certificate| {
            let provider = Algorithms::default().provider();
            let builder = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&Algorithms::default().protocol_versions())
                .map_err(|error| error.to_string())?;
            let resolver = Arc::new(SelectedCertificate(Arc::clone(certificate), None));
            let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
            config.alpn_protocols = vec![PROOF_PROTOCOL.to_vec()];
            config.enable_secret_extraction = true;
            config.session_storage = Arc::new(NoServerSessionStorage {});
            Ok::<_, String>((Arc::clone(certificate), Arc::new(config)))
        });
        let mut all = self.proofs.all.write().unwrap_or_else(PoisonError::into_inner);
        match made.transpose()? {
            Some(made) => drop(all.insert(name.to_ascii_lowercase().into(), made)),
            None => drop(all.remove(&*name.to_ascii_lowercase())),
        }
        self.proofs.are_there.store(!all.is_empty(), Ordering::Release);
        Ok(())
    }

    /// Returns the selection for a client that requests only a TLS-ALPN challenge.
    fn proof(&self, hello: &client_hello::ClientHello<'_>) -> Option<Choice> {
        if !self.proofs.are_there.load(Ordering::Acquire) || hello.protocols().next() != Some(PROOF_PROTOCOL) {
            return None;
        }
        let name = hello.server_name()?;
        let text = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        let all = self.proofs.all.read().unwrap_or_else(PoisonError::into_inner);
        let (certificate, config) = all.get(&*text)?;
        Some(Choice {
            config: Arc::clone(config),
            certificate: Arc::clone(certificate),
            name: Some(name.into()),
            capture: 0,
            judge: None,
            authorities: None,
            limits: RecordLimits::default(),
        })
    }

    /// Selects a certificate for a ClientHello. `None`: there is none.
    pub(crate) fn choose(&self, hello: &client_hello::ClientHello<'_>) -> Option<Choice> {
        if let Some(proof) = self.proof(hello) {
            return Some(proof);
        }
        let name = hello.server_name();
        let text = name.and_then(|name| std::str::from_utf8(name).ok());
        let offered = self.offered();
        let fits = |place: usize| offered.entries.get(place).is_some_and(|(entry, _)| fits(entry, hello));
        let found = match (&self.generator, text) {
            (Some(generator), Some(asked)) => match offered.names.find(text, preferred_kinds(hello), true, fits) {
                None => self.generated(generator, &offered, asked),
                Some(_) => None,
            },
            _ => None,
        };
        let (entry, certificate, ready) = match &found {
            Some((entry, certificate, ready)) => (entry, certificate, ready),
            None => {
                let place = offered.names.find(text, preferred_kinds(hello), self.is_strict, fits)?;
                let (entry, ready) = offered.entries.get(place)?;
                (entry, &entry.certificate, ready)
            }
        };
        Some(Choice {
            config: if entry.settings.is_quic { Arc::clone(&ready.config) } else { config_for(&ready.config, hello) },
            judge: ready.judge.clone(),
            authorities: match &entry.settings.verify {
                Verify::None(_) => None,
                Verify::Asked(terms) => Some(Arc::clone(&terms.authorities)),
            },
            certificate: Arc::clone(certificate),
            limits: entry.settings.limits,
            name: name.map(Into::into),
            capture: entry.settings.capture,
        })
    }
}

impl Server {
    /// Returns the certificate generated for a name, with the key and the settings of the first default.
    fn generated(
        &self,
        generator: &Generator,
        offered: &CertificateTable,
        name: &str,
    ) -> Option<(Entry, Arc<Certificate>, Ready)> {
        let name = name.to_ascii_lowercase();
        let now = i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX);
        let place = offered.names.find(None, &[], false, |_| false).unwrap_or(0);
        let (like, _) = offered.entries.get(place)?;
        let known = generator.made.lock().unwrap_or_else(PoisonError::into_inner).get(&name, now);
        let (certificate, ready) = match known {
            Some(known) => known,
            None => {
                let certificate =
                    Arc::new(generated_certificate::certificate(&generator.authority, &like.certificate, &name, now)?);
                let entry = Entry { certificate: Arc::clone(&certificate), ..like.clone() };
                let (_, ready) = self.maker().make(entry).ok()?;
                let made = (certificate, ready);
                generator.made.lock().unwrap_or_else(PoisonError::into_inner).put(&name, now, made.clone());
                made
            }
        };
        Some((like.clone(), certificate, ready))
    }
}

impl CertificateTable {
    fn new(entries: Vec<(Entry, Ready)>) -> Self {
        let rows: Vec<Row> = entries.iter().map(|(entry, _)| entry.row.clone()).collect();
        Self { names: Names::new(&rows), entries }
    }
}

/// Returns the configuration, or a copy without ALPN for a client whose protocols are all unknown: the handshake
/// continues without a protocol, as in HAProxy, whereas RFC 7301, section 3.2, requires an alert.
fn config_for(config: &Arc<ServerConfig>, hello: &client_hello::ClientHello<'_>) -> Arc<ServerConfig> {
    let mut offered = hello.protocols().peekable();
    let own = &config.alpn_protocols;
    if own.is_empty() || offered.peek().is_none() || offered.any(|protocol| own.iter().any(|name| name == protocol)) {
        return Arc::clone(config);
    }
    let mut without = ServerConfig::clone(config);
    without.alpn_protocols = Vec::new();
    Arc::new(without)
}

/// Returns key types in order of preference: the cheaper one first if the client can verify it.
fn preferred_kinds(hello: &client_hello::ClientHello<'_>) -> &'static [Kind] {
    let takes_ecdsa = hello
        .numbers(extension::SIGNATURE_ALGORITHMS)
        .is_some_and(|schemes| schemes.chunks_exact(2).any(|scheme| kind_of(scheme) == Some(Kind::Ecdsa)));
    if takes_ecdsa { &[Kind::Ecdsa, Kind::Rsa] } else { &[Kind::Rsa, Kind::Ecdsa] }
}

/// Returns the key type of a signature scheme, by its number.
fn kind_of(scheme: &[u8]) -> Option<Kind> {
    match scheme {
        // With SHA-256, -384, -512, and EdDSA.
        [4..=6, 3] | [8, 7 | 8] => Some(Kind::Ecdsa),
        [4..=6, 1] | [8, 4..=6] => Some(Kind::Rsa),
        _ => None,
    }
}

/// Whether a client and an entry have a common signature scheme for the certificate's key, and with TLS 1.2 a common
/// cipher suite.
fn fits(entry: &Entry, hello: &client_hello::ClientHello<'_>) -> bool {
    let (kind, algorithms) = (entry.certificate.kind, &entry.settings.algorithms);
    let own = |scheme: &[u8]| match (&algorithms.signatures.own, scheme) {
        (Some(own), [high, low]) => own.contains(&SignatureScheme::from(u16::from_be_bytes([*high, *low]))),
        _ => true,
    };
    let signs = hello
        .numbers(extension::SIGNATURE_ALGORITHMS)
        .is_none_or(|schemes| schemes.chunks_exact(2).any(|scheme| kind_of(scheme) == Some(kind) && own(scheme)));
    let speaks_13 = algorithms.versions.1 == Version::Tls13
        && hello
            .bytes(extension::SUPPORTED_VERSIONS)
            .is_some_and(|versions| versions.chunks_exact(2).any(|version| version == [3, 4]));
    let has_suite = || {
        let offered = |number: u16| hello.ciphers.chunks_exact(2).any(|suite| suite == number.to_be_bytes());
        algorithms.suites_of(kind).any(offered)
    };
    signs && (speaks_13 || has_suite())
}

/// Prepares entries. Lists with thousands of names usually share the same settings.
struct Maker<'s> {
    server: &'s Server,
    known: HashMap<*const Settings, (Arc<Settings>, ServerContext)>,
}

/// The state derived from settings.
#[derive(Clone)]
struct ServerContext {
    provider: Arc<CryptoProvider>,
    judge: Option<Arc<OfClients>>,
    /// The context that sessions are bound to.
    context: [u8; 8],
}

impl Maker<'_> {
    fn prepared(&mut self, settings: &Arc<Settings>) -> Result<ServerContext, String> {
        if let Some((_, prepared)) = self.known.get(&Arc::as_ptr(settings)) {
            return Ok(prepared.clone());
        }
        let provider = settings.algorithms.provider();
        let (judge, context) = match &settings.verify {
            Verify::None(_) => (None, session_context(&[], &[])),
            Verify::Asked(terms) => {
                let of_peer = settings.algorithms.signatures.of_peer.clone();
                let context = terms.session_context(of_peer.as_deref());
                (Some(Arc::new(OfClients::new(terms, &provider, of_peer)?)), context)
            }
        };
        let prepared = ServerContext { provider, judge, context };
        // Holding the settings keeps their address from being reused.
        self.known.insert(Arc::as_ptr(settings), (Arc::clone(settings), prepared.clone()));
        Ok(prepared)
    }

    fn make(&mut self, entry: Entry) -> Result<(Entry, Ready), String> {
        let settings = &entry.settings;
        let ServerContext { provider, judge, context } = self.prepared(settings)?;
        let versions = settings.algorithms.protocol_versions();
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?;
        let verifier = match &judge {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(judge) => Arc::<OfClients>::clone(judge),
        };
        let resolver =
            Arc::new(SelectedCertificate(Arc::clone(&entry.certificate), settings.algorithms.signatures.own.clone()));
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver);
        config.alpn_protocols = settings.alpn.clone();
        config.ignore_client_order = !settings.prefers_clients_order;
        config.enable_secret_extraction = true;
        config.key_log = key_log();
        if !settings.limits.compresses {
            (config.cert_compressors, config.cert_decompressors) = (Vec::new(), Vec::new());
        }
        // A ticket can be used repeatedly. Early data is accepted with cached sessions, each resumed once: a replay is
        // rejected (RFC 8446, section 8.1).
        if settings.early_data > 0 && self.server.resumption.store.is_used() {
            config.max_early_data_size = if settings.is_quic { u32::MAX } else { settings.early_data };
            config.send_half_rtt_data = true;
        } else if let Some(ticketer) = &self.server.ticketer {
            config.ticketer = bound(ticketer, context);
        }
        config.session_storage = self.server.resumption.sessions(context);
        let judge = judge.filter(|judge| judge.ignores());
        Ok((entry, Ready { config: Arc::new(config), judge }))
    }
}
