//! Who shares whose state (configuration manual, section 5.2, "track"). Must never know a state.

use super::{Program, Server};
use base::AppendOnlyVec;
use live::ServerPlace;

/// Who shares whose state. Chains never loop: the compiler refuses that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tracking {
    /// The proxy that the server is in.
    pub proxy: usize,
    /// The server that it tracks.
    pub leader: Option<ServerPlace>,
    /// The servers that track it, those that are written last first, as HAProxy tells them.
    pub followers: Box<[ServerPlace]>,
    /// Those that the runtime API has added.
    pub added: AppendOnlyVec<ServerPlace>,
}

impl Tracking {
    /// Whether any server tracks it.
    pub fn has_followers(&self) -> bool {
        !self.followers.is_empty() || !self.added.is_empty()
    }

    /// A server that tracked it is no more.
    pub fn lose(&self, follower: ServerPlace) {
        let place = self.added.enumerate().find(|(_, known)| **known == follower).map(|(place, _)| place);
        place.map(|place| self.added.strike(place));
    }
}

impl Program {
    /// The server at a place.
    pub fn server_at(&self, (proxy, server): ServerPlace) -> Option<&Server> {
        self.proxies.get(proxy)?.backend.as_ref()?.servers.get(server)
    }

    /// Visits all that track a server, directly or not, each behind the one that it tracks: first that one's place, then its
    /// own. Where the visit returns false, those after it are not visited.
    pub fn followers(&self, server: &Server, mut visit: impl FnMut(ServerPlace, ServerPlace) -> bool) {
        let of = |server: &Server| {
            let place = (server.tracking.proxy, server.index);
            // Who was added last is told first.
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
