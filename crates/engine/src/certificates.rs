//! Certificates while the process serves: those that the newest configuration uses, those that were added beside it, and the
//! change that is being made to one. Must never read a file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::program::Program;
use tls::certificate::Certificate;

/// What is kept of certificates beside the programs.
#[derive(Debug, Default)]
pub struct Certificates(Mutex<Held>);

/// Under the lock.
#[derive(Debug, Default)]
pub struct Held {
    /// The certificate that is to be put in the place of the one of its name.
    pub change: Option<Arc<Certificate>>,
    /// Those that no line uses, by name; `None`: nothing was put there yet.
    pub added: BTreeMap<String, Option<Arc<Certificate>>>,
}

impl Certificates {
    /// For one look or one step.
    pub fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where clients of a program get certificates.
fn servers(program: &Program) -> impl Iterator<Item = &Arc<tls::Server>> {
    let frontends = program.proxies.iter().filter_map(|proxy| proxy.frontend.as_ref());
    let listening = frontends.flat_map(|frontend| frontend.binds.iter());
    let own = program.runtime.sockets.iter().map(|socket| &socket.bind);
    let peers = program.peers.iter().filter_map(|section| section.bind.as_ref());
    let relays = program.log_forwards.iter().flat_map(|relay| relay.binds.iter());
    listening.chain(own).chain(peers).chain(relays).filter_map(|bind| bind.tls.as_ref())
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
    let rings = program.rings.iter().flat_map(|ring| ring.servers.iter().map(|server| server.tls.as_ref()));
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

impl Certificates {
    /// Every certificate that lines may name without a file being read: those that are used, and those that were added.
    pub fn known(&self, program: &Program) -> Vec<Arc<Certificate>> {
        let added: Vec<_> = self.lock().added.values().flatten().cloned().collect();
        used(program).into_values().chain(added).collect()
    }
}

/// Puts a certificate in the place of the one of its name wherever a program uses that. Returns in how many places.
///
/// # Errors
/// It cannot stand somewhere; then it stands nowhere.
pub fn replace(program: &Program, certificate: &Arc<Certificate>) -> Result<usize, String> {
    let former = used(program).remove(&*certificate.name);
    let exchange = |certificate: &Arc<Certificate>| {
        let mut places = 0;
        for server in servers(program) {
            places += server.replace(certificate)?;
        }
        for client in clients(program) {
            places += usize::from(client.replace(certificate)?);
        }
        Ok(places)
    };
    exchange(certificate).inspect_err(|_: &String| {
        if let Some(former) = &former {
            // It stood there before.
            let _ = exchange(former);
        }
    })
}
