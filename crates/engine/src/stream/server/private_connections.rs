//! Server connections that belong to one client's session: those of `http-reuse never`, and those on which a client has
//! authenticated. Must never share one.

use std::task::Context;

use conn::link::Link;
use live::Preference;
use policy::program::{Backend, Proxy, Server};
use wire::http::authentication::{self, Bond};

use crate::session::Session;
pub use crate::session::private_links::AuthenticationScope;
use crate::stream_state::StreamState;

impl AuthenticationScope {
    /// Derives it from a request and its answer.
    #[inline]
    pub fn by(state: &StreamState) -> Self {
        // 401 and 407, and two statuses that the exact check excludes.
        let may_ask = state.response.status().wrapping_sub(401) & !6 == 0;
        if may_ask | authentication::may_authenticate(&state.request, &state.response) {
            Self::exactly(state)
        } else {
            Self::Nothing
        }
    }

    #[cold]
    fn exactly(state: &StreamState) -> Self {
        // A rule may have changed the server's status.
        let challenged = authentication::challenges(&state.response) != Bond::None;
        if challenged || authenticates(state) {
            return Self::Connection;
        }
        let status = state.answer.server_status.unwrap_or_else(|| state.response.status());
        if matches!(status, 401 | 407) { Self::Once } else { Self::Nothing }
    }
}

/// Whether a request, as it is sent to its server, authenticates its connection.
pub fn authenticates(state: &StreamState) -> bool {
    authentication::credentials(&state.request) == Bond::Connection
}

/// Returns an idle connection of the session to that server that fits, and that is open and without pending events.
#[inline]
pub fn take(session: &Session, serial: usize, fits: impl Fn(&Link) -> bool) -> Option<Link> {
    session.private_links()?.borrow_mut().take(serial, fits)
}

/// Keeps a connection of a session. It is closed if the session already keeps `most` of them (`max-session-srv-conns`).
pub fn put(session: &Session, backend: usize, server: &Server, link: Link, most: usize) {
    if most > 0 {
        session.own_private_links().borrow_mut().put(backend, server, link, most);
    }
}

/// Records the authentication state after a response. [`AuthenticationScope::Connection`] is kept until the session ends.
#[inline]
pub fn note(session: &Session, asked: AuthenticationScope) {
    let links = match asked {
        AuthenticationScope::Nothing => session.private_links(),
        AuthenticationScope::Once | AuthenticationScope::Connection => Some(session.own_private_links()),
    };
    if let Some(links) = links {
        links.borrow_mut().note(asked);
    }
}

/// Returns the server that a request for this backend prefers: the last one, if the session still has a connection to it.
#[inline]
pub fn preference(session: &Session, proxy: &Proxy, backend: &Backend) -> Option<Preference> {
    session.private_links()?.borrow().preference(proxy, backend)
}

/// Closes idle connections on which any event has occurred.
pub fn discard_disturbed(session: &Session, cx: &mut Context<'_>) {
    if let Some(links) = session.private_links() {
        links.borrow_mut().discard_disturbed(cx);
    }
}
