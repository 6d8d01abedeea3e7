//! Sends e-mail alerts over SMTP (configuration manual, sections 4.2 "email-alert" and 12.3; RFC 5321). Must never block anything
//! on a mail server.

mod dialogue;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::moment::WallTime;
use config::spec::LogLevel;
use policy::program::{MailAlert, Proxy};
use wire::date::Date;

use crate::worker::{Process, Worker};

/// Maximum number of queued mails per mail server. Servers that fail at the same time cause many mails, of which one is enough.
const WAITING: usize = 100;

/// Queued mails, for each mail server.
#[derive(Debug, Default)]
pub struct Outbox {
    queues: Mutex<BTreeMap<SocketAddr, Queue>>,
    /// A script sends the mails (`core.use_native_mailers_config` of HAProxy's Lua manual).
    is_left: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    mails: VecDeque<Mail>,
    /// A task sends them, one at a time.
    busy: bool,
}

/// A complete mail.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mail {
    hostname: Box<str>,
    from: Box<str>,
    to: Box<str>,
    /// Header and body, including the final dot.
    content: Arc<[u8]>,
    timeout: Duration,
    proxy: usize,
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
    fn add(&self, to: SocketAddr, mail: Mail) -> Option<bool> {
        let mut queues = self.lock();
        let queue = queues.entry(to).or_default();
        if queue.mails.len() >= WAITING {
            return None;
        }
        queue.mails.push_back(mail);
        Some(!std::mem::replace(&mut queue.busy, true))
    }

    /// Takes the next mail for a server; `None`: the queue is empty, the task ends.
    fn next(&self, to: SocketAddr) -> Option<Mail> {
        let mut queues = self.lock();
        let queue = queues.get_mut(&to)?;
        let mail = queue.mails.pop_front();
        queue.busy = mail.is_some();
        mail
    }
}

/// Sends an alert by mail, if the proxy's level includes it.
pub fn alert(worker: &Worker, proxy: &Proxy, level: LogLevel, text: &str) {
    let Some(alert) = proxy.mail.as_ref().filter(|alert| level <= alert.level) else { return };
    if worker.process.outbox.is_left.load(Ordering::Relaxed) {
        return;
    }
    let mail = mail(worker, proxy.index, alert, text);
    for server in &alert.servers {
        match worker.process.outbox.add(server.address, mail.clone()) {
            Some(true) => {
                rt::spawn(
                    rt::Class::Normal,
                    rt::NO_TAG,
                    deliver(worker.id, Arc::clone(&worker.process), server.address),
                );
            }
            Some(false) => {}
            None => {
                let text = format!("Too many mails wait for {}: one more is not sent.", server.address);
                worker.logger.message(Some(proxy.index), LogLevel::Err, &text);
            }
        }
    }
}

/// Sends the queued mails of a server. A failure is logged and the mail is dropped: the log already has its contents.
async fn deliver(worker: usize, shared: Arc<Process>, to: SocketAddr) {
    while let Some(mail) = shared.outbox.next(to) {
        let Err(reason) = dialogue::send(to, &mail).await else { continue };
        let text = format!("A mail to {} could not be sent by {to}: {reason}.", mail.to);
        let tell = move |worker: &Rc<Worker>| worker.logger.message(Some(mail.proxy), LogLevel::Err, &text);
        let _ = crate::on_one_worker(worker, tell).await;
    }
}

/// Formats a date as in "Sun, 22 Nov 2026 12:58:23 +0000" (RFC 5322, section 3.3).
fn date(now: WallTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let day = DAYS[usize::try_from(now.seconds.div_euclid(86_400).rem_euclid(7)).unwrap_or_default()];
    let date = Date::since_epoch(now.seconds);
    let month = String::from_utf8_lossy(date.month_name()).into_owned();
    format!("{day}, {:02} {month} {} {:02}:{:02}:{:02} +0000", date.day, date.year, date.hour, date.minute, date.second)
}

fn mail(worker: &Worker, proxy: usize, alert: &MailAlert, text: &str) -> Mail {
    let hostname = alert.hostname.as_deref().unwrap_or_else(|| worker.logger.hostname());
    let text = text.strip_suffix('.').unwrap_or(text);
    Mail {
        hostname: hostname.into(),
        from: alert.from.clone(),
        to: alert.to.clone(),
        content: content(&alert.from, &alert.to, &date(rt::wall()), text).into(),
        timeout: alert.timeout,
        proxy,
    }
}

/// Builds header and body. Control characters are replaced and a leading dot is escaped, so that no text can end the mail or add
/// a header line.
fn content(from: &str, to: &str, date: &str, text: &str) -> Vec<u8> {
    let text: String = text.chars().map(|found| if found.is_control() { '?' } else { found }).collect();
    let dot = if text.starts_with('.') { "." } else { "" };
    format!(
        "From: {from}\r\nTo: {to}\r\nDate: {date}\r\nSubject: [HAProxy Alert] {text}\r\n\r\n{dot}{text}\r\n\r\n.\r\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_a_mail_or_adds_to_its_header() {
        let content = content("a@b.c", "d@e.f", "Sun, 22 Nov 2026 12:58:23 +0000", ".x\r\nBcc: evil\r\n.\r\n");
        let expected = "From: a@b.c\r\nTo: d@e.f\r\nDate: Sun, 22 Nov 2026 12:58:23 +0000\r\nSubject: [HAProxy Alert] \
                        .x??Bcc: evil??.??\r\n\r\n..x??Bcc: evil??.??\r\n\r\n.\r\n";
        assert_eq!(String::from_utf8(content).unwrap(), expected);
    }

    #[test]
    fn dates_are_those_of_mails() {
        let now = WallTime { seconds: 1_795_352_303, nanos: 0 };
        assert_eq!(date(now), "Sun, 22 Nov 2026 12:58:23 +0000");
    }

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
