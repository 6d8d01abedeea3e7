//! `add server` (management manual, section 9.3). Must never send traffic to the server: an added server starts in
//! maintenance.

use config::keyword::{added_server_keywords, read_added_server};
use config::spec::{ServerSpec, Spec};
use live::CookieChange;
use live::ServerPlace;
use policy::compile;
use policy::program::{Backend, Proxy, Server};

use super::super::super::Call;
use engine::certificates::Certificates;
use engine::free_slots::Vacancies;
use engine::generation::Generation;
use engine::outgoing::idle_limits;
use engine::service::cookies::change_cookies;
use engine::worker::{Process, Worker};

/// Servers that are added to most backends, at most: no room is kept for more.
const FEW: usize = 4;

/// Message if a table of servers is full.
const FULL: &str = "Too many servers were added to this process: reload it.";

/// Handles `add server help`, or adds a server.
pub(super) fn add(call: &mut Call<'_, Worker>) {
    if call.word(2) == "help" {
        let mut text = "List of keywords supported for dynamic server:\n".to_owned();
        added_server_keywords().for_each(|name| {
            text.push_str(name);
            text.push('\n');
        });
        call.inform(&text);
        return;
    }
    match register(&call.state.process, call.generation, call.word(2), call.words.get(3..).unwrap_or_default()) {
        Ok(()) => call.inform("New server registered."),
        Err(sentence) => call.refuse(&sentence),
    }
}

fn register(shared: &Process, generation: &Generation, name: &str, words: &[String]) -> Result<(), String> {
    let (backend, server) = super::split(name)?;
    let proxy = super::find_backend(&generation.program, backend)?;
    if let Some(sentence) = compile::refuses_servers(&generation.program, proxy.index) {
        return Err(sentence);
    }
    let mut written = generation.written();
    let written = written.as_mut().ok_or("Servers cannot be added to this process.")?;
    let defaults = written.proxies.get(proxy.index).into_iter().flat_map(|own| &own.default_servers);
    let mut defaults = defaults.filter(|known| !server.is_empty() && known.name.value == server);
    let same = generation.program.server_called(proxy, server).filter(|known| *known.name == *server);
    if same.is_some() || defaults.next().is_some() {
        return Err("Already exists a server with the same name in backend.".to_owned());
    }
    let read = read_added_server(written, &proxy.name, server, words, &shared.host.variables())?;
    enter(shared, generation, written, proxy, read.clone())?;
    if let Some(own) = written.proxies.get_mut(proxy.index) {
        if own.added.len() < FEW {
            own.added.reserve_exact(1);
        }
        own.added.push(read);
    }
    Ok(())
}

/// Registers a server, at the index of a removed one or at a new one.
fn enter(
    shared: &Process,
    generation: &Generation,
    written: &Spec,
    proxy: &Proxy,
    read: ServerSpec,
) -> Result<(), String> {
    let backend = proxy.backend.as_ref().ok_or("No such backend.")?;
    // The serial number does not matter for validation.
    let known =
        read.tls.as_ref().map(|_| shared.service::<Certificates>().known(&generation.program)).unwrap_or_default();
    let mut server = compile::add_server(written, &generation.program, proxy.index, read, 0, known)?;
    if take_over(shared, generation, proxy, backend, &server) {
        return Ok(());
    }
    server.serial = shared.pool.add(idle_limits(&server)).ok_or(FULL)?;
    if !shared.counters.add_server(server.serial) || !shared.outgoing.add(proxy, &server, &generation.program.global) {
        return Err(FULL.to_owned());
    }
    if !shared.know_server(proxy, &server) {
        return Err(FULL.to_owned());
    }
    let place = backend.servers.push(|_| server).map_err(|_| FULL)?;
    let state = &shared.live.proxies[proxy.index];
    let server = backend.servers.get(place).filter(|server| state.add_server(&server.plan(), rt::now())).ok_or(FULL)?;
    if let Some(leader) = server.tracking.leader {
        follow(shared, generation, leader, proxy.place_of(server))?;
    }
    generation.program.index_server(proxy, server);
    begin(shared, proxy, server);
    Ok(())
}

fn begin(shared: &Process, proxy: &Proxy, server: &Server) {
    change_cookies(shared, proxy, CookieChange::Servers);
    engine::check::add(shared, proxy.index, server);
    engine::service::events::added(shared, proxy, server);
}

/// Gives a server the index and the serial number of a removed one that differs only in name and address, if nothing
/// refers to that one. False: there is none.
fn take_over(shared: &Process, generation: &Generation, proxy: &Proxy, backend: &Backend, fresh: &Server) -> bool {
    let is_free = |old: &&Server| shared.service::<Vacancies>().has(proxy.place_of(old));
    let Some(server) = compile::predecessors(&generation.program, proxy, fresh).find(is_free) else { return false };
    let is_known = shared.know_occupant(&generation.program, proxy.place_of(server), &fresh.name);
    if !is_known || !shared.occupy(proxy.index, server, fresh.address.clone(), rt::now()) {
        backend.servers.strike(server.index);
        return false;
    }
    generation.program.index_server(proxy, server);
    begin(shared, proxy, server);
    true
}

/// Makes it track another server.
fn follow(shared: &Process, generation: &Generation, leader: ServerPlace, follower: ServerPlace) -> Result<(), String> {
    let known = generation.program.server_at(leader).ok_or(FULL)?;
    known.tracking.added.push(|_| follower).map_err(|_| FULL)?;
    let _ = shared.live.follow(leader, follower, rt::now());
    Ok(())
}
