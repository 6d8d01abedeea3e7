//! Signed requests to an ACME server (RFC 8555, sections 6 and 7): nonces, repetitions, waits. Must never know what a request is
//! for.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::spec::LogLevel;
use conn::client::{Answer, Uri};
use policy::program::AcmeSection;
use tls::account::{AccountKey, Sender};
use wire::acme::{self, Directory, Problem};

use super::say;
use crate::http_client::{self, Request};
use crate::worker::Worker;

/// Bytes of an answer at most: a chain of certificates.
const LONGEST: usize = 256 * 1024;
/// Repetitions of a request that fails.
const REPETITIONS: u32 = 5;
/// Nonces in a row that a server may call old (RFC 8555, section 6.5: a client should try again).
const STALE_NONCES: u32 = 15;
/// How long a server may ask to be left alone; longer pauses end the attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Why a certificate was not obtained.
pub(super) type Reason = String;

/// A conversation with a server, on behalf of an account.
pub(super) struct Dialogue<'a> {
    worker: &'a Rc<Worker>,
    /// The certificate that it is about, for messages.
    name: &'a str,
    key: Arc<AccountKey>,
    directory: Directory,
    account: Option<String>,
    nonce: Option<String>,
}

impl<'a> Dialogue<'a> {
    /// Reads the server's directory, and has the account made where there is none yet.
    pub(super) async fn begin(
        worker: &'a Rc<Worker>,
        name: &'a str,
        section: &'a AcmeSection,
    ) -> Result<Dialogue<'a>, Reason> {
        let key = section.key.clone().ok_or("the account has no key")?;
        let answer = plain(worker, name, "GET", &section.directory, "getting directory URL").await?;
        let directory = acme::directory(&answer.body).ok_or("invalid directory")?;
        if directory.needs_binding && section.binding.is_none() {
            return Err("the server wants accounts to be bound: see eab-key-id and eab-mac-key".to_owned());
        }
        let mut dialogue = Self { worker, name, key, directory, account: None, nonce: None };
        let url = dialogue.directory.new_account.clone();
        let binding = section.binding.as_ref().map(|binding| binding.bind(&dialogue.key, &url));
        let payload = acme::new_account(section.contact.as_deref(), binding.as_deref());
        let answer = dialogue.post(&url, &payload, "requesting the account").await?;
        let account = answer.head.first(b"location").and_then(|url| std::str::from_utf8(url).ok());
        dialogue.account = Some(account.ok_or("the server names no account")?.to_owned());
        Ok(dialogue)
    }

    pub(super) fn key(&self) -> &AccountKey {
        &self.key
    }

    /// Where orders go.
    pub(super) fn new_order(&self) -> String {
        self.directory.new_order.clone()
    }

    /// What the server has at a URL (RFC 8555, section 6.3).
    pub(super) async fn get(&mut self, url: &str, what: &str) -> Result<Answer, Reason> {
        self.post(url, "", what).await
    }

    /// Sends a signed request; `what` stands in messages. Requests that fail for now are repeated.
    pub(super) async fn post(&mut self, url: &str, payload: &str, what: &str) -> Result<Answer, Reason> {
        let mut repetition = 0;
        let mut stale = 0;
        loop {
            let nonce = match self.nonce.take() {
                Some(nonce) => nonce,
                None => self.fresh_nonce().await?,
            };
            let sender = self.account.as_deref().map_or(Sender::Key, Sender::Account);
            let body = self.key.sign(sender, url, &nonce, payload)?;
            let request = signed(url, body)?;
            let outcome = http_client::send(self.worker, &request, LONGEST).await;
            if let Ok(answer) = &outcome {
                self.nonce = nonce_of(answer);
                if (200..300).contains(&answer.head.status()) {
                    return outcome.map_err(|failure| failure.to_string());
                }
                // Nonces are old when they have not been used for a while: another one helps.
                if Problem::read(&answer.body).is_bad_nonce() && stale < STALE_NONCES {
                    stale += 1;
                    continue;
                }
            }
            repetition = pause(self.worker, self.name, what, &outcome, repetition).await?;
        }
    }

    async fn fresh_nonce(&self) -> Result<String, Reason> {
        let url = &self.directory.new_nonce;
        let answer = plain(self.worker, self.name, "HEAD", url, "getting a nonce").await?;
        nonce_of(&answer).ok_or_else(|| "the server gives no nonce".to_owned())
    }
}

/// A request that nobody signs.
async fn plain(worker: &Rc<Worker>, name: &str, method: &str, url: &str, what: &str) -> Result<Answer, Reason> {
    let uri = Uri::parse(url).ok_or_else(|| format!("invalid URL '{url}'"))?;
    let request = Request::new(method, uri);
    let mut repetition = 0;
    loop {
        let outcome = http_client::send(worker, &request, LONGEST).await;
        match outcome {
            Ok(answer) if (200..300).contains(&answer.head.status()) => return Ok(answer),
            outcome => repetition = pause(worker, name, what, &outcome, repetition).await?,
        }
    }
}

fn signed(url: &str, body: String) -> Result<Request, Reason> {
    let uri = Uri::parse(url).ok_or_else(|| format!("invalid URL '{url}'"))?;
    let mut request = Request::new("POST", uri);
    request.fields.push(("content-type".to_owned(), "application/jose+json".to_owned()));
    request.body = Some(body.into_bytes());
    Ok(request)
}

/// A nonce has letters of base64url alone (RFC 8555, section 6.5.1).
fn nonce_of(answer: &Answer) -> Option<String> {
    let nonce = std::str::from_utf8(answer.head.first(b"replay-nonce")?).ok()?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (nonce.len() <= 512 && nonce.bytes().all(is_letter)).then(|| nonce.to_owned())
}

/// How long a server asks to wait; dates are not understood.
pub(super) fn retry_after(answer: &Answer) -> Option<Duration> {
    let text = std::str::from_utf8(answer.head.first(b"retry-after")?).ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// Waits before a request is repeated, or says why it is not.
async fn pause(
    worker: &Rc<Worker>,
    name: &str,
    what: &str,
    outcome: &Result<Answer, http_client::Failure>,
    repetition: u32,
) -> Result<u32, Reason> {
    let usual = Duration::from_secs(3_u64.pow(repetition + 1));
    let (reason, wait) = match outcome {
        Err(failure) => (format!("invalid HTTP status code 0 when {what} ({failure})"), Some(usual)),
        Ok(answer) => {
            let (status, problem) = (answer.head.status(), Problem::read(&answer.body));
            let is_transient = status == 429 || status >= 500 || problem.is_rate_limit();
            let wait = retry_after(answer).unwrap_or(usual);
            let reason = format!("invalid HTTP status code {status} when {what} ({problem})");
            (reason, Some(wait).filter(|_| is_transient))
        }
    };
    let Some(wait) = wait.filter(|wait| repetition < REPETITIONS && *wait <= LONGEST_WAIT) else { return Err(reason) };
    let text = format!("{reason}, retrying in {}s ({}/{REPETITIONS} retries)...", wait.as_secs(), repetition + 1);
    say(worker, LogLevel::Notice, name, &text);
    rt::sleep(wait).await;
    Ok(repetition + 1)
}
