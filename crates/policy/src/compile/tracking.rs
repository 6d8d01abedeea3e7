//! Links servers that share a state (configuration manual, section 5.2, "track"), after all servers are compiled. Must
//! never know a state.

use super::Compiler;
use crate::program::{Proxy, Server};
use base::NameIndex;
use config::diagnostic::Form;
use config::spec::{ProxyKind, Spec};
use live::ServerPlace;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};

impl Compiler<'_> {
    /// Links the servers, and reports errors.
    pub(super) fn link_tracking(&mut self, spec: &Spec, proxies: &mut [Proxy]) {
        let mut links: Vec<(ServerPlace, ServerPlace)> = Vec::new();
        let known = NameLookups::default();
        for (index, written) in spec.proxies.iter().enumerate() {
            for server in &written.servers {
                let Some(track) = &server.check.track else { continue };
                let Some(own) = known.server(proxies, index, &server.name.value) else { continue };
                match known.leader(spec, proxies, own, &track.value) {
                    Ok(leader) => links.push((leader, own)),
                    Err(message) => {
                        let head = super::check::server_head(written, server);
                        self.alert(server.span, Form::LatePlaced, format!("{head}{message}"));
                    }
                }
            }
        }
        let mut followers: BTreeMap<ServerPlace, Vec<ServerPlace>> = BTreeMap::new();
        // The last follower is first.
        for (leader, follower) in links.iter().rev() {
            followers.entry(*leader).or_default().push(*follower);
        }
        for (leader, follower) in &links {
            let at = |place: &ServerPlace, proxies: &mut [Proxy], change: &mut dyn FnMut(&mut Server)| {
                let backend = proxies[place.proxy].backend.as_mut();
                backend.and_then(|backend| backend.servers.get_mut(place.server)).into_iter().for_each(change);
            };
            at(follower, proxies, &mut |server| server.tracking.leader = Some(*leader));
            let Some(followers) = followers.remove(leader) else { continue };
            at(leader, proxies, &mut |server| server.tracking.followers = followers.iter().copied().collect());
        }
    }
}

/// Name lookups of backends and their servers.
#[derive(Default)]
struct NameLookups {
    backends: NameIndex,
    servers: RefCell<HashMap<usize, HashMap<Box<str>, usize>>>,
    /// The number of servers of all proxies, computed once.
    most: OnceCell<usize>,
}

impl NameLookups {
    /// Returns the server that `own` tracks under that name.
    fn leader(&self, spec: &Spec, proxies: &[Proxy], own: ServerPlace, name: &str) -> Result<ServerPlace, String> {
        let leader = self.find(proxies, own.proxy, name)?;
        let shown = |place: ServerPlace| {
            let server = server(proxies, place).map_or("", |server| &server.name);
            format!("{}/{server}", proxies[place.proxy].name)
        };
        // Follows the chain to the server that is checked; more steps than servers are a loop.
        let servers = || proxies.iter().filter_map(|proxy| proxy.backend.as_ref()).map(|back| back.servers.len()).sum();
        let most = *self.most.get_or_init(servers);
        let mut end = leader;
        for _ in 0..=most {
            if end == own {
                break;
            }
            let next = tracked(spec, proxies, end);
            match next.map(|name| self.find(proxies, end.proxy, name)) {
                Some(Ok(next)) => end = next,
                // Reported for its own line.
                Some(Err(_)) => return Ok(leader),
                None => break,
            }
        }
        if end == own || tracked(spec, proxies, end).is_some() {
            return Err(format!(
                "unable to track {} as it belongs to a tracking chain looping back to {}.",
                shown(leader),
                shown(own)
            ));
        }
        let is_checked = server(proxies, end).is_some_and(|server| server.check.is_some() || server.agent.is_some());
        if !is_checked && end == leader {
            return Err(format!(
                "unable to use {} for tracking as it does not have any check nor agent enabled.",
                shown(leader)
            ));
        }
        let conditional = |place: ServerPlace| {
            proxies[place.proxy].backend.as_ref().is_some_and(|backend| backend.check.disable_on_404)
        };
        if own.proxy != leader.proxy && conditional(own) != conditional(leader) {
            return Err(format!("unable to use {} for tracking: disable-on-404 option inconsistency.", shown(leader)));
        }
        Ok(leader)
    }

    /// Returns the server with that name in a proxy.
    fn server(&self, proxies: &[Proxy], proxy: usize, name: &str) -> Option<ServerPlace> {
        let servers = &proxies.get(proxy)?.backend.as_ref()?.servers;
        let mut known = self.servers.borrow_mut();
        let known = known.entry(proxy).or_insert_with(|| {
            // The first server of a name takes precedence.
            servers.enumerate().rev().map(|(place, server)| (Box::from(&*server.name), place)).collect()
        });
        known.get(name).map(|server| ServerPlace { proxy, server: *server })
    }

    /// Resolves `[<backend>/]<server>`.
    fn find(&self, proxies: &[Proxy], current: usize, name: &str) -> Result<ServerPlace, String> {
        let (proxy, server) = match name.rsplit_once('/') {
            Some((backend, server)) => {
                let named = |proxy: &Proxy| proxy.kind != ProxyKind::Frontend;
                let found = self.backends.find(proxies, backend, |proxy| named(proxy).then_some(&*proxy.name));
                let missing = || format!("unable to find required proxy '{backend}' for tracking.");
                (found.ok_or_else(missing)?, server)
            }
            None => (current, name),
        };
        let missing = || format!("unable to find required server '{server}' for tracking.");
        self.server(proxies, proxy, server).ok_or_else(missing)
    }
}

fn server(proxies: &[Proxy], place: ServerPlace) -> Option<&Server> {
    proxies.get(place.proxy)?.backend.as_ref()?.servers.get(place.server)
}

/// Returns the `track` keyword of a server.
fn tracked<'a>(spec: &'a Spec, proxies: &[Proxy], at: ServerPlace) -> Option<&'a str> {
    let name = &server(proxies, at)?.name;
    let servers = &spec.proxies.get(at.proxy)?.servers;
    let written = servers.iter().find(|server| *server.name.value == **name)?;
    written.check.track.as_ref().map(|track| track.value.as_str())
}
