//! Certificates that several nodes share over a store: one account, one node at a time that orders a certificate, and its delivery to
//! all. Must never order a certificate without its lease.

mod follow;
mod lease;
mod link;
mod records;
mod scripts;

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use policy::program::{AcmeCertificate, AcmeSection};

use self::lease::{Lease, Taken};
use self::records::CertificateKeys;
use super::order::{self, Account};
use super::reason::{Failure, Reason};
use super::renewal;
use crate::worker::Worker;

pub(super) use follow::follow;
pub(super) use link::Link;

/// Longest interval of attempts to take a lease that another node has.
const RETRY: Duration = Duration::from_secs(2);
/// Shortest interval of these attempts.
const SHORTEST_RETRY: Duration = Duration::from_millis(200);

/// Obtains a certificate: by the store, if another node has ordered it, or by an order under the lease of the certificate.
/// `is_ordered`: an operator has ordered it, and pauses after failures are ignored.
///
/// # Errors
/// The certificate was not obtained. A pause holds for all nodes.
pub(super) async fn obtain(
    worker: &Rc<Worker>,
    own: &AcmeCertificate,
    section: &AcmeSection,
    is_ordered: bool,
) -> Result<(), Failure> {
    let shared = worker.generation().program.acme.shared.clone();
    let shared = shared.ok_or_else(|| Failure::from(Reason::from("there is no store")))?;
    let link = Link::new(worker, &shared)?;
    let keys = CertificateKeys::new(own, section);
    let registry = &worker.process.upkeep.acme;
    let former = registry.version(&own.name);
    let lease = loop {
        match Lease::take(&link, &keys, is_ordered).await {
            Ok(Taken::Here(lease)) => break lease,
            Ok(Taken::Paused(left)) => return Err(Failure::Paused(left)),
            Ok(Taken::Elsewhere(left)) => rt::sleep(left.clamp(SHORTEST_RETRY, RETRY)).await,
            // A store that cannot be used is waited for: no order has failed.
            Err(_) if !link.is_ready() => rt::sleep(RETRY).await,
            Err(reason) => return Err(reason.into()),
        }
        // Another node has ordered it, and it was delivered.
        if registry.version(&own.name) != former {
            return Ok(());
        }
    };
    let version = match stored(&link, own, &keys, former).await {
        Ok(Stored::Received) => {
            lease.release().await;
            return Ok(());
        }
        Ok(Stored::Version(version)) => version,
        Err(reason) => {
            lease.release().await;
            return Err(reason.into());
        }
    };
    let issued = order(&link, own, section, &lease).await;
    // They are replaced at the next order otherwise.
    let _ = link.remove_proofs().await;
    match issued.and_then(|text| order::install(worker, own, &text).map(|()| text)) {
        Ok(text) => {
            let published = lease.publish(version, &text).await;
            if let Ok(version) = published {
                registry.set_version(&own.name, version);
            }
            order::conclude(worker, own, text).await?;
            Ok(published.map(|_| ())?)
        }
        Err(reason) => {
            let pause = lease.fail(reason.refusal).await;
            Err(Failure::Refused { reason, pause })
        }
    }
}

/// Result of comparing the store with the certificate in use.
enum Stored {
    /// A certificate that is not due was installed.
    Received,
    /// The version of a certificate that is due or in use; 0: there is none.
    Version(u64),
}

/// Installs the certificate of the store if its version is not `former`. A faulty one is ordered again.
async fn stored(link: &Link<'_>, own: &AcmeCertificate, keys: &CertificateKeys, former: u64) -> Result<Stored, Reason> {
    let version = follow::version(link, &keys.id).await?;
    if version == former {
        return Ok(Stored::Version(version));
    }
    match follow::receive(link, own, keys, version).await {
        Ok(true) => Ok(Stored::Received),
        Err(reason) if !link.is_ready() || !renewal::is_due(link.worker, own) => Err(reason),
        Ok(false) | Err(_) => Ok(Stored::Version(version)),
    }
}

/// Orders a certificate while this node has the lease.
async fn order(
    link: &Link<'_>,
    own: &AcmeCertificate,
    section: &AcmeSection,
    lease: &Lease<'_>,
) -> Result<Vec<u8>, Reason> {
    let account = link.worker.process.upkeep.acme.account().ok_or("the account is not known yet")?;
    let account = Account { key: Arc::clone(&account.key), link: Some(link) };
    let mut issued = pin!(order::issue(link.worker, own, section, account));
    let mut lost = pin!(lease.hold());
    std::future::poll_fn(|cx| {
        if let Poll::Ready(issued) = issued.as_mut().poll(cx) {
            return Poll::Ready(issued);
        }
        lost.as_mut().poll(cx).map(Err)
    })
    .await
}
