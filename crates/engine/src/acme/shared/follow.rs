//! Delivery of what other nodes have stored: the account, certificates, proofs. Must never order a certificate.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Moment;
use config::spec::LogLevel;
use policy::program::{AcmeCertificate, Challenge, SharedAcme};
use tls::issue::{Key, proof};

use super::link::{Link, proof_name, random_text};
use super::records::{ACCOUNT, CHANGES, CertificateKeys, NODES, PROOFS, SEEN, VERSIONS};
use super::scripts;
use crate::acme::messages::log_message;
use crate::acme::reason::Reason;
use crate::acme::{order, renewal};
use crate::acme_state::SharedAccount;
use crate::certificates::offer_proof;
use crate::worker::Worker;

/// Interval at which a node asks for changes.
const INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which the account in the store is compared with that of this node.
const ACCOUNT_INTERVAL: Duration = Duration::from_secs(60);
/// Fields that are asked for at once.
const BATCH: usize = 64;

/// Follows what other nodes store, until the process stops.
pub(in crate::acme) async fn follow(worker: Rc<Worker>) {
    // A configuration with ACME is not replaced while the process runs.
    let Some(shared) = worker.generation().program.acme.shared.clone() else { return };
    let Ok(link) = Link::new(&worker, &shared) else { return };
    share_names(&worker);
    let begin = rt::now();
    let mut follower =
        Follower { node: random_text(), seen: 0, proofs: BTreeMap::new(), fault: None, account_due: begin };
    while !worker.process.is_stopping() {
        // That the store cannot be reached is logged by its connection.
        if link.is_ready() {
            let round = follower.round(&link).await;
            if round.is_ok() || link.is_ready() {
                follower.report(&worker, round.err());
            }
        }
        rt::sleep(INTERVAL).await;
    }
}

/// State of a node that follows a store.
struct Follower {
    /// Random name of this process among the nodes.
    node: String,
    /// Number of changes.
    seen: u64,
    /// Proofs of `tls-alpn-01` that are offered, as they are stored.
    proofs: BTreeMap<Box<str>, Vec<u8>>,
    /// The fault that was logged.
    fault: Option<String>,
    /// When the account in the store is compared with that of this node.
    account_due: Moment,
}

/// Sets the names whose challenges are answered.
fn share_names(worker: &Worker) {
    let generation = worker.generation();
    let acme = &generation.program.acme;
    let is_answered = |own: &&AcmeCertificate| {
        let section = acme.sections.get(own.section);
        section.is_some_and(|section| section.is_shared && own.challenge(section) == Challenge::OwnHttp01)
    };
    let names = acme.certificates.iter().filter(is_answered).flat_map(|own| {
        let domains = own.domains.iter().map(|domain| domain.to_ascii_lowercase().into());
        domains.chain(own.ips.iter().map(|ip| ip.to_string().into()))
    });
    worker.process.upkeep.acme.share_names(names);
}

impl Follower {
    /// Logs a fault when it begins, changes or ends.
    fn report(&mut self, worker: &Worker, fault: Option<Reason>) {
        let fault = fault.map(|reason| reason.to_string());
        if fault == self.fault {
            return;
        }
        match &fault {
            Some(reason) => log_message(worker, LogLevel::Warning, "store", &format!("{reason}.")),
            None => log_message(worker, LogLevel::Notice, "store", "certificates are shared again."),
        }
        self.fault = fault;
    }

    /// Asks for changes once.
    async fn round(&mut self, link: &Link<'_>) -> Result<(), Reason> {
        let registry = &link.worker.process.upkeep.acme;
        if rt::now() >= self.account_due {
            let known = registry.account();
            let account = account(link, known.as_ref()).await?;
            if known.is_none_or(|known| known.text != account.text) {
                registry.set_account(account);
            }
            self.account_due = rt::now() + ACCOUNT_INTERVAL;
        }
        let arguments = [self.node.as_bytes(), &self.seen.to_string().into_bytes()];
        let changes = link.number(scripts::LOOK, &[NODES, SEEN, CHANGES], &arguments).await?;
        if changes == self.seen {
            return Ok(());
        }
        if changes < self.seen {
            // The store has lost data.
            self.account_due = rt::now();
        }
        self.follow_certificates(link).await?;
        self.seen = changes;
        Ok(())
    }

    /// Installs what has changed. A faulty value does not delay the others.
    async fn follow_certificates(&mut self, link: &Link<'_>) -> Result<(), Reason> {
        let mut fault = None;
        let generation = link.worker.generation();
        let acme = &generation.program.acme;
        let mut all = Vec::new();
        let mut domains: Vec<Box<str>> = Vec::new();
        for own in &acme.certificates {
            let Some(section) = acme.sections.get(own.section).filter(|section| section.is_shared) else { continue };
            all.push((own.clone(), CertificateKeys::new(own, section)));
            if own.challenge(section) == Challenge::TlsAlpn01 {
                domains.extend(own.domains.iter().cloned());
            }
        }
        drop(generation);
        for part in all.chunks(BATCH) {
            let ids: Vec<&str> = part.iter().map(|(_, keys)| &*keys.id).collect();
            let versions = link.fields(VERSIONS, &ids).await?;
            for ((own, keys), version) in part.iter().zip(versions) {
                let version = parse_version(version)?;
                if version != 0 && version != link.worker.process.upkeep.acme.version(&own.name) {
                    fault = receive(link, own, keys, version).await.err().or(fault);
                }
            }
        }
        for part in domains.chunks(BATCH) {
            let names: Vec<&str> = part.iter().map(|domain| &**domain).collect();
            for (domain, sealed) in part.iter().zip(link.fields(PROOFS, &names).await?) {
                fault = self.offer(link, domain, sealed).err().or(fault);
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// Offers the proof of a domain in handshakes, or removes it.
    fn offer(&mut self, link: &Link<'_>, domain: &str, sealed: Option<Vec<u8>>) -> Result<(), Reason> {
        if self.proofs.get(domain) == sealed.as_ref() {
            return Ok(());
        }
        let program = Arc::clone(&link.worker.generation().program);
        match sealed {
            None => {
                offer_proof(&program, domain, None)?;
                self.proofs.remove(domain);
            }
            Some(sealed) => {
                let digest = link.open(&proof_name(domain), &sealed)?;
                let digest: [u8; 32] = digest.try_into().map_err(|_| "a proof in the store is no digest")?;
                offer_proof(&program, domain, Some(&Arc::new(proof(domain, &digest)?)))?;
                self.proofs.insert(domain.into(), sealed);
            }
        }
        Ok(())
    }
}

/// Returns the account in the store. If there is none, the known account, the key of the configured file or a fresh one is stored.
async fn account(link: &Link<'_>, known: Option<&SharedAccount>) -> Result<SharedAccount, Reason> {
    if let Some(text) = link.secret(ACCOUNT).await? {
        return SharedAccount::read(&text).map_err(Reason::from);
    }
    let SharedAcme { account, key_kind, .. } = link.shared;
    let offered = match known.map(|known| &known.text).or(account.as_ref()) {
        Some(text) => text.to_vec(),
        None => {
            let kind = *key_kind;
            let made = link.worker.process.helpers.run(move || Key::generate(kind)).await;
            made.ok_or("no thread to make a key")??.to_pem().into_bytes()
        }
    };
    SharedAccount::read(&offered)?;
    link.put_new_secret(ACCOUNT, &offered).await?;
    // Another node may have been the first.
    let text = link.secret(ACCOUNT).await?.ok_or("the store has not kept the account")?;
    SharedAccount::read(&text).map_err(Reason::from)
}

fn parse_version(text: Option<Vec<u8>>) -> Result<u64, Reason> {
    let Some(text) = text else { return Ok(0) };
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| "a version in the store is no number".into())
}

/// Returns the version of a certificate in the store; 0: there is none.
pub(super) async fn version(link: &Link<'_>, id: &str) -> Result<u64, Reason> {
    parse_version(link.fields(VERSIONS, &[id]).await?.pop().flatten())
}

/// Installs a certificate of the store, unless the one in use was issued later. Returns whether the one in use is not due for renewal.
///
/// # Errors
/// The store cannot be used, or the certificate cannot be installed.
pub(super) async fn receive(
    link: &Link<'_>,
    own: &AcmeCertificate,
    keys: &CertificateKeys,
    version: u64,
) -> Result<bool, Reason> {
    let Some(text) = link.secret(&keys.certificate).await? else { return Ok(false) };
    let worker = link.worker;
    let is_installed = order::install_newer(worker, own, &text)?;
    worker.process.upkeep.acme.set_version(&own.name, version);
    if is_installed {
        log_message(worker, LogLevel::Notice, &own.name, "The certificate was received from the store.");
        order::conclude(worker, own, text).await?;
    } else {
        log_message(worker, LogLevel::Notice, &own.name, "The certificate in the store is older than the one in use.");
    }
    Ok(!renewal::is_due(worker, own))
}
