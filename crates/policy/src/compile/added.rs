//! Compiles servers and backends that the runtime API adds, like those of the configuration. Must never wait for a name
//! resolution.

use super::connecting::is_usable;
use super::tls::KnownTls;
use super::{Compiler, ReadFile, Resolver, http};
use crate::program::{Backend, Program, Proxy, Server, Tracking, Userlist};
use crate::registry::Registry;
use config::diagnostic::Diagnostic;
use config::spec::{Family, Mode, ServerSpec, Spec};
use expression::key::Keys;
use expression::pattern;
use expression::variable::VariableNames;
use live::ServerPlace;
use std::net::IpAddr;
use std::sync::Arc;

/// A resolver that resolves nothing.
pub(super) struct NoResolver<'p>(pub(super) &'p Program);

impl Resolver for NoResolver<'_> {
    fn resolve(&mut self, _: &str, _: Family) -> Result<IpAddr, String> {
        Err("nothing is looked up at run time".to_owned())
    }

    fn file_reader(&self) -> ReadFile {
        |_| Err(std::io::Error::other("reading a file at run time is not supported yet by Weir"))
    }

    fn registry(&self) -> &Registry {
        &self.0.registry
    }
}

/// Returns the reason why a backend does not accept servers at run time, or `None` if it does.
pub fn refuses_servers(program: &Program, proxy: usize) -> Option<String> {
    if let Some(proxy) = program.proxies.get(proxy).filter(|proxy| proxy.mode == Mode::Log && proxy.backend.is_some()) {
        return Some(format!("Backend does not support dynamic servers : backend '{}' uses mode log.", proxy.name));
    }
    fixes_servers(program, proxy)
}

/// Returns the reason why an in-place reload cannot change the set of a proxy's servers, or `None` if it can.
pub(super) fn fixes_servers(program: &Program, proxy: usize) -> Option<String> {
    let proxy = program.proxies.get(proxy)?;
    let backend = proxy.backend.as_ref()?;
    if balance::find(&backend.balance, &backend.hash).0.heeds_weights(&backend.hash) {
        return None;
    }
    let why = format!("backend '{}' uses a non dynamic load balancing method.", proxy.name);
    Some(format!("Backend does not support dynamic servers : {why}"))
}

/// Compiles a server that is added to a proxy, with the next free index and ID. `spec` is the specification of the
/// program, with the proxy at the same index; `known` contains the TLS objects that the server may refer to, since no
/// file is read.
///
/// # Errors
/// The reason why the server cannot be added.
pub fn add_server(
    spec: &Spec,
    program: &Program,
    proxy: usize,
    mut written: ServerSpec,
    serial: usize,
    known: KnownTls,
) -> Result<Server, String> {
    let missing = || "No such backend.".to_owned();
    // Its position is after all lines of the configuration.
    written.span.file = u32::MAX;
    // For an added server, checks use TLS and the PROXY header only if the check keywords are specified (management
    // manual, "add server").
    if let Some(tls) = &mut written.tls {
        tls.check.get_or_insert(false);
    }
    let (written_proxy, compiled) =
        (spec.proxies.get(proxy).ok_or_else(missing)?, program.proxies.get(proxy).ok_or_else(missing)?);
    let backend = compiled.backend.as_ref().ok_or_else(missing)?;
    let leader = match &written.check.track {
        Some(track) => Some(leader(spec, program, proxy, &track.value)?),
        None => None,
    };
    if written.connecting.protocol.is_some_and(|protocol| !is_usable(protocol, compiled.mode)) {
        return Err("MUX protocol is not usable for server.".to_owned());
    }
    written.id = number(program, proxy, &written)?;
    if let Some(guid) = &written.balance.guid {
        let owner = program.guid_owner(guid);
        owner.map_or(Ok(()), |owner| Err(format!("'guid': duplicate entry with {owner}.")))?;
    }
    let (mut nobody, mut found) = (NoResolver(program), Vec::new());
    let mut compiler = Compiler::new(spec, &mut nobody, &mut found);
    compiler.shared.wanted = Arc::clone(&program.wanted);
    compiler.tls.know(known);
    let names = compiler.names(spec, Some(proxy));
    let index = backend.servers.places();
    let server = compiler.server(spec, &names, written_proxy, &backend.check, index, &written);
    let lists = compiler.shared.lists.take().finish();
    if let Some(alert) = found.into_iter().find(Diagnostic::is_alert) {
        let head = format!("'server {}/{}' : ", compiled.name, written.name.value);
        let message = alert.message;
        return Err(message.strip_prefix(&head).map(str::to_owned).unwrap_or(message));
    }
    if !lists.all.is_empty() {
        return Err("a list of patterns in a dynamic server is not supported yet by Weir.".to_owned());
    }
    // The server starts in maintenance regardless of its keywords; without an address it stays there.
    server
        .map(|server| {
            let tracking = Tracking { leader, ..server.tracking };
            let unchecked_level = if server.disabled { 0 } else { server.unchecked_level };
            let check = server.check.map(|mut check| {
                check.send_proxy = written.check.send_proxy;
                check
            });
            Server { serial, disabled: false, unchecked_level, tracking, check, ..server }
        })
        .ok_or_else(|| "The server cannot be made.".to_owned())
}

/// Returns the removed servers of a backend whose index and ID a new server may take over: they are equal except for
/// name and address, which can change while a server is in use.
pub fn predecessors<'a>(program: &Program, proxy: &'a Proxy, fresh: &'a Server) -> impl Iterator<Item = &'a Server> {
    let servers = proxy.backend.as_ref().map(|backend| &backend.servers);
    program.servers_numbered(proxy, fresh.id).into_iter().filter(move |old| {
        let is_removed = servers.is_some_and(|servers| !servers.is_present(old.index));
        is_removed && old.is_plain() && fresh.is_plain() && {
            let (name, address, written) = (old.name.clone(), old.address.clone(), old.written.clone());
            **old == Server { index: old.index, serial: old.serial, name, address, written, ..fresh.clone() }
        }
    })
}

/// Whether a new backend may take over the index and ID of a removed one: both are equal except for their names, and
/// the removed one has no servers.
pub fn is_backend_predecessor(old: &Proxy, fresh: &Proxy) -> bool {
    let (Some(known), Some(own)) = (&old.backend, &fresh.backend) else { return false };
    let backend = Backend { servers: known.servers.clone(), ..own.clone() };
    known.servers.is_empty()
        && *old
            == Proxy { index: old.index, id: old.id, name: old.name.clone(), backend: Some(backend), ..fresh.clone() }
}

/// Compiles an added backend: the last proxy of `spec`, which inherits from the `defaults` section at that index. Also
/// returns the names of its variables.
///
/// # Errors
/// The reason why the backend cannot be added.
pub fn add_backend(spec: &Spec, program: &Program, defaults: usize) -> Result<(Proxy, VariableNames), String> {
    let index = program.proxies.places();
    let written = spec.proxies.get(index).ok_or("No such backend.")?;
    let (mut nobody, mut found) = (NoResolver(program), Vec::new());
    let mut compiler = Compiler::new(spec, &mut nobody, &mut found);
    compiler.shared.tables.replace(program.tables.clone());
    // Inline patterns of the rules are not lists of the program: the runtime API does not show them.
    compiler.shared.lists.replace(pattern::Registry::apart());
    let spelling = http::spelling(&spec.global);
    let mut proxy = compiler.proxy(spec, index, written, &program.global, spelling.as_ref());
    let shared = compiler.shared.clone();
    let not_yet = |what: &str| Err(format!("{what} in a dynamic backend is not supported yet by Weir."));
    let new_sinks = !shared.sinks.borrow().descriptors.iter().all(|sink| program.event_descriptors.contains(sink));
    if let Some(alert) = found.into_iter().find(Diagnostic::is_alert) {
        return Err(alert.message);
    }
    if new_sinks || !shared.sinks.borrow().missing.is_empty() {
        return not_yet("an event sink");
    }
    if shared.keys.take() != Keys::default() {
        return not_yet("a public key");
    }
    for (_, list) in shared.asked.take() {
        if program.userlists.get(list).is_some_and(Userlist::is_slow) && !proxy.slow_userlists.contains(&list) {
            proxy.slow_userlists.push(list);
        }
    }
    // Log targets were opened at startup.
    proxy.logs = program.spare_logs.get(defaults).cloned().unwrap_or_default();
    proxy.features = super::features::features(&proxy);
    Ok((proxy, shared.known.take()))
}

/// Returns the server of the configuration that `track` names.
fn leader(spec: &Spec, program: &Program, proxy: usize, name: &str) -> Result<ServerPlace, String> {
    let (backend, name) = match name.split_once('/') {
        Some((backend, name)) => {
            let found = program.proxy_called(backend, |proxy| proxy.backend.is_some() && *proxy.name == *backend);
            let missing = || format!("unable to find required proxy '{backend}' for tracking.");
            (&**found.ok_or_else(missing)?, name)
        }
        None => (&*program.proxies[proxy], name),
    };
    let missing = || format!("unable to find required server '{name}' for tracking.");
    let found = program.server_called(backend, name).filter(|server| *server.name == *name).ok_or_else(missing)?;
    let refused = |why: &str| Err(format!("unable to use {}/{name} for tracking {why}.", backend.name));
    let is_written = spec.proxies.get(backend.index).is_some_and(|written| found.index < written.servers.len());
    if !is_written {
        return refused("as it is a dynamic server");
    }
    if found.check.is_none() && found.agent.is_none() && found.tracking.leader.is_none() {
        return refused("as it does not have any check nor agent enabled");
    }
    Ok(ServerPlace { proxy: backend.index, server: found.index })
}

/// Returns the ID of an added server: the specified one, else the lowest free one.
fn number(program: &Program, proxy: usize, written: &ServerSpec) -> Result<u32, String> {
    let own = &program.proxies[proxy];
    if written.id == 0 {
        return Ok(program.free_server_number(own));
    }
    let is_present = |server: &&&Server| own.backend.as_ref().is_some_and(|one| one.servers.is_present(server.index));
    match program.servers_numbered(own, written.id).iter().find(is_present) {
        None => Ok(written.id),
        Some(other) => {
            Err(format!("'id' : custom id {} already used at {} ('server {}').", written.id, other.written, other.name))
        }
    }
}
