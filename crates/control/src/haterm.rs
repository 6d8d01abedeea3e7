//! The test server haterm as a service (`mode haterm`, `http-request use-service haterm`): answers with the size,
//! status and delay that the request specifies. Must never hold a body, nor read more of a request than its target.

use std::future::Future as _;
use std::rc::Rc;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::Buffer;
use base::Moment;
use conn::service::{Failed, Service, respond};
use engine::session::Session;
use engine::stream::trace_stream;
use engine::worker::{SharedStreamState, Worker};
use live::trace::{Level, Subject, events};
use wire::haterm::{Chunks, LINE, PAGE, Parameters, Report, Reuse, asks_for_help, write_values};
use wire::http::{Framing, Head, Method, reason};

/// The name of the service in configurations.
pub(crate) const NAME: &str = "haterm";

/// Consecutive lines of text, the source of the bytes of one write.
static LINES: LazyLock<Box<[u8]>> = LazyLock::new(|| LINE.repeat(656).into_boxed_slice());

/// Creates the service for one request.
pub(crate) fn start(session: &Session, state: &SharedStreamState) -> Box<dyn Service> {
    trace_stream(session, &state.borrow(), &events::HSTRM_NEW, || "new haterm stream".to_owned());
    let worker = Rc::clone(&session.worker);
    Box::new(Haterm {
        worker,
        asked: None,
        taken: false,
        sleep: None,
        waker: None,
        place: 0,
        left: 0,
        content: Content::Lines,
    })
}

/// The contents of a body.
#[derive(Clone, Copy)]
enum Content {
    Lines,
    Random,
    Page,
}

/// A parsed request.
#[derive(Clone, Copy)]
struct HatermRequest {
    parameters: Parameters,
    help: bool,
    since: Moment,
}

struct Haterm {
    worker: Rc<Worker>,
    asked: Option<HatermRequest>,
    /// The request's payload was read completely.
    taken: bool,
    sleep: Option<rt::Sleep>,
    /// Wakes the task that waits for the end of the request.
    waker: Option<Waker>,
    /// Bytes of the body written.
    place: u64,
    /// Bytes of the body left to write.
    left: u64,
    content: Content,
}

impl Service for Haterm {
    fn poll_head(&mut self, cx: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>> {
        let asked = match self.asked {
            Some(asked) => asked,
            None => self.read(request),
        };
        if !asked.parameters.drain_after && !self.taken {
            self.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if let Some(sleep) = &mut self.sleep {
            std::task::ready!(std::pin::Pin::new(sleep).poll(cx));
            self.sleep = None;
        }
        if asked.help {
            self.write_page(answer);
            return Poll::Ready(Ok(()));
        }
        // Interim responses are not supported.
        if asked.parameters.status < 200 {
            return Poll::Ready(Err(Failed));
        }
        self.write_head(&asked, answer);
        Poll::Ready(Ok(()))
    }

    fn poll_data(&mut self, _: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>> {
        let mut count = 0;
        while self.left > 0 && out.room() > 0 {
            let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.room());
            let random;
            let from: &[u8] = match self.content {
                Content::Lines => &LINES[(self.place % LINE.len() as u64) as usize..],
                Content::Page => PAGE.as_bytes().get(self.place as usize..).unwrap_or_default(),
                Content::Random => {
                    random = rt::random().to_le_bytes();
                    &random
                }
            };
            let piece = &from[..most.min(from.len())];
            if piece.is_empty() || !out.push(piece) {
                return Poll::Ready(Err(Failed));
            }
            count += piece.len();
            self.place += piece.len() as u64;
            self.left -= piece.len() as u64;
        }
        Poll::Ready(Ok(count))
    }

    fn end_request(&mut self) {
        self.taken = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Haterm {
    fn read(&mut self, request: &Head) -> HatermRequest {
        let mut parameters = Parameters::read(request.target(), rt::random);
        if request.known_method() == Method::Head {
            parameters.size = 0;
        }
        let asked = HatermRequest { parameters, help: asks_for_help(request.target()), since: rt::now() };
        if parameters.wait > 0 && !asked.help {
            self.sleep = Some(rt::sleep(Duration::from_millis(parameters.wait)));
        }
        self.asked = Some(asked);
        asked
    }

    fn write_page(&mut self, answer: &mut Head) {
        (self.left, self.content) = (PAGE.len() as u64, Content::Page);
        respond(answer, 200, b"OK", Some(self.left));
        answer.append(b"cache-control", b"no-cache");
        answer.append(b"content-type", b"text/plain");
    }

    fn write_head(&mut self, asked: &HatermRequest, answer: &mut Head) {
        let Parameters { size, status, .. } = asked.parameters;
        let text = || (format!("build a HTTP response: status={status} size={size}"), String::new());
        self.worker.trace(&events::HSTRM_RESPONSE, Level::User, Subject::default, text);
        let is_told = asked.parameters.chunks == Chunks::None;
        respond(answer, status, reason(status).as_bytes(), is_told.then_some(size));
        if matches!(status, 204 | 304) {
            answer.framing = Framing::None;
        } else {
            self.left = size;
        }
        self.content = if asked.parameters.random { Content::Random } else { Content::Lines };
        if !asked.parameters.cacheable {
            answer.append(b"cache-control", b"no-cache");
        }
        if asked.parameters.verbose {
            let waited = rt::now().saturating_since(asked.since).as_millis();
            let mut report = Report::default();
            write_values(&asked.parameters, u64::try_from(waited).unwrap_or(u64::MAX), &mut report);
            answer.append(b"x-req", b"time=0 ms");
            answer.append(b"x-rsp", report.written());
        }
        if asked.parameters.reuse == Reuse::Close {
            answer.append(b"connection", b"close");
        }
    }
}
