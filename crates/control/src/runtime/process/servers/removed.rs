//! `del server`, and `wait` for its condition (management manual, section 9.3). Must never remove a server that is in
//! use.

use live::{CookieChange, Removal};
use policy::program::Program;

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

/// Returns the indexes of the backend and of a server that may be removed now.
fn removable((shared, generation): (&Process, &Generation), name: &str) -> Result<(usize, usize), Obstacle> {
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
            Ok((proxy.index, server.index))
        }
    }
}

/// `del server <backend>/<server>`.
pub(super) fn delete(call: &mut Call<'_, Worker>) {
    let (shared, generation) = (&call.state.process, call.generation);
    let (proxy, server) = match removable((shared, call.generation), call.word(2)) {
        Ok(found) => found,
        Err(Obstacle::Lasting(sentence)) => return call.refuse(sentence),
        Err(Obstacle::Passing) => return call.refuse(IN_USE),
    };
    // A request may have been assigned in between: the check under the backend's lock decides.
    if shared.live.proxies[proxy].remove_server(server, rt::now()) != Removal::Possible {
        return call.refuse(IN_USE);
    }
    if generation.program.server_at((proxy, server)).is_some_and(|server| server.connecting.tls.is_some()) {
        shared.service::<Certificates>().lock().keep(&generation.program);
    }
    if let Some(own) = generation.program.server_at((proxy, server)) {
        engine::service::events::removed(shared, &generation.program.proxies[proxy], own);
    }
    strike(&generation.program, proxy, server);
    if let Some(own) = generation.program.server_at((proxy, server)) {
        generation.program.forget_server(&generation.program.proxies[proxy], own);
    }
    forget(generation, (proxy, server));
    change_cookies(shared, &generation.program.proxies[proxy], CookieChange::Servers);
    let place = (proxy, server);
    if let Some(server) = generation.program.server_at(place) {
        shared.forget_links(server.serial);
        shared.vacate((server.serial, place));
        let leader = server.tracking.leader.and_then(|leader| generation.program.server_at(leader));
        leader.into_iter().for_each(|leader| leader.tracking.lose(place));
    }
    call.inform("Server deleted.");
}

/// Removes the server from the configuration, so that no later server copies it.
fn forget(generation: &Generation, place: (usize, usize)) {
    let Some(server) = generation.program.server_at(place) else { return };
    if let Some(written) = generation.written().as_mut().and_then(|written| written.proxies.get_mut(place.0)) {
        written.added.retain(|added| *added.name.value != *server.name);
    }
}

fn strike(program: &Program, proxy: usize, server: usize) {
    if let Some(backend) = &program.proxies[proxy].backend {
        backend.servers.strike(server);
    }
}

/// Returns the state of `wait <delay> srv-removable <backend>/<server>`.
pub(in super::super) fn wait((shared, generation): (&Process, &Generation), name: &str) -> Condition {
    if name.is_empty() {
        return Condition::Refused("Missing server name (<backend>/<server>).".to_owned());
    }
    if let Err(sentence) = super::split(name) {
        return Condition::Refused(sentence.to_owned());
    }
    match removable((shared, generation), name) {
        Ok(_) => Condition::Met,
        Err(Obstacle::Lasting(sentence)) => Condition::Failed(sentence.to_owned()),
        Err(Obstacle::Passing) => Condition::Unmet(IN_USE.to_owned()),
    }
}
