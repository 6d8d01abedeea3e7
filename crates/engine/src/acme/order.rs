//! Obtains one certificate: orders it, completes the challenges, downloads it and replaces the previous one. Must never replace a
//! certificate by one that does not cover its names.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use expression::sample::Sink;
use live::timeline::Author;
use live::trace::{Event, Level, Subject, events};
use policy::program::{AcmeCertificate, AcmeSection, PROVISIONING_RING};
use tls::account::{AccountKey, base64url};
use tls::certificate::{Certificate, Draft};
use tls::issue::Key;
use wire::acme::{self, Authorization, Order, Status};

use super::dialogue::{Dialogue, retry_after};
use super::proof::{Proofs, ready};
use super::reason::Reason;
use super::renewal;
use super::shared::Link;
use crate::certificates::Certificates;
use crate::worker::Worker;

/// Polls of a pending resource before the attempt fails.
const LOOKS: usize = 60;
/// Interval between polls, without `Retry-After`.
const USUAL_PAUSE: Duration = Duration::from_secs(3);
/// Upper bound on `Retry-After` between polls.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Obtains a certificate and installs it.
pub(super) async fn obtain(worker: &Rc<Worker>, own: &AcmeCertificate, section: &AcmeSection) -> Result<(), Reason> {
    let key = section.key.clone().ok_or("the account has no key")?;
    let text = issue(worker, own, section, Account { key, link: None }).await?;
    install(worker, own, &text)?;
    conclude(worker, own, text).await
}

/// The account of an order.
pub(super) struct Account<'a> {
    pub key: Arc<AccountKey>,
    /// The store over which nodes share the account.
    pub link: Option<&'a Link<'a>>,
}

fn trace(worker: &Worker, own: &AcmeCertificate, event: &'static Event, what: &str) {
    let text = || (what.to_owned(), format!("crt={}", own.name));
    worker.trace(event, Level::User, Subject::default, text);
}

/// Orders a certificate. Returns its key and its chain in PEM.
pub(super) async fn issue(
    worker: &Rc<Worker>,
    own: &AcmeCertificate,
    section: &AcmeSection,
    account: Account<'_>,
) -> Result<Vec<u8>, Reason> {
    if own.domains.is_empty() && own.ips.is_empty() {
        return Err("No 'domains' or 'ips' were configured for certificate. Can't start the ACME client.".into());
    }
    trace(worker, own, &events::ACME_NEW, "new order");
    let mut dialogue = Dialogue::begin(worker, &own.name, section, account.key).await?;
    let payload = acme::new_order(&own.domains, &own.ips, section.profile.as_deref());
    let new_order = dialogue.new_order();
    let answer = dialogue.post(&new_order, &payload, "requesting an order").await?;
    let url = answer.head.first(b"location").and_then(|url| std::str::from_utf8(url).ok());
    let url = url.ok_or("the server names no order")?.to_owned();
    let order = acme::order(&answer.body).ok_or("invalid order")?;
    let mut proofs = Proofs::new(worker, own, section, account.link);
    prove(&mut dialogue, &order, &mut proofs, own, section).await?;
    let order = wait(&mut dialogue, &url, order, Status::Ready).await?;
    drop(proofs);
    let key = key(worker, own, section).await?;
    let request = base64url(&key.request(&own.domains, &own.ips)?);
    let answer = dialogue.post(&order.finalize, &acme::finalize(&request), "finalizing the order").await?;
    let order = acme::order(&answer.body).ok_or("invalid order")?;
    let order = wait(&mut dialogue, &url, order, Status::Valid).await?;
    let from = order.certificate.ok_or("the order has no certificate")?;
    let answer = dialogue.get(&from, "getting the certificate").await?;
    Ok([key.to_pem().as_bytes(), &answer.body].concat())
}

/// Sends the events of a new certificate that was installed, and writes it to its file.
pub(super) async fn conclude(worker: &Rc<Worker>, own: &AcmeCertificate, text: Vec<u8>) -> Result<(), Reason> {
    let event = format!("acme newcert {}\n", own.name);
    worker.process.log_targets.tell(Sink::Ring(PROVISIONING_RING), event.as_bytes());
    crate::service::events::certificate(&worker.process, &own.name, || None);
    trace(worker, own, &events::ACME_TASK, "certificate obtained");
    keep(worker, own, text).await
}

/// Completes the challenges of pending authorizations.
async fn prove(
    dialogue: &mut Dialogue<'_>,
    order: &Order,
    proofs: &mut Proofs<'_>,
    own: &AcmeCertificate,
    section: &AcmeSection,
) -> Result<(), Reason> {
    let kind = proofs.kind();
    let mut open = Vec::new();
    for url in &order.authorizations {
        let answer = dialogue.get(url, "getting an authorization").await?;
        let found = acme::authorization(&answer.body).ok_or("invalid authorization")?;
        match found.status {
            Status::Valid => continue,
            Status::Pending => {}
            _ => return Err(failed(&found)),
        }
        // The identifiers come from the server: those that were not ordered are rejected.
        let is_own = own.domains.iter().any(|domain| domain.trim_start_matches("*.") == found.identifier)
            || found.identifier.parse().is_ok_and(|ip| own.ips.contains(&ip));
        let challenge = found.challenges.iter().find(|challenge| challenge.kind == kind);
        let (true, Some(challenge)) = (is_own, challenge) else {
            return Err(format!("the server offers no {kind} for '{}'", found.identifier).into());
        };
        proofs.offer(&found.identifier, challenge, dialogue.key(), &answer.body)?;
        open.push((url, challenge.url.clone(), found.identifier.clone()));
    }
    let names: Vec<Box<str>> = open.iter().map(|(_, _, name)| name.as_str().into()).collect();
    proofs.publish().await?;
    ready(proofs, own, section, &names).await?;
    for (_, challenge, _) in &open {
        dialogue.post(challenge, "{}", "requesting a challenge").await?;
    }
    for (url, _, _) in open {
        for look in 0.. {
            let answer = dialogue.get(url, "getting an authorization").await?;
            let found = acme::authorization(&answer.body).ok_or("invalid authorization")?;
            match found.status {
                Status::Valid => break,
                Status::Invalid => return Err(failed(&found)),
                _ if look >= LOOKS => return Err(format!("'{}' was not validated in time", found.identifier).into()),
                _ => {
                    rt::sleep(retry_after(&answer).unwrap_or(USUAL_PAUSE).clamp(Duration::from_secs(1), LONGEST_PAUSE))
                        .await
                }
            }
        }
    }
    Ok(())
}

fn failed(found: &Authorization) -> Reason {
    let problem = found.challenges.iter().find_map(|challenge| challenge.error.as_ref());
    let text = match problem {
        Some(problem) => format!("challenge error: {problem} (HTTP status code 200)"),
        None => format!("challenge error: the authorization of '{}' is not valid", found.identifier),
    };
    text.into()
}

/// Polls an order until it reaches a status.
async fn wait(dialogue: &mut Dialogue<'_>, url: &str, mut order: Order, wanted: Status) -> Result<Order, Reason> {
    for _ in 0..LOOKS {
        match order.status {
            status if status == wanted || status == Status::Valid => return Ok(order),
            Status::Invalid => {
                let why = order.error.map_or_else(String::new, |problem| format!(": {problem}"));
                return Err(format!("the order is invalid{why}").into());
            }
            _ => {}
        }
        let answer = dialogue.get(url, "getting the order").await?;
        let next = acme::order(&answer.body).ok_or("invalid order")?;
        if next.status == order.status {
            let pause = retry_after(&answer).unwrap_or(USUAL_PAUSE);
            rt::sleep(pause.clamp(Duration::from_secs(1), LONGEST_PAUSE)).await;
        }
        order = next;
    }
    Err("the order was not fulfilled in time".into())
}

/// Returns the key of the new certificate; a fresh one is generated on a helper thread, because that can take long.
async fn key(worker: &Rc<Worker>, own: &AcmeCertificate, section: &AcmeSection) -> Result<Key, Reason> {
    let former = worker.process.service::<Certificates>().lock().find(&worker.generation().program, &own.name);
    if let Some(former) = former.filter(|_| section.reuses_key) {
        return Key::of(&former).map_err(Reason::from);
    }
    let kind = section.key_kind;
    let made = worker.process.helpers.run(move || Key::generate(kind)).await.ok_or("no thread to make a key")?;
    made.map_err(Reason::from)
}

/// Installs the certificate in place of the previous one, as `commit ssl cert` does.
pub(super) fn install(worker: &Rc<Worker>, own: &AcmeCertificate, text: &[u8]) -> Result<(), Reason> {
    install_unless(worker, own, text, |_, _| false).map(|_| ())
}

/// The same, unless the one in use was issued later. Returns whether it was installed.
pub(super) fn install_newer(worker: &Rc<Worker>, own: &AcmeCertificate, text: &[u8]) -> Result<bool, Reason> {
    install_unless(worker, own, text, |former, next| renewal::is_newer(former.der(), next.der()))
}

/// Installs the certificate unless `keeps` returns true of the one in use and of the next one. Returns whether it was installed.
fn install_unless(
    worker: &Rc<Worker>,
    own: &AcmeCertificate,
    text: &[u8],
    keeps: impl FnOnce(&Certificate, &Certificate) -> bool,
) -> Result<bool, Reason> {
    let program = Arc::clone(&worker.generation().program);
    let mut held = worker.process.service::<Certificates>().lock();
    let former = held.find(&program, &own.name);
    // The next certificate inherits the usage of the previous one.
    let mut draft = former.as_ref().map_or_else(|| Draft::empty(&own.name), |former| Draft::of(former));
    let made = draft.set_text(text).and_then(|()| draft.finish(rt::wall().seconds));
    let (certificate, _) = made.map_err(|error| error.sentence(&own.name))?;
    let mut wanted = own.domains.iter();
    if let Some(domain) = wanted.find(|domain| !certificate.names.contains(domain)) {
        return Err(format!("the certificate is not for '{domain}'").into());
    }
    if former.is_some_and(|former| keeps(&former, &certificate)) {
        return Ok(false);
    }
    held.put(&program, &Arc::new(certificate))?;
    drop(held);
    crate::timeline::certificate(&worker.process, &own.name, Author::Acme, rt::wall());
    crate::ocsp::look_again(&worker.process);
    Ok(true)
}

/// Writes a certificate that Weir keeps to its file.
async fn keep(worker: &Rc<Worker>, own: &AcmeCertificate, text: Vec<u8>) -> Result<(), Reason> {
    let (Some(kept), Some(folder)) = (&own.kept, worker.process.upkeep.acme.folder()) else { return Ok(()) };
    let (file, folder) = (kept.file.to_string(), Arc::clone(folder));
    let written = worker.process.helpers.run(move || folder.write(&file, &text, rt::FileOwner::default())).await;
    let written = written.ok_or("no thread to write the certificate")?;
    written.map_err(|error| format!("the certificate is used, but cannot be written: {error}").into())
}
