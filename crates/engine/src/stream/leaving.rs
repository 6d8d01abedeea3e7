//! Clients that leave while their request waits for something else than them, before a server is chosen. Must never know what is
//! waited for.

use std::task::{Context, Poll};

use conn::downstream::Downstream;
use rt::net::Hangup;

use crate::session::Session;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Ends a request whose client has left: no answer is sent.
pub const LEFT: Failure = Failure { outcome: Outcome::new(Cause::Client, Phase::Request), status: -1, page: false };

/// A watch over a client.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// A client that has closed its direction alone has left (`option abortonclose`).
    aborts_half_closed: bool,
}

impl Watch {
    /// Over the client of a request: `option abortonclose` of its backend decides, or of the frontend where there is none yet.
    pub fn new(session: &Session, state: &SharedStreamState) -> Self {
        let backend = state.borrow().backend.and_then(|index| session.proxy_at(index).backend.as_ref());
        let aborts_half_closed = match backend {
            Some(backend) => backend.abortonclose,
            None => session.proxy().frontend.as_ref().is_some_and(|frontend| frontend.abortonclose),
        };
        Self { aborts_half_closed }
    }

    /// Ready when the client has left.
    pub fn poll(self, cx: &mut Context<'_>, client: &mut Downstream) -> Poll<()> {
        match client.poll_closed(cx) {
            Poll::Ready(hangup) if self.counts(hangup) => Poll::Ready(()),
            Poll::Ready(_) | Poll::Pending => Poll::Pending,
        }
    }

    /// Whether a client whose connection ended so has left.
    pub fn counts(self, hangup: Hangup) -> bool {
        self.aborts_half_closed || hangup == Hangup::Error
    }
}

/// Waits for what `wait` is ready with, unless the client leaves before that.
///
/// # Errors
/// The client has left.
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

/// A request has waited: it counts as received now, unless it has waited for a server already.
pub fn note_wait(state: &SharedStreamState) {
    let timings = &mut state.borrow_mut().timings;
    if timings.queued.is_none() {
        timings.request = Some(rt::now());
    }
}
