//! Adding and removing backends at run time (management manual, "add backend", "del backend", "publish backend",
//! "unpublish backend"). Must never remove a backend that is in use.

use std::fmt::Write as _;
use std::sync::Arc;

use config::keyword::{bad_name_character, guid_fault};
use config::spec::{DefaultsSpec, Mode, ProxyKind, ProxySpec, RuntimeLevel, Spec};
use policy::compile;
use policy::program::Proxy;

use super::super::command::Condition;
use super::super::{Call, Command, Run};
use super::servers::find_backend;
use engine::free_slots::Vacancies;
use engine::generation::Generation;
use engine::worker::{Process, Worker};

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("add backend", "add backend <backend>", "add a new backend", Run::Now(add)).at(RuntimeLevel::Admin),
    Command::new("del backend", "del backend <backend>", "delete a backend", Run::Now(delete)).at(RuntimeLevel::Admin),
    Command::new(
        "publish backend",
        "publish backend <backend>",
        "mark backend as ready for traffic",
        Run::Now(|call| publish(call, true)),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "unpublish backend",
        "unpublish backend <backend>",
        "remove backend for traffic processing",
        Run::Now(|call| publish(call, false)),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "show default-server",
        "show default-server [<backend>]",
        "list default-server instances in all or a single backend",
        Run::Now(show_default_servers),
    ),
    Command::new("show defaults", "show defaults", "list all proxies defaults sections", Run::Now(show_defaults)),
];

/// Shows the `default-server` settings of a backend, or of all backends.
fn show_default_servers(call: &mut Call<'_, Worker>) {
    let wanted = call.word(2).to_owned();
    if !wanted.is_empty() && find_backend(&call.generation.program, &wanted).is_err() {
        return call.refuse("Can't find backend.");
    }
    let written = call.generation.written();
    let proxies = written.iter().flat_map(|written| &written.proxies);
    for proxy in proxies.filter(|proxy| wanted.is_empty() || proxy.name.value == wanted) {
        let backend = &proxy.name.value;
        for server in proxy.default_servers.iter().filter(|_| !backend.is_empty()) {
            let _ = match server.name.value.as_str() {
                "" => writeln!(call.answer, "* {backend}"),
                name => writeln!(call.answer, "  {backend}/{name}"),
            };
        }
    }
}

const USAGE: &str = "Usage: add backend <name> from <defproxy>.";
const LONG_USAGE: &str = "Usage: add backend <name> from <defproxy> [mode <px_mode>] [guid <val>].";
const FULL: &str = "Too many backends were added to this process: reload it.";

fn publish(call: &mut Call<'_, Worker>, published: bool) {
    let shared = &call.state.process;
    match find_backend(&call.generation.program, call.word(2)) {
        Ok(proxy) if proxy.disabled => call.refuse("No effect on a disabled backend."),
        Ok(proxy) => {
            shared.live.proxies[proxy.index].publish(published);
            call.inform(if published { "Backend published." } else { "Backend unpublished." });
        }
        Err(sentence) => call.refuse(sentence),
    }
}

fn show_defaults(call: &mut Call<'_, Worker>) {
    let written = call.generation.written();
    let mut told: Vec<&str> = Vec::new();
    for section in written.iter().flat_map(|written| &written.defaults).filter(|section| !section.purged) {
        if !told.contains(&section.name.as_str()) {
            told.push(&section.name);
        }
    }
    for name in told {
        let _ = writeln!(call.answer, "{name}");
    }
}

/// The arguments of `add backend`.
struct NewBackend<'a> {
    name: &'a str,
    defaults: &'a str,
    mode: Option<Mode>,
    guid: Option<&'a str>,
}

impl<'a> NewBackend<'a> {
    fn read(words: &'a [String]) -> Result<Self, String> {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let name = word(0);
        if name.is_empty() {
            return Err("Require backend name.".to_owned());
        }
        if let Some(bad) = bad_name_character(name) {
            return Err(format!("Invalid character '{bad}' in backend name."));
        }
        if word(1) != "from" || word(2).is_empty() {
            return Err(USAGE.to_owned());
        }
        let mut wanted = NewBackend { name, defaults: word(2), mode: None, guid: None };
        for pair in words.get(3..).unwrap_or_default().chunks(2) {
            match pair {
                [keyword, mode] if keyword == "mode" && wanted.mode.is_none() => {
                    wanted.mode = Some(match mode.as_str() {
                        "http" => Mode::Http,
                        "tcp" => Mode::Tcp,
                        "log" | "spop" | "haterm" => {
                            return Err("Dynamic backends are compatible with only TCP or HTTP mode.".to_owned());
                        }
                        _ => return Err("Unknown proxy mode.".to_owned()),
                    });
                }
                [keyword, guid] if keyword == "guid" && wanted.guid.is_none() => wanted.guid = Some(guid),
                _ => return Err(LONG_USAGE.to_owned()),
            }
        }
        Ok(wanted)
    }

    /// Returns the mode of the new backend.
    fn mode_from(&self, defaults: &DefaultsSpec) -> Result<Mode, String> {
        let name = &defaults.name;
        match (self.mode, defaults.mode) {
            (_, Some(mode @ (Mode::Log | Mode::Spop))) => Err(format!(
                "Dynamic backends only support TCP or HTTP mode, whereas default proxy '{name}' uses 'mode {}'.",
                if mode == Mode::Log { "syslog" } else { "spop" }
            )),
            (Some(mode), _) | (None, Some(mode)) => Ok(mode),
            (None, None) => Err(format!("Mode is required as '{name}' default proxy does not explicitly defines it.")),
        }
    }
}

fn add(call: &mut Call<'_, Worker>) {
    let words = call.words.get(2..).unwrap_or_default();
    let added = NewBackend::read(words).and_then(|wanted| register(&call.state.process, call.generation, &wanted));
    match added {
        Ok(()) => call.inform("New backend registered."),
        Err(sentence) => call.refuse(&sentence),
    }
}

fn register(shared: &Process, generation: &Generation, wanted: &NewBackend<'_>) -> Result<(), String> {
    let mut written = generation.written();
    let written = written.as_mut().ok_or("Backends cannot be added to this process.")?;
    let place = written.defaults.iter().rposition(|section| section.name == wanted.defaults && !section.purged);
    let missing = || format!("Cannot find default proxy '{}'.", wanted.defaults);
    let place = place.ok_or_else(missing)?;
    let mode = wanted.mode_from(&written.defaults[place])?;
    let failed = |why: String| format!("Error during backend creation : {why}");
    if let Some(other) = generation.program.proxy_called(wanted.name, |proxy| *proxy.name == *wanted.name) {
        return Err(failed(format!("name is already used by other proxy '{} {}'.", noun(other), other.name)));
    }
    if let Some(refusal) = &written.defaults[place].refusal {
        return Err(failed(refusal.clone()));
    }
    if let Some(guid) = wanted.guid {
        let fault = guid_fault(guid)
            .or_else(|| generation.program.guid_owner(guid).map(|owner| format!("duplicate entry with {owner}")));
        fault.map_or(Ok(()), |fault| Err(failed(format!("GUID insertion : {fault}."))))?;
    }
    let index = generation.program.proxies.places();
    if written.proxies.len() != index {
        return Err(FULL.to_owned());
    }
    let mut own = written.defaults[place].of(mode).clone();
    own.name.value = wanted.name.to_owned();
    own.guid = wanted.guid.map(|guid| config::span::Spanned::new(guid.to_owned(), own.span));
    own.id = generation.program.free_proxy_number(u32::try_from(index).unwrap_or(u32::MAX).saturating_add(2));
    own.unpublished = true;
    own.logs = Vec::new();
    if written.proxies.len() == written.proxies.capacity() {
        written.proxies.reserve_exact(index / 8 + 1);
    }
    written.proxies.push(own);
    let entered = enter(shared, generation, written, place);
    if entered.is_err() {
        written.proxies.truncate(generation.program.proxies.places());
    }
    entered.map_err(failed)
}

/// Gives the backend the index of a removed one, or extends every table that has an entry per backend. The name is
/// registered last.
fn enter(shared: &Process, generation: &Generation, written: &mut Spec, defaults: usize) -> Result<(), String> {
    let (proxy, known) = compile::add_backend(written, &generation.program, defaults)?;
    let fits = |place: usize| {
        let old = generation.program.proxies.get(place).filter(|_| !generation.program.proxies.is_present(place));
        old.is_some_and(|old| compile::is_backend_predecessor(old, &proxy))
    };
    if let Some(place) = shared.service::<Vacancies>().take_backend(fits) {
        let Some(own) = written.proxies.pop() else { return Err(FULL.to_owned()) };
        let seated = shared.occupy_backend(&generation.program, place, &proxy.name).ok_or(FULL)?;
        if let Some(seat) = written.proxies.get_mut(place) {
            *seat = ProxySpec { id: seated.id, ..own };
        }
        generation.program.index_proxy(seated);
        return Ok(());
    }
    if !shared.log_targets.add(&proxy) || !shared.counters.add_proxy(proxy.index, false) {
        return Err(FULL.to_owned());
    }
    shared.live.names.write().unwrap_or_else(std::sync::PoisonError::into_inner).extend(known);
    let proxy = Arc::new(proxy);
    if !shared.know_backend(&proxy) {
        return Err(FULL.to_owned());
    }
    let place = generation.program.proxies.push(|_| proxy).map_err(|_| FULL)?;
    let entered = generation.program.proxies.get(place).is_some_and(|proxy| shared.live.add_backend(&proxy.plan()));
    if entered { Ok(()) } else { Err(FULL.to_owned()) }
}

fn noun(proxy: &Proxy) -> &'static str {
    match proxy.kind {
        ProxyKind::Frontend => "frontend",
        ProxyKind::Backend => "backend",
        ProxyKind::Listen => "proxy",
    }
}

/// Reasons why a backend cannot be removed.
enum Obstacle {
    /// Permanent.
    Lasting(&'static str),
    /// It is still in use.
    Passing,
}

const IN_USE: &str = "Backend still has attached streams on it.";
const REFERENCED: &str = "This proxy cannot be removed at runtime due to other configuration elements pointing to it.";

/// Returns a backend that may be removed now.
fn removable<'a>(shared: &Process, generation: &'a Generation, name: &str) -> Result<&'a Proxy, Obstacle> {
    let proxy = find_backend(&generation.program, name).map_err(Obstacle::Lasting)?;
    let state = &shared.live.proxies[proxy.index];
    let lasting = |sentence| Err(Obstacle::Lasting(sentence));
    if proxy.kind == ProxyKind::Listen {
        return lasting("Cannot delete a listen section.");
    }
    if matches!(proxy.mode, Mode::Log | Mode::Spop | Mode::Udp) {
        return lasting("Only TCP or HTTP proxies can be removed at runtime.");
    }
    if proxy.fixed {
        return lasting(REFERENCED);
    }
    if generation.program.tables.iter().any(|table| *table.name == *proxy.name) {
        return lasting("Cannot remove a backend with stick-table.");
    }
    if state.is_published() {
        return lasting("Backend must be unpublished prior to its deletion.");
    }
    if proxy.servers().next().is_some() {
        return lasting("Only a backend without server can be deleted.");
    }
    if state.counts(None).beconn > 0 { Err(Obstacle::Passing) } else { Ok(proxy) }
}

fn delete(call: &mut Call<'_, Worker>) {
    let shared = &call.state.process;
    let proxy = match removable(shared, call.generation, call.word(2)) {
        Ok(proxy) => proxy,
        Err(Obstacle::Lasting(sentence)) => return call.refuse(sentence),
        Err(Obstacle::Passing) => return call.refuse(IN_USE),
    };
    shared.live.remove_backend(&proxy.name, proxy.index);
    call.generation.program.proxies.strike(proxy.index);
    call.generation.program.forget_proxy(proxy);
    if let Some(written) = call.generation.written().as_mut().and_then(|written| written.proxies.get_mut(proxy.index)) {
        // Lookups must no longer find its names.
        written.name.value.clear();
        written.guid = None;
    }
    if proxy.guid.is_none() {
        shared.vacate_backend(proxy.index);
    }
    call.inform("Backend deleted.");
}

/// Returns the state of `wait <delay> be-removable <backend>`.
pub(super) fn wait(shared: &Process, generation: &Generation, name: &str) -> Condition {
    if name.is_empty() {
        return Condition::Refused("Missing backend name.".to_owned());
    }
    match removable(shared, generation, name) {
        Ok(_) => Condition::Met,
        Err(Obstacle::Lasting(sentence)) => Condition::Failed(sentence.to_owned()),
        Err(Obstacle::Passing) => Condition::Unmet(IN_USE.to_owned()),
    }
}
