//! The unread rest of a request that is answered before its end: how and for how long it is read. Must never write to
//! the client.

use std::task::Poll;

use conn::exchange::{Coding, RequestBody};
use conn::flow::{FlowError, FlowProgress, FlowStep};
use conn::h1::{BodyEnd, UnreadBody};

use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::record::metrics;
use crate::worker::SharedStreamState;

/// Starts the flow of the body, see [`RequestBody::start`]. Counts the bytes that were received with the head, unless
/// they are counted already.
///
/// # Errors
/// Those of [`RequestBody::start`].
pub fn start(
    up: &mut RequestBody,
    body: UnreadBody,
    coding: Coding,
    client: &mut Client,
    state: &SharedStreamState,
    prepare: impl FnOnce(&mut conn::flow::Flow, bool),
) -> Result<(), FlowError> {
    let replaced = state.borrow().accounting.replaced_body;
    let body = match replaced {
        Some(length) => body.replaced(length),
        None => body,
    };
    let came = up.start(body, &mut client.conn, coding, prepare)?;
    // A filter may have changed the length of the body.
    up.go_on_as(state.borrow().request.framing);
    if came > 0 {
        let state = &mut *state.borrow_mut();
        state.accounting.bytes.bytes_in += (came as u64).saturating_sub(state.accounting.early_body);
    }
    Ok(())
}

/// The unread rest of a request on the client's connection that is answered before its end.
pub trait Remainder {
    /// Whether the request was read completely.
    fn is_read(&self) -> bool;

    /// Whether its end can be determined. If not, the connection is closed after the answer.
    fn may_end(&self) -> bool;

    /// Reads and discards the rest. `None`: its end was not reached.
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
        self.source_ended()
    }

    fn may_end(&self) -> bool {
        RequestBody::may_end(self)
    }

    /// Bounded by `timeout client` between two pieces of payload.
    async fn read(mut self, session: &Session, client: &mut Client) -> Option<BodyEnd> {
        self.abandon_sink();
        let limit = session.proxy().timeouts.client;
        let mut dropped = 0;
        client.timer.arm(limit.map(|limit| rt::now() + limit));
        let ended = std::future::poll_fn(|cx| {
            let mut moved = FlowProgress::default();
            let step = self.poll_drain(cx, &mut client.conn, &mut moved);
            dropped += moved.read;
            match step {
                Ok(FlowStep::Finished) => return Poll::Ready(true),
                Ok(FlowStep::Exhausted) => cx.waker().wake_by_ref(),
                Ok(FlowStep::AwaitsSource | FlowStep::AwaitsSink | FlowStep::Held) => {}
                Err(_) => return Poll::Ready(false),
            }
            if moved.read_progress().is_some() {
                client.timer.arm(limit.map(|limit| rt::now() + limit));
            }
            client.timer.poll_expired(cx).map(|()| false)
        })
        .await;
        metrics::dropped(session, dropped);
        if ended { self.end(&mut client.conn) } else { None }
    }
}

/// A request whose end cannot be determined.
pub struct UndelimitedBody;

impl Remainder for UndelimitedBody {
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
