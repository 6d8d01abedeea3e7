//! Applies DNS answers to servers, and logs changes in HAProxy's words. Must never decide whether an answer is valid.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use config::spec::LogLevel;
use live::{Admin, ProxyState, ServerPlace};
use policy::program::{Backend, Proxy, Server, ServerAddress, ServerPort};
use policy::resolve::Failure;

use super::Section;
use super::resolved_name::Followed;
use crate::resolve::Resolving;
use crate::service::cookies::follow_address;
use crate::service::transitions::Cause;
use crate::service::{events, session_shutdown, transitions};
use crate::stream_state::Cause as Ending;
use crate::worker::Worker;

/// A server by its proxy and index in the program.
pub(super) struct At {
    pub proxy: Arc<Proxy>,
    index: usize,
}

impl At {
    pub(super) fn new(worker: &Worker, place: ServerPlace) -> Option<Self> {
        let proxy = Arc::clone(worker.generation().program.proxies.get(place.proxy)?);
        proxy.backend.as_ref()?.servers.get(place.server)?;
        Some(Self { proxy, index: place.server })
    }

    pub(super) fn backend(&self) -> Option<&Backend> {
        self.proxy.backend.as_ref()
    }

    pub(super) fn server(&self) -> Option<&Server> {
        self.backend()?.servers.get(self.index)
    }
}

/// Returns a server's current address and port.
pub(super) fn address(worker: &Worker, server: &Server) -> (Option<IpAddr>, ServerPort) {
    match *worker.process.outgoing.address(server) {
        ServerAddress::Inet { ip, port } => (Some(ip), port),
        ServerAddress::Unresolved { port } => (None, port),
        _ => (None, ServerPort::Exact(0)),
    }
}

/// Applies a valid answer: every server that follows the name takes one of its addresses.
pub(super) fn apply_answer(section: &Section, worker: &Rc<Worker>, followed: &Followed, nameserver: usize) {
    let members: Vec<ServerPlace> = followed.followers.borrow().iter().map(|follower| follower.member).collect();
    let written = section.written();
    let first = format!("{}/{}", written.name, written.nameservers[nameserver].name);
    for (place, member) in members.into_iter().enumerate() {
        let Some(at) = At::new(worker, member) else { continue };
        let Some((server, backend)) = at.server().zip(at.backend()) else { continue };
        let Some(resolving) = &server.resolving else { continue };
        let (current, _) = address(worker, server);
        let name = worker.process.service::<Resolving>().named(server.serial).host;
        let is_taken = |ip: IpAddr| {
            backend.servers.iter().filter(|other| other.index != server.index).any(|other| {
                address(worker, other).0 == Some(ip)
                    && other.resolving.is_some()
                    && worker.process.service::<Resolving>().named(other.serial).host == name
            })
        };
        let chosen = followed.known.borrow().addresses.choose(&resolving.choice, current, is_taken);
        let by = if place == 0 { first.as_str() } else { "DNS cache" };
        match chosen {
            Some(ip) => {
                if move_to(worker, &at, ip, None, by) {
                    section.line(nameserver).counts().update.add();
                }
            }
            None => lose(worker, &at, "No IP for server "),
        }
    }
}

/// Removes the addresses of all servers that follow a name whose answers have expired.
pub(super) fn lost(worker: &Rc<Worker>, followed: &Followed, failure: Failure) {
    let members: Vec<ServerPlace> = followed.followers.borrow().iter().map(|follower| follower.member).collect();
    for member in members {
        if let Some(at) = At::new(worker, member) {
            lose(worker, &at, failure.reason());
        }
    }
}

/// Sets a server's address. Returns true if it changed.
pub(super) fn move_to(worker: &Rc<Worker>, at: &At, ip: IpAddr, port: Option<u16>, by: &str) -> bool {
    let Some(server) = at.server() else { return false };
    let (old_ip, old_port) = address(worker, server);
    let port = port.map_or(old_port, ServerPort::Exact);
    let mut told = Vec::new();
    if old_ip != Some(ip) {
        let old = old_ip.map_or_else(|| "(none)".to_owned(), |ip| ip.to_string());
        told.push(format!("IP changed from '{old}' to '{ip}'"));
    }
    if let (ServerPort::Exact(old), ServerPort::Exact(new)) = (old_port, port)
        && old != new
    {
        told.push(format!("port changed from '{old}' to '{new}'"));
    }
    if !told.is_empty() {
        set_address(worker, &at.proxy, server, ServerAddress::Inet { ip, port });
        follow_address(&worker.process, &at.proxy);
        let text = format!("{}/{}: {} by '{by}'.", at.proxy.name, server.name, told.join(", "));
        worker.announce(at.proxy.index, LogLevel::Notice, &text);
    }
    regain(worker, at, server);
    !told.is_empty()
}

/// Sets the address for new connections, and discards the idle ones.
fn set_address(worker: &Worker, proxy: &Proxy, server: &Server, address: ServerAddress) {
    let shared = &worker.process;
    if let Some(address) = address.of_syslog().filter(|_| server.log.is_some()) {
        shared.log_targets.move_server(proxy.place_of(server), address);
    }
    shared.outgoing.set_address(server, address);
    shared.forget_links(server.serial);
    events::moved(shared, proxy, server);
}

/// Sets the port of a server, which may have no address yet.
pub(super) fn set_port(worker: &Worker, server: &Server, port: u16) {
    let port = ServerPort::Exact(port);
    let address = match address(worker, server) {
        (Some(ip), _) => ServerAddress::Inet { ip, port },
        (None, _) => ServerAddress::Unresolved { port },
    };
    worker.process.outgoing.set_address(server, address);
}

/// Marks a server as resolved again, if it was not.
fn regain(worker: &Worker, at: &At, server: &Server) {
    let state = &worker.process.live.proxies[at.proxy.index];
    if state.status(server.index).is_none_or(|status| status.resolved) {
        return;
    }
    let host = worker.process.service::<Resolving>().named(server.serial).host.unwrap_or_default();
    let regain = |state: &ProxyState| state.set_resolved(server.index, true, rt::now());
    transitions::change(worker, &at.proxy, server, regain, Cause::Name(&host));
    let text = format!("Server {}/{} administratively READY thanks to valid DNS answer.", at.proxy.name, server.name);
    worker.announce(at.proxy.index, LogLevel::Notice, &text);
}

/// Removes a server's address, and marks it as unresolved.
pub(super) fn lose(worker: &Worker, at: &At, reason: &str) {
    let Some(server) = at.server() else { return };
    let state = &worker.process.live.proxies[at.proxy.index];
    let Some(before) = state.status(server.index).filter(|status| status.resolved) else { return };
    let lose = |state: &ProxyState| state.set_resolved(server.index, false, rt::now());
    transitions::change(worker, &at.proxy, server, lose, Cause::Name(reason));
    let (_, port) = address(worker, server);
    worker.process.outgoing.set_address(server, ServerAddress::Unresolved { port });
    worker.process.forget_links(server.serial);
    events::moved(&worker.process, &at.proxy, server);
    if server.down_shuts_sessions && before.up && before.admin != Admin::Maintenance {
        let (shared, place) = (Arc::clone(&worker.process), at.proxy.place_of(server));
        rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
            session_shutdown::shut_sessions(&shared, place, Ending::Down).await;
        });
    }
}
