//! `set server <backend>/<server> name` (management manual, section 9.3). Must never rename a server that gets traffic,
//! nor one that the configuration refers to.

use live::Admin;
use policy::program::{Proxy, Server};

use super::super::super::Call;
use engine::worker::Worker;

/// Maximum length of a name in bytes.
const LONGEST: usize = 63;

/// Whether a byte is allowed in a name.
fn is_fine(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_:.-".contains(&byte)
}

/// Renames the server.
pub(super) fn change(call: &mut Call<'_, Worker>, proxy: &Proxy, server: &Server) {
    match rename(call, proxy, server, call.word(4)) {
        Ok(()) => call.inform("Server name updated."),
        Err(sentence) => call.refuse(sentence),
    }
}

fn rename(call: &Call<'_, Worker>, proxy: &Proxy, server: &Server, name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("set server <b>/<s> name requires a new name.");
    }
    if !name.bytes().all(is_fine) {
        return Err("Server name contains invalid characters.");
    }
    if name.len() > LONGEST {
        return Err("Server name too long.");
    }
    let status = super::live(call.state, proxy).status(server.index).ok_or("No such server.")?;
    if status.admin != Admin::Maintenance {
        return Err("Server must be in maintenance mode to be renamed (set server <b>/<s> state maint).");
    }
    if server.fixed || server.tracking.has_followers() {
        return Err("Cannot rename: server's name is statically referenced (use-server, track, or sample argument).");
    }
    let program = &call.generation.program;
    let is_other = |other: &&Server| other.index != server.index && *other.name == *name;
    if program.server_called(proxy, name).filter(is_other).is_some() {
        return Err("A server with the same name already exists in this backend.");
    }
    server.name.change(name).map_err(|_| "Servers were renamed too often: reload the process.")?;
    program.index_server(proxy, server);
    Ok(())
}
