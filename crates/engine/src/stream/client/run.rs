//! Runs a session from its handshakes to its end: PROXY header, TLS, rules on sessions, then its streams. Must never look into a
//! message.

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
use crate::stream::rules::run_connection;
use crate::stream::{attaching, closing, conclude, http, metrics, several, tcp, tracking};
use crate::worker::Worker;

/// No header of a balancer in front is expected.
const NO_HEADER: ExpectedHeader = ExpectedHeader { netscaler: None, proxy: false };

/// Runs a session to its end, or until it is killed: everything that it holds is dropped then. The client lies in the
/// future once: an argument of an asynchronous function would lie there twice.
pub(super) fn run_unless_killed(session: LocalRc<StreamTask>, stream: Transport) -> impl Future<Output = ()> {
    let mut client = Client::new(&session, stream);
    async move {
        let mut ended = rt::unless(|| session.is_killed(), prepare(&session, &mut client)).await;
        let mut closing = None;
        if ended != Some(true) {
            drop(client);
        } else if session.is_reversed() {
            let served = rt::boxed(several::serve_reversed(&session, &mut client));
            ended = rt::unless(|| session.is_killed(), served).await.map(|()| true);
            closing = closing::begin(&session, client);
        } else if let Some(attached) = session.take_attached() {
            ended = rt::boxed(attaching::serve(&session, client, attached)).await;
        } else {
            let chosen = rt::unless(|| session.is_killed(), http::choose(&session, &mut client)).await;
            // The state of a stream of TCP is concluded once its connection is closed.
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
                        several::serve(session, client, protocol)
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

/// Does what the listening address asks for before the connection is served. False: the connection has ended.
#[expect(clippy::manual_async_fn, reason = "the arguments of an asynchronous function lie in its future twice")]
fn prepare<'a>(session: &'a StreamTask, client: &'a mut Client) -> impl Future<Output = bool> + 'a {
    async move {
        session.register().await;
        let mut expected = session.rare.get().and_then(|rare| rare.expected.take()).unwrap_or(NO_HEADER);
        if let Some(special) = session.bind().map(|bind| &bind.listening).filter(|listening| is_special(listening)) {
            if let Segments::ReducedBy(bytes) = special.socket.segments {
                // A kernel that refuses leaves the size as it is.
                if let Some((transport, _)) = client.conn.bytes() {
                    let _ = transport.reduce_segments(bytes);
                }
            }
            expected.netscaler = special.header.netscaler.or(expected.netscaler);
            expected.proxy |= special.header.proxy;
        }
        if expected.is_some() {
            let Some((transport, input)) = client.conn.bytes() else { return false };
            if !rt::boxed(receive_header((session, transport, input), expected)).await {
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

/// Reads the header of a balancer in front; what came behind it is input. False: the connection has ended.
async fn receive_header(
    (session, transport, input): (&StreamTask, &mut Transport, &mut Buffer),
    expected: ExpectedHeader,
) -> bool {
    let received = handshake::receive(session, transport, expected).await;
    received.map(|received| *input = received).is_some()
}

/// Shakes hands with the client; what has come behind a header is the beginning of that. False: the connection has ended.
async fn secure(session: &StreamTask, client: &mut Client) -> bool {
    let Some((transport, input)) = client.conn.bytes() else { return false };
    let early = std::mem::replace(input, Buffer::empty());
    handshake::secure(session, transport, early).await
}

/// Runs the rules on a connection, or on its session. `None`: it is refused; else the headers that have to come first.
pub(super) fn admit(session: &Session, client: &mut Transport, before_session: bool) -> Option<ExpectedHeader> {
    let rules = &session.proxy().rules;
    let rules = if before_session { &rules.connection } else { &rules.session };
    if !before_session && rules.iter().any(|rule| matches!(rule.action, Action::SetEnd(..))) {
        session.keep_ends();
    }
    let mut expected = NO_HEADER;
    let ended = run_connection(session, rules, &mut |header| match header {
        Expected::Proxy => expected.proxy = true,
        // Without a number of its own, the address wants 0.
        Expected::NetScaler => {
            let of_address = session.bind().and_then(|bind| bind.listening.header.netscaler);
            expected.netscaler = Some(of_address.unwrap_or(0));
        }
    });
    let Some(ended) = ended else { return Some(expected) };
    // What the system does not let happen so happens all the same.
    let _ = match ended {
        Final::SilentDrop(hops) => client.forget(*hops),
        // A reset leaves nothing behind on either side, where an orderly end waits for the client's.
        _ if before_session => client.set_linger_zero(),
        _ => Ok(()),
    };
    match ended {
        Final::Exhausted => metrics::exhausted(session),
        _ => metrics::denied(session, before_session),
    }
    None
}

/// Whether something has to be done with connections of an address before they are served.
fn is_special(listening: &Listening) -> bool {
    listening.header.is_some() || matches!(listening.socket.segments, Segments::ReducedBy(_))
}

/// The task of a session has ended.
pub(super) fn leave(task: &StreamTask) {
    task.close();
    task.leave();
}

/// A task panicked and was dropped: what is known of its stream is counted and logged as internal, and its session ends
/// where it was that one's own.
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

    /// Idle clients are what a proxy has most of. Code that needs more than this per session boxes what is rare.
    #[test]
    fn an_idle_session_is_small() {
        let (task, shared) = (future_of(run_unless_killed), size_of::<StreamTask>());
        assert!(task <= 224 && shared <= 176, "{task} bytes of a future, {shared} of a session");
    }
}
