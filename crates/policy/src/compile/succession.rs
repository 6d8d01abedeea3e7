//! A configuration that is to take the place of one that is served: what stays gets the places that it has, and what comes
//! gets places that nothing has had. Must never decide more than that: what may differ is `program::shape`'s business.

use super::added::fixes_servers;
use super::table::TableSeat;
use super::{Resolver, SystemLimits, compile, compile_seated};
use crate::program::{Backend, Bind, BindAddress, Program, Proxy, Server, SpoeLog};
use config::diagnostic::Diagnostic;
use config::environment::Environment;
use config::spec::{
    AddressSpec, Family, FilterSpec, HostSpec, Mode, PortSpec, ProxySpec, ServerSpec, SocketKind, Spec, SpoeEngineSpec,
};
use config::{InputFile, LoadOptions};
use live::ServerPlace;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// What can follow.
#[derive(Debug)]
pub struct Successor {
    /// The program, at the places of the one before.
    pub program: Program,
    /// What it was made of.
    pub spec: Spec,
    /// What becomes different, in words.
    pub changes: Vec<String>,
}

/// Finds out whether a configuration can follow `former` in the running process. `spec` is what `program` was compiled of;
/// `resolver` and `limits` are those that it was compiled with. Servers that come may have the places in `vacant`.
///
/// # Errors
/// Why it cannot: what needs a new process, in words.
pub fn succeed(
    former: &Program,
    vacant: &BTreeSet<ServerPlace>,
    (mut spec, program): (Spec, Program),
    resolver: &mut dyn Resolver,
    limits: &SystemLimits,
) -> Result<Successor, String> {
    let mut program = program;
    let gone_proxies = arrange_proxies(&mut spec, former, &program)?;
    if arrange_engines(&mut spec, former, &program) || gone_proxies.is_some() {
        let again = compile(&spec, resolver, limits, &mut Vec::new());
        program = again.ok_or("the numbers of its proxies, which collide with those of proxies that are removed")?;
    }
    let gone = arrange(&mut spec, (former, vacant), &program)?;
    let seats = TableSeat::following(&former.tables, &program.tables);
    if gone.is_some() || seats.is_some() {
        let mut found: Vec<Diagnostic> = Vec::new();
        let again = compile_seated(&spec, seats.unwrap_or_default(), resolver, limits, &mut found);
        program = again.ok_or("the numbers of its servers, which collide with those of servers that are removed")?;
        for (proxy, server) in gone.into_iter().flatten() {
            if let Some(backend) = &program.proxies[proxy].backend {
                backend.servers.strike(server);
            }
        }
    }
    for place in gone_proxies.into_iter().flatten() {
        if let (Some(before), Some(proxy)) = (former.proxies.get(place), program.proxies.get_mut(place)) {
            // For those who tell of it; nothing finds it by that name.
            if let Some(proxy) = Arc::get_mut(proxy) {
                proxy.name.clone_from(&before.name);
            }
        }
        program.proxies.strike(place);
    }
    keep_fullconn(former, &mut program);
    // It was worked out at the start, and is kept.
    program.global.maxconn_is_automatic |= former.global.maxconn_is_automatic && spec.global.maxconn.is_none();
    seat_addresses(former, &mut program)?;
    let differences = former.differences(&program);
    match differences.iter().find(|found| found.is_kept) {
        Some(obstacle) => Err(obstacle.what.clone()),
        None => Ok(Successor { program, spec, changes: differences.into_iter().map(|found| found.what).collect() }),
    }
}

/// What `fullconn` was worked out to be at the start is kept, whatever frontends lead to the backend now.
fn keep_fullconn(former: &Program, program: &mut Program) {
    for (index, before) in former.proxies.enumerate() {
        let Some(own) = before.backend.as_ref().filter(|own| !own.fullconn_is_written) else { continue };
        let next = program.proxies.get_mut(index).and_then(Arc::get_mut).and_then(|proxy| proxy.backend.as_mut());
        if let Some(next) = next.filter(|next| !next.fullconn_is_written) {
            next.fullconn = own.fullconn;
        }
    }
}

/// Puts the addresses of each frontend at the places that they have. The place of one that is removed is kept.
fn seat_addresses(former: &Program, program: &mut Program) -> Result<(), String> {
    for (index, before) in former.proxies.enumerate() {
        let Some(own) = &before.frontend else { continue };
        let Some(proxy) = program.proxies.get_mut(index).filter(|after| after.name == before.name) else { continue };
        let Some(next) = Arc::get_mut(proxy).and_then(|proxy| proxy.frontend.as_mut()) else { continue };
        let is_same = |own: &Bind, next: &Bind| {
            let (here, there) = (&own.listening.socket, &next.listening.socket);
            own.address == next.address && here.interface == there.interface && here.namespace == there.namespace
        };
        let mut left: Vec<Option<Bind>> = next.binds.drain(..).map(Some).collect();
        for before in &own.binds {
            let at = left.iter().position(|one| one.as_ref().is_some_and(|next| is_same(before, next)));
            let taken = at.filter(|_| !before.is_removed).and_then(|at| left[at].take());
            next.binds.push(taken.unwrap_or_else(|| Bind { is_removed: true, ..before.clone() }));
        }
        next.binds.extend(left.into_iter().flatten());
        for (place, bind) in next.binds.iter_mut().enumerate() {
            bind.index = place;
        }
        let moved = |bind: &&Bind| matches!(bind.address, BindAddress::Reverse { .. } | BindAddress::Descriptor { .. });
        let came = next.binds[own.binds.len()..].iter();
        let went = next.binds.iter().zip(&own.binds).filter(|(bind, own)| bind.is_removed && !own.is_removed);
        if let Some(bind) = came.chain(went.map(|(bind, _)| bind)).find(moved) {
            return Err(format!("address {} of proxy {}", bind.text, before.name));
        }
        let is_counted = program.global.rates.tls_sessions.is_some();
        if is_counted && next.binds[own.binds.len()..].iter().any(|bind| bind.tls.is_some()) {
            return Err(format!("addresses with TLS of proxy {}, whose rate is limited", before.name));
        }
    }
    Ok(())
}

/// Puts the proxies at the places that they have, with something in the place of each that is removed, and those that come
/// behind them. Returns the places of those that are removed; `None`: everything was where it belongs.
fn arrange_proxies(spec: &mut Spec, former: &Program, program: &Program) -> Result<Option<BTreeSet<usize>>, String> {
    let names: BTreeSet<&str> = program.proxies.iter().map(|proxy| &*proxy.name).collect();
    let places = 0..former.proxies.places();
    // A frontend and a backend may share a name: which is meant is told by their sides alone.
    let sides = |proxy: &Proxy| (proxy.name.clone(), proxy.frontend.is_some(), proxy.backend.is_some());
    let is_same = |place: usize| {
        let before = former.proxies.get(place).filter(|_| former.proxies.is_present(place));
        before.map(|before| sides(before)) == program.proxies.get(place).map(|after| sides(after))
    };
    if places.end == program.proxies.places() && places.clone().all(is_same) {
        return Ok(None);
    }
    if names.len() != program.proxies.len() {
        return Err("the number or order of proxies, some of which share a name".to_owned());
    }
    let mut written: Vec<Option<ProxySpec>> = spec.proxies.drain(..).map(Some).collect();
    let mut numbers: BTreeSet<u32> = places.clone().filter_map(|at| former.proxies.get(at)).map(|one| one.id).collect();
    numbers.extend(written.iter().flatten().filter(|proxy| proxy.id_is_written).map(|proxy| proxy.id));
    let mut gone = BTreeSet::new();
    for place in places {
        let before = former.proxies.get(place).ok_or("the number of proxies")?;
        let found = program.proxies.enumerate().find(|(_, after)| sides(before) == sides(after));
        let found = found.filter(|_| former.proxies.is_present(place)).map(|(at, _)| at);
        match found.and_then(|at| written.get_mut(at)?.take()) {
            Some(mut proxy) => {
                if !proxy.id_is_written {
                    proxy.id = before.id;
                }
                spec.proxies.push(proxy);
            }
            None => {
                spec.proxies.push(vacant_proxy(before.id).ok_or("the number of proxies")?);
                gone.insert(place);
            }
        }
    }
    for mut proxy in written.into_iter().flatten() {
        if !proxy.id_is_written {
            proxy.id = free_number(2, &mut numbers);
        }
        spec.proxies.push(proxy);
    }
    Ok(Some(gone))
}

/// Puts the engines of agents at the places that they have, with nothing in the place of each that is removed, and those that come
/// behind them. Whether one was elsewhere.
fn arrange_engines(spec: &mut Spec, former: &Program, program: &Program) -> bool {
    if former.spoe_logs == program.spoe_logs {
        return false;
    }
    let mut left: Vec<Option<usize>> = (0..program.spoe_logs.len()).map(Some).collect();
    let stays = |before: &SpoeLog| {
        let is_named = |at: usize| program.spoe_logs.get(at).is_some_and(|after| after.engine == before.engine);
        let is_same = |one: &Option<usize>| one.is_some_and(is_named) && !before.engine.is_empty();
        let at = left.iter().position(is_same)?;
        left[at].take()
    };
    let mut seats: Vec<Option<usize>> = former.spoe_logs.iter().map(stays).collect();
    seats.extend(left.into_iter().flatten().map(Some));
    let mut written: Vec<Option<SpoeEngineSpec>> = spec.sections.spoe_engines.drain(..).map(Some).collect();
    let seated = seats.iter().map(|seat| seat.and_then(|at| written.get_mut(at)?.take()).unwrap_or_default());
    spec.sections.spoe_engines = seated.collect();
    for filter in spec.proxies.iter_mut().flat_map(|proxy| &mut proxy.filters.list) {
        if let FilterSpec::Spoe(filter) = filter {
            filter.content = filter.content.and_then(|at| seats.iter().position(|seat| *seat == Some(at)));
        }
    }
    true
}

/// What stands at the place of a proxy that is removed: a backend without a name and servers. Nothing can name it.
fn vacant_proxy(id: u32) -> Option<ProxySpec> {
    let file = InputFile { name: String::new(), bytes: b"backend removed\n    disabled\n".to_vec() };
    let mut proxy = config::load(&[file], Environment::new(), &LoadOptions::default()).spec.proxies.pop()?;
    proxy.name.value.clear();
    proxy.id = id;
    Some(proxy)
}

/// Puts the servers of each proxy at the places that they have, with something in the place of each that is removed.
/// Returns the places of those; `None`: everything was where it belongs.
fn arrange(
    spec: &mut Spec,
    (former, vacant): (&Program, &BTreeSet<ServerPlace>),
    program: &Program,
) -> Result<Option<BTreeSet<ServerPlace>>, String> {
    let mut gone = BTreeSet::new();
    let mut moved = false;
    for (index, before) in former.proxies.enumerate() {
        let Some(after) = program.proxies.get(index).filter(|after| after.name == before.name) else { continue };
        let (Some(own), Some(next)) = (&before.backend, &after.backend) else { continue };
        let Some(written) = spec.proxies.get_mut(index) else { continue };
        let arranged = seats(own, next, |place| vacant.contains(&(index, place)));
        if arranged.iter().copied().eq((0..next.servers.places()).map(Some)) {
            continue;
        }
        let names: BTreeSet<&str> = next.servers.iter().map(|server| &*server.name).collect();
        if names.len() != next.servers.len() {
            return Err(format!("servers of proxy {}, some of which share a name", before.name));
        }
        if let Some(why) = fixes_servers(former, index) {
            return Err(format!("servers of proxy {}, where {why}", before.name));
        }
        let mut servers: Vec<Option<ServerSpec>> = written.servers.drain(..).map(Some).collect();
        let mut numbers: BTreeSet<u32> = own.servers.iter().map(|server| server.id).collect();
        numbers.extend(servers.iter().flatten().filter(|server| server.id_is_written).map(|server| server.id));
        for (place, seat) in arranged.into_iter().enumerate() {
            let taken = seat.and_then(|seat| servers.get_mut(seat)?.take());
            let kept = own.servers.get(place).map(|server| server.id);
            let Some(mut server) = taken else {
                gone.insert((index, place));
                written.servers.push(placeholder(kept.unwrap_or_default(), before.mode));
                continue;
            };
            if !server.id_is_written {
                server.id = kept.unwrap_or_else(|| free_number(1, &mut numbers));
                numbers.insert(server.id);
            }
            written.servers.push(server);
        }
        moved = true;
    }
    Ok(moved.then_some(gone))
}

/// For each place, which of the servers of `next` gets it: first the places that they have in `own`, then those that are vacant and fit,
/// then others.
fn seats(own: &Backend, next: &Backend, is_vacant: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let mut left: BTreeMap<&str, usize> = next.servers.enumerate().map(|(at, server)| (&*server.name, at)).collect();
    let mut seats = Vec::with_capacity(own.servers.places().max(next.servers.places()));
    for place in 0..own.servers.places() {
        let before = own.servers.get(place).filter(|_| own.servers.is_present(place));
        let stays = before.and_then(|before| {
            let at = *left.get(&*before.name)?;
            before.goes_on_as(next.servers.get(at)?).then_some((&*before.name, at))
        });
        seats.push(stays.map(|(name, at)| {
            left.remove(name);
            at
        }));
    }
    let mut rest: Vec<usize> = left.into_values().collect();
    rest.sort_unstable();
    // Numbers that are taken: with a place comes the number of the server that had it.
    let mut numbers: BTreeSet<u32> = own.servers.iter().map(|server| server.id).collect();
    numbers.extend(next.servers.iter().filter(|server| server.id_is_written).map(|server| server.id));
    for (place, seat) in seats.iter_mut().enumerate().filter(|(place, _)| !own.servers.is_present(*place)) {
        let Some(former) = own.servers.get(place).filter(|_| is_vacant(place)) else { continue };
        let fits = |at: &usize| {
            next.servers.get(*at).is_some_and(|server| {
                let is_free = server.id_is_written || !numbers.contains(&former.id);
                let (index, id) = (place, if server.id_is_written { server.id } else { former.id });
                is_free && former.leaves_place_to(&Server { index, id, ..server.clone() })
            })
        };
        if let Some(found) = rest.iter().position(fits) {
            *seat = Some(rest.remove(found));
            numbers.insert(former.id);
        }
    }
    seats.extend(rest.into_iter().map(Some));
    seats
}

fn free_number(first: u32, taken: &mut BTreeSet<u32>) -> u32 {
    let free = (first..).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
    taken.insert(free);
    free
}

/// What stands at the place of a server that is removed. Nothing can name it.
fn placeholder(id: u32, mode: Mode) -> ServerSpec {
    let address = match mode {
        // Lines go to addresses of this family alone.
        Mode::Log => AddressSpec::Inet {
            host: HostSpec::Ip(Ipv4Addr::LOCALHOST.into()),
            family: Family::V4,
            port: PortSpec::Exact(1),
            kind: SocketKind::Datagram,
            multipath: false,
        },
        Mode::Tcp | Mode::Http | Mode::Spop => AddressSpec::Unix { path: "/".to_owned(), kind: SocketKind::Stream },
    };
    ServerSpec {
        span: Default::default(),
        name: Default::default(),
        address: config::span::Spanned::new(address, Default::default()),
        weight: 1,
        maxconn: None,
        maxqueue: None,
        balance: Default::default(),
        limits: Default::default(),
        id,
        id_is_written: false,
        disabled: true,
        backup: false,
        pool_max_conn: None,
        pool_purge_delay: 0,
        connecting: Default::default(),
        log: Default::default(),
        check: Default::default(),
        persistence: Default::default(),
        tls: None,
    }
}
