//! The links to servers that belong to one client's session: those of `http-reuse never`, and those on which a client has
//! authenticated. Must never share one.

use std::task::Context;

use conn::link::Link;
use live::Preference;
use policy::program::{Backend, Proxy, Server};
use wire::http::authentication::{self, Bond};

use crate::session::Session;
pub use crate::session::private_links::Asked;
use crate::stream_state::StreamState;

impl Asked {
    /// Derives it from a request and its answer.
    #[inline]
    pub fn by(state: &StreamState) -> Self {
        // 401 and 407, and two statuses that the exact look leaves out.
        let may_ask = state.response.status().wrapping_sub(401) & !6 == 0;
        if may_ask | authentication::may_authenticate(&state.request, &state.response) {
            Self::exactly(state)
        } else {
            Self::Nothing
        }
    }

    #[cold]
    fn exactly(state: &StreamState) -> Self {
        // A rule may have hidden what the server said.
        let challenged = authentication::challenges(&state.response) != Bond::None;
        if challenged || authenticates(state) {
            return Self::Connection;
        }
        let status = state.server_status.unwrap_or_else(|| state.response.status());
        if matches!(status, 401 | 407) { Self::Once } else { Self::Nothing }
    }
}

/// Whether a request, as it goes to its server, logs its connection in.
pub fn authenticates(state: &StreamState) -> bool {
    authentication::credentials(&state.request) == Bond::Connection
}

/// The idle link of a session to a server that fits, if there is one that is open and silent.
pub fn take(session: &Session, serial: usize, fits: impl Fn(&Link) -> bool) -> Option<Link> {
    session.private_links()?.borrow_mut().take(serial, fits)
}

/// Lays a link of a session down; where `most` lie there already it is closed (`max-session-srv-conns`).
pub fn put(session: &Session, backend: usize, server: &Server, link: Link, most: usize) {
    if most > 0 {
        session.own_private_links().borrow_mut().put(backend, server, link, most);
    }
}

/// An answer came to a session. Who was once asked to authenticate on a connection stays with it.
pub fn note(session: &Session, asked: Asked) {
    let links = match asked {
        Asked::Nothing => session.private_links(),
        Asked::Once | Asked::Connection => Some(session.own_private_links()),
    };
    if let Some(links) = links {
        links.borrow_mut().note(asked);
    }
}

/// The server that a request for this backend prefers: one that the session still has a connection to.
pub fn preference(session: &Session, proxy: &Proxy, backend: &Backend) -> Option<Preference> {
    session.private_links()?.borrow().preference(proxy, backend)
}

/// Any event on an idle link ends it.
pub fn discard_disturbed(session: &Session, cx: &mut Context<'_>) {
    if let Some(links) = session.private_links() {
        links.borrow_mut().discard_disturbed(cx);
    }
}
