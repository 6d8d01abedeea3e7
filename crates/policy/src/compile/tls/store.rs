//! The certificate storage (configuration manual, section 12.7): each certificate is loaded once, by its name, with the
//! files that a `crt-store` or a line specifies, or those that are found next to it. Must never open a connection.

mod definition;
mod files;

use super::line::Line;
use super::{located, reason};
use crate::compile::Compiler;
use crate::program::{CrtLines, CrtList, TlsListener, TlsParts};
use config::crt_list;
use config::diagnostic::Form;
use config::span::{Span, Spanned};
use config::spec::{BindTlsSpec, CertificateSource, GlobalTlsSpec, LoadSpec, Spec};
pub(super) use definition::different_update;
use definition::{Origin, differences};
use expression::key::TokenCertificate;
use files::{Chain, Paths};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use tls::certificate::Certificate;
use tls::resumption::SessionStore;
use tls::ticket_keys::TicketKeys;
use tls::trust::{TrustFile, Trusted};
use tls::verify::Authorities;

/// Extensions of files in a directory that are not certificates.
const RESERVED: [&str; 4] = [".key", ".issuer", ".ocsp", ".sctl"];
/// Extensions of the files of a bundle, one per key type.
const BUNDLE: [&str; 2] = [".ecdsa", ".rsa"];

/// Objects loaded so far: a file is read once, however many lines refer to it.
#[derive(Default)]
pub(crate) struct Store {
    certificates: HashMap<String, StoredCertificate>,
    pub(super) authorities: HashMap<(Option<String>, Option<String>), Arc<Authorities>>,
    /// `ocsp-update.mode on`.
    updates: bool,
    /// The chains of `issuers-chain-path`.
    chains: Vec<Chain>,
    /// Passphrases that have decrypted a key.
    passphrases: Vec<Vec<u8>>,
    /// Contents of CA files that are available without reading them.
    pub(super) trusted: HashMap<String, Trusted>,
    lists: BTreeMap<String, Arc<CrtList>>,
    /// Lists of the current line.
    pub(super) named_lists: Vec<Arc<str>>,
    pub(super) ticket_keys: Vec<Arc<TicketKeys>>,
    pub(super) sessions: Option<Arc<SessionStore>>,
    pub(super) listeners: Vec<TlsListener>,
    /// TLS of `default-server for-added` lines.
    pub(crate) defaults: Vec<Arc<tls::Client>>,
    /// The program is running: added lines refer to loaded objects, and no file is read.
    pub(super) is_running: bool,
    /// Maximum amount of early data from a client in bytes: the maximum size of a request.
    pub(super) early_data: u32,
}

impl Store {
    /// Creates an empty storage for buffers of `bufsize` bytes, of which `maxrewrite` are reserved.
    pub(crate) fn for_buffers(bufsize: usize, maxrewrite: usize) -> Self {
        let early_data = u32::try_from(bufsize.saturating_sub(maxrewrite)).unwrap_or(u32::MAX);
        Self { early_data, ..Self::default() }
    }
}

/// The objects that lines added at run time may refer to, since no file is read then.
#[derive(Debug, Clone, Default)]
pub struct KnownTls {
    pub certificates: Vec<Arc<Certificate>>,
    /// CA files and certificate revocation lists.
    pub trusted: Vec<TrustFile>,
}

/// A certificate of the storage.
struct StoredCertificate {
    /// `Err`: the certificate cannot be used; the reason is reported where it is referred to.
    certificate: Result<Arc<Certificate>, String>,
    origin: Origin,
    load: LoadSpec,
}

/// The certificates of a name.
pub(super) struct NamedCertificates {
    pub(super) certificates: Vec<Arc<Certificate>>,
    /// A bundle: one certificate per key type.
    pub(super) is_bundle: bool,
}

impl NamedCertificates {
    fn one(certificate: Arc<Certificate>) -> Self {
        Self { certificates: vec![certificate], is_bundle: false }
    }
}

impl Store {
    /// Returns the certificate with that name, if it was loaded and can be used.
    pub(crate) fn usable(&self, name: &str) -> Option<Arc<Certificate>> {
        self.certificates.get(name)?.certificate.clone().ok()
    }

    /// Adds objects that are available without files.
    pub(crate) fn know(&mut self, known: KnownTls) {
        self.is_running = true;
        for certificate in known.certificates {
            self.know_certificate(certificate);
        }
        self.trusted.extend(known.trusted.into_iter().map(|file| (file.name.into(), file.content)));
    }

    /// Adds a certificate that is available without a file.
    pub(crate) fn know_certificate(&mut self, certificate: Arc<Certificate>) {
        let (name, origin) = (certificate.name.to_string(), Origin::Store(Span::default()));
        self.certificates
            .insert(name, StoredCertificate { certificate: Ok(certificate), origin, load: LoadSpec::default() });
    }

    /// Returns the list with that name; creates it with `lines` if it is new. Records that the current line uses it.
    pub(super) fn name_list(&mut self, name: Arc<str>, lines: CrtLines) -> Arc<CrtList> {
        let list = self.lists.entry(name.to_string()).or_insert_with(|| Arc::new(CrtList::new(name, lines)));
        self.named_lists.push(Arc::clone(&list.name));
        Arc::clone(list)
    }

    /// Returns the certificates of `crt-store` sections, by name.
    fn stored(&self) -> Vec<Arc<Certificate>> {
        let loaded =
            self.certificates.values().filter(|one| matches!(one.origin, Origin::Store(_)) && !self.is_running);
        let mut stored: Vec<_> = loaded.filter_map(|one| one.certificate.clone().ok()).collect();
        stored.sort_by(|one, other| one.name.cmp(&other.name));
        stored
    }

    /// Returns the objects that belong to no line.
    fn parts(&mut self) -> TlsParts {
        TlsParts {
            lists: std::mem::take(&mut self.lists).into_values().collect(),
            ticket_keys: std::mem::take(&mut self.ticket_keys),
            sessions: self.sessions.take(),
            listeners: std::mem::take(&mut self.listeners),
            stored: self.stored(),
            defaults: std::mem::take(&mut self.defaults),
        }
    }
}

impl Compiler<'_> {
    /// Loads the certificates of the `crt-store` sections.
    pub(crate) fn crt_stores(&mut self, spec: &Spec) {
        let global = &spec.global.tls;
        self.tls.updates = global.ocsp.is_usual;
        self.load_chains(global);
        for (store, load) in
            spec.sections.crt_stores.iter().flat_map(|store| store.loads.iter().map(move |load| (store, load)))
        {
            let Some(file) = &load.crt else { continue };
            let base = load.crt_base.as_deref().or(global.crt_base.as_deref());
            let path = located(&file.value, base, load.folder.as_deref());
            let name = match (&load.alias, store.name.as_str()) {
                (Some(alias), store) => format!("@{store}/{}", alias.value),
                (None, "") => path.clone(),
                (None, store) => format!("@{store}/{}", file.value.strip_prefix('/').unwrap_or(&file.value)),
            };
            // A name with `@` cannot have been used before: its lookup would have failed.
            let is_used = || !name.starts_with('@') && self.is_used_before(spec, &name, load.span);
            if self.tls.certificates.contains_key(&name) || is_used() {
                let place = self.place(load.span);
                let message =
                    format!("parsing [{place}] : 'load' in section 'crt-store': store '{name}' was already defined.");
                self.alert(load.span, Form::Parsing, message);
                continue;
            }
            let line = Line {
                head: String::new(),
                form: Form::Parsing,
                algorithms: (String::new(), String::new()),
                span: load.span,
            };
            let paths = Paths::written(load, path, base, load.key_base.as_deref().or(global.key_base.as_deref()));
            let is_missing =
                (self.resolver.file_reader())(paths.file()).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            let stand_in = if is_missing { self.stand_in(&name, paths.file(), load) } else { None };
            if let Some(certificate) = stand_in.unwrap_or_else(|| self.load(&name, &paths, load, global, &line)) {
                if certificate.is_err() && load.jwt == Some(true) {
                    self.allow_without_key(&name, paths.file());
                }
                self.remember(name, certificate, Origin::Store(load.span), load);
            }
        }
    }

    /// Adds a certificate to the storage, with the purposes that its line specifies: ACME, JWT verification.
    fn remember(
        &mut self,
        name: String,
        certificate: Result<Arc<Certificate>, String>,
        origin: Origin,
        load: &LoadSpec,
    ) {
        if let Ok(certificate) = &certificate {
            self.asked(certificate, load);
            let keys = TokenCertificate::new(certificate.der(), certificate.private_der());
            if let Some(keys) = keys.filter(|_| load.jwt == Some(true)) {
                self.shared.keys.borrow().tokens().allow(name.as_bytes(), keys);
            }
        }
        self.tls.certificates.insert(name, StoredCertificate { certificate, origin, load: load.clone() });
    }

    /// Makes a certificate without a key, which cannot be used for handshakes, available for the verification of
    /// tokens.
    fn allow_without_key(&self, name: &str, file: &str) {
        let text = (self.resolver.file_reader())(file).unwrap_or_default();
        let chain = tls::pem::certificates(&text).unwrap_or_default();
        if let Some(mut keys) = chain.first().and_then(|own| TokenCertificate::new(own, &[])) {
            (keys.chain, keys.file) = (chain.iter().map(|one| one.to_vec()).collect(), Some(file.into()));
            self.shared.keys.borrow().tokens().allow(name.as_bytes(), keys);
        }
    }

    /// Returns the objects that belong to no line, after all lines were compiled.
    pub(crate) fn tls_parts(&mut self) -> TlsParts {
        self.refuse_tokens();
        self.tls.parts()
    }

    /// Restricts the verification of tokens to certificates with `jwt` and those that a converter names.
    fn refuse_tokens(&self) {
        let keys = self.shared.keys.borrow();
        let loaded = self.tls.certificates.iter().filter(|(_, loaded)| loaded.certificate.is_ok());
        for name in loaded.map(|(name, _)| name.as_bytes()) {
            if !keys.tokens().allows(name) && keys.certificate(name).is_none() {
                keys.tokens().refuse(name);
            }
        }
        keys.allow_named();
    }

    /// Whether a line above `span` uses a certificate: its definition has to precede its use.
    fn is_used_before(&self, spec: &Spec, name: &str, span: Span) -> bool {
        let base = spec.global.tls.crt_base.as_deref();
        let read = self.resolver.file_reader();
        let is_listed = |path: &Spanned<String>, bind: &BindTlsSpec| {
            let folder = bind.common.folder.as_deref();
            let text = read(&located(&path.value, None, folder)).unwrap_or_default();
            let lines = crt_list::read(&String::from_utf8_lossy(&text), "", bind, path.span).unwrap_or_default();
            lines.iter().any(|line| located(&line.file, base, folder) == name)
        };
        spec.proxies.iter().any(|proxy| {
            let binds = proxy.binds.iter().filter(|bind| bind.span < span).filter_map(|bind| bind.tls.as_deref());
            let mut words = binds.flat_map(|bind| bind.sources.iter().map(move |source| (bind, source)));
            words.any(|(bind, (source, path))| match source {
                CertificateSource::List => is_listed(path, bind),
                _ => located(&path.value, base, bind.common.folder.as_deref()) == name,
            }) || proxy.used_certificates.iter().filter(|used| used.span < span).any(|used| {
                let line = crt_list::used(used, "", &BindTlsSpec::default());
                line.is_ok_and(|line| located(&line.file, base, used.folder.as_deref()) == name)
            })
        })
    }

    /// Returns the certificates of a name: from the storage, a file, a bundle, or a directory.
    pub(super) fn certificates(
        &mut self,
        path: &Spanned<String>,
        folder: Option<&str>,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<NamedCertificates> {
        let load = LoadSpec { span: path.span, folder: folder.map(str::to_owned), ..LoadSpec::default() };
        self.defined(path, &load, "", global, line)
    }

    /// Returns the certificates of a name, where a line may specify their files. `place` is the prefix of messages
    /// about conflicts with previous definitions; empty for `bind` and `server` lines.
    pub(super) fn defined(
        &mut self,
        path: &Spanned<String>,
        load: &LoadSpec,
        place: &str,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<NamedCertificates> {
        let base = global.crt_base.as_deref();
        let name = match path.value.starts_with('@') {
            true => path.value.clone(),
            false => located(&path.value, base, load.folder.as_deref()),
        };
        if let Some(known) = self.known(&name, path.span, load, place, line) {
            return known.map(NamedCertificates::one);
        }
        if load.has_options() {
            let paths = Paths::written(load, name.clone(), base, None);
            let certificate = self.load(&name, &paths, load, global, line)?;
            self.remember(name.clone(), certificate, Origin::Line, load);
            return self.known(&name, path.span, load, place, line)?.map(NamedCertificates::one);
        }
        if let Some(names) = (self.resolver.folder_reader())(&name) {
            let mut names: Vec<_> = names
                .into_iter()
                .filter(|name| !name.starts_with('.') && !RESERVED.iter().any(|end| name.ends_with(end)))
                .collect();
            names.sort();
            let inside = names.iter().map(|file| format!("{}/{file}", name.trim_end_matches('/')));
            let certificates: Option<Vec<_>> =
                inside.map(|file| self.file(&file, path.span, load, global, line)).collect();
            return Some(NamedCertificates { certificates: certificates?, is_bundle: false });
        }
        let read = self.resolver.file_reader();
        if global.extra_files.bundle && read(&name).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            let bundle: Vec<String> =
                BUNDLE.iter().map(|end| format!("{name}{end}")).filter(|file| read(file).is_ok()).collect();
            if !bundle.is_empty() {
                let bundle = bundle.iter().map(|file| self.file(file, path.span, load, global, line));
                return Some(NamedCertificates { certificates: bundle.collect::<Option<_>>()?, is_bundle: true });
            }
        }
        self.file(&name, path.span, load, global, line).map(NamedCertificates::one)
    }

    /// Returns a loaded certificate. `None` if it was not loaded; `Some(None)` if an error was reported.
    #[expect(clippy::option_option, reason = "one that cannot be used is there still")]
    fn known(
        &mut self,
        name: &str,
        span: Span,
        load: &LoadSpec,
        place: &str,
        line: &Line,
    ) -> Option<Option<Arc<Certificate>>> {
        let loaded = self.tls.certificates.get(name)?;
        // Server lines are compiled after all others.
        if matches!(loaded.origin, Origin::Store(defined) if defined >= span && line.form != Form::Placed) {
            return None;
        }
        if let Some(differences) = differences(&loaded.load, loaded.origin, load, self.tls.updates) {
            let place = if place.is_empty() { format!("Can't load '{name}', ") } else { place.to_owned() };
            // HAProxy starts a new line after the prefix.
            let head = if line.head.is_empty() { String::new() } else { format!("{}\n", line.head_of_line()) };
            let tail = if line.head.ends_with("'crt-list' : ") { "'crt-list' : " } else { "" };
            let message = format!("{head}{tail}{place}is already defined with incompatible parameters:\n{differences}");
            self.alert(span, line.form, message);
            return Some(None);
        }
        match loaded.certificate.clone() {
            Ok(certificate) => Some(Some(certificate)),
            Err(why) => {
                self.alert(span, line.form, format!("{}{why}.", line.head));
                Some(None)
            }
        }
    }

    /// Returns the certificate of a file and the files found next to it.
    fn file(
        &mut self,
        name: &str,
        span: Span,
        load: &LoadSpec,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<Arc<Certificate>> {
        if let Some(known) = self.known(name, span, load, "", line) {
            return known;
        }
        if let Err(error) = (self.resolver.file_reader())(name) {
            let why = reason(&error);
            let message = format!("{}unable to stat SSL certificate from file '{name}' : {why}.", line.head);
            self.alert(span, line.form, message);
            return None;
        }
        let line = Line { span, ..line.clone() };
        let paths = Paths::beside(name, global.extra_files);
        match self.load(name, &paths, load, global, &line)? {
            Ok(certificate) => {
                let loaded = StoredCertificate {
                    certificate: Ok(Arc::clone(&certificate)),
                    origin: Origin::File,
                    load: load.clone(),
                };
                self.tls.certificates.insert(name.to_owned(), loaded);
                Some(certificate)
            }
            Err(why) => {
                self.alert(span, line.form, format!("{}{why}.", line.head));
                None
            }
        }
    }
}
