//! Certificates, CA files and CRL files while the process serves: those that the newest configuration uses, unused ones, and
//! uncommitted changes. Must never read a file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use expression::key::TokenCertificate;
use policy::compile::KnownTls;
use policy::program::Program;
use tls::certificate::{Certificate, Draft};
use tls::trust::{TrustFile, Trusted};

/// State of certificate maintenance: ACME and OCSP.
#[derive(Debug, Default)]
pub struct Maintenance {
    /// Certificates obtained by ACME.
    pub acme: crate::acme_state::Registry,
    /// OCSP responses that are kept up to date.
    pub ocsp: crate::ocsp_state::Updates,
}

/// Certificates of the process, apart from those of its programs.
#[derive(Debug, Default)]
pub struct Certificates(Mutex<CertificateState>);

/// The data under the lock of [`Certificates`].
#[derive(Debug, Default)]
pub struct CertificateState {
    /// Uncommitted change of a certificate (`set ssl cert`).
    pub change: Option<Draft>,
    /// Certificates that a `crt-store` loads, that were added, or that were used before, by name; `None`: `new ssl cert` without
    /// content yet.
    pub kept: BTreeMap<String, Option<Arc<Certificate>>>,
    /// Uncommitted change of a CA file.
    pub authorities_change: Option<TrustFile>,
    /// Uncommitted change of a CRL file.
    pub lists_change: Option<TrustFile>,
    /// CA and CRL files that were added, or used before, by name.
    pub kept_trust: BTreeMap<String, Trusted>,
}

impl CertificateState {
    /// Returns the certificate of that name: the one in use, else a kept one.
    pub fn find(&self, program: &Program, name: &str) -> Option<Arc<Certificate>> {
        used(program).remove(name).or_else(|| self.kept.get(name)?.clone())
    }

    /// Replaces the certificate of the same name, in use, kept, or as a key of tokens. Returns the number of places where it is
    /// in use.
    ///
    /// # Errors
    /// The certificate is not usable in one place; nothing was changed.
    pub fn put(&mut self, program: &Program, certificate: &Arc<Certificate>) -> Result<usize, String> {
        let places = replace(program, certificate)?;
        if let Some(kept) = self.kept.get_mut(&*certificate.name) {
            *kept = Some(Arc::clone(certificate));
        }
        let (tokens, name) = (program.keys.tokens(), certificate.name.as_bytes());
        let keys = TokenCertificate::new(certificate.der(), certificate.private_der());
        if let Some(keys) = keys.filter(|_| tokens.allows(name)) {
            tokens.allow(name, keys);
        }
        Ok(places)
    }

    /// Keeps the certificates and files that a program uses, before a change that can remove the lines which use them.
    pub fn keep(&mut self, program: &Program) {
        self.kept.extend(used(program).into_iter().map(|(name, certificate)| (name, Some(certificate))));
        self.kept_trust.extend(used_trust(program));
    }
}

impl Certificates {
    /// Returns the certificates that a first configuration loads without using them.
    pub fn of(program: &Program) -> Self {
        let kept = program.tls.stored.iter().map(|one| (one.name.to_string(), Some(Arc::clone(one))));
        Self(Mutex::new(CertificateState { kept: kept.collect(), ..CertificateState::default() }))
    }

    /// Locks the data; hold the guard for one operation only.
    pub fn lock(&self) -> MutexGuard<'_, CertificateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the certificates and files that configuration lines can name without a file being read: those in use and those
    /// added.
    pub fn known(&self, program: &Program) -> KnownTls {
        let held = self.lock();
        let mut certificates: BTreeMap<_, _> =
            held.kept.iter().filter_map(|(name, one)| Some((name.clone(), one.clone()?))).collect();
        let mut trusted = held.kept_trust.clone();
        drop(held);
        certificates.extend(used(program));
        trusted.extend(used_trust(program));
        let file = |(name, content): (String, Trusted)| TrustFile { name: name.into(), content };
        KnownTls {
            certificates: certificates.into_values().collect(),
            trusted: trusted.into_iter().map(file).collect(),
        }
    }
}

/// TLS servers (listeners) of a program.
fn servers(program: &Program) -> impl Iterator<Item = &Arc<tls::Server>> {
    program.tls.listeners.iter().map(|listener| &listener.server)
}

/// Offers a challenge certificate for a name on all TLS listeners of a program; `None` removes it.
///
/// # Errors
/// A listener rejects the certificate.
pub(crate) fn offer_proof(program: &Program, name: &str, certificate: Option<&Arc<Certificate>>) -> Result<(), String> {
    servers(program).try_for_each(|server| server.prove(name, certificate))
}

/// TLS clients of a program: connections to servers, peers, rings, name servers and stores.
fn clients(program: &Program) -> impl Iterator<Item = &Arc<tls::Client>> {
    let backends = program.proxies.iter().filter_map(|proxy| proxy.backend.as_ref());
    let servers = backends.flat_map(|backend| backend.servers.iter());
    let traffic = servers.filter_map(|server| server.connecting.tls.as_ref().map(|tls| &tls.client));
    let remotes = program.peers.iter().flat_map(|section| section.remotes.iter().map(|peer| peer.tls.as_ref()));
    let own = program.peers.iter().map(|section| section.own_tls.as_ref());
    let collectors =
        program.proxies.iter().flat_map(|proxy| proxy.servers().filter_map(|server| server.log.as_ref()?.ring()));
    let rings = program.rings.iter().chain(collectors.map(|ring| &**ring));
    let rings = rings.flat_map(|ring| ring.servers.iter().map(|server| server.tls.as_ref()));
    let nameservers =
        program.resolvers.iter().flat_map(|section| section.nameservers.iter().map(|one| one.tls.as_ref()));
    let stores = program.stores.sections.iter().map(|store| store.server.tls.as_ref());
    let links = remotes.chain(own).chain(rings).chain(nameservers).chain(stores).flatten();
    traffic.chain(links.map(|tls| &tls.client)).chain(&program.tls.defaults)
}

/// Returns every certificate that a program uses, by name.
pub fn used(program: &Program) -> BTreeMap<String, Arc<Certificate>> {
    let shown = servers(program).flat_map(|server| server.certificates());
    let all = shown.chain(clients(program).filter_map(|client| client.certificate()));
    all.map(|certificate| (certificate.name.to_string(), certificate)).collect()
}

/// Returns every CA and CRL file that a program uses, by name.
pub fn used_trust(program: &Program) -> BTreeMap<String, Trusted> {
    let of_clients = servers(program).flat_map(|server| server.trust_files());
    let all = of_clients.chain(clients(program).flat_map(|client| client.trust_files()));
    all.map(|file| (file.name.into(), file.content)).collect()
}

/// Replaces something in all TLS servers and clients. Returns the number of places; if one rejects it, `former` is restored
/// everywhere.
fn exchange<T>(
    program: &Program,
    next: &T,
    former: Option<&T>,
    server: impl Fn(&tls::Server, &T) -> Result<usize, String>,
    client: impl Fn(&tls::Client, &T) -> Result<bool, String>,
) -> Result<usize, String> {
    let everywhere = |content: &T| {
        let mut places = 0;
        for one in servers(program) {
            places += server(one, content)?;
        }
        for one in clients(program) {
            places += usize::from(client(one, content)?);
        }
        Ok(places)
    };
    everywhere(next).inspect_err(|_: &String| {
        if let Some(former) = former {
            // It was accepted before.
            let _ = everywhere(former);
        }
    })
}

/// Replaces the certificate of the same name wherever a program uses it. Returns the number of places.
///
/// # Errors
/// A place rejects the certificate; none uses it.
fn replace(program: &Program, certificate: &Arc<Certificate>) -> Result<usize, String> {
    let former = used(program).remove(&*certificate.name);
    exchange(program, certificate, former.as_ref(), tls::Server::replace, tls::Client::replace)
}

/// Replaces the content of a CA or CRL file wherever a program uses it. Returns the number of places.
///
/// # Errors
/// A place rejects the content; none uses it.
pub fn replace_trust(program: &Program, file: &TrustFile) -> Result<usize, String> {
    let former = used_trust(program).remove(&*file.name);
    let former = former.map(|content| TrustFile { name: file.name.clone(), content });
    exchange(program, file, former.as_ref(), tls::Server::replace_trust, tls::Client::replace_trust)
}
