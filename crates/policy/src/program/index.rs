//! An index of a program's proxies and servers by names, IDs and GUIDs, for commands: built at the first lookup, then
//! updated with additions. Must never be used by requests.

use super::{Backend, Program, Proxy, Server};
use config::spec::ProxyKind;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of servers up to which a backend's own list is looked through: most backends of a very large configuration need no index.
const FEW: usize = 8;

/// See the module. Results are validated, so that objects that were removed or renamed after indexing are not returned.
#[derive(Default)]
pub struct ProgramIndex(Mutex<Index>);

#[derive(Default)]
struct Index {
    /// Proxies below this index have been added.
    indexed: usize,
    names: Places<Box<str>>,
    numbers: Places<u32>,
    /// All IDs below this one are in use.
    next_number: u32,
    /// GUIDs of proxies, and of servers in them.
    guids: Places<Box<str>, (usize, Option<usize>)>,
    /// Servers of backends with more than a few in which a lookup was made, by the index of the backend.
    servers: HashMap<usize, ServerIndex>,
}

#[derive(Default)]
struct ServerIndex {
    indexed: usize,
    names: Places<Box<str>>,
    numbers: Places<u32>,
    /// All IDs below this one are in use.
    next_number: u32,
}

/// Indices by key; a key has several if some objects were removed, or are of different kinds.
struct Places<K, P = usize>(HashMap<K, Vec<P>>);

impl<K, P> Default for Places<K, P> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, P: Copy + PartialEq> Places<K, P> {
    fn add(&mut self, key: K, place: P) {
        let places = self.0.entry(key).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }

    fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> &[P]
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q, place: P)
    where
        K: Borrow<Q>,
    {
        if let Some(places) = self.0.get_mut(key) {
            places.retain(|known| *known != place);
            if places.is_empty() {
                self.0.remove(key);
            }
        }
    }
}

impl Index {
    fn add(&mut self, place: usize, proxy: &Proxy) {
        self.names.add((*proxy.name).into(), place);
        self.numbers.add(proxy.id, place);
        if let Some(guid) = &proxy.guid {
            self.guids.add(guid.clone(), (place, None));
        }
        for server in proxy.servers() {
            self.add_guid(place, server);
        }
    }

    fn add_guid(&mut self, proxy: usize, server: &Server) {
        if let Some(guid) = &server.guid {
            self.guids.add(guid.clone(), (proxy, Some(server.index)));
        }
    }

    fn servers(&mut self, place: usize, backend: &Backend) -> &mut ServerIndex {
        let own = self.servers.entry(place).or_default();
        own.next_number = own.next_number.max(1);
        for at in own.indexed..backend.servers.places() {
            if let Some(server) = backend.servers.get(at) {
                own.names.add((*server.name).into(), at);
                own.numbers.add(server.id, at);
            }
        }
        own.indexed = backend.servers.places();
        own
    }
}

/// Whether the servers of a backend are not indexed.
fn has_few(backend: &Backend) -> bool {
    backend.servers.places() <= FEW
}

impl ProgramIndex {
    fn lock(&self, program: &Program) -> MutexGuard<'_, Index> {
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for place in index.indexed..program.proxies.places() {
            if let Some(proxy) = program.proxies.get(place) {
                index.add(place, proxy);
            }
        }
        index.indexed = program.proxies.places();
        index
    }
}

impl Program {
    /// Returns the first proxy with that name, or with that ID after a `#`, that `fits` accepts.
    pub fn proxy_called(&self, word: &str, fits: impl Fn(&Proxy) -> bool) -> Option<&Arc<Proxy>> {
        let index = self.index.lock(self);
        let number = word.strip_prefix('#').and_then(|number| number.parse().ok());
        let numbered = number.map_or(&[][..], |number: u32| index.numbers.find(&number));
        let found = index.names.find(word).iter().chain(numbered).copied().filter(|at| {
            let is_called = |proxy: &Proxy| *proxy.name == *word || number == Some(proxy.id);
            self.proxies.is_present(*at) && self.proxies.get(*at).is_some_and(|proxy| is_called(proxy) && fits(proxy))
        });
        found.min().and_then(|at| self.proxies.get(at))
    }

    /// Returns the backend with that name or ID.
    pub fn backend_called(&self, word: &str) -> Option<&Proxy> {
        self.proxy_called(word, |proxy| proxy.backend.is_some()).map(|proxy| &**proxy)
    }

    /// Returns the server with that name, or with that ID after a `#`, in a backend of this program.
    pub fn server_called<'p>(&self, proxy: &'p Proxy, word: &str) -> Option<&'p Server> {
        let backend = proxy.backend.as_ref()?;
        let number = word.strip_prefix('#').and_then(|number| number.parse().ok());
        if has_few(backend) {
            return backend.servers.iter().find(|one| *one.name == *word || number == Some(one.id));
        }
        let mut index = self.index.lock(self);
        let own = index.servers(proxy.index, backend);
        let numbered = number.map_or(&[][..], |number: u32| own.numbers.find(&number));
        let found = own.names.find(word).iter().chain(numbered).copied().filter(|at| {
            backend.servers.is_present(*at)
                && backend.servers.get(*at).is_some_and(|one| *one.name == *word || number == Some(one.id))
        });
        found.min().and_then(|at| backend.servers.get(at))
    }

    /// Returns all servers of a backend with that ID, including removed ones.
    pub fn servers_numbered<'p>(&self, proxy: &'p Proxy, number: u32) -> Vec<&'p Server> {
        let Some(backend) = &proxy.backend else { return Vec::new() };
        if has_few(backend) {
            let all = (0..backend.servers.places()).filter_map(|at| backend.servers.get(at));
            return all.filter(|server| server.id == number).collect();
        }
        let mut index = self.index.lock(self);
        let mut places = index.servers(proxy.index, backend).numbers.find(&number).to_vec();
        places.sort_unstable();
        let found = places.into_iter().filter_map(|at| backend.servers.get(at));
        found.filter(|server| server.id == number).collect()
    }

    /// Returns the lowest ID that no server of a backend uses.
    pub fn free_server_number(&self, proxy: &Proxy) -> u32 {
        let Some(backend) = &proxy.backend else { return 1 };
        if has_few(backend) {
            let is_free = |number: &u32| backend.servers.iter().all(|one| one.id != *number);
            return (1..).find(is_free).unwrap_or(u32::MAX);
        }
        let mut index = self.index.lock(self);
        let own = index.servers(proxy.index, backend);
        let is_taken = |number: &u32| {
            own.numbers.find(number).iter().any(|at| {
                backend.servers.is_present(*at) && backend.servers.get(*at).is_some_and(|one| one.id == *number)
            })
        };
        let free = (own.next_number..).find(|number| !is_taken(number)).unwrap_or(u32::MAX);
        own.next_number = free;
        free
    }

    /// Returns the lowest ID from `first` on that no proxy has used so far; `first` must not decrease between calls.
    pub fn free_proxy_number(&self, first: u32) -> u32 {
        let mut index = self.index.lock(self);
        let first = index.next_number.max(first);
        let free = (first..).find(|number| index.numbers.find(number).is_empty()).unwrap_or(u32::MAX);
        index.next_number = free;
        free
    }

    /// Returns the owner of a GUID, as named in messages.
    pub fn guid_owner(&self, guid: &str) -> Option<String> {
        let index = self.index.lock(self);
        index.guids.find(guid).iter().find_map(|&(place, server)| {
            let proxy = self.proxies.get(place).filter(|_| self.proxies.is_present(place))?;
            let Some(server) = server else {
                proxy.guid.as_deref().filter(|own| *own == guid)?;
                let kind = match proxy.kind {
                    ProxyKind::Frontend => "frontend",
                    ProxyKind::Backend => "backend",
                    ProxyKind::Listen => "proxy",
                };
                return Some(format!("{kind} {}", proxy.name));
            };
            let servers = &proxy.backend.as_ref()?.servers;
            let server = servers.get(server).filter(|one| servers.is_present(one.index))?;
            (server.guid.as_deref() == Some(guid)).then(|| format!("server {}/{}", proxy.name, server.name))
        })
    }

    /// Adds a server that is new or renamed, which may be at an index that was used before.
    pub fn index_server(&self, proxy: &Proxy, server: &Server) {
        let Some(backend) = &proxy.backend else { return };
        let mut index = self.index.lock(self);
        index.add_guid(proxy.index, server);
        if index.servers.contains_key(&proxy.index) {
            index.servers(proxy.index, backend).names.add((*server.name).into(), server.index);
        }
    }

    /// Removes a server: its ID becomes free.
    pub fn forget_server(&self, proxy: &Proxy, server: &Server) {
        let mut index = self.index.lock(self);
        if let Some(guid) = &server.guid {
            index.guids.remove(&**guid, (proxy.index, Some(server.index)));
        }
        if let Some(own) = index.servers.get_mut(&proxy.index) {
            own.names.remove(&*server.name, server.index);
            own.next_number = own.next_number.min(server.id.max(1));
        }
    }

    /// Removes a proxy. Its ID remains in use.
    pub fn forget_proxy(&self, proxy: &Proxy) {
        let mut index = self.index.lock(self);
        index.names.remove(&*proxy.name, proxy.index);
        if let Some(guid) = &proxy.guid {
            index.guids.remove(&**guid, (proxy.index, None));
        }
    }

    /// Adds a backend that took over the index and ID of a removed one.
    pub fn index_proxy(&self, proxy: &Proxy) {
        self.index.lock(self).add(proxy.index, proxy);
    }
}

/// A copy of a program has an index of its own.
impl Clone for ProgramIndex {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// The index is derived from the program, so all indexes are equal.
impl PartialEq for ProgramIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for ProgramIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramIndex")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::{backend, compiled, server, spec};
    use config::spec::ProxySpec;

    /// A backend with few servers, which has no index, and one with many are asked the same.
    #[test]
    fn servers_are_found_with_an_index_and_without_one() {
        for count in [3, FEW, 3 * FEW] {
            let address = || backend("b").servers[0].address.value.clone();
            let servers = (0..count)
                .map(|at| config::spec::ServerSpec { id: at as u32 + 2, ..server(&format!("s{at}"), address()) });
            let program = compiled(&spec(vec![ProxySpec { servers: servers.collect(), ..backend("b") }]));
            let proxy = &program.proxies[0];
            let called = |word: &str| program.server_called(proxy, word).map(|server| server.index);
            let numbered = |number| program.servers_numbered(proxy, number).len();
            assert_eq!(
                [called("s1"), called("#4"), called("s99"), called("#1")],
                [Some(1), Some(2), None, None],
                "{count}"
            );
            assert_eq!((numbered(2), numbered(1), program.free_server_number(proxy)), (1, 0, 1), "{count}");
            let servers = &proxy.backend.as_ref().unwrap().servers;
            servers.strike(1);
            program.forget_server(proxy, &servers[1]);
            assert_eq!((called("s1"), called("#3"), numbered(3)), (None, None, 1), "{count}");
            servers.restore(1);
            servers[1].name.change("other").unwrap();
            program.index_server(proxy, &servers[1]);
            assert_eq!([called("s1"), called("other"), called("#3")], [None, Some(1), Some(1)], "{count}");
        }
    }
}
