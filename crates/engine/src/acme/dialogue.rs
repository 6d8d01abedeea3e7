//! Signed requests to an ACME server (RFC 8555, sections 6 and 7): nonces, retries, waits. Must never know the purpose of a
//! request.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::spec::LogLevel;
use conn::client::{Answer, Uri};
use policy::program::AcmeSection;
use tls::account::{AccountKey, Sender};
use wire::acme::{self, Directory, Problem};

use super::messages::log_message;
use super::reason::Reason;
use crate::http_client::{self, Request};
use crate::worker::Worker;

/// Maximum size of a response, in bytes; the largest is a certificate chain.
const LONGEST: usize = 256 * 1024;
/// Retries of a failing request.
const REPETITIONS: u32 = 5;
/// Consecutive `badNonce` errors that are accepted (RFC 8555, section 6.5: a client should retry).
const STALE_NONCES: u32 = 15;
/// Longest `Retry-After` that is respected; a longer one ends the attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Pause after `rateLimited` without `Retry-After`.
const USUAL_REFUSAL: Duration = Duration::from_secs(3600);

/// Sequence of requests to one ACME server, on behalf of an account.
pub(super) struct Dialogue<'a> {
    worker: &'a Rc<Worker>,
    /// Name of the certificate, for messages.
    name: &'a str,
    key: Arc<AccountKey>,
    directory: Directory,
    account: Option<String>,
    nonce: Option<String>,
}

impl<'a> Dialogue<'a> {
    /// Reads the server's directory, and creates the account of a key if it does not exist.
    pub(super) async fn begin(
        worker: &'a Rc<Worker>,
        name: &'a str,
        section: &AcmeSection,
        key: Arc<AccountKey>,
    ) -> Result<Dialogue<'a>, Reason> {
        let answer = plain(worker, name, "GET", &section.directory, "getting directory URL").await?;
        let directory = acme::directory(&answer.body).ok_or("invalid directory")?;
        if directory.needs_binding && section.binding.is_none() {
            return Err("the server wants accounts to be bound: see eab-key-id and eab-mac-key".into());
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

    /// URL for new orders.
    pub(super) fn new_order(&self) -> String {
        self.directory.new_order.clone()
    }

    /// Fetches a resource with POST-as-GET (RFC 8555, section 6.3).
    pub(super) async fn get(&mut self, url: &str, what: &str) -> Result<Answer, Reason> {
        self.post(url, "", what).await
    }

    /// Sends a signed request, and retries it on transient failures; `what` describes it in messages.
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
                    return outcome.map_err(|failure| failure.to_string().into());
                }
                // Nonces expire when unused: the error response contains a fresh one.
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
        nonce_of(&answer).ok_or_else(|| "the server gives no nonce".into())
    }
}

/// Sends an unsigned request, and retries it on transient failures.
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

/// Returns the `Replay-Nonce` field. A nonce consists of base64url characters only (RFC 8555, section 6.5.1).
fn nonce_of(answer: &Answer) -> Option<String> {
    let nonce = std::str::from_utf8(answer.head.first(b"replay-nonce")?).ok()?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (nonce.len() <= 512 && nonce.bytes().all(is_letter)).then(|| nonce.to_owned())
}

/// Returns the delay of `Retry-After` in seconds; the date form is ignored.
pub(super) fn retry_after(answer: &Answer) -> Option<Duration> {
    let text = std::str::from_utf8(answer.head.first(b"retry-after")?).ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// Waits before the next retry, and returns its number. The error: why the request is not retried.
async fn pause(
    worker: &Rc<Worker>,
    name: &str,
    what: &str,
    outcome: &Result<Answer, http_client::Failure>,
    repetition: u32,
) -> Result<u32, Reason> {
    let usual = Duration::from_secs(3_u64.pow(repetition + 1));
    let mut refusal = None;
    let (reason, wait) = match outcome {
        Err(failure) => (format!("invalid HTTP status code 0 when {what} ({failure})"), Some(usual)),
        Ok(answer) => {
            let (status, problem) = (answer.head.status(), Problem::read(&answer.body));
            let is_limited = status == 429 || problem.is_rate_limit();
            refusal = is_limited.then(|| retry_after(answer).unwrap_or(USUAL_REFUSAL));
            let is_transient = status >= 500 || is_limited;
            let wait = retry_after(answer).unwrap_or(usual);
            let reason = format!("invalid HTTP status code {status} when {what} ({problem})");
            (reason, Some(wait).filter(|_| is_transient))
        }
    };
    let Some(wait) = wait.filter(|wait| repetition < REPETITIONS && *wait <= LONGEST_WAIT) else {
        return Err(Reason::refused(reason, refusal));
    };
    let text = format!("{reason}, retrying in {}s ({}/{REPETITIONS} retries)...", wait.as_secs(), repetition + 1);
    log_message(worker, LogLevel::Notice, name, &text);
    rt::sleep(wait).await;
    Ok(repetition + 1)
}
