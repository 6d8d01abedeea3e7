//! Where a program's proxies and servers are found by their names, numbers and identifiers, for commands: built at the first
//! search, then kept up with what is added. Must never be asked by a request.

use super::{Backend, Program, Proxy, Server};
use config::spec::ProxyKind;
use live::ServerPlace;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module. What it finds is looked at before it is believed, so that what was removed or renamed meanwhile is not found.
#[derive(Default)]
pub struct ProgramIndex(Mutex<Index>);

#[derive(Default)]
struct Index {
    /// Proxies below that place are in it.
    indexed: usize,
    names: Places<Box<str>>,
    numbers: Places<u32>,
    /// All numbers below it are taken.
    next_number: u32,
    /// Proxies, and servers at their places.
    guids: Places<Box<str>, (usize, Option<usize>)>,
    /// Servers of backends where one was looked for, by the place of the backend.
    servers: HashMap<usize, ServerIndex>,
}

#[derive(Default)]
struct ServerIndex {
    indexed: usize,
    names: Places<Box<str>>,
    numbers: Places<u32>,
    /// All numbers below it are taken.
    next_number: u32,
}

/// Places by a key; several have one key where some of them were removed, or are of different kinds.
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
            self.add_guid((place, server.index), server);
        }
    }

    fn add_guid(&mut self, (proxy, place): ServerPlace, server: &Server) {
        if let Some(guid) = &server.guid {
            self.guids.add(guid.clone(), (proxy, Some(place)));
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
    /// The proxies of that name, or of that number after a sharp, that `fits` takes, the first in the configuration first.
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

    /// The backend of that name or number.
    pub fn backend_called(&self, word: &str) -> Option<&Proxy> {
        self.proxy_called(word, |proxy| proxy.backend.is_some()).map(|proxy| &**proxy)
    }

    /// The server of that name, or of that number after a sharp, in a backend of this program.
    pub fn server_called<'p>(&self, proxy: &'p Proxy, word: &str) -> Option<&'p Server> {
        let backend = proxy.backend.as_ref()?;
        let mut index = self.index.lock(self);
        let own = index.servers(proxy.index, backend);
        let number = word.strip_prefix('#').and_then(|number| number.parse().ok());
        let numbered = number.map_or(&[][..], |number: u32| own.numbers.find(&number));
        let found = own.names.find(word).iter().chain(numbered).copied().filter(|at| {
            backend.servers.is_present(*at)
                && backend.servers.get(*at).is_some_and(|one| *one.name == *word || number == Some(one.id))
        });
        found.min().and_then(|at| backend.servers.get(at))
    }

    /// All servers that a backend has or has had with that number, those that were removed included.
    pub fn servers_numbered<'p>(&self, proxy: &'p Proxy, number: u32) -> Vec<&'p Server> {
        let Some(backend) = &proxy.backend else { return Vec::new() };
        let mut index = self.index.lock(self);
        let mut places = index.servers(proxy.index, backend).numbers.find(&number).to_vec();
        places.sort_unstable();
        let found = places.into_iter().filter_map(|at| backend.servers.get(at));
        found.filter(|server| server.id == number).collect()
    }

    /// The lowest number that no server of a backend has.
    pub fn free_server_number(&self, proxy: &Proxy) -> u32 {
        let Some(backend) = &proxy.backend else { return 1 };
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

    /// The lowest number that no proxy has or has had, from `first` on; to be asked with growing ones.
    pub fn free_proxy_number(&self, first: u32) -> u32 {
        let mut index = self.index.lock(self);
        let first = index.next_number.max(first);
        let free = (first..).find(|number| index.numbers.find(number).is_empty()).unwrap_or(u32::MAX);
        index.next_number = free;
        free
    }

    /// Returns what has an identifier, in the words of messages.
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

    /// A server was added, or has another name from now on, which may be at a place that it had before.
    pub fn index_server(&self, proxy: &Proxy, server: &Server) {
        let Some(backend) = &proxy.backend else { return };
        let mut index = self.index.lock(self);
        index.add_guid((proxy.index, server.index), server);
        if index.servers.contains_key(&proxy.index) {
            index.servers(proxy.index, backend).names.add((*server.name).into(), server.index);
        }
    }

    /// A server was removed: its number is free.
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

    /// A proxy was removed. Its number stays taken.
    pub fn forget_proxy(&self, proxy: &Proxy) {
        let mut index = self.index.lock(self);
        index.names.remove(&*proxy.name, proxy.index);
        if let Some(guid) = &proxy.guid {
            index.guids.remove(&**guid, (proxy.index, None));
        }
    }

    /// A backend has the place and the number of one that was removed.
    pub fn index_proxy(&self, proxy: &Proxy) {
        self.index.lock(self).add(proxy.index, proxy);
    }
}

/// The copy of a program has an index of its own.
impl Clone for ProgramIndex {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// It says nothing that the lists do not say.
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
