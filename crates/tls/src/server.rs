//! What an address that clients come to offers: certificates by name, algorithms, protocols, whether it wants to know who
//! they are. Must never speak with a client.

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
use crate::details::{Wanted, key_log};
use crate::forge::{self, Cache};
use crate::limits::RecordLimits;
use crate::names::{Names, Row};
use crate::provider::{Algorithms, Version};
use crate::resumption::{Resumption, Ticketer, bound};
use crate::signature;
use crate::trust::{TrustFile, session_context};
use crate::verify::{Authorities, ClientTerms, OfClients};

/// What a line says about its connections.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Algorithms.
    pub algorithms: Algorithms,
    /// Protocols, the preferred one first.
    pub alpn: Vec<Vec<u8>>,
    /// Who verifies clients.
    pub verify: Verify,
    /// `prefer-client-ciphers`.
    pub prefers_clients_order: bool,
    /// Bytes that are kept of each hello (`tune.ssl.capture-buffer-size`).
    pub capture: usize,
    /// Bounds of each connection.
    pub limits: RecordLimits,
    /// Bytes of early data that a client may send (`allow-0rtt`); 0: none is taken.
    pub early_data: u32,
}

/// `verify` of clients.
#[derive(Debug, Clone, PartialEq)]
pub enum Verify {
    /// They are not asked for a certificate. The files of the terms are kept in memory.
    None(ClientTerms),
    /// They are asked.
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

    /// The same with another content of a file. `None`: nothing here is from that file.
    fn with(&self, file: &TrustFile) -> Option<Self> {
        match self {
            Self::None(terms) => terms.with(file).map(Self::None),
            Self::Asked(terms) => terms.with(file).map(Self::Asked),
        }
    }
}

/// A certificate of a list, and what is special about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// It.
    pub certificate: Arc<Certificate>,
    /// Names that it is for.
    pub row: Row,
    /// They are written beside it, so that another certificate in its place is for the same ones.
    pub is_filtered: bool,
    /// What holds for its connections.
    pub settings: Arc<Settings>,
    /// The line of a `crt-list` that it is from.
    pub line: Option<ListLine>,
}

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListLine {
    /// The file.
    pub list: Arc<str>,
    /// What tells its lines apart, those that were added at run time as well.
    pub serial: usize,
}

/// An address that speaks TLS.
pub struct Server {
    offered: RwLock<Arc<Offered>>,
    is_strict: bool,
    resumption: Resumption,
    ticketer: Option<Arc<Ticketer>>,
    wanted: Arc<Wanted>,
    proofs: Proofs,
    generator: Option<Generator>,
}

/// What makes certificates for names that there is none for (`generate-certificates`).
struct Generator {
    authority: Arc<Certificate>,
    made: Mutex<Cache<(Arc<Certificate>, Ready)>>,
}

type Proof = (Arc<Certificate>, Arc<ServerConfig>);

/// Certificates that prove names in handshakes (RFC 8737), by name.
#[derive(Default)]
struct Proofs {
    /// Spares handshakes the lock while there are none.
    are_there: AtomicBool,
    all: RwLock<HashMap<Box<str>, Proof>>,
}

/// The protocol of such a handshake.
pub const PROOF_PROTOCOL: &[u8] = b"acme-tls/1";

/// What clients can get: exchanged as a whole.
struct Offered {
    entries: Vec<(Entry, Ready)>,
    names: Names,
}

/// What is made of an entry.
#[derive(Clone)]
struct Ready {
    config: Arc<ServerConfig>,
    /// Where something of a client's certificate is ignored: what tells of it.
    judge: Option<Arc<OfClients>>,
}

/// What a client gets.
pub(crate) struct Choice {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) certificate: Arc<Certificate>,
    pub(crate) name: Option<Box<[u8]>>,
    /// Bytes that are kept of the hello.
    pub(crate) capture: usize,
    /// Who tells what is wrong with the client's certificate, where something of it is ignored.
    pub(crate) judge: Option<Arc<OfClients>>,
    pub(crate) authorities: Option<Arc<Authorities>>,
    pub(crate) limits: RecordLimits,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("entries", &self.offered().entries.len()).finish_non_exhaustive()
    }
}

/// Addresses are the same that offer the same.
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

/// The certificate was chosen by the hello already.
#[derive(Debug)]
struct Chosen(Arc<Certificate>, Option<Vec<SignatureScheme>>);

impl ResolvesServerCert for Chosen {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let key = self.0.shown(UnixTime::now());
        Some(match &self.1 {
            None => key,
            Some(schemes) => signature::restricted(&key, schemes),
        })
    }
}

impl Server {
    /// Makes it ready. `is_strict`: `strict-sni`.
    ///
    /// # Errors
    /// What rustls does not take together.
    pub fn new(entries: Vec<Entry>, is_strict: bool, resumption: Resumption) -> Result<Self, String> {
        let ticketer = resumption.ticketer()?;
        let offered = RwLock::new(Arc::new(Offered::new(Vec::new())));
        let (wanted, proofs) = (Arc::default(), Proofs::default());
        let own = Self { offered, is_strict, resumption, ticketer, wanted, proofs, generator: None };
        let mut maker = own.maker();
        let entries: Result<Vec<_>, String> = entries.into_iter().map(|entry| maker.make(entry)).collect();
        own.exchange(entries?);
        Ok(own)
    }

    /// The same, with what is kept of handshakes.
    #[must_use]
    pub fn noting(self, wanted: &Arc<Wanted>) -> Self {
        Self { wanted: Arc::clone(wanted), ..self }
    }

    /// Makes certificates for names that there is none for, signed by `authority`, and remembers so many of them.
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

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    fn offered(&self) -> Arc<Offered> {
        Arc::clone(&self.offered.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn exchange(&self, entries: Vec<(Entry, Ready)>) {
        let offered = Arc::new(Offered::new(entries));
        *self.offered.write().unwrap_or_else(PoisonError::into_inner) = offered;
    }

    fn maker(&self) -> Maker<'_> {
        Maker { server: self, known: HashMap::new() }
    }

    /// Whether clients without a known name get nothing (`strict-sni`).
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// What is offered now.
    pub fn entries(&self) -> Vec<Entry> {
        self.offered().entries.iter().map(|(entry, _)| entry.clone()).collect()
    }

    /// The certificates.
    pub fn certificates(&self) -> Vec<Arc<Certificate>> {
        self.offered().entries.iter().map(|(entry, _)| Arc::clone(&entry.certificate)).collect()
    }

    /// The names of each certificate, in their order.
    pub fn rows(&self) -> Vec<Row> {
        self.offered().entries.iter().map(|(entry, _)| entry.row.clone()).collect()
    }

    /// The files that clients are verified by, or that lines name without verifying them, with their content.
    pub fn trust_files(&self) -> Vec<TrustFile> {
        let offered = self.offered();
        // Mostly all entries have the same.
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

    /// Puts others in the places of some entries, for handshakes that begin from now on. Returns how many there are.
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

    /// Puts a certificate in the place of all that are called like it, for handshakes that begin from now on. Sessions with
    /// the former one are resumed still. Returns how many places there are.
    ///
    /// # Errors
    /// What rustls does not take; nothing has changed.
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

    /// Verifies clients by another content of a file, in handshakes that begin from now on. Sessions that began before are
    /// not resumed. Returns how many entries are concerned.
    ///
    /// # Errors
    /// As for [`Self::replace`].
    pub fn replace_trust(&self, file: &TrustFile) -> Result<usize, String> {
        // What was shared stays so.
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

    /// Offers more certificates.
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

    /// Whether a line of a list has the certificate of clients without a known name.
    pub fn has_default_of(&self, line: &ListLine) -> bool {
        self.offered().entries.iter().any(|(entry, _)| entry.row.is_default && entry.line.as_ref() == Some(line))
    }

    /// Offers nothing of a line of a list any more.
    pub fn remove(&self, line: &ListLine) {
        let before = self.offered();
        let others = before.entries.iter().filter(|(entry, _)| entry.line.as_ref() != Some(line));
        self.exchange(others.cloned().collect());
    }

    /// Shows a certificate to clients that ask for a proof of that name, or none any more (RFC 8737, section 3).
    ///
    /// # Errors
    /// What rustls does not take.
    pub fn prove(&self, name: &str, certificate: Option<&Arc<Certificate>>) -> Result<(), String> {
        let made = certificate.map(|certificate| {
            let provider = Algorithms::default().provider();
            let builder = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&Algorithms::default().protocol_versions())
                .map_err(|error| error.to_string())?;
            let resolver = Arc::new(Chosen(Arc::clone(certificate), None));
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

    /// What a client gets that asks for a proof and nothing else.
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

    /// What a client gets by its hello. `None`: nothing.
    pub(crate) fn choose(&self, hello: &client_hello::ClientHello<'_>) -> Option<Choice> {
        if let Some(proof) = self.proof(hello) {
            return Some(proof);
        }
        let name = hello.server_name();
        let text = name.and_then(|name| std::str::from_utf8(name).ok());
        let offered = self.offered();
        let fits = |place: usize| offered.entries.get(place).is_some_and(|(entry, _)| fits(entry, hello));
        let found = match (&self.generator, text) {
            (Some(generator), Some(asked)) => match offered.names.find(text, wanted(hello), true, fits) {
                None => self.generated(generator, &offered, asked),
                Some(_) => None,
            },
            _ => None,
        };
        let (entry, certificate, ready) = match &found {
            Some((entry, certificate, ready)) => (entry, certificate, ready),
            None => {
                let place = offered.names.find(text, wanted(hello), self.is_strict, fits)?;
                let (entry, ready) = offered.entries.get(place)?;
                (entry, &entry.certificate, ready)
            }
        };
        Some(Choice {
            config: config_for(&ready.config, hello),
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
    /// The certificate that is made for a name, with the key and the settings of the first default.
    fn generated(
        &self,
        generator: &Generator,
        offered: &Offered,
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
                let certificate = Arc::new(forge::certificate(&generator.authority, &like.certificate, &name, now)?);
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

impl Offered {
    fn new(entries: Vec<(Entry, Ready)>) -> Self {
        let rows: Vec<Row> = entries.iter().map(|(entry, _)| entry.row.clone()).collect();
        Self { names: Names::new(&rows), entries }
    }
}

/// The configuration as it is, or without ALPN for a client whose protocols are all unknown here: the handshake goes on without
/// a protocol, as HAProxy does it, where RFC 7301, section 3.2, has an alert.
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

/// Kinds of keys, the one first that costs less where a client can verify it.
fn wanted(hello: &client_hello::ClientHello<'_>) -> &'static [Kind] {
    let takes_ecdsa = hello
        .numbers(extension::SIGNATURE_ALGORITHMS)
        .is_some_and(|schemes| schemes.chunks_exact(2).any(|scheme| kind_of(scheme) == Some(Kind::Ecdsa)));
    if takes_ecdsa { &[Kind::Ecdsa, Kind::Rsa] } else { &[Kind::Rsa, Kind::Ecdsa] }
}

/// The kind of key that makes signatures of a scheme, by its number.
fn kind_of(scheme: &[u8]) -> Option<Kind> {
    match scheme {
        // With SHA-256, -384, -512, and EdDSA.
        [4..=6, 3] | [8, 7 | 8] => Some(Kind::Ecdsa),
        [4..=6, 1] | [8, 4..=6] => Some(Kind::Rsa),
        _ => None,
    }
}

/// Whether a client and a line have a signature in common for a certificate's key, and with TLS 1.2 a cipher suite.
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

/// Makes entries ready. Lists with thousands of names mostly have the same settings for all.
struct Maker<'s> {
    server: &'s Server,
    known: HashMap<*const Settings, (Arc<Settings>, Prepared)>,
}

/// What is made of settings.
#[derive(Clone)]
struct Prepared {
    provider: Arc<CryptoProvider>,
    judge: Option<Arc<OfClients>>,
    /// What sessions depend on.
    context: [u8; 8],
}

impl Maker<'_> {
    fn prepared(&mut self, settings: &Arc<Settings>) -> Result<Prepared, String> {
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
        let prepared = Prepared { provider, judge, context };
        // The settings are held, so that no others get their place.
        self.known.insert(Arc::as_ptr(settings), (Arc::clone(settings), prepared.clone()));
        Ok(prepared)
    }

    fn make(&mut self, entry: Entry) -> Result<(Entry, Ready), String> {
        let settings = &entry.settings;
        let Prepared { provider, judge, context } = self.prepared(settings)?;
        let versions = settings.algorithms.protocol_versions();
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?;
        let verifier = match &judge {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(judge) => Arc::<OfClients>::clone(judge),
        };
        let resolver = Arc::new(Chosen(Arc::clone(&entry.certificate), settings.algorithms.signatures.own.clone()));
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver);
        config.alpn_protocols = settings.alpn.clone();
        config.ignore_client_order = !settings.prefers_clients_order;
        config.enable_secret_extraction = true;
        config.key_log = key_log();
        if !settings.limits.compresses {
            (config.cert_compressors, config.cert_decompressors) = (Vec::new(), Vec::new());
        }
        // A ticket can be used again and again. Early data is taken with sessions that are remembered here, each once: what
        // is sent a second time is not served (RFC 8446, section 8.1).
        if settings.early_data > 0 && self.server.resumption.store.is_used() {
            config.max_early_data_size = settings.early_data;
            config.send_half_rtt_data = true;
        } else if let Some(ticketer) = &self.server.ticketer {
            config.ticketer = bound(ticketer, context);
        }
        config.session_storage = self.server.resumption.sessions(context);
        let judge = judge.filter(|judge| judge.ignores());
        Ok((entry, Ready { config: Arc::new(config), judge }))
    }
}
