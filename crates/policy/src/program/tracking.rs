//! Servers that share a state (configuration manual, section 5.2, "track"). Must never know a state.

use super::{Program, Server};
use base::AppendOnlyVec;
use live::ServerPlace;

/// Tracking of a server. There are no loops: the compiler rejects them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tracking {
    /// Index of the server's proxy.
    pub proxy: usize,
    /// The server that it tracks.
    pub leader: Option<ServerPlace>,
    /// The servers that track it, in reverse order of configuration, as HAProxy notifies them.
    pub followers: Box<[ServerPlace]>,
    /// Tracking servers that the runtime API has added.
    pub added: AppendOnlyVec<ServerPlace>,
}

impl Tracking {
    /// Whether any server tracks it.
    pub fn has_followers(&self) -> bool {
        !self.followers.is_empty() || !self.added.is_empty()
    }

    /// Removes a tracking server.
    pub fn lose(&self, follower: ServerPlace) {
        let place = self.added.enumerate().find(|(_, known)| **known == follower).map(|(place, _)| place);
        place.map(|place| self.added.strike(place));
    }
}

impl Program {
    /// Returns the server at a place.
    pub fn server_at(&self, place: ServerPlace) -> Option<&Server> {
        self.proxies.get(place.proxy)?.backend.as_ref()?.servers.get(place.server)
    }

    /// Visits all servers that track a server directly or indirectly, each after the one that it tracks; `visit` is
    /// called with that one's place and its own. If `visit` returns false, the servers that track that follower are
    /// skipped.
    pub fn followers(&self, server: &Server, mut visit: impl FnMut(ServerPlace, ServerPlace) -> bool) {
        let of = |server: &Server| {
            let place = ServerPlace { proxy: server.tracking.proxy, server: server.index };
            // The last added server is visited first.
            let followers = server.tracking.followers.iter().rev().chain(&server.tracking.added);
            followers.map(move |follower| (place, *follower)).collect::<Vec<_>>()
        };
        let mut pending = of(server);
        while let Some((leader, follower)) = pending.pop() {
            if visit(leader, follower)
                && let Some(server) = self.server_at(follower)
            {
                pending.extend(of(server));
            }
        }
    }
}
