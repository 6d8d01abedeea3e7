//! A streamed answer: a future writes it, a client reads it, and the future waits until the client has read the
//! previous piece. Must never hold more than one piece, and never depend on its contents.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::Buffer;
use conn::service::{Failed, Service, respond};
use wire::http::Head;

use super::json::Quoted;
use crate::output_queue::Unsent;
use crate::page::{Submission, is_from_the_page};

/// The future that writes an answer.
pub(super) type Pending = Pin<Box<dyn Future<Output = ()>>>;

/// Bytes from which on a piece must be read before the next one is written.
const PIECE: usize = 8 * 1024;

/// Properties of a request that decide how it is answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestHead {
    /// `None`: another method than GET, HEAD and POST.
    pub(super) is_post: Option<bool>,
    /// Sent by the page itself, not by another site.
    pub(super) is_from_the_page: bool,
}

/// The status and the fields of an answer.
struct AnswerStart {
    status: u16,
    media_type: &'static str,
    fields: Vec<(&'static str, String)>,
}

#[derive(Default)]
struct Shared {
    begun: Option<AnswerStart>,
    unsent: Unsent,
    submission: Submission,
}

/// The writing end of an answer.
pub(super) struct Answer(Rc<RefCell<Shared>>);

const fn reason(status: u16) -> &'static [u8] {
    match status {
        200 => b"OK",
        400 => b"Bad Request",
        403 => b"Forbidden",
        404 => b"Not Found",
        405 => b"Method Not Allowed",
        413 => b"Content Too Large",
        _ => b"Error",
    }
}

impl Answer {
    /// Begins the answer.
    pub(super) fn begin(&mut self, media_type: &'static str, fields: Vec<(&'static str, String)>) {
        self.0.borrow_mut().begun = Some(AnswerStart { status: 200, media_type, fields });
    }

    /// Begins a JSON answer.
    pub(super) fn begin_json(&mut self) {
        self.begin("application/json", Vec::new());
    }

    /// Answers with an error and its reason.
    pub(super) fn refuse(&mut self, status: u16, why: &str) {
        self.refuse_with(status, why, Vec::new());
    }

    /// Rejects the method of the request (RFC 9110, section 15.5.6).
    pub(super) fn refuse_method(&mut self, allowed: &str) {
        self.refuse_with(405, "the address does not take this method", vec![("allow", allowed.to_owned())]);
    }

    fn refuse_with(&mut self, status: u16, why: &str, fields: Vec<(&'static str, String)>) {
        self.0.borrow_mut().begun = Some(AnswerStart { status, media_type: "application/json", fields });
        self.push(&format!("{{\"error\":{}}}\n", Quoted(why)));
    }

    /// Adds text.
    pub(super) fn push(&mut self, text: &str) {
        self.0.borrow_mut().unsent.push(text.as_bytes());
    }

    /// Call between the pieces of a long answer: waits until less than a piece is unread, and yields when the time
    /// slice is used up.
    pub(super) async fn relieve(&mut self) {
        poll_fn(|_| if self.0.borrow().unsent.len() < PIECE { Poll::Ready(()) } else { Poll::Pending }).await;
        if rt::slice_is_over() {
            rt::yield_now().await;
        }
    }

    /// Reads the payload of the request; `None`: it is too long.
    pub(super) async fn payload(&mut self) -> Option<Vec<u8>> {
        poll_fn(|_| if self.0.borrow().submission.is_whole() { Poll::Ready(()) } else { Poll::Pending }).await;
        std::mem::take(&mut self.0.borrow_mut().submission).into_text()
    }
}

impl std::fmt::Write for Answer {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text);
        Ok(())
    }
}

type Maker = Box<dyn FnOnce(Answer, RequestHead) -> Pending>;

enum Work {
    /// The request has not been received.
    Asked(Maker),
    /// The answer is being written.
    Writing(Pending),
    /// The answer is complete.
    Written,
}

/// The service for one request.
pub(super) struct Api {
    shared: Rc<RefCell<Shared>>,
    work: Work,
    /// Maximum length of a payload in bytes.
    limit: usize,
}

impl Api {
    /// Creates a service that answers with `make`.
    pub(super) fn new(limit: usize, make: impl FnOnce(Answer, RequestHead) -> Pending + 'static) -> Self {
        Self { shared: Rc::default(), work: Work::Asked(Box::new(make)), limit }
    }

    /// Polls the future that writes the answer.
    fn run(&mut self, cx: &mut Context<'_>) {
        if let Work::Writing(writing) = &mut self.work
            && Pin::new(writing).poll(cx).is_ready()
        {
            self.work = Work::Written;
        }
    }
}

impl Service for Api {
    fn poll_head(&mut self, cx: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>> {
        if let Work::Asked(_) = &self.work
            && let Work::Asked(make) = std::mem::replace(&mut self.work, Work::Written)
        {
            let is_post = match request.method() {
                b"GET" | b"HEAD" => Some(false),
                b"POST" => Some(true),
                _ => None,
            };
            let head = RequestHead { is_post, is_from_the_page: is_from_the_page(request) };
            self.work = Work::Writing(make(Answer(Rc::clone(&self.shared)), head));
        }
        self.run(cx);
        let shared = self.shared.borrow();
        let Some(begun) = &shared.begun else {
            return if let Work::Written = self.work { Poll::Ready(Err(Failed)) } else { Poll::Pending };
        };
        let length = if let Work::Written = self.work { Some(shared.unsent.len() as u64) } else { None };
        respond(answer, begun.status, reason(begun.status), length);
        answer.append(b"cache-control", b"no-store");
        answer.append(b"content-type", begun.media_type.as_bytes());
        answer.append(b"x-content-type-options", b"nosniff");
        for (name, value) in &begun.fields {
            answer.append(name.as_bytes(), value.as_bytes());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_data(&mut self, cx: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>> {
        let mut count = 0;
        loop {
            count += self.shared.borrow_mut().unsent.take(out)?;
            if !self.shared.borrow().unsent.is_empty() || matches!(self.work, Work::Written) {
                return Poll::Ready(Ok(count));
            }
            self.run(cx);
            let has_more = !self.shared.borrow().unsent.is_empty() || matches!(self.work, Work::Written);
            if !has_more {
                return if count > 0 { Poll::Ready(Ok(count)) } else { Poll::Pending };
            }
        }
    }

    fn poll_take(&mut self, _: &mut Context<'_>, payload: &mut Buffer) -> Poll<Result<(), Failed>> {
        self.shared.borrow_mut().submission.take(payload.data(), self.limit);
        payload.clear();
        Poll::Ready(Ok(()))
    }

    fn end_request(&mut self) {
        self.shared.borrow_mut().submission.end();
    }
}

/// Appends formatted text. Never fails.
pub(super) fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
