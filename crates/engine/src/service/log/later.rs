//! Where lines go that the process did not know at its start: those of proxies and agents that a reload in place adds, and servers
//! that come to backends in `mode log`. Must never open anything: rights may be given up by then.

use std::sync::{Arc, OnceLock};

use config::spec::{LogFormatSpec, Mode};
use expression::log_format::LogFormat;
use live::Live;
use policy::program::{LogAddress, LogLines, LogTarget, Proxy, Server, SpoeLog};
use rt::net::Address;

use super::balance::{self, Balance};
use super::targets::{Destination, LineTarget, Plan, Route, Targets};
use crate::generation::Generation;

impl Targets {
    /// Where a proxy logs that is added. False: what it logs to is not open, or there is no room.
    pub fn add(&self, proxy: &Proxy) -> bool {
        let tag = proxy.log_tag.as_deref().unwrap_or(&self.process.tag);
        let Some(route) = self.later(Plan { targets: &proxy.logs, tag, lines: proxy.log_lines.clone() }) else {
            return false;
        };
        self.proxies.push(|_| route) == Ok(proxy.index) && self.backends.push(|_| OnceLock::new()) == Ok(proxy.index)
    }

    /// The same for an agent of SPOE, the next one.
    pub fn add_agent(&self, log: &SpoeLog) -> bool {
        let lines = LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Tcp));
        let route = self.later(Plan { targets: &log.targets, tag: &self.process.tag, lines });
        route.is_some_and(|route| self.later_agents.push(|_| route).is_ok())
    }

    fn later(&self, plan: Plan<'_>) -> Option<Route> {
        let is_open = |target: &LogTarget| {
            matches!(target.address, LogAddress::Backend(_)) || self.open_place(&target.address).is_some()
        };
        if !plan.targets.iter().all(is_open) {
            return None;
        }
        let mut route = Route::new(plan, |address| match address {
            LogAddress::Backend(proxy) => Destination::Backend(*proxy),
            other => Destination::Target(self.open_place(other).unwrap_or_default()),
        });
        route.note_profiles(&self.profiles);
        Some(route)
    }

    /// The place of an address that lines go to already, or to which datagrams go without more.
    fn open_place(&self, address: &LogAddress) -> Option<usize> {
        let known = self.addresses.iter().position(|known| known == address);
        known.or_else(|| {
            let LogAddress::Inet(address) = address else { return None };
            let address = Address::Inet(*address);
            let is_it = |place: &LineTarget| matches!(place, LineTarget::Address(known) if *known == address);
            let later = self.places.enumerate().find(|(_, place)| is_it(place)).map(|(index, _)| index);
            later.or_else(|| self.places.push(|_| LineTarget::Address(address)).ok())
        })
    }

    /// Has a proxy that was added, in `mode log`, get lines from now on.
    pub fn begin(&self, generation: &Generation, live: &Arc<Live>, proxy: &Proxy) {
        if let Some(backend) = self.backends.get(proxy.index).filter(|_| proxy.mode == Mode::Log) {
            let mut add = |place| self.places.push(|_| place).ok();
            backend.get_or_init(|| Balance::new(generation, live, proxy, &mut add));
        }
    }

    /// Gives a server that is added a place, where its proxy is in `mode log`. False: there is no room.
    pub fn add_server(&self, proxy: &Proxy, server: &Server) -> bool {
        let Some(balance) = self.backends.get(proxy.index).and_then(OnceLock::get) else { return true };
        self.places.push(|_| balance::place(server)).is_ok_and(|place| balance.add(server, place))
    }

    /// Where the lines of an agent go, by its engine.
    pub(super) fn agent(&self, engine: usize) -> Option<&Route> {
        let first = self.applications.len() - self.first_agent;
        match engine.checked_sub(first) {
            Some(later) => self.later_agents.get(later),
            None => self.applications.get(self.first_agent + engine),
        }
    }
}
