//! When a certificate is renewed.

use std::time::Duration;

use base::moment::WallTime;
use policy::program::AcmeCertificate;
use tls::x509;

use crate::certificates::Certificates;
use crate::worker::Worker;

/// Whether the certificate in use is due for renewal.
pub(super) fn is_due(worker: &Worker, own: &AcmeCertificate) -> bool {
    due(worker, own, 0).is_none_or(|due| until(due, rt::wall()).is_zero())
}

/// Returns the renewal time of the certificate in use. `None`: there is none, or it cannot be parsed.
pub(super) fn due(worker: &Worker, own: &AcmeCertificate, jitter: u64) -> Option<WallTime> {
    let certificate = worker.process.service::<Certificates>().lock().find(&worker.generation().program, &own.name)?;
    due_of(own, certificate.der(), jitter)
}

/// Returns the renewal time of a certificate. A self-signed one that Weir keeps is a placeholder: it is due at once. `None`: the
/// certificate cannot be parsed.
fn due_of(own: &AcmeCertificate, der: &[u8], jitter: u64) -> Option<WallTime> {
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

/// Whether a certificate of an authority was issued later than `next`. One that cannot be parsed was not, nor was a self-signed one,
/// which is a placeholder.
pub(super) fn is_newer(der: &[u8], next: &[u8]) -> bool {
    let begin = |der| x509::validity(der).map(|validity| validity.not_before);
    !x509::is_self_issued(der) && begin(der).zip(begin(next)).is_some_and(|(former, next)| former > next)
}

/// Returns the time until `due`; zero if it has passed.
pub(super) fn until(due: WallTime, now: WallTime) -> Duration {
    u64::try_from(due.seconds - now.seconds).map_or(Duration::ZERO, Duration::from_secs)
}
