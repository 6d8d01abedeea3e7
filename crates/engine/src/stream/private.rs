//! The links to servers that belong to one client's session: those of `http-reuse never`, and those on which a client has
//! authenticated. Must never share one.

use std::task::Context;

use conn::link::Link;
use live::Preference;
use policy::program::{Backend, Proxy, Server};
use wire::http::authentication::{self, Bond};

use crate::session::Session;
use crate::stream_state::StreamState;

/// A session's own idle links, which all of its streams use, and the server that it last had one to. Few sessions have any.
#[derive(Default)]
pub struct PrivateLinks {
    kept: Option<Box<Kept>>,
    asked: Asked,
}

struct Kept {
    links: Vec<(usize, Link)>,
    /// Index of the backend, index and serial number of the server of the last one.
    last: (usize, usize, usize),
}

/// How the last exchange authenticated the client, or asked it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asked {
    /// It did not.
    #[default]
    Nothing,
    /// With an answer that the next request is to follow to the same server.
    Once,
    /// In a way that binds the login to the connection (NTLM, Negotiate).
    Connection,
}

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

impl PrivateLinks {
    fn take(&mut self, serial: usize, fits: impl Fn(&Link) -> bool) -> Option<Link> {
        let links = &mut self.kept.as_mut()?.links;
        let place = links.iter().position(|(owner, link)| *owner == serial && fits(link))?;
        let (_, mut link) = links.swap_remove(place);
        link.carrier.renew().then_some(link)
    }

    fn put(&mut self, backend: usize, server: &Server, link: Link, most: usize) {
        let last = (backend, server.index, server.serial);
        let kept = self.kept.get_or_insert_with(|| Box::new(Kept { links: Vec::new(), last }));
        if kept.links.len() < most {
            kept.links.push((server.serial, link));
            kept.last = last;
        }
    }

    fn note(&mut self, asked: Asked) {
        if self.asked != Asked::Connection {
            self.asked = asked;
        }
    }

    fn preference(&self, proxy: &Proxy, backend: &Backend) -> Option<Preference> {
        let kept = self.kept.as_ref()?;
        let (index, server, serial) = kept.last;
        if index != proxy.index || !kept.links.iter().any(|(owner, _)| *owner == serial) {
            return None;
        }
        match self.asked {
            Asked::Nothing if !backend.limits.prefer_last_server => None,
            Asked::Nothing => Some(Preference { server, waiting: backend.limits.max_keep_alive_queue }),
            Asked::Once | Asked::Connection => Some(Preference { server, waiting: u32::MAX }),
        }
    }

    fn discard_disturbed(&mut self, cx: &mut Context<'_>) {
        if let Some(kept) = &mut self.kept {
            kept.links.retain_mut(|(_, link)| link.carrier.poll_disturbed(cx).is_pending());
        }
    }
}
