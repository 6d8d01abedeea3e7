//! `del server`, and `wait` for its condition (management manual, section 9.3). Must never remove a server that is in
//! use.

use live::{CookieChange, Removal, ServerPlace};
use policy::program::Proxy;

use super::super::super::Call;
use super::super::super::command::Condition;
use engine::certificates::Certificates;
use engine::generation::Generation;
use engine::service::cookies::change_cookies;
use engine::worker::{Process, Worker};

/// Reasons why a server cannot be removed.
enum Obstacle {
    /// Permanent.
    Lasting(&'static str),
    /// It is still in use.
    Passing,
}

const IN_USE: &str = "Server still has connections attached to it, cannot remove it.";
const REFERENCED: &str = "This server cannot be removed at runtime due to other configuration elements pointing to it.";
const IN_SERVICE: &str = "Only servers in maintenance mode can be deleted.";

/// Returns the place of a server that may be removed now.
fn removable(shared: &Process, generation: &Generation, name: &str) -> Result<ServerPlace, Obstacle> {
    let found = super::find(&generation.program, name);
    let (proxy, server) = found.map_err(Obstacle::Lasting)?;
    if server.fixed || server.tracking.has_followers() {
        return Err(Obstacle::Lasting(REFERENCED));
    }
    match shared.live.proxies[proxy.index].removal(server.index) {
        Removal::Unknown => Err(Obstacle::Lasting("No such server.")),
        Removal::InService => Err(Obstacle::Lasting(IN_SERVICE)),
        Removal::Busy => Err(Obstacle::Passing),
        Removal::Possible => {
            // Connections established while the server was set to maintenance may be left; they must not be reused.
            if shared.pool.idle_connections(server.serial) > 0 {
                shared.forget_links(server.serial);
            }
            Ok(proxy.place_of(server))
        }
    }
}

/// `del server <backend>/<server>`.
pub(super) fn delete(call: &mut Call<'_, Worker>) {
    let (shared, generation) = (&call.state.process, call.generation);
    let place = match removable(shared, call.generation, call.word(2)) {
        Ok(place) => place,
        Err(Obstacle::Lasting(sentence)) => return call.refuse(sentence),
        Err(Obstacle::Passing) => return call.refuse(IN_USE),
    };
    let proxy = &generation.program.proxies[place.proxy];
    // A request may have been assigned in between: the check under the backend's lock decides.
    if shared.live.proxies[place.proxy].remove_server(place.server, rt::now()) != Removal::Possible {
        return call.refuse(IN_USE);
    }
    if generation.program.server_at(place).is_some_and(|server| server.connecting.tls.is_some()) {
        shared.service::<Certificates>().lock().keep(&generation.program);
    }
    if let Some(own) = generation.program.server_at(place) {
        engine::service::events::removed(shared, proxy, own);
    }
    strike(proxy, place.server);
    if let Some(own) = generation.program.server_at(place) {
        generation.program.forget_server(proxy, own);
    }
    forget(generation, place);
    change_cookies(shared, proxy, CookieChange::Servers);
    if let Some(server) = generation.program.server_at(place) {
        shared.forget_links(server.serial);
        shared.vacate((server.serial, place));
        let leader = server.tracking.leader.and_then(|leader| generation.program.server_at(leader));
        leader.into_iter().for_each(|leader| leader.tracking.lose(place));
    }
    call.inform("Server deleted.");
}

/// Removes the server from the configuration, so that no later server copies it.
fn forget(generation: &Generation, place: ServerPlace) {
    let Some(server) = generation.program.server_at(place) else { return };
    if let Some(written) = generation.written().as_mut().and_then(|written| written.proxies.get_mut(place.proxy)) {
        written.added.retain(|added| *added.name.value != *server.name);
    }
}

fn strike(proxy: &Proxy, server: usize) {
    if let Some(backend) = &proxy.backend {
        backend.servers.strike(server);
    }
}

/// Returns the state of `wait <delay> srv-removable <backend>/<server>`.
pub(in super::super) fn wait(shared: &Process, generation: &Generation, name: &str) -> Condition {
    if name.is_empty() {
        return Condition::Refused("Missing server name (<backend>/<server>).".to_owned());
    }
    if let Err(sentence) = super::split(name) {
        return Condition::Refused(sentence.to_owned());
    }
    match removable(shared, generation, name) {
        Ok(_) => Condition::Met,
        Err(Obstacle::Lasting(sentence)) => Condition::Failed(sentence.to_owned()),
        Err(Obstacle::Passing) => Condition::Unmet(IN_USE.to_owned()),
    }
}
