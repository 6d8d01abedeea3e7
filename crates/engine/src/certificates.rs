//! Certificates, files of authorities and revocation lists while the process serves: those that the newest configuration uses,
//! those that no line uses, and the changes that are being made. Must never read a file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use expression::key::TokenCertificate;
use policy::compile::KnownTls;
use policy::program::Program;
use tls::certificate::{Certificate, Draft};
use tls::trust::{TrustFile, Trusted};

/// What is done about certificates beside handshakes.
#[derive(Debug, Default)]
pub struct Upkeep {
    /// Those that are obtained.
    pub acme: crate::acme_state::Registry,
    /// OCSP answers that are kept fresh.
    pub ocsp: crate::ocsp_state::Updates,
}

/// What is kept of certificates beside the programs.
#[derive(Debug, Default)]
pub struct Certificates(Mutex<Held>);

/// Under the lock.
#[derive(Debug, Default)]
pub struct Held {
    /// What is to be put in the place of the certificate of its name.
    pub change: Option<Draft>,
    /// Those that a `crt-store` loads, were added, or were used before, by name; `None`: nothing was put there yet.
    pub kept: BTreeMap<String, Option<Arc<Certificate>>>,
    /// The file of authorities that is to be put in the place of the one of its name.
    pub authorities_change: Option<TrustFile>,
    /// The file of revocation lists.
    pub lists_change: Option<TrustFile>,
    /// Files of either kind that were added, or were used before, by name.
    pub kept_trust: BTreeMap<String, Trusted>,
}

impl Held {
    /// The certificate of that name: the one in use, else one that is kept.
    pub fn find(&self, program: &Program, name: &str) -> Option<Arc<Certificate>> {
        used(program).remove(name).or_else(|| self.kept.get(name)?.clone())
    }

    /// Puts a certificate in the place of the one of its name, wherever that is: in use, kept, or a key of tokens. Returns in
    /// how many places it is in use.
    ///
    /// # Errors
    /// It cannot stand somewhere; then nothing has changed.
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

    /// Keeps what a program uses: a line may use it no more in the next moment.
    pub fn keep(&mut self, program: &Program) {
        self.kept.extend(used(program).into_iter().map(|(name, certificate)| (name, Some(certificate))));
        self.kept_trust.extend(used_trust(program));
    }
}

impl Certificates {
    /// What a first configuration loads without using it.
    pub fn of(program: &Program) -> Self {
        let kept = program.tls.stored.iter().map(|one| (one.name.to_string(), Some(Arc::clone(one))));
        Self(Mutex::new(Held { kept: kept.collect(), ..Held::default() }))
    }

    /// For one look or one step.
    pub fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that lines may name without a file being read: what is used, and what was added.
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

/// Where clients of a program get certificates.
fn servers(program: &Program) -> impl Iterator<Item = &Arc<tls::Server>> {
    program.tls.listeners.iter().map(|listener| &listener.server)
}

/// Shows a certificate to clients that ask for a proof of a name, wherever a program speaks TLS, or none any more.
///
/// # Errors
/// It cannot be shown.
pub(crate) fn offer_proof(program: &Program, name: &str, certificate: Option<&Arc<Certificate>>) -> Result<(), String> {
    servers(program).try_for_each(|server| server.prove(name, certificate))
}

/// What shows certificates to servers of a program.
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
    let links = remotes.chain(own).chain(rings).chain(nameservers).flatten();
    traffic.chain(links.map(|tls| &tls.client))
}

/// Every certificate that a program uses, by name.
pub fn used(program: &Program) -> BTreeMap<String, Arc<Certificate>> {
    let shown = servers(program).flat_map(|server| server.certificates());
    let all = shown.chain(clients(program).filter_map(|client| client.certificate()));
    all.map(|certificate| (certificate.name.to_string(), certificate)).collect()
}

/// Every file of authorities and of revocation lists that a program uses, by name.
pub fn used_trust(program: &Program) -> BTreeMap<String, Trusted> {
    let of_clients = servers(program).flat_map(|server| server.trust_files());
    let all = of_clients.chain(clients(program).flat_map(|client| client.trust_files()));
    all.map(|file| (file.name.into(), file.content)).collect()
}

/// Exchanges something everywhere. Returns in how many places; where one refuses, `former` is put back.
fn exchange<T>(
    program: &Program,
    (next, former): (&T, Option<&T>),
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

/// Puts a certificate in the place of the one of its name wherever a program uses that. Returns in how many places.
///
/// # Errors
/// It cannot stand somewhere; then it stands nowhere.
fn replace(program: &Program, certificate: &Arc<Certificate>) -> Result<usize, String> {
    let former = used(program).remove(&*certificate.name);
    exchange(program, (certificate, former.as_ref()), tls::Server::replace, tls::Client::replace)
}

/// Puts another content in a file of authorities or revocation lists wherever a program uses that. Returns in how many
/// places.
///
/// # Errors
/// It cannot be used somewhere; then it is used nowhere.
pub fn replace_trust(program: &Program, file: &TrustFile) -> Result<usize, String> {
    let former = used_trust(program).remove(&*file.name);
    let former = former.map(|content| TrustFile { name: file.name.clone(), content });
    exchange(program, (file, former.as_ref()), tls::Server::replace_trust, tls::Client::replace_trust)
}
