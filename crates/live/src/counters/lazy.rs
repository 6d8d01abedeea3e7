//! Counters that are allocated when something is counted for the first time: most backends and servers of a very large configuration
//! are idle in most workers. Must never be counted in by two threads.

use super::cell::Count;
use super::content::ContentCounters;
use super::http2::Http2Counters;
use super::quic::{LazyQuicCounters, QuicCounters};
use super::{FrontCounters, ObjectCounters};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// One worker's counters of a server.
#[derive(Debug, Default)]
pub(super) struct ServerCounters(OnceLock<Box<ObjectCounters>>);

impl ServerCounters {
    /// Returns the counters to count in.
    #[inline]
    pub(super) fn used(&self) -> &ObjectCounters {
        match self.0.get() {
            Some(counters) => counters,
            None => self.begin(),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&self) -> &ObjectCounters {
        self.0.get_or_init(Box::default)
    }

    /// Returns the counters to read; `None`: nothing was counted.
    pub(super) fn known(&self) -> Option<&ObjectCounters> {
        self.0.get().map(|counters| &**counters)
    }
}

/// The counts of a proxy as a backend.
#[derive(Debug, Default)]
pub struct BackCounters {
    /// Its own.
    pub back: ObjectCounters,
    /// Its connections of HTTP/2 with servers.
    pub http2: Http2Counters,
    /// Its QUIC connections with servers.
    pub quic: LazyQuicCounters,
    /// Bodies of its responses.
    pub content: ContentCounters,
}

impl BackCounters {
    pub(super) fn clear(&self, all: bool) {
        self.back.clear(all, false);
        if all {
            self.http2.clear();
            self.quic.known().into_iter().for_each(QuicCounters::clear);
            self.content.clear();
        }
    }
}

/// The counts of a proxy as a backend, and as a frontend, which all backends have in common: nothing is counted there.
#[derive(Debug)]
pub struct ProxyCounters {
    facing: Arc<FrontCounters>,
    serving: OnceLock<Box<BackCounters>>,
}

impl ProxyCounters {
    pub(super) fn new(facing: Arc<FrontCounters>) -> Self {
        Self { facing, serving: OnceLock::new() }
    }

    /// As a frontend.
    pub fn facing(&self) -> &Arc<FrontCounters> {
        &self.facing
    }

    /// Returns the counts as a backend, to count in.
    #[inline]
    pub fn serving(&self) -> &BackCounters {
        match self.serving.get() {
            Some(counters) => counters,
            None => self.begin(),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&self) -> &BackCounters {
        self.serving.get_or_init(Box::default)
    }

    /// Returns its own counters as a backend, to count in.
    #[inline]
    pub fn back(&self) -> &ObjectCounters {
        &self.serving().back
    }

    /// Returns the counts as a backend, to read; `None`: nothing was counted.
    pub fn served(&self) -> Option<&BackCounters> {
        self.serving.get().map(|counters| &**counters)
    }

    /// Returns its own counters as a backend, to read; `None`: nothing was counted.
    pub fn known_back(&self) -> Option<&ObjectCounters> {
        self.served().map(|counters| &counters.back)
    }

    /// Returns a count of its HTTP/2 connections with clients (`front`) or servers.
    pub(super) fn http2(&self, front: bool, of: impl Fn(&Http2Counters) -> &Count) -> u64 {
        let back = || self.served().map(|counters| &counters.http2);
        if front { Some(&self.front_http2) } else { back() }.map_or(0, |counters| of(counters).get())
    }

    /// Returns the counters of its QUIC connections with clients (`front`) or servers; `None`: nothing was counted.
    pub(super) fn quic(&self, front: bool) -> Option<&QuicCounters> {
        if front { self.front_quic.known() } else { self.served()?.quic.known() }
    }

    /// Returns a count of bodies of its responses, as a frontend (`front`) or a backend.
    pub(super) fn content(&self, front: bool, of: impl Fn(&ContentCounters) -> &Count) -> u64 {
        let back = || self.served().map(|counters| &counters.content);
        if front { Some(&self.front_content) } else { back() }.map_or(0, |counters| of(counters).get())
    }
}

impl Deref for ProxyCounters {
    type Target = FrontCounters;

    fn deref(&self) -> &FrontCounters {
        &self.facing
    }
}

#[cfg(test)]
mod tests {
    use super::super::Counters;
    use super::*;
    use std::mem::size_of;

    #[test]
    fn counters_are_allocated_when_something_is_counted() {
        let counters = Counters::new(&[Some(1), None], 2, 2);
        assert!(counters.add_server(2) && counters.add_proxy(2, false));
        let [one, other] = &counters.workers[..] else { panic!() };
        let sum = || {
            let servers = (0..3).map(|serial| counters.of(|worker| worker.known_server(serial)));
            let backends = (0..3).map(|proxy| counters.of(|worker| worker.proxies[proxy].known_back()));
            servers.chain(backends).map(|sum| sum.count(|counters| &counters.sessions)).collect::<Vec<_>>()
        };
        counters.workers.iter().for_each(|worker| worker.clear(true));
        assert_eq!(sum(), [0; 6]);
        assert!((0..3).all(|at| one.known_server(at).is_none() && one.proxies[at].served().is_none()));
        one.server(2).sessions.add(3);
        other.server(2).sessions.add(4);
        one.proxies[1].back().sessions.add(5);
        assert_eq!(sum(), [0, 0, 7, 0, 5, 0]);
        assert!(one.known_server(1).is_none() && other.proxies[1].served().is_none());
        one.clear_server(2);
        one.clear_backend(1);
        assert_eq!(sum(), [0, 0, 4, 0, 0, 0]);
    }

    #[test]
    fn latencies_have_counters_before_the_first_request() {
        let counters = Counters::new(&[None], 1, 1);
        counters.measure_latency();
        assert!(counters.add_server(1) && counters.add_proxy(1, false));
        let worker = &counters.workers[0];
        let is_measured = |counters: Option<&ObjectCounters>| counters.is_some_and(|one| one.latency.get().is_some());
        assert!([0, 1].into_iter().all(|at| is_measured(worker.known_server(at))));
        assert!([0, 1].into_iter().all(|at| is_measured(worker.proxies[at].known_back())));
    }

    /// Each backend and each server has these in every worker.
    #[test]
    fn an_idle_object_takes_little() {
        assert!(size_of::<ServerCounters>() <= 16 && size_of::<ProxyCounters>() <= 24);
        assert!(size_of::<ObjectCounters>() <= 640 && size_of::<BackCounters>() <= 896);
    }
}
