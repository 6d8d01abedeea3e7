//! Sends e-mail alerts over SMTP (configuration manual, sections 4.2 "email-alert" and 12.3; RFC 5321). Must never block anything
//! on a mail server.

mod dialogue;
mod outbox;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::moment::WallTime;
use config::spec::LogLevel;
use policy::program::{MailAlert, Proxy};
use wire::date::Date;

use crate::worker::{Process, Worker};
use outbox::Mail;
pub use outbox::Outbox;

/// Sends an alert by mail, if the proxy's level includes it.
pub fn alert(worker: &Worker, proxy: &Proxy, level: LogLevel, text: &str) {
    let Some(alert) = proxy.mail.as_ref().filter(|alert| level <= alert.level) else { return };
    if worker.process.service::<Outbox>().is_left.load(Ordering::Relaxed) {
        return;
    }
    let mail = mail(worker, proxy.index, alert, text);
    for server in &alert.servers {
        match worker.process.service::<Outbox>().add(server.address, mail.clone()) {
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
    while let Some(mail) = shared.service::<Outbox>().next(to) {
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
}
