//! Certificates from ACME servers (configuration manual, section 12.8; RFC 8555): when one is renewed, and the state of each.
//! Must never hold a key longer than it takes to build a certificate from it.

mod dialogue;
mod order;
mod proof;
mod shared;

use std::rc::Rc;
use std::time::Duration;

use base::moment::WallTime;
use config::diagnostic::Severity;
use config::spec::LogLevel;
use policy::program::{Acme, AcmeCertificate};
use tls::x509;

use self::dialogue::Reason;
use crate::acme_state::{Attempt, State};
use crate::certificates::Certificates;
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

/// Why a certificate was not obtained, and when the next attempt is made.
enum Failure {
    Refused {
        reason: Reason,
        /// The time until the next attempt of any node; `None`: this process decides.
        pause: Option<Duration>,
    },
    /// An attempt of another node has failed. This is the time until the next one.
    Paused(Duration),
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self::Refused { reason, pause: None }
    }
}

/// Logs a message in the process log, in HAProxy's form.
fn log_message(worker: &Worker, level: LogLevel, name: &str, text: &str) {
    worker.logger.message(None, level, &format!("acme: {name}: {text}"));
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
            let certificate = worker.process.service::<Certificates>().lock().find(&generation.program, &own.name);
            let standing = registry.standing(&own.name);
            if standing.state == State::Running {
                continue;
            }
            let due = certificate.and_then(|certificate| due(own, certificate.der(), jitter));
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

/// Whether the certificate in use is due for renewal.
fn is_due(worker: &Worker, own: &AcmeCertificate) -> bool {
    let certificate = worker.process.service::<Certificates>().lock().find(&worker.generation().program, &own.name);
    let due = certificate.and_then(|certificate| due(own, certificate.der(), 0));
    due.is_none_or(|due| until(due, rt::wall()).is_zero())
}

/// Returns the renewal time of a certificate. A self-signed one that Weir keeps is a placeholder: it is due at once. `None`: the
/// certificate cannot be parsed.
fn due(own: &AcmeCertificate, der: &[u8], jitter: u64) -> Option<WallTime> {
    let validity = x509::validity(der)?;
    if own.kept.is_some() && x509::is_self_issued(der) {
        return Some(WallTime { seconds: validity.not_before, nanos: 0 });
    }
    let life = validity.not_after - validity.not_before;
    let before = match own.kept {
        // A third of its lifetime before it expires, and up to a tenth of that earlier.
        Some(_) => life / 3 + i64::try_from(jitter % u64::try_from(life / 30).unwrap_or(1).max(1)).unwrap_or(0),
        // The configuration manual, section 12.8.
        None => life / 12,
    };
    Some(WallTime { seconds: validity.not_after - before, nanos: 0 })
}

/// Returns the time until `due`; zero if it has passed.
fn until(due: WallTime, now: WallTime) -> Duration {
    u64::try_from(due.seconds - now.seconds).map_or(Duration::ZERO, Duration::from_secs)
}
