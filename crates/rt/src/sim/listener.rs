//! Simulated listeners: a backlog of connections that are not accepted yet.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use base::Key;

use super::node::{Backlog, Kind};
use super::world::{Happening, World};
use crate::net::Address;

/// The time after which a client retries when the backlog was full.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Returns the wildcard address of the family, with the same port.
fn wildcard(address: &Address) -> Option<Address> {
    let inet = address.inet()?;
    let any = match inet.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Some(Address::Inet(SocketAddr::new(any, inet.port())))
}

impl World {
    /// Listens at an address; port 0 is replaced by a new one.
    pub(super) fn listen(&mut self, address: &Address, backlog: i32) -> io::Result<(Key, Address)> {
        let mut address = address.clone();
        if let Address::Inet(inet) = &mut address
            && inet.port() == 0
        {
            inet.set_port(self.fresh_port());
        }
        if self.listening.contains_key(&address) {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        let most = usize::try_from(backlog).unwrap_or(0).max(1);
        let key = self.add_node(Kind::Listener(Backlog {
            address: address.clone(),
            waiting: VecDeque::new(),
            most,
            reset_on_close: false,
        }));
        self.listening.insert(address.clone(), key);
        Ok((key, address))
    }

    fn backlog(&mut self, key: Key) -> Option<&mut Backlog> {
        match self.nodes.get_mut(key).map(|node| &mut node.kind) {
            Some(Kind::Listener(backlog)) => Some(backlog),
            _ => None,
        }
    }

    fn listener_at(&self, address: &Address) -> Option<Key> {
        let exact = self.listening.get(address);
        exact.or_else(|| self.listening.get(&wildcard(address)?)).copied()
    }

    pub(super) fn syn_arrives(&mut self, client: Key, to: Address) {
        if self.faults.is_black_hole(&to) || self.peek_endpoint(client).is_none() {
            return;
        }
        let link = self.faults.link_of(&to);
        let redirected = self.faults.redirection_of(&to).cloned();
        let Some(listener) = self.listener_at(redirected.as_ref().unwrap_or(&to)).filter(|_| !self.faults.refuses(&to))
        else {
            let answer = self.arrival(link);
            return self.schedule(answer, Happening::Refused { client });
        };
        let full = self.backlog(listener).is_none_or(|backlog| backlog.waiting.len() >= backlog.most);
        if full {
            let later = self.now + ASK_AGAIN_AFTER;
            return self.schedule(later, Happening::Syn { client, to });
        }
        let Some(server) = self.join(client) else { return };
        let resets = self.backlog(listener).is_some_and(|backlog| {
            backlog.waiting.push_back(server);
            backlog.reset_on_close
        });
        if resets {
            self.set_reset_on_close(server);
        }
        if let (Some(endpoint), Some(here)) = (self.endpoint(server), redirected) {
            endpoint.redirected = Some(std::mem::replace(&mut endpoint.local, here));
        }
        self.trigger(listener);
        let answer = self.ordered_arrival(client, link);
        self.schedule(answer, Happening::Established { client, server });
    }

    pub(super) fn accept(&mut self, listener: Key) -> io::Result<Option<(Key, Address)>> {
        let Some(backlog) = self.backlog(listener).filter(|backlog| !backlog.is_empty()) else { return Ok(None) };
        let address = backlog.address.clone();
        if let Some(code) = self.faults.accept_error(&address) {
            return Err(io::Error::from_raw_os_error(code));
        }
        let server = self.backlog(listener).and_then(|backlog| backlog.waiting.pop_front());
        Ok(server.and_then(|server| Some((server, self.peek_endpoint(server)?.remote.clone()))))
    }

    /// Closes a listener: connections that wait are reset.
    pub(super) fn close_listener(&mut self, key: Key) {
        let Some(backlog) = self.backlog(key) else { return };
        let (address, waiting) = (backlog.address.clone(), std::mem::take(&mut backlog.waiting));
        self.listening.remove(&address);
        self.nodes.remove(key);
        for server in waiting {
            self.set_reset_on_close(server);
            self.close_stream(server);
        }
    }
}
