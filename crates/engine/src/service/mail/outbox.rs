//! Mails that wait for their server. Must never send one.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of queued mails per mail server. Servers that fail at the same time cause many mails, of which one is enough.
const WAITING: usize = 100;

/// Queued mails, for each mail server.
#[derive(Debug, Default)]
pub struct Outbox {
    queues: Mutex<BTreeMap<SocketAddr, Queue>>,
    /// A script sends the mails (`core.use_native_mailers_config` of HAProxy's Lua manual).
    pub(super) is_left: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    mails: VecDeque<Mail>,
    /// A task sends them, one at a time.
    busy: bool,
}

/// A complete mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mail {
    pub(super) hostname: Box<str>,
    pub(super) from: Box<str>,
    pub(super) to: Box<str>,
    /// Header and body, including the final dot.
    pub(super) content: Arc<[u8]>,
    pub(super) timeout: Duration,
    pub(super) proxy: usize,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops sending mails: a script does.
    pub fn leave_to_scripts(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Queues a mail. `None`: the queue is full; else whether a task has to be started.
    pub(super) fn add(&self, to: SocketAddr, mail: Mail) -> Option<bool> {
        let mut queues = self.lock();
        let queue = queues.entry(to).or_default();
        if queue.mails.len() >= WAITING {
            return None;
        }
        queue.mails.push_back(mail);
        Some(!std::mem::replace(&mut queue.busy, true))
    }

    /// Takes the next mail for a server; `None`: the queue is empty, the task ends.
    pub(super) fn next(&self, to: SocketAddr) -> Option<Mail> {
        let mut queues = self.lock();
        let queue = queues.get_mut(&to)?;
        let mail = queue.mails.pop_front();
        queue.busy = mail.is_some();
        mail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outbox_is_bounded_and_one_at_a_time_sends() {
        let (outbox, to) = (Outbox::default(), "127.0.0.1:25".parse().unwrap());
        let mail = Mail {
            hostname: "h".into(),
            from: "a".into(),
            to: "b".into(),
            content: Arc::from(&b"x"[..]),
            timeout: Duration::from_secs(1),
            proxy: 0,
        };
        assert_eq!(outbox.add(to, mail.clone()), Some(true));
        for _ in 1..WAITING {
            assert_eq!(outbox.add(to, mail.clone()), Some(false));
        }
        assert_eq!(outbox.add(to, mail.clone()), None);
        for _ in 0..WAITING {
            assert!(outbox.next(to).is_some());
        }
        assert_eq!(outbox.next(to), None);
        assert_eq!(outbox.add(to, mail), Some(true));
    }
}
