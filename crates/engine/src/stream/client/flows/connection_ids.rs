//! The QUIC connection IDs that flows of all workers use, and the servers that they lead to. Must never keep an ID longer than the
//! flows that use it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quic::cid::{Id, LONGEST};
use wire::quic::Header;

use super::flow_table::FlowPlace;

/// Minimum length of IDs in bytes: a forged datagram finds shorter ones by chance.
const LEAST: usize = 4;
/// Number of parts with a lock of their own.
const SHARDS: usize = 16;

/// The side that has chosen an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Chooser {
    /// The client, for its first packets.
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    proxy: usize,
    chooser: Chooser,
    id: Id,
}

/// The flow that has used an ID last: the listener's number, and a place in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) listener: u64,
    pub(super) place: FlowPlace,
}

/// Where datagrams with an ID belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    /// Index of the server in its section.
    pub(super) server: usize,
    pub(super) home: Home,
}

#[derive(Debug)]
struct Known {
    route: Route,
    /// Number of flows that use it.
    flows: u32,
}

#[derive(Debug, Default)]
struct Shared {
    /// IDs are chosen by clients as well: the hashes need a secret.
    hasher: RandomState,
    shards: [Mutex<HashMap<Key, Known>>; SHARDS],
    /// Number of IDs of servers by their length.
    lengths: [AtomicUsize; LONGEST + 1],
}

/// The IDs of the process.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionIds(Arc<Shared>);

/// An ID that a flow uses.
#[derive(Debug)]
pub(super) struct UsedId {
    ids: ConnectionIds,
    key: Key,
}

impl ConnectionIds {
    fn shard(&self, key: &Key) -> MutexGuard<'_, HashMap<Key, Known>> {
        let number = self.0.hasher.hash_one(key) as usize % SHARDS;
        self.0.shards[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a flow that uses an ID. `None`: it is too short, or leads to another server.
    pub(super) fn learn(&self, proxy: usize, chooser: Chooser, id: Id, route: Route) -> Option<UsedId> {
        let length = id.as_slice().len();
        if length < LEAST {
            return None;
        }
        let key = Key { proxy, chooser, id };
        match self.shard(&key).entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(Known { route, flows: 1 });
                if chooser == Chooser::Server {
                    self.0.lengths[length].fetch_add(1, Ordering::Relaxed);
                }
            }
            Entry::Occupied(mut found) => {
                let known = found.get_mut();
                if known.route.server != route.server {
                    return None;
                }
                known.route.home = route.home;
                known.flows += 1;
            }
        }
        Some(UsedId { ids: self.clone(), key })
    }

    fn route(&self, proxy: usize, chooser: Chooser, id: &[u8]) -> Option<Route> {
        let key = Key { proxy, chooser, id: Id::new(id)? };
        self.shard(&key).get(&key).map(|known| known.route)
    }

    /// Returns the known ID that a datagram has as its destination.
    pub(super) fn find(&self, proxy: usize, header: &Header<'_>) -> Option<(Chooser, Id, Route)> {
        let found = |chooser, id: &[u8]| Some((chooser, Id::new(id)?, self.route(proxy, chooser, id)?));
        match header {
            Header::Long(header) => {
                found(Chooser::Server, header.destination).or_else(|| found(Chooser::Client, header.destination))
            }
            // The length is not in the packet: those that servers use are tried, the longest one first.
            Header::Short(rest) => {
                let is_used = |length: &usize| self.0.lengths[*length].load(Ordering::Relaxed) > 0;
                (LEAST..=LONGEST).rev().filter(is_used).find_map(|length| found(Chooser::Server, rest.get(..length)?))
            }
        }
    }
}

impl Drop for UsedId {
    fn drop(&mut self) {
        let mut shard = self.ids.shard(&self.key);
        let Entry::Occupied(mut found) = shard.entry(self.key) else { return };
        found.get_mut().flows -= 1;
        if found.get().flows == 0 {
            found.remove();
            if self.key.chooser == Chooser::Server {
                self.ids.0.lengths[self.key.id.as_slice().len()].fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(bytes: &[u8]) -> Id {
        Id::new(bytes).unwrap()
    }

    fn route(server: usize) -> Route {
        Route { server, home: Home { listener: 1, place: FlowPlace::default() } }
    }

    fn server_of(ids: &ConnectionIds, datagram: &[u8]) -> Option<usize> {
        ids.find(7, &wire::quic::header(datagram)?).map(|found| found.2.server)
    }

    fn long(id: &[u8]) -> Vec<u8> {
        [&[0xc0, 0, 0, 0, 1, id.len() as u8][..], id, &[0]].concat()
    }

    fn short(id: &[u8]) -> Vec<u8> {
        [&[0x40][..], id, &[9; 30]].concat()
    }

    #[test]
    fn ids_are_known_for_as_long_as_flows_use_them() {
        let ids = ConnectionIds::default();
        let first = ids.learn(7, Chooser::Server, id(b"12345678"), route(3));
        let second = ids.learn(7, Chooser::Server, id(b"12345678"), route(3));
        assert!(first.is_some() && second.is_some());
        assert_eq!((server_of(&ids, &short(b"12345678")), server_of(&ids, &long(b"12345678"))), (Some(3), Some(3)));
        drop(first);
        assert_eq!(server_of(&ids, &short(b"12345678")), Some(3));
        drop(second);
        assert_eq!((server_of(&ids, &short(b"12345678")), server_of(&ids, &long(b"12345678"))), (None, None));
        assert!(ids.0.lengths.iter().all(|length| length.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn ids_of_clients_lead_long_headers_only() {
        let ids = ConnectionIds::default();
        let _chosen = ids.learn(7, Chooser::Client, id(b"12345678"), route(1));
        assert_eq!((server_of(&ids, &short(b"12345678")), server_of(&ids, &long(b"12345678"))), (None, Some(1)));
        let _own = ids.learn(7, Chooser::Server, id(b"12345678"), route(2));
        assert_eq!((server_of(&ids, &short(b"12345678")), server_of(&ids, &long(b"12345678"))), (Some(2), Some(2)));
    }

    #[test]
    fn the_longest_id_is_found_first() {
        let ids = ConnectionIds::default();
        let _used = [(&b"1234"[..], 1), (b"12345678", 2), (b"abcd", 3)]
            .map(|(bytes, server)| ids.learn(7, Chooser::Server, id(bytes), route(server)));
        assert_eq!(
            [&b"12345678"[..], b"1234xxxx", b"abcdefgh", b"xxxxxxxx"].map(|id| server_of(&ids, &short(id))),
            [Some(2), Some(1), Some(3), None]
        );
        assert_eq!(server_of(&ids, &[0x40, b'1', b'2', b'3']), None);
    }

    #[test]
    fn ids_that_do_not_lead_to_one_server_are_not_learned() {
        let ids = ConnectionIds::default();
        let _first = ids.learn(7, Chooser::Server, id(b"1234"), route(1));
        assert!(ids.learn(7, Chooser::Server, id(b"1234"), route(2)).is_none());
        assert!(ids.learn(7, Chooser::Server, id(b"123"), route(1)).is_none());
        // The same ID in another section.
        let other = ids.learn(8, Chooser::Server, id(b"1234"), route(2));
        assert!(other.is_some());
        assert_eq!(server_of(&ids, &short(b"1234")), Some(1));
    }
}
