//! `http-request mirror`, an extension of Weir: sends the copy of a request to a server of another backend
//! in a task. Must never make the request wait, change it, or affect its response.

use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use base::buffer::Buffer;
use conn::carrier::RequestFormat;
use conn::copy::{Copy, Failure, SharedFeed};
use conn::exchange::RequestLine;
use conn::h1::HeadLimits;
use live::Mirrored;
use policy::rule::Mirror;
use rt::Timer;
use wire::http::Method;

use super::side_connection::SideServer;
use crate::session::Session;
use crate::stream::exchange::filter;
use crate::stream::request::head_limits::head_limits;
use crate::stream::request::outgoing_head;
use crate::stream_state::StreamState;
use crate::worker::Worker;

/// Maximum number of concurrent copies of one worker.
const MOST: u32 = 1024;
/// Time from the end of the request to the end of the response if the backend has no `timeout server`.
const ANSWER: Duration = Duration::from_secs(60);

/// Applies the rule `mirror`: if the request is in the sample, it is copied once it is ready for its own server.
pub fn request(session: &Session, state: &mut StreamState, mirror: Mirror) {
    let is_drawn = mirror.share == Mirror::WHOLE || rt::random() % u64::from(Mirror::WHOLE) < u64::from(mirror.share);
    let request = &state.request;
    if is_drawn && !request.upgrade && request.known_method() != Method::Connect {
        filter::mirror(session, state, mirror.backend);
    }
}

/// Sends a copy of a request that is ready for its server; its body is received through the feed. Returns false if the copy is
/// not sent.
pub fn send(session: &Session, state: &StreamState, index: usize, feed: Option<SharedFeed>) -> bool {
    let proxy_state = session.worker.proxy_state(index);
    let begun = Job::new(session, state, index, feed);
    proxy_state.note_mirrored(if begun.is_some() { Mirrored::Begun } else { Mirrored::Dropped });
    let Some(job) = begun else { return false };
    rt::spawn(rt::Class::Normal, rt::NO_TAG, job.run());
    true
}

/// The copy of one request.
struct Job {
    worker: Rc<Worker>,
    /// Index of the backend's proxy.
    proxy: usize,
    server: SideServer,
    head: Buffer,
    feed: Option<SharedFeed>,
    is_head: bool,
    /// The request asks to close the connection.
    says_close: bool,
    limits: HeadLimits,
    _counted: MirrorGuard,
}

/// Guard that counts a running copy.
struct MirrorGuard(Rc<Worker>);

impl MirrorGuard {
    fn new(worker: &Rc<Worker>) -> Option<Self> {
        let under_way = worker.copies.get();
        if under_way >= MOST {
            return None;
        }
        worker.copies.set(under_way + 1);
        Some(Self(Rc::clone(worker)))
    }
}

impl Drop for MirrorGuard {
    fn drop(&mut self) {
        self.0.copies.set(self.0.copies.get().saturating_sub(1));
    }
}

impl Job {
    fn new(session: &Session, state: &StreamState, index: usize, feed: Option<SharedFeed>) -> Option<Self> {
        let worker = &session.worker;
        let counted = MirrorGuard::new(worker).filter(|_| !rt::memory_is_scarce())?;
        let server = SideServer::choose(session, state, index)?;
        let proxy = server.proxy();
        let request = &state.request;
        let says_close = outgoing_head::asks_for_a_last_one(request);
        let name = server.server().map(|server| server.name.as_bytes()).unwrap_or_default();
        let line = RequestLine {
            says_close,
            last: proxy.http.send_name_header.as_deref().map(|field| (field, name)),
            spelling: proxy.http.server_spelling.as_deref(),
        };
        let mut head = rt::buffer();
        line.encode(RequestFormat::H1, request, &mut head).ok()?;
        let limits = HeadLimits {
            accept_unsafe: proxy.http.accept_unsafe_response,
            ..head_limits(&session.generation().program.global)
        };
        Some(Self {
            worker: Rc::clone(worker),
            proxy: index,
            server,
            head,
            feed,
            is_head: request.known_method() == Method::Head,
            says_close,
            limits,
            _counted: counted,
        })
    }

    /// Sends the copy, and counts the result.
    async fn run(mut self) {
        let outcome = self.send().await;
        self.worker.proxy_state(self.proxy).note_mirrored(outcome);
    }

    async fn send(&mut self) -> Mirrored {
        let mut timer = Timer::new();
        let connected = self.server.connect(&mut timer, self.says_close).await;
        let Ok((stream, connection)) = connected else { return Mirrored::Failed };
        let head = std::mem::replace(&mut self.head, Buffer::empty());
        let mut copy = Copy::new(stream, head, self.feed.take(), self.is_head, self.limits);
        let limit = self.server.proxy().timeouts.server.unwrap_or(ANSWER);
        let mut is_timed = false;
        let ended = std::future::poll_fn(|cx| {
            if let Poll::Ready(ended) = copy.poll(cx) {
                return Poll::Ready(Some(ended));
            }
            if !is_timed && copy.is_fed() {
                is_timed = true;
                timer.arm(Some(rt::now() + limit));
            }
            if is_timed { timer.poll_expired(cx).map(|()| None) } else { Poll::Pending }
        })
        .await;
        match ended {
            Some(Ok(keeps)) => {
                if keeps && !self.says_close {
                    self.server.keep(copy.into_transport(), connection);
                }
                Mirrored::Answered
            }
            Some(Err(Failure::Lagged)) => Mirrored::Lagged,
            Some(Err(Failure::Aborted | Failure::Broken)) | None => Mirrored::Failed,
        }
    }
}
