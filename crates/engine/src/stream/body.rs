//! A request's body on the client's connection. Owns the proof that its end was read, without which no other request is
//! read there. Must never write to the client.

use std::ops::{Deref, DerefMut};
use std::task::Poll;

use base::buffer::Buffer;
use conn::flow::{Flow, FlowError, Moved, Step};
use wire::http::{Framing, Head, Version};

use crate::session::Session;
use crate::stream::http::Client;
use crate::stream::tally;
use crate::worker::SharedFacts;

/// Proof that a request was read to its end: what follows on the connection is the next one. Only this file makes it, from
/// a head that announces no body, or from a body whose end was seen.
#[derive(Debug)]
#[must_use]
pub struct BodyEnd(());

/// The body of a request whose head was just taken from the client's input: its first byte, if it has any, comes next.
/// There is one for each head, and whatever ends the request takes it.
#[derive(Debug)]
#[must_use]
pub struct UnreadBody {
    framing: Framing,
    /// The client may wait for `100 Continue` before it sends the body, or not send it at all (RFC 9110, section 10.1.1).
    expects: bool,
}

impl UnreadBody {
    /// Takes a parsed head of `length` bytes from the input; its body begins there.
    pub fn after(head: &Head, length: usize, input: &mut Buffer) -> Self {
        input.consume(length);
        let expects = head.expect_continue && head.version() == Version::Http11;
        Self { framing: head.framing, expects }
    }

    /// The end of a request without a body.
    ///
    /// # Errors
    /// It has one.
    pub fn absent(self) -> Result<BodyEnd, Self> {
        if self.framing.has_body() { Err(self) } else { Ok(BodyEnd(())) }
    }

    /// Starts the body's flow with what followed the head. `prepare` is given the flow before, and told whether there is a
    /// body. A client without unread input holds no buffer from here on. Bytes that came are counted, unless they were.
    ///
    /// # Errors
    /// What followed the head breaks the chunked coding: where the body ends cannot be known.
    pub fn start(
        self,
        client: &mut Client,
        facts: &SharedFacts,
        prepare: impl FnOnce(&mut Flow, bool),
    ) -> Result<RequestBody, FlowError> {
        let Self { framing, expects } = self;
        let has_body = framing.has_body();
        let mut flow = Flow::idle();
        prepare(&mut flow, has_body);
        let input = if has_body { std::mem::take(&mut client.input) } else { Buffer::empty() };
        let waits = expects && input.is_empty();
        let came = flow.start(input, framing, framing == Framing::Chunked)? as u64;
        if came > 0 {
            let facts = &mut *facts.borrow_mut();
            facts.bytes_in += came.saturating_sub(facts.early_body);
        }
        client.release_input();
        Ok(RequestBody { flow, has_body, waits })
    }
}

/// The body of a request that flows from the client's connection.
#[must_use]
pub struct RequestBody {
    flow: Flow,
    has_body: bool,
    /// Nothing of it has come, and the client may wait to be asked for it.
    waits: bool,
}

impl Deref for RequestBody {
    type Target = Flow;

    fn deref(&self) -> &Flow {
        &self.flow
    }
}

impl DerefMut for RequestBody {
    fn deref_mut(&mut self) -> &mut Flow {
        &mut self.flow
    }
}

impl RequestBody {
    /// The client was asked for its body (`100 Continue`).
    pub fn invite(&mut self) {
        self.waits = false;
    }

    /// The request goes out again from its beginning, behind a new head. False: what went out of its body is not here any
    /// more.
    #[must_use]
    pub fn rewind(&mut self) -> bool {
        if self.has_body {
            return self.flow.rewind();
        }
        self.flow.abandon_sink();
        true
    }

    /// The end of the request, if it was seen. What was read behind it is the client's input again.
    pub fn end(&mut self, client: &mut Client) -> Option<BodyEnd> {
        if !self.flow.source_ended() {
            return None;
        }
        let rest = self.flow.take_rest();
        if !rest.is_empty() {
            client.input = rest;
        }
        Some(BodyEnd(()))
    }
}

/// What is left of a request on the client's connection when it is answered before its end.
pub trait Remainder {
    /// Whether all of it was read.
    fn is_read(&self) -> bool;

    /// Whether its end can be found: where not, the answer closes the connection.
    fn may_end(&self) -> bool;

    /// Reads and drops it. `None`: it did not come to its end.
    fn read(self, session: &Session, client: &mut Client) -> impl Future<Output = Option<BodyEnd>>;
}

impl Remainder for BodyEnd {
    fn is_read(&self) -> bool {
        true
    }

    fn may_end(&self) -> bool {
        true
    }

    async fn read(self, _: &Session, _: &mut Client) -> Option<BodyEnd> {
        Some(self)
    }
}

impl Remainder for RequestBody {
    fn is_read(&self) -> bool {
        self.flow.source_ended()
    }

    /// A client that was not asked for its body may leave it out, so that nothing tells it from the next request.
    fn may_end(&self) -> bool {
        self.flow.source_ended() || !self.waits
    }

    /// Bounded by `timeout client` between two reads.
    async fn read(mut self, session: &Session, client: &mut Client) -> Option<BodyEnd> {
        self.flow.abandon_sink();
        let limit = session.proxy().timeouts.client;
        let mut moved = Moved::default();
        client.timer.arm(limit.map(|limit| rt::now() + limit));
        let ended = std::future::poll_fn(|cx| {
            let read = moved.read;
            match self.flow.poll_drain(cx, &mut client.stream, &mut moved) {
                Ok(Step::Finished) => return Poll::Ready(true),
                Ok(Step::Exhausted) => cx.waker().wake_by_ref(),
                Ok(Step::AwaitsSource | Step::AwaitsSink | Step::Held) => {}
                Err(_) => return Poll::Ready(false),
            }
            if moved.read > read {
                client.timer.arm(limit.map(|limit| rt::now() + limit));
            }
            client.timer.poll_expired(cx).map(|()| false)
        })
        .await;
        tally::dropped(session, moved.read);
        if ended { self.end(client) } else { None }
    }
}

/// A request whose end cannot be known.
pub struct Endless;

impl Remainder for Endless {
    fn is_read(&self) -> bool {
        false
    }

    fn may_end(&self) -> bool {
        false
    }

    async fn read(self, _: &Session, _: &mut Client) -> Option<BodyEnd> {
        None
    }
}
