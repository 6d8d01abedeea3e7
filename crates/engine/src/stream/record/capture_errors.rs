//! Keeps heads that violated HTTP/1 for `show errors`. Must never decide how such a message is answered.

use conn::answer_head_kind::Fault;

use crate::captures::Capture;
use crate::captures::Captures;
use crate::session::Session;
use crate::stream_state::StreamState;

fn capture(session: &Session, server: Option<(usize, Option<usize>)>, fault: Fault, bytes: &[u8]) -> Capture {
    let source = session.client().map_or_else(|| "unix".to_owned(), |client| client.to_string());
    Capture {
        at: rt::wall(),
        number: 0,
        frontend: session.proxy().index,
        server,
        source: source.into(),
        bytes: bytes.into(),
        capacity: rt::buffer_size(),
        fault,
    }
}

/// Captures a rejected request; `bytes`: the received part of it.
#[cold]
pub(crate) fn request(session: &Session, fault: Fault, bytes: &[u8]) {
    session.worker.process.service::<Captures>().add(capture(session, None, fault, bytes));
}

/// Captures a rejected response of a server.
#[cold]
pub(crate) fn response(session: &Session, state: &StreamState, fault: Fault, bytes: &[u8]) {
    let Some(backend) = state.route.backend else { return };
    let captured = capture(session, Some((backend, state.route.server)), fault, bytes);
    session.worker.process.service::<Captures>().add(captured);
}
