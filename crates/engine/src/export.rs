//! Sends the queued items of a channel to its collector over HTTP (OTLP/HTTP, protobuf): in batches, with retries and growing
//! delays if the collector asks for that or is unreachable. Runs on the first worker. Must never delay the end of the process for
//! long.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::Moment;
use config::spec::LogLevel;
use wire::otlp::{Scope, Signal, Value, partial_success, request};

use crate::http_client::{self, Failure, Request};
use crate::telemetry::{self, Channel};
use crate::worker::Worker;

/// Maximum size of a response, in bytes.
const LONGEST: usize = 64 * 1024;
/// Maximum number of attempts per request.
const ATTEMPTS: u32 = 6;
/// Delay before the second attempt; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Upper bound on the delay, also for a collector's `Retry-After`.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Maximum time that the end of the process waits for collectors.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Poll interval of that wait.
const LOOK: Duration = Duration::from_millis(10);
/// Minimum interval between log lines about dropped items.
const TOLD: Duration = Duration::from_secs(60);

/// Starts the tasks of the newest configuration's channels. Only the first worker does so.
pub fn start(worker: &Rc<Worker>) {
    if worker.id != 0 {
        return;
    }
    let generation = worker.generation();
    let logs = generation.channels.iter().find(|channel| channel.plan.signal == Signal::Logs);
    worker.process.log_targets.set_channel(logs.map(Arc::clone));
    for channel in &generation.channels {
        let mut known = worker.process.service::<telemetry::Registry>().lock();
        if !known.iter().any(|known| Arc::ptr_eq(known, channel)) {
            known.push(Arc::clone(channel));
            let source =
                (channel.plan.signal == Signal::Metrics).then(|| worker.process.services.metrics(worker, channel));
            source.flatten().into_iter().for_each(|source| rt::spawn(rt::Class::Background, rt::NO_TAG, source));
            let channel = Arc::clone(channel);
            rt::spawn(rt::Class::Background, rt::NO_TAG, export(Rc::clone(worker), channel));
        }
    }
}

/// Waits until collectors have taken the remaining items, for some seconds at most. For worker 0, once no session is left.
pub async fn flush(worker: &Worker) {
    let channels = worker.process.service::<telemetry::Registry>().channels();
    let deadline = rt::now() + LAST_WORDS;
    for channel in &channels {
        channel.last.store(true, Ordering::Relaxed);
        channel.wake();
    }
    while channels.iter().any(|channel| channel.waiting() > 0) && rt::now() < deadline {
        rt::sleep(LOOK).await;
    }
}

/// Logging state of a channel.
#[derive(Default)]
struct ExportLogState {
    /// A failure was logged.
    fails: bool,
    /// Number of dropped items at the last log line about them.
    dropped: u64,
    /// Earliest time of the next such line.
    next: Moment,
}

/// Runs the task of a channel.
async fn export(worker: Rc<Worker>, channel: Arc<Channel>) {
    let mut told = ExportLogState::default();
    loop {
        channel.wait(rt::now() + channel.plan.interval).await;
        loop {
            let items = channel.take();
            if items.is_empty() {
                break;
            }
            let outcome = send(&worker, &channel, &items).await;
            count_outcome(&worker, &channel, items.len() as u64, outcome, &mut told);
            channel.underway.store(0, Ordering::Relaxed);
        }
        tell_dropped(&worker, &channel, &mut told);
        let is_wanted = worker.generation().channels.iter().any(|known| Arc::ptr_eq(known, &channel));
        let mut known = worker.process.service::<telemetry::Registry>().lock();
        // Two references, this task's and the list's: no configuration uses the channel.
        if !is_wanted && Arc::strong_count(&channel) <= 2 && channel.waiting() == 0 {
            known.retain(|known| !Arc::ptr_eq(known, &channel));
            return;
        }
    }
}

/// Sends one request, with retries. Returns the number of items that the collector has rejected.
async fn send(worker: &Worker, channel: &Channel, items: &[Vec<u8>]) -> Result<u64, String> {
    let plan = &channel.plan;
    let Some(target) = &channel.target else { return Err("its URL is invalid".to_owned()) };
    let host = &worker.process.log_targets.hostname;
    let resource = plan.resource.iter().map(|(name, value)| (&**name, Value::Text(value.as_bytes())));
    let own = [
        ("host.name", Value::Text(host.as_bytes())),
        ("process.pid", Value::Int(worker.process.host.pid.into())),
        ("telemetry.sdk.name", Value::Text(b"weir")),
        ("telemetry.sdk.language", Value::Text(b"rust")),
    ];
    let own = own.into_iter().filter(|(name, _)| plan.resource.iter().all(|(written, _)| **written != **name));
    let scope = Scope { name: &plan.scope, version: env!("CARGO_PKG_VERSION") };
    let body = request(resource.chain(own), scope, items.iter().map(Vec::as_slice));
    let mut fields = vec![
        ("content-type".to_owned(), "application/x-protobuf".to_owned()),
        ("user-agent".to_owned(), concat!("Weir/", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    fields.extend(plan.headers.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    let timeout = plan.timeout;
    let request = Request { fields, body: Some(body), timeout, ..Request::new("POST", target.clone()) };
    let mut attempt = 1;
    loop {
        channel.counts.requests.fetch_add(1, Ordering::Relaxed);
        let (why, pause) = match http_client::send(worker, &request, LONGEST).await {
            Ok(answer) => match answer.head.status() {
                200..300 => return Ok(partial_success(&answer.body).map_or(0, |partial| partial.rejected)),
                status @ (429 | 502 | 503 | 504) => {
                    (format!("it answers {status}"), retry_after(answer.head.first(b"retry-after")))
                }
                status => return Err(format!("it answers {status}")),
            },
            Err(failure @ (Failure::Malformed | Failure::NoTls)) => return Err(failure.to_string()),
            Err(failure) => (failure.to_string(), None),
        };
        if attempt == ATTEMPTS || channel.last.load(Ordering::Relaxed) {
            return Err(why);
        }
        let pause = pause.unwrap_or_else(|| jittered(FIRST_PAUSE * (1 << (attempt - 1)))).min(LONGEST_PAUSE);
        let until = rt::now() + pause;
        while rt::now() < until && !channel.last.load(Ordering::Relaxed) {
            // Items that are added during the delay are queued as well.
            channel.wait(until).await;
        }
        attempt += 1;
    }
}

/// Returns between half of a delay and all of it, so that clients rejected together do not retry together.
fn jittered(pause: Duration) -> Duration {
    let half = pause / 2;
    half + half.mul_f64((rt::random() >> 11) as f64 / (1u64 << 53) as f64)
}

/// Parses `Retry-After` in seconds; dates are ignored.
fn retry_after(value: Option<&[u8]>) -> Option<Duration> {
    let seconds = std::str::from_utf8(value?).ok()?.trim().parse::<u32>().ok()?;
    Some(Duration::from_secs(seconds.into()))
}

/// Counts the items of a request by its outcome, and logs changes of the collector's state.
fn count_outcome(
    worker: &Worker,
    channel: &Channel,
    count: u64,
    outcome: Result<u64, String>,
    told: &mut ExportLogState,
) {
    let add = |to: &AtomicU64, count| to.fetch_add(count, Ordering::Relaxed);
    let (url, (signal, items)) = (&channel.plan.url, channel.plan.signal.names());
    match outcome {
        Ok(rejected) => {
            let rejected = rejected.min(count);
            add(&channel.counts.sent, count - rejected);
            add(&channel.counts.failed, rejected);
            if rejected > 0 {
                channel.note(Err(format!("it has refused {rejected} of {count} {items}")));
            }
            channel.note(Ok(()));
            if std::mem::take(&mut told.fails) {
                let text = format!("OpenTelemetry: collector {url} takes {signal} again.");
                worker.logger.message(None, LogLevel::Notice, &text);
            }
        }
        Err(why) => {
            add(&channel.counts.failed, count);
            channel.note(Err(why.clone()));
            if !std::mem::replace(&mut told.fails, true) {
                let text = format!("OpenTelemetry: collector {url} does not take {signal}: {why}; {count} lost.");
                worker.logger.message(None, LogLevel::Warning, &text);
            }
        }
    }
}

fn tell_dropped(worker: &Worker, channel: &Channel, told: &mut ExportLogState) {
    let (dropped, now) = (channel.counts.dropped.load(Ordering::Relaxed), rt::now());
    if dropped == told.dropped || now < told.next {
        return;
    }
    let (count, url) = (dropped - told.dropped, &channel.plan.url);
    (told.dropped, told.next) = (dropped, now + TOLD);
    let (_, items) = channel.plan.signal.names();
    let text = format!("OpenTelemetry: {count} {items} for collector {url} were dropped: the queue was full.");
    worker.logger.message(None, LogLevel::Warning, &text);
}
