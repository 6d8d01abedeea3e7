//! Runs a session from its handshakes to its end: PROXY header, TLS, rules on sessions, then its streams. Must never
//! parse a message.

use base::buffer::Buffer;
use base::slab::Key;
use conn::transport::Transport;
use policy::program::{ExpectedHeader, Listening, Segments};
use policy::rule::{Action, Expected, Final};
use rt::LocalRc;

use super::{Client, handshake};
use crate::protocol::Protocol;
use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::client::{closing, http, multiplexed, tcp};
use crate::stream::conclude;
use crate::stream::record::{metrics, tracking};
use crate::stream::request::rules::run_connection;
use crate::stream::server::attach_server;
use crate::worker::Worker;

/// No header of a proxy is expected.
const NO_HEADER: ExpectedHeader = ExpectedHeader { netscaler: None, proxy: false };

/// Runs a session to its end, or until it is killed: everything that it holds is then dropped. The client is stored in
/// the future once: an argument of an `async fn` would be stored there twice.
pub(super) fn run_unless_killed(session: LocalRc<StreamTask>, stream: Transport) -> impl Future<Output = ()> {
    let mut client = Client::new(&session, stream);
    async move {
        let mut ended = rt::unless(|| session.is_killed(), prepare(&session, &mut client)).await;
        let mut closing = None;
        if ended != Some(true) {
            drop(client);
        } else if session.is_reversed() {
            let served = rt::boxed(multiplexed::serve_reversed(&session, &mut client));
            ended = rt::unless(|| session.is_killed(), served).await.map(|()| true);
            closing = closing::begin(&session, client);
        } else if let Some(attached) = session.take_attached() {
            ended = rt::boxed(attach_server::serve(&session, client, attached)).await;
        } else {
            let chosen = rt::unless(|| session.is_killed(), http::choose(&session, &mut client)).await;
            // The state of a TCP stream is concluded after its connection is closed.
            let served = match chosen {
                None => None,
                Some(None) => Some(None),
                Some(Some(Protocol::Tcp)) => {
                    let served = tcp::serve(&session, &mut client);
                    rt::unless(|| session.is_killed(), served).await
                }
                Some(Some(Protocol::Http1)) => {
                    let served = http::serve(&session, &mut client);
                    rt::unless(|| session.is_killed(), served).await.map(|()| None)
                }
                Some(Some(Protocol::Multiplexed(protocol))) => {
                    let served = rt::boxed_with((&session, &mut client), |(session, client)| {
                        multiplexed::serve(session, client, protocol)
                    });
                    rt::unless(|| session.is_killed(), served).await.map(|()| None)
                }
            };
            closing = closing::begin(&session, client);
            ended = served.is_some().then_some(true);
            if let Some(Some(state)) = served {
                conclude::conclude(&session, state);
            }
        }
        if ended.is_none() {
            session.conclude_killed();
        }
        if let Some(closing) = closing {
            closing.await;
        }
        leave(&session);
    }
}

/// Performs the steps that the listening address requires before the connection is served. False: the connection has
/// ended.
#[expect(clippy::manual_async_fn, reason = "the arguments of an asynchronous function lie in its future twice")]
fn prepare<'a>(session: &'a StreamTask, client: &'a mut Client) -> impl Future<Output = bool> + 'a {
    async move {
        session.register().await;
        let mut expected = session.known_extras().and_then(|extras| extras.expected.take()).unwrap_or(NO_HEADER);
        if let Some(special) = session.bind().map(|bind| &bind.listening).filter(|listening| is_special(listening)) {
            if let Segments::ReducedBy(bytes) = special.socket.segments {
                // If the kernel refuses, the segment size stays unchanged.
                if let Some((transport, _)) = client.conn.bytes() {
                    let _ = transport.reduce_segments(bytes);
                }
            }
            expected.netscaler = special.header.netscaler.or(expected.netscaler);
            expected.proxy |= special.header.proxy;
        }
        if expected.is_some() {
            let Some((transport, input)) = client.conn.bytes() else { return false };
            if !rt::boxed(receive_header(session, transport, input, expected)).await {
                return false;
            }
        }
        if client.conn.bytes().is_some_and(|(transport, _)| transport.is_tls())
            && !session.is_reversed()
            && !rt::boxed(secure(session, client)).await
        {
            return false;
        }
        if !session.proxy().rules.session.is_empty()
            && client.conn.bytes().is_none_or(|(transport, _)| admit(session, transport, false).is_none())
        {
            return false;
        }
        metrics::session(session);
        tracking::session(session);
        true
    }
}

/// Reads the header of a proxy; the bytes after it become input. False: the connection has ended.
async fn receive_header(
    session: &StreamTask,
    transport: &mut Transport,
    input: &mut Buffer,
    expected: ExpectedHeader,
) -> bool {
    let received = handshake::receive(session, transport, expected).await;
    received.map(|received| *input = received).is_some()
}

/// Performs the TLS handshake with the client; bytes received after a header are its beginning. False: the connection
/// has ended.
async fn secure(session: &StreamTask, client: &mut Client) -> bool {
    let Some((transport, input)) = client.conn.bytes() else { return false };
    let early = std::mem::replace(input, Buffer::empty());
    handshake::secure(session, transport, early).await
}

/// How a connection that a rule has rejected is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// Without notice to the client (`silent-drop`), optionally by a packet with that number of hops.
    Silent(Option<u8>),
    /// Before its session: a reset leaves no state on either side, whereas an orderly close waits for the client's.
    Reset,
    /// In order.
    Close,
}

/// Runs the rules on a connection (`before_session`), or on its session, and closes a connection that is rejected. `None`: it
/// is rejected; otherwise the headers that are expected first.
pub(super) fn admit(session: &Session, client: &mut Transport, before_session: bool) -> Option<ExpectedHeader> {
    let rejection = match judge(session, before_session) {
        Ok(expected) => return Some(expected),
        Err(rejection) => rejection,
    };
    // If the system refuses, the connection is closed nevertheless.
    let _ = match rejection {
        Rejection::Silent(hops) => client.forget(hops),
        Rejection::Reset => client.set_linger_zero(),
        Rejection::Close => Ok(()),
    };
    None
}

/// Runs the rules on a connection (`before_session`), or on its session. Returns the headers that are expected first.
///
/// # Errors
/// A rule rejects the connection, which is counted.
pub(super) fn judge(session: &Session, before_session: bool) -> Result<ExpectedHeader, Rejection> {
    let rules = &session.proxy().rules;
    let rules = if before_session { &rules.connection } else { &rules.session };
    if !before_session && rules.iter().any(|rule| matches!(rule.action, Action::SetEnd(..))) {
        session.keep_ends();
    }
    let mut expected = NO_HEADER;
    let ended = run_connection(session, rules, &mut |header| match header {
        Expected::Proxy => expected.proxy = true,
        // If the address has no number of its own, 0 is expected.
        Expected::NetScaler => {
            let of_address = session.bind().and_then(|bind| bind.listening.header.netscaler);
            expected.netscaler = Some(of_address.unwrap_or(0));
        }
    });
    let Some(ended) = ended else { return Ok(expected) };
    match ended {
        Final::Exhausted => metrics::exhausted(session),
        _ => metrics::denied(session, before_session),
    }
    Err(match ended {
        Final::SilentDrop(hops) => Rejection::Silent(*hops),
        _ if before_session => Rejection::Reset,
        _ => Rejection::Close,
    })
}

/// Whether connections of an address need preparation before they are served.
fn is_special(listening: &Listening) -> bool {
    listening.header.is_some() || matches!(listening.socket.segments, Segments::ReducedBy(_))
}

/// Ends the task of a session.
pub(super) fn leave(task: &StreamTask) {
    task.close();
    task.leave();
}

/// Handles a task that panicked and was dropped: its stream is counted, and logged as an internal error with its last
/// known state, and its session ends if it belongs to the task alone.
pub fn conclude_panicked(worker: &Worker, tag: u64) {
    let Some(task) = worker.leave(Key::from_bits(tag)) else { return };
    task.conclude_panicked();
    if task.owns_session() {
        task.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_of<A, B, F: Future>(_: impl FnOnce(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// Most sessions of a proxy are idle. Code that needs more memory per session boxes rarely used parts.
    #[test]
    fn an_idle_session_is_small() {
        let (task, shared) = (future_of(run_unless_killed), size_of::<StreamTask>());
        assert!(task <= 224 && shared <= 176, "{task} bytes of a future, {shared} of a session");
    }
}
