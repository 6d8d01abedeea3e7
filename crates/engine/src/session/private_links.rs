//! The server connections that belong to one session. Must never share one.

use std::task::Context;

use conn::link::Link;
use live::Preference;
use policy::program::{Backend, Proxy, Server};

/// Idle server connections of one session, which all of its streams use, and the server of the last one. Few sessions have any.
#[derive(Default)]
pub struct PrivateLinks {
    kept: Option<Box<OwnedLinks>>,
    asked: AuthenticationScope,
}

struct OwnedLinks {
    links: Vec<(usize, Link)>,
    /// Last connection: index of the backend, index and serial number of the server.
    last: (usize, usize, usize),
}

/// Authentication of the client that the last exchange contained or requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthenticationScope {
    /// None.
    #[default]
    Nothing,
    /// A challenge: the next request is to be sent to the same server.
    Once,
    /// A scheme that authenticates the connection, not the request (NTLM, Negotiate).
    Connection,
}

impl PrivateLinks {
    pub(crate) fn take(&mut self, serial: usize, fits: impl Fn(&Link) -> bool) -> Option<Link> {
        let links = &mut self.kept.as_mut()?.links;
        let place = links.iter().position(|(owner, link)| *owner == serial && fits(link))?;
        let (_, mut link) = links.swap_remove(place);
        link.carrier.renew().then_some(link)
    }

    pub(crate) fn put(&mut self, backend: usize, server: &Server, link: Link, most: usize) {
        let last = (backend, server.index, server.serial);
        let kept = self.kept.get_or_insert_with(|| Box::new(OwnedLinks { links: Vec::new(), last }));
        if kept.links.len() < most {
            kept.links.push((server.serial, link));
            kept.last = last;
        }
    }

    pub(crate) fn note(&mut self, asked: AuthenticationScope) {
        if self.asked != AuthenticationScope::Connection {
            self.asked = asked;
        }
    }

    pub(crate) fn preference(&self, proxy: &Proxy, backend: &Backend) -> Option<Preference> {
        let kept = self.kept.as_ref()?;
        let (index, server, serial) = kept.last;
        if index != proxy.index || !kept.links.iter().any(|(owner, _)| *owner == serial) {
            return None;
        }
        match self.asked {
            AuthenticationScope::Nothing if !backend.limits.prefer_last_server => None,
            AuthenticationScope::Nothing => Some(Preference { server, waiting: backend.limits.max_keep_alive_queue }),
            AuthenticationScope::Once | AuthenticationScope::Connection => {
                Some(Preference { server, waiting: u32::MAX })
            }
        }
    }

    pub(crate) fn discard_disturbed(&mut self, cx: &mut Context<'_>) {
        if let Some(kept) = &mut self.kept {
            kept.links.retain_mut(|(_, link)| link.carrier.poll_disturbed(cx).is_pending());
        }
    }
}
