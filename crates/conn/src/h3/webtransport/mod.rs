//! WebTransport (draft-ietf-webtrans-http3): the sessions of a connection, and the streams and HTTP Datagrams of them. A session is a
//! request, whose tunnel is that of any upgrade; a [`Relay`] moves its streams and datagrams between a client's connection and a
//! server's. Must never interpret what they carry.

mod assignment;
mod flow;
mod relay;
mod sessions;
mod side;

pub use relay::{Relay, RelayStep};
pub(super) use sessions::Sessions;

/// The name of the protocol in an extended CONNECT.
const PROTOCOL: &[u8] = b"webtransport";

/// Maximum number of sessions of a client's connection at a time.
pub(super) const MOST_SESSIONS: u64 = 16;

/// Maximum number of streams of a connection that wait for their session to begin.
const MOST_WAITING: usize = 32;

/// Maximum number of received datagrams of a session that wait.
const MOST_DATAGRAMS: usize = 64;

/// Whether a request asks for a session.
pub(super) fn is_asked(request: &wire::http::Head) -> bool {
    request.upgrade && request.first(b"upgrade") == Some(PROTOCOL)
}
