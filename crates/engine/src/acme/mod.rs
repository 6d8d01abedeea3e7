//! Certificates from ACME servers (configuration manual, section 12.8; RFC 8555): when one is renewed, and the state of each.
//! Must never hold a key longer than it takes to build a certificate from it.

mod dialogue;
mod messages;
mod order;
mod proof;
mod reason;
mod renewal;
mod shared;

use std::rc::Rc;
use std::time::Duration;

use config::diagnostic::Severity;
use config::spec::LogLevel;
use policy::program::{Acme, AcmeCertificate};

use self::messages::log_message;
use self::reason::{Failure, Reason};
use self::renewal::{due, until};
use crate::acme_state::{Attempt, State};
use crate::worker::Worker;

/// Maximum time between two scans of all certificates.
const LOOK: Duration = Duration::from_secs(12 * 3600);

/// Starts certificate renewal. Only the first worker does so.
pub fn start(worker: &Rc<Worker>) {
    let acme = &worker.generation().program.acme;
    if worker.id == 0 && !acme.certificates.is_empty() {
        rt::spawn(rt::Class::Normal, rt::NO_TAG, schedule(Rc::clone(worker)));
        if acme.shared.is_some() {
            rt::spawn(rt::Class::Normal, rt::NO_TAG, shared::follow(Rc::clone(worker)));
        }
    }
}

/// Renews certificates when they are due or ordered, until the process stops.
async fn schedule(worker: Rc<Worker>) {
    let registry = &worker.process.upkeep.acme;
    // Jitter, so that certificates of many hosts that were started at the same time are not renewed at the same time.
    let jitter = rt::random();
    loop {
        let generation = worker.generation();
        let acme = &generation.program.acme;
        let mut next = LOOK;
        for own in &acme.certificates {
            let standing = registry.standing(&own.name);
            if standing.state == State::Running {
                continue;
            }
            let due = due(&worker, own, jitter);
            registry.set_due(&own.name, due.filter(|_| acme.schedules));
            let left = match due {
                // Nothing is ordered before the account is known.
                _ if is_shared(acme, own) && registry.account().is_none() => continue,
                _ if standing.is_ordered => Duration::ZERO,
                Some(due) if acme.schedules => until(due, rt::wall()).max(standing.paused_until(rt::now())),
                _ => continue,
            };
            if left.is_zero() {
                begin(&worker, own, standing.is_ordered);
            } else {
                next = next.min(left);
            }
        }
        drop(generation);
        registry.wait(next).await;
        if worker.process.is_stopping() {
            return;
        }
    }
}

/// Starts a task that obtains a certificate.
fn begin(worker: &Rc<Worker>, own: &AcmeCertificate, is_ordered: bool) {
    let (worker, own) = (Rc::clone(worker), own.clone());
    worker.process.upkeep.acme.begin(&own.name);
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        log_message(&worker, LogLevel::Notice, &own.name, "Starting update of the certificate.");
        let attempt = match obtain(&worker, &own, is_ordered).await {
            Ok(()) => {
                log_message(&worker, LogLevel::Notice, &own.name, "Successful update of the certificate.");
                Attempt::Obtained
            }
            Err(Failure::Refused { reason, pause }) => {
                let text = format!("{reason} Aborting.");
                log_message(&worker, LogLevel::Notice, &own.name, &text);
                worker.process.host.say(Severity::Warning, &format!("acme: {}: {text}", own.name));
                pause.map_or(Attempt::Failed, Attempt::Paused)
            }
            Err(Failure::Paused(pause)) => {
                let text = format!("Another node has failed, next attempt in {}s.", pause.as_secs());
                log_message(&worker, LogLevel::Notice, &own.name, &text);
                Attempt::Paused(pause)
            }
        };
        worker.process.upkeep.acme.end(&own.name, attempt, rt::now());
    });
}

/// Obtains a certificate and installs it.
async fn obtain(worker: &Rc<Worker>, own: &AcmeCertificate, is_ordered: bool) -> Result<(), Failure> {
    let section = worker.generation().program.acme.sections.get(own.section).cloned();
    let section = section.ok_or_else(|| Reason::from("there is no such section"))?;
    match section.is_shared {
        true => shared::obtain(worker, own, &section, is_ordered).await,
        false => Ok(order::obtain(worker, own, &section).await?),
    }
}

/// Whether nodes share a certificate.
fn is_shared(acme: &Acme, own: &AcmeCertificate) -> bool {
    acme.sections.get(own.section).is_some_and(|section| section.is_shared)
}
