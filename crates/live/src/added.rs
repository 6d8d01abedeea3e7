//! Adds, publishes and removes backends while requests are served (management manual, "add backend", "publish
//! backend"). Reading takes no lock. Must never compile a backend.

use super::{Live, ProxyPlan, ProxyState};
use base::AppendOnlyVec;
use base::hash::xxh32;
use config::spec::Mode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether rules may select a proxy.
#[derive(Debug)]
pub(super) struct Publication {
    disabled: bool,
    published: AtomicBool,
}

impl Publication {
    pub(super) fn new(proxy: &ProxyPlan) -> Self {
        Self { disabled: proxy.disabled, published: AtomicBool::new(!proxy.unpublished) }
    }
}

impl ProxyState {
    /// Whether rules may select it: it is neither disabled nor unpublished.
    #[inline]
    pub fn is_open(&self) -> bool {
        !self.publication.disabled && self.is_published()
    }

    #[inline]
    pub fn is_published(&self) -> bool {
        self.publication.published.load(Ordering::Relaxed)
    }

    /// Publishes or unpublishes it: rules skip an unpublished backend.
    pub fn publish(&self, published: bool) {
        self.publication.published.store(published, Ordering::Relaxed);
    }
}

/// Number of hash chains.
const CHAINS: usize = 256;

/// The end of a chain.
const END: usize = usize::MAX;

/// Names of added backends, in hash chains. A removed backend is unlinked from its chain.
#[derive(Debug)]
pub struct AddedNames {
    chains: Box<[AtomicUsize]>,
    names: AppendOnlyVec<Added>,
}

#[derive(Debug)]
struct Added {
    name: Box<[u8]>,
    mode: Mode,
    /// Index of the proxy.
    proxy: usize,
    /// The next entry of its chain.
    next: AtomicUsize,
}

impl Default for AddedNames {
    fn default() -> Self {
        Self { chains: (0..CHAINS).map(|_| AtomicUsize::new(END)).collect(), names: AppendOnlyVec::default() }
    }
}

impl AddedNames {
    fn chain(&self, name: &[u8]) -> &AtomicUsize {
        &self.chains[xxh32(name, 0) as usize % CHAINS]
    }

    /// Returns the index of the proxy of that name, if its mode fits.
    pub fn find(&self, name: &[u8], fits: impl Fn(Mode) -> bool) -> Option<usize> {
        let mut place = self.chain(name).load(Ordering::Acquire);
        while let Some(added) = self.names.get(place) {
            if *added.name == *name {
                return Some(added.proxy).filter(|_| fits(added.mode));
            }
            place = added.next.load(Ordering::Acquire);
        }
        None
    }

    /// Adds a name. Callers must be serialized. False: the list is full.
    fn add(&self, proxy: &ProxyPlan) -> bool {
        let name: Box<[u8]> = proxy.name.as_bytes().into();
        let chain = self.chain(&name);
        let next = AtomicUsize::new(chain.load(Ordering::Relaxed));
        let Ok(place) = self.names.push(|_| Added { name, mode: proxy.mode, proxy: proxy.index, next }) else {
            return false;
        };
        chain.store(place, Ordering::Release);
        true
    }

    /// Unlinks a name. Callers must be serialized. Concurrent readers of the entry continue with the next one.
    fn remove(&self, name: &str, proxy: usize) {
        let mut link = self.chain(name.as_bytes());
        while let Some(added) = self.names.get(link.load(Ordering::Relaxed)) {
            if added.proxy == proxy {
                link.store(added.next.load(Ordering::Relaxed), Ordering::Release);
                return;
            }
            link = &added.next;
        }
    }
}

impl Live {
    /// Adds the state of another backend, at the index in its plan. Callers must be serialized; false: the list is
    /// full.
    pub fn add_backend(&self, proxy: &ProxyPlan) -> bool {
        self.proxies.push(|_| Arc::new(ProxyState::new(proxy, &self.process))) == Ok(proxy.index)
            && self.added.add(proxy)
    }

    /// Adds the state of another proxy of a configuration, which resolves its name itself. Callers must be serialized;
    /// false: the list is full.
    pub fn add_proxy(&self, proxy: &ProxyPlan) -> bool {
        self.proxies.push(|_| Arc::new(ProxyState::new(proxy, &self.process))) == Ok(proxy.index)
    }

    /// Reuses the index and the state of a removed backend for a new one with the same settings, published as in its
    /// plan. False: the list of names is full.
    pub fn restore_backend(&self, proxy: &ProxyPlan) -> bool {
        let Some(state) = self.proxies.get(proxy.index) else { return false };
        state.publish(!proxy.unpublished);
        state.clear_changes(None);
        state.clear_mirrored();
        self.proxies.restore(proxy.index) && self.added.add(proxy)
    }

    /// Removes a backend: lookups no longer find it.
    pub fn remove_backend(&self, name: &str, index: usize) {
        self.added.remove(name, index);
        self.proxies.strike(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LivePlan;

    fn backends(count: usize) -> Vec<ProxyPlan> {
        let plan = |index| ProxyPlan { index, name: format!("b{index}").into(), ..ProxyPlan::default() };
        (0..count).map(plan).collect()
    }

    #[test]
    fn names_come_and_go() {
        let proxies = backends(600);
        let names = AddedNames::default();
        let find = |name: &str| names.find(name.as_bytes(), |_| true);
        assert_eq!(find("b0"), None);
        for proxy in &proxies {
            assert!(names.add(proxy));
        }
        for proxy in &proxies {
            assert_eq!(find(&proxy.name), Some(proxy.index));
            assert_eq!(names.find(proxy.name.as_bytes(), |mode| mode == Mode::Log), None);
        }
        for proxy in proxies.iter().filter(|proxy| proxy.index % 3 != 0) {
            names.remove(&proxy.name, proxy.index);
        }
        for proxy in &proxies {
            let expected = (proxy.index % 3 == 0).then_some(proxy.index);
            assert_eq!(find(&proxy.name), expected, "{}", proxy.name);
        }
        assert!(names.add(&proxies[1]));
        assert_eq!(find("b1"), Some(1));
    }

    #[test]
    fn who_looks_finds_what_stays_while_others_come_and_go() {
        // Names in the same chain and in others.
        let proxies = backends(200);
        let names = AddedNames::default();
        assert!(names.add(&proxies[0]));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = || {
                let mut looked = 0;
                while looked < 1_000 || !done.load(Ordering::Relaxed) {
                    assert_eq!(names.find(b"b0", |_| true), Some(0));
                    assert!(matches!(names.find(b"b77", |_| true), None | Some(77)));
                    looked += 1;
                }
            };
            (0..3).for_each(|_| {
                scope.spawn(looks);
            });
            for _ in 0..20 {
                for proxy in proxies.iter().skip(1) {
                    assert!(names.add(proxy));
                }
                proxies.iter().skip(1).for_each(|proxy| names.remove(&proxy.name, proxy.index));
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(names.find(b"b77", |_| true), None);
    }

    #[test]
    fn a_backend_is_open_while_it_is_published() {
        let mut proxies = backends(3);
        proxies[1].unpublished = true;
        proxies[2].disabled = true;
        let live = Live::new(LivePlan { proxies, ..LivePlan::default() }, 1);
        let open = || live.proxies.iter().map(|state| state.is_open()).collect::<Vec<_>>();
        assert_eq!(open(), [true, false, false]);
        live.proxies.iter().for_each(|state| state.publish(true));
        assert_eq!(open(), [true, true, false]);
        live.proxies[0].publish(false);
        assert_eq!(open(), [false, true, false]);
    }
}
