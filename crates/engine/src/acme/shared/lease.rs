//! The lease of a certificate: the right to order it. It ends by itself, so that a node that dies is replaced. Must never order.

use std::time::Duration;

use super::link::{Link, random_text};
use super::records::{CHANGES, CertificateKeys, VERSIONS};
use super::scripts;
use crate::acme::reason::Reason;
use crate::acme_state::{FIRST_PAUSE, LONGEST_PAUSE};

/// Time after which a lease ends unless it is prolonged. A node that dies is replaced after this time and one interval of attempts.
const DURATION: Duration = Duration::from_secs(30);
/// Interval at which it is prolonged.
const INTERVAL: Duration = Duration::from_secs(8);
/// Time for which a certificate that was obtained is offered to a store that cannot be used.
const PUBLICATION: Duration = Duration::from_secs(600);
/// Interval of these attempts.
const PUBLICATION_INTERVAL: Duration = Duration::from_secs(1);

/// A lease that this node has.
pub(super) struct Lease<'a> {
    link: &'a Link<'a>,
    keys: &'a CertificateKeys,
    holder: String,
}

/// The result of an attempt to take a lease.
pub(super) enum Taken<'a> {
    Here(Lease<'a>),
    /// Another node has the lease for this time at most, unless it prolongs it.
    Elsewhere(Duration),
    /// An attempt has failed. The next one is permitted after this time.
    Paused(Duration),
}

fn milliseconds(time: Duration) -> String {
    time.as_millis().to_string()
}

impl<'a> Lease<'a> {
    /// Takes the lease of a certificate, if no other node has it.
    pub(super) async fn take(
        link: &'a Link<'a>,
        keys: &'a CertificateKeys,
        ignores_pauses: bool,
    ) -> Result<Taken<'a>, Reason> {
        let holder = random_text();
        let names = [&*keys.lease, &*keys.pause, &*keys.server_pause];
        let ignores = if ignores_pauses { &b"1"[..] } else { b"0" };
        let duration = milliseconds(DURATION);
        let [state, left] =
            link.numbers(scripts::TAKE, &names, &[holder.as_bytes(), duration.as_bytes(), ignores]).await?;
        let left = Duration::from_millis(left);
        match state {
            0 => Ok(Taken::Here(Self { link, keys, holder })),
            1 => Ok(Taken::Elsewhere(left)),
            2 => Ok(Taken::Paused(left.min(LONGEST_PAUSE))),
            _ => Err("the store has answered with an unknown state of a lease".into()),
        }
    }

    /// Prolongs the lease until it is lost. Returns the reason.
    pub(super) async fn hold(&self) -> Reason {
        let duration = milliseconds(DURATION);
        let mut end = rt::now() + DURATION;
        loop {
            rt::sleep(INTERVAL.min(end.saturating_since(rt::now()))).await;
            let now = rt::now();
            let arguments = [self.holder.as_bytes(), duration.as_bytes()];
            match self.link.number(scripts::PROLONG, &[&self.keys.lease], &arguments).await {
                Ok(0) => return "another node has taken the lease".into(),
                Ok(_) => end = now + DURATION,
                Err(reason) if rt::now() >= end => return format!("the lease has ended: {reason}").into(),
                Err(_) => {}
            }
        }
    }

    /// Gives the lease back. It ends by itself if the store cannot be used.
    pub(super) async fn release(self) {
        let _ = self.link.number(scripts::RELEASE, &[&self.keys.lease], &[self.holder.as_bytes()]).await;
    }

    /// Records a failure in the store, and gives the lease back. Returns the pause until the next attempt of any node; `None`: the
    /// store cannot be used.
    pub(super) async fn fail(self, refusal: Option<Duration>) -> Option<Duration> {
        let keys = [&*self.keys.lease, &*self.keys.pause, &*self.keys.failures, &*self.keys.server_pause];
        let times = [FIRST_PAUSE, LONGEST_PAUSE, refusal.unwrap_or_default().min(LONGEST_PAUSE)].map(milliseconds);
        let [first, longest, server] = &times;
        let arguments = [self.holder.as_bytes(), first.as_bytes(), longest.as_bytes(), server.as_bytes()];
        let pause = self.link.number(scripts::FAIL, &keys, &arguments).await.ok()?;
        Some(Duration::from_millis(pause).min(LONGEST_PAUSE))
    }

    /// Publishes the certificate, and gives the lease back. A store that cannot be used is tried again for some time. Returns the
    /// certificate's version.
    ///
    /// # Errors
    /// Another node has ordered the certificate, or the store could not be used for too long.
    pub(super) async fn publish(self, seen: u64, text: &[u8]) -> Result<u64, Reason> {
        let sealed = self.link.seal(&self.keys.certificate, text)?;
        if !self.link.is_stored(sealed.len()) {
            return Err(
                format!("the certificate has {} bytes, more than 'answer-size' of the store", sealed.len()).into()
            );
        }
        let keys = [&*self.keys.lease, VERSIONS, &*self.keys.certificate, CHANGES, &*self.keys.failures];
        let seen = seen.to_string();
        let arguments = [self.holder.as_bytes(), self.keys.id.as_bytes(), seen.as_bytes(), &sealed];
        let deadline = rt::now() + PUBLICATION;
        loop {
            match self.link.number(scripts::PUBLISH, &keys, &arguments).await {
                Ok(0) => return Err("another node has ordered the certificate as well".into()),
                Ok(version) => return Ok(version),
                Err(reason) if rt::now() >= deadline => return Err(reason),
                Err(_) => rt::sleep(PUBLICATION_INTERVAL).await,
            }
        }
    }
}
