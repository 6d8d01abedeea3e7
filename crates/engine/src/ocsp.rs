//! OCSP responses that are stapled to certificates and kept up to date (configuration manual, "ocsp-update"): when one is
//! requested, whether it is valid, and the outcome. Must never staple a response that the certificate's issuer has not signed.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::moment::WallTime;
use config::spec::LogLevel;
use conn::client::Uri;
use policy::program::{OcspUpdates, Program};
use tls::certificate::Certificate;
use tls::ocsp::{Answer, CertId, OcspError, failure, is_signed_by_issuer, request};

use crate::certificates::used;
use crate::http_client::{self, Request};
use crate::ocsp_state::{Failure, Outcome, Record};
use crate::worker::{Process, Worker};

/// Maximum size of a response, in bytes.
const LONGEST: usize = 64 * 1024;
/// Maximum length of a base64 request in the path of a GET (RFC 5019, section 5).
const LONGEST_PATH: usize = 255;
/// Maximum time between two scans of the certificates. A change of them triggers a scan at once ([`look_again`]).
const LOOK: Duration = Duration::from_secs(60);
/// Base delay after a failed update without a valid response: twice that, four times that, and so on.
const REPLAY: Duration = Duration::from_secs(60);

/// Maximum number of concurrent updates.
const MOST: usize = 8;
/// Maximum number of concurrent updates of one responder, so that an unresponsive one does not delay the others.
const MOST_OF_ONE: usize = 2;

/// Starts OCSP updates if a certificate is configured for them. Only the first worker does so.
pub fn start(worker: &Rc<Worker>) {
    let program = Arc::clone(&worker.generation().program);
    let updates = &program.ocsp;
    let is_wanted = !updates.is_disabled && (updates.is_usual || !updated_responses(&program).is_empty());
    if worker.id == 0 && is_wanted && worker.process.upkeep.ocsp.begin() {
        rt::spawn(rt::Class::Normal, rt::NO_TAG, keep(Rc::clone(worker)));
    }
}

/// Triggers a scan of all certificates, after some were added or replaced.
pub fn look_again(process: &Process) {
    // Before the workers run, there is nothing to wake: the first one scans when it starts.
    if !process.upkeep.ocsp.wake() && rt::is_on_worker() {
        rt::post(0, Box::new(|| crate::on_worker(start)));
    }
}

/// Returns every response that is kept up to date, with one certificate that it covers.
pub fn updated_responses(program: &Program) -> BTreeMap<CertId, Arc<Certificate>> {
    let updates = &program.ocsp;
    if updates.is_disabled {
        return BTreeMap::new();
    }
    let wanted = used(program).into_values().filter(|one| one.usage.ocsp_update.unwrap_or(updates.is_usual));
    let known = wanted.filter(|one| one.responder().is_some()).filter_map(|one| Some((one.ocsp_id()?, one)));
    let mut all = BTreeMap::new();
    for (id, one) in known {
        all.entry(id).or_insert(one);
    }
    all
}

/// A running update.
struct Update {
    id: CertId,
    certificate: Arc<Certificate>,
    task: Pin<Box<dyn Future<Output = ()>>>,
}

impl Update {
    fn begin(worker: &Rc<Worker>, id: CertId, certificate: &Arc<Certificate>) -> Self {
        let (worker, own) = (Rc::clone(worker), Arc::clone(certificate));
        let task = Box::pin(async move { drop(update(&worker, &own).await) });
        Self { id, certificate: Arc::clone(certificate), task }
    }
}

async fn keep(worker: Rc<Worker>) {
    let mut under_way: Vec<Update> = Vec::new();
    loop {
        let next = begin_due(&worker, &mut under_way);
        let mut timer = rt::Timer::new();
        timer.arm(Some(rt::now() + next));
        std::future::poll_fn(|cx| {
            let before = under_way.len();
            under_way.retain_mut(|own| own.task.as_mut().poll(cx).is_pending());
            let is_changed = worker.process.upkeep.ocsp.poll_changed(cx);
            if is_changed || under_way.len() < before { Poll::Ready(()) } else { timer.poll_expired(cx) }
        })
        .await;
        if worker.process.is_stopping() {
            return;
        }
    }
}

/// Starts the updates that are due, longest overdue first, up to the limits. Returns the time until the next scan at the latest;
/// updates over the limits are started when a running one ends.
fn begin_due(worker: &Rc<Worker>, under_way: &mut Vec<Update>) -> Duration {
    let (generation, now) = (worker.generation(), rt::wall());
    let updates = generation.program.ocsp.clone();
    let kept = updated_responses(&generation.program);
    drop(generation);
    let mut next = LOOK;
    let mut due = Vec::new();
    {
        let mut records = worker.process.upkeep.ocsp.lock();
        records.retain(|id, _| kept.contains_key(id));
        for (id, certificate) in kept {
            let record = records.entry(id.clone()).or_insert_with(|| {
                // A response that was loaded from a file is not requested at once.
                let first = certificate.ocsp().map(|answer| after(&updates, &answer, now));
                Record { path: certificate.name.clone(), next: Some(first.unwrap_or(now)), ..Record::default() }
            });
            match record.next.map_or(Duration::ZERO, |due| until(due, now)) {
                Duration::ZERO => due.push((record.next.map_or(0, |next| next.seconds), id, certificate)),
                left => next = next.min(left),
            }
        }
    }
    due.sort_by_key(|(since, ..)| *since);
    for (_, id, certificate) in due {
        let of_one = under_way.iter().filter(|own| own.certificate.responder() == certificate.responder()).count();
        if under_way.len() < MOST && of_one < MOST_OF_ONE && under_way.iter().all(|own| own.id != id) {
            under_way.push(Update::begin(worker, id, &certificate));
        }
    }
    next
}

fn until(due: WallTime, now: WallTime) -> Duration {
    u64::try_from(due.seconds - now.seconds).map_or(Duration::ZERO, Duration::from_secs)
}

/// Returns the time of the next update: before this response expires, and within the configured bounds.
fn after(updates: &OcspUpdates, answer: &Answer, now: WallTime) -> WallTime {
    let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let (least, most) = (seconds(updates.least), seconds(updates.most));
    WallTime { seconds: now.seconds + (answer.next_update - now.seconds).clamp(least, most.max(least)), nanos: 0 }
}

/// Returns the time of the next attempt after a failed update: as after a successful one while the held response is valid, else
/// earlier.
fn again(updates: &OcspUpdates, held: Option<&Answer>, failures: u32, now: WallTime) -> WallTime {
    match held.filter(|answer| answer.next_update > now.seconds) {
        Some(answer) => after(updates, answer, now),
        None => {
            let pause = REPLAY.saturating_mul(1 << failures.min(16)).min(updates.most).max(Duration::from_secs(1));
            WallTime { seconds: now.seconds + i64::try_from(pause.as_secs()).unwrap_or(i64::MAX), nanos: 0 }
        }
    }
}

/// Requests the response for a certificate, staples it and records the outcome.
///
/// # Errors
/// The outcome of a failed update.
pub async fn update(worker: &Rc<Worker>, certificate: &Certificate) -> Result<Arc<Answer>, Failure> {
    let (Some(id), Some(responder)) = (certificate.ocsp_id(), certificate.responder()) else {
        return Err(Outcome::Check.into());
    };
    let (outcome, lost) = match ask(worker, certificate, &id, responder).await {
        Ok(answer) => (Ok(answer), None),
        Err(ResponseError { failure, line }) => (Err(failure), line),
    };
    let outcome = outcome.and_then(|answer| match put(&worker.generation().program, &answer) {
        0 => Err(Outcome::Insertion.with(OcspError::OtherCertificate.sentence())),
        _ => Ok(answer),
    });
    let (updates, now) = (worker.generation().program.ocsp.clone(), rt::wall());
    let text = {
        let mut records = worker.process.upkeep.ocsp.lock();
        let record = records.entry(id).or_default();
        if record.path.is_empty() {
            record.path = certificate.name.clone();
        }
        record.outcome = outcome.as_ref().map_or_else(Clone::clone, |_| Outcome::Successful.into());
        match &outcome {
            Ok(answer) => {
                (record.successes, record.in_a_row, record.last) = (record.successes + 1, 0, Some(now));
                record.next = Some(after(&updates, answer, now));
            }
            Err(_) => {
                (record.failures, record.in_a_row) = (record.failures + 1, record.in_a_row.saturating_add(1));
                record.next = Some(again(&updates, certificate.ocsp().as_deref(), record.in_a_row, now));
            }
        }
        let (path, failures, successes) = (&record.path, record.failures, record.successes);
        format!(
            "<OCSP-UPDATE> {path} {} \"{}\" {failures} {successes}",
            record.outcome.outcome.number(),
            record.outcome
        )
    };
    worker.logger.message(None, LogLevel::Notice, &text);
    if let Some(line) = lost {
        worker.logger.message(None, LogLevel::Info, &line);
    }
    outcome
}

/// Reason for a missing or invalid response.
struct ResponseError {
    failure: Failure,
    /// Line of the HTTP log, if there was no HTTP response.
    line: Option<String>,
}

impl From<Failure> for ResponseError {
    fn from(failure: Failure) -> Self {
        Self { failure, line: None }
    }
}

async fn ask(
    worker: &Rc<Worker>,
    certificate: &Certificate,
    id: &CertId,
    responder: &str,
) -> Result<Arc<Answer>, ResponseError> {
    let proxy = worker.generation().program.ocsp.proxy;
    let request = build_request(responder, id).ok_or_else(|| Failure::from(Outcome::Http))?;
    let request = Request { proxy: proxy.filter(|_| !request.uri.is_secure), ..request };
    let (begun, begun_at) = (rt::now(), rt::wall());
    let answer = http_client::send(worker, &request, LONGEST).await.map_err(|_| {
        let milliseconds = rt::now().saturating_since(begun).as_millis();
        let retries = worker.generation().program.http_client.retries;
        let line = lost_line(&request, date(worker, begun_at), milliseconds, retries);
        ResponseError { failure: Outcome::Http.into(), line: Some(line) }
    })?;
    if answer.head.status() != 200 {
        return Err(Failure::from(Outcome::Http).into());
    }
    if !answer.head.first(b"content-type").is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/ocsp-response")) {
        return Err(Failure::from(Outcome::NoAnswer).into());
    }
    verify_response(&answer.body, certificate.issuer(), id, rt::wall().seconds).map_err(Into::into)
}

/// Parses and verifies a response. The messages are HAProxy's.
fn verify_response(body: &[u8], issuer: Option<&[u8]>, id: &CertId, now: i64) -> Result<Arc<Answer>, Failure> {
    if let Some((number, name)) = failure(body) {
        return Err(Outcome::Check.with(format!("OCSP response not successful ({number}: {name})")));
    }
    if matches!(Answer::parse(body), Err(OcspError::Unreadable | OcspError::NotBasic | OcspError::NotSuccessful)) {
        return Err(Outcome::Check.with("d2i_OCSP_RESPONSE() failed".to_owned()));
    }
    if !issuer.is_some_and(|issuer| is_signed_by_issuer(body, issuer, now)) {
        return Err(Outcome::Check.with("OCSP_basic_verify() failed".to_owned()));
    }
    let answer = Answer::read(body, id, now).map_err(|why| {
        let sentence = match why {
            OcspError::OtherCertificate => {
                "OCSP single response: Certificate ID does not match any certificate or issuer"
            }
            _ => &why.sentence(),
        };
        Outcome::Insertion.with(sentence.trim_end_matches('.').to_owned())
    })?;
    Ok(Arc::new(answer))
}

/// Returns the date field of the HTTP log (configuration manual, section 8.2.3), in local time.
fn date(worker: &Worker, at: WallTime) -> String {
    let date = wire::date::Date::since_epoch(at.seconds + i64::from(worker.logger.local_offset(at.seconds)));
    let (month, milliseconds) = (String::from_utf8_lossy(date.month_name()).into_owned(), at.nanos / 1_000_000);
    let (day, year, hour, minute, second) = (date.day, date.year, date.hour, date.minute, date.second);
    format!("{day:02}/{month}/{year}:{hour:02}:{minute:02}:{second:02}.{milliseconds:03}")
}

/// Returns the HTTP log line of a request without a response (configuration manual, "ocsp-update").
fn lost_line(request: &Request, date: String, milliseconds: u128, retries: u32) -> String {
    let (scheme, uri) = (if request.uri.is_secure { "https" } else { "http" }, &request.uri);
    let counts = format!("0/0/-1/-1/{milliseconds} 503 0 - - SC-- 0/0/0/0/{retries} 0/0 {{}}");
    format!(
        "-:- [{date}] <OCSP-UPDATE> -/- {counts} \"{} {scheme}://{}{} HTTP/1.1\"",
        request.method, uri.authority, uri.target
    )
}

/// Builds the request: in the path of a GET if it is short, so that caches can serve it, else as the body of a POST (RFC 6960,
/// appendix A.1).
fn build_request(responder: &str, id: &CertId) -> Option<Request> {
    let bytes = request(id);
    let letters = base::base64::encoded(&bytes);
    if letters.len() <= LONGEST_PATH {
        let escaped = letters.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let uri = Uri::parse(&format!("{}/{escaped}", responder.trim_end_matches('/')))?;
        return Some(Request::new("GET", uri));
    }
    let mut request = Request::new("POST", Uri::parse(responder)?);
    request.fields.push(("content-type".to_owned(), "application/ocsp-request".to_owned()));
    request.body = Some(bytes);
    Some(request)
}

/// Staples a response to every certificate of a program that it covers. Returns their number.
pub fn put(program: &Program, answer: &Arc<Answer>) -> usize {
    let about = used(program).into_values().filter(|one| one.ocsp_id().is_some_and(|id| id == answer.id));
    about.map(|one| one.staple(Some(Arc::clone(answer)))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_keep_to_their_bounds() {
        let updates =
            OcspUpdates { least: Duration::from_secs(300), most: Duration::from_secs(3_600), ..Default::default() };
        let now = WallTime { seconds: 1_000_000, nanos: 0 };
        let id = CertId { issuer_name: [1; 20], issuer_key: [2; 20], serial: [3].into() };
        for (left, wait) in [(10, 300), (300, 300), (1_000, 1_000), (86_400, 3_600), (-5, 300)] {
            let next_update = now.seconds + left;
            let answer = Answer {
                der: Vec::new(),
                id: id.clone(),
                status: tls::ocsp::Status::Good,
                this_update: 0,
                next_update,
            };
            assert_eq!(after(&updates, &answer, now).seconds, now.seconds + wait, "{left}");
        }
    }

    #[test]
    fn failed_updates_are_tried_again_later_and_later() {
        let updates =
            OcspUpdates { least: Duration::from_secs(300), most: Duration::from_secs(3_600), ..Default::default() };
        let now = WallTime { seconds: 1_000_000, nanos: 0 };
        for (failures, wait) in [(1, 120), (2, 240), (3, 480), (5, 1_920), (6, 3_600), (u32::MAX, 3_600)] {
            assert_eq!(again(&updates, None, failures, now).seconds, now.seconds + wait, "{failures}");
        }
        let id = CertId { issuer_name: [1; 20], issuer_key: [2; 20], serial: [3].into() };
        let status = tls::ocsp::Status::Good;
        let mut held = Answer { der: Vec::new(), id, status, this_update: 0, next_update: now.seconds + 1_000 };
        assert_eq!(again(&updates, Some(&held), 1, now).seconds, now.seconds + 1_000);
        held.next_update = now.seconds - 1;
        assert_eq!(again(&updates, Some(&held), 1, now).seconds, now.seconds + 120, "it holds no longer");
    }

    #[test]
    fn what_is_wrong_with_an_answer_is_told() {
        let id = CertId { issuer_name: [1; 20], issuer_key: [2; 20], serial: [3].into() };
        let told = |body: &[u8]| verify_response(body, Some(b"x"), &id, 0).unwrap_err().to_string();
        assert_eq!(told(b"garbage"), "OCSP response check failure (d2i_OCSP_RESPONSE() failed)");
        let refusal = b"\x30\x03\x0a\x01\x06";
        assert_eq!(told(refusal), "OCSP response check failure (OCSP response not successful (6: unauthorized))");
        let good = include_bytes!("../../tls/tests/ocsp/good.der");
        assert_eq!(told(good), "OCSP response check failure (OCSP_basic_verify() failed)");
        let ca = tls::pem::certificates(include_bytes!("../../tls/tests/ocsp/ca.pem")).unwrap();
        let now = Answer::parse(good).unwrap().this_update;
        let other = verify_response(good, Some(&ca[0]), &id, now).unwrap_err();
        let sentence = "OCSP single response: Certificate ID does not match any certificate or issuer";
        assert_eq!(other.to_string(), format!("Error during insertion ({sentence})"));
        assert_eq!(other.outcome.number(), 5);
    }

    #[test]
    fn requests_without_an_answer_are_logged() {
        let id = CertId { issuer_name: [1; 20], issuer_key: [2; 20], serial: [3].into() };
        let request = build_request("http://127.0.0.1:1", &id).unwrap();
        let line = lost_line(&request, "24/Nov/2026:18:13:42.693".to_owned(), 3006, 3);
        let begin = "-:- [24/Nov/2026:18:13:42.693] <OCSP-UPDATE> -/- 0/0/-1/-1/3006 503 0 - - SC-- 0/0/0/0/3 0/0 {} \"GET \
                     http://127.0.0.1:1/ME";
        assert!(line.starts_with(begin) && line.ends_with(" HTTP/1.1\""), "{line}");
    }

    #[test]
    fn short_requests_go_into_the_path() {
        let id = CertId { issuer_name: [0xff; 20], issuer_key: [0xfb; 20], serial: [3].into() };
        let request = build_request("http://ocsp.example/a/", &id).unwrap();
        assert_eq!((request.method.as_str(), request.body), ("GET", None));
        assert!(request.uri.target.starts_with("/a/ME"), "{}", request.uri.target);
        assert!(!request.uri.target[3..].contains(['/', '+', '=']), "{}", request.uri.target);
        assert!(build_request("ftp://x/", &id).is_none());
    }
}
