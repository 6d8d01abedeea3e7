//! Clients that disconnect while their request waits, before a server is chosen. Must never depend on the reason of the wait.

use std::task::{Context, Poll};

use conn::downstream::Downstream;
use rt::net::Hangup;

use crate::session::Session;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Ends a request whose client has disconnected: no answer is sent.
pub const LEFT: Failure = Failure { outcome: Outcome::new(Cause::Client, Phase::Request), status: -1, page: false };

/// Detects that a client disconnects.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// A client that has only closed its sending direction counts as disconnected (`option abortonclose`).
    aborts_half_closed: bool,
}

impl Watch {
    /// Watches the client of a request. `option abortonclose` of its backend applies, or that of the frontend if no backend is
    /// chosen yet.
    pub fn new(session: &Session, state: &SharedStreamState) -> Self {
        let backend = state.borrow().route.backend.and_then(|index| session.proxy_at(index).backend.as_ref());
        let aborts_half_closed = match backend {
            Some(backend) => backend.abortonclose,
            None => session.proxy().frontend.as_ref().is_some_and(|frontend| frontend.abortonclose),
        };
        Self { aborts_half_closed }
    }

    /// Ready when the client has disconnected.
    pub fn poll(self, cx: &mut Context<'_>, client: &mut Downstream) -> Poll<()> {
        match client.poll_closed(cx) {
            Poll::Ready(hangup) if self.counts(hangup) => Poll::Ready(()),
            Poll::Ready(_) | Poll::Pending => Poll::Pending,
        }
    }

    /// Whether a client with that state of its connection counts as disconnected.
    pub fn counts(self, hangup: Hangup) -> bool {
        self.aborts_half_closed || hangup == Hangup::Error
    }
}

/// Polls `wait` until it is ready or the client disconnects.
///
/// # Errors
/// The client has disconnected.
pub async fn unless_left<T>(
    session: &Session,
    client: &mut Downstream,
    state: &SharedStreamState,
    mut wait: impl FnMut(&mut Context<'_>, &mut Downstream) -> Poll<T>,
) -> Result<T, Failure> {
    let mut watch = None;
    let result = std::future::poll_fn(|cx| match wait(cx, client) {
        Poll::Ready(value) => Poll::Ready(Ok(value)),
        Poll::Pending => {
            let watch = watch.get_or_insert_with(|| Watch::new(session, state));
            watch.poll(cx, client).map(|()| Err(LEFT))
        }
    })
    .await;
    if result.is_err() {
        note_wait(state);
    }
    result
}

/// Called after a request has waited: the present becomes its time of reception, unless it was queued for a server before.
pub fn note_wait(state: &SharedStreamState) {
    let timings = &mut state.borrow_mut().timings;
    if timings.queued.is_none() {
        timings.request = Some(rt::now());
    }
}
