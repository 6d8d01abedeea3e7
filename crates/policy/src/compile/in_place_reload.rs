//! In-place reload: a new configuration replaces the running one. Objects that stay keep their indices, new ones get
//! indices that were never used. Must never decide more than that: `program::shape` decides which differences are
//! permitted.

use super::added::fixes_servers;
use super::table_seat::TableSeat;
use super::{Resolver, SystemLimits, compile, compile_seated};
use crate::program::{Backend, Bind, BindAddress, Program, Proxy, Server, SpoeLog};
use config::diagnostic::Diagnostic;
use config::environment::Environment;
use config::spec::{
    AddressSpec, Family, FilterSpec, HostSpec, Mode, PortSpec, ProxySpec, ServerSpec, SocketKind, Spec, SpoeEngineSpec,
};
use config::{InputFile, LoadOptions};
use live::ServerPlace;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The result of a permitted reload.
#[derive(Debug)]
pub struct Successor {
    /// The new program, with the indices of the previous one.
    pub program: Program,
    /// The specification that it was compiled from.
    pub spec: Spec,
    /// Descriptions of the changes.
    pub changes: Vec<String>,
}

/// Determines whether a configuration can replace `former` in the running process. `program` was compiled from `spec`
/// with `resolver` and `limits`. New servers may take over the indices in `vacant`.
///
/// # Errors
/// A description of the difference that needs a new process.
pub fn succeed(
    former: &Program,
    vacant: &BTreeSet<ServerPlace>,
    mut spec: Spec,
    mut program: Program,
    resolver: &mut dyn Resolver,
    limits: &SystemLimits,
) -> Result<Successor, String> {
    let gone_proxies = arrange_proxies(&mut spec, former, &program)?;
    if arrange_engines(&mut spec, former, &program) || gone_proxies.is_some() {
        // Compiled again after the first result was dropped, to limit memory.
        drop(program);
        let again = compile(&spec, resolver, limits, &mut Vec::new());
        program = again.ok_or("the numbers of its proxies, which collide with those of proxies that are removed")?;
    }
    let gone = arrange(&mut spec, former, vacant, &program)?;
    let seats = TableSeat::following(&former.tables, &program.tables);
    if gone.is_some() || seats.is_some() {
        drop(program);
        let mut found: Vec<Diagnostic> = Vec::new();
        let again = compile_seated(&spec, seats.unwrap_or_default(), resolver, limits, &mut found);
        program = again.ok_or("the numbers of its servers, which collide with those of servers that are removed")?;
        for place in gone.into_iter().flatten() {
            if let Some(backend) = &program.proxies[place.proxy].backend {
                backend.servers.strike(place.server);
            }
        }
    }
    for place in gone_proxies.into_iter().flatten() {
        if let (Some(before), Some(proxy)) = (former.proxies.get(place), program.proxies.get_mut(place)) {
            // Only for reports; it is not found by that name.
            if let Some(proxy) = Arc::get_mut(proxy) {
                proxy.name = before.name.clone();
            }
        }
        program.proxies.strike(place);
    }
    keep_fullconn(former, &mut program);
    // The value computed at startup is kept.
    program.global.maxconn_is_automatic |= former.global.maxconn_is_automatic && spec.global.maxconn.is_none();
    seat_addresses(former, &mut program)?;
    resume_sessions(former, &program);
    let differences = former.differences(&program);
    match differences.iter().find(|found| found.is_kept) {
        Some(obstacle) => Err(obstacle.what.clone()),
        None => Ok(Successor { program, spec, changes: differences.into_iter().map(|found| found.what).collect() }),
    }
}

/// Keeps the `fullconn` values that were computed at startup, whatever frontends use the backends now.
fn keep_fullconn(former: &Program, program: &mut Program) {
    for (index, before) in former.proxies.enumerate() {
        let Some(own) = before.backend.as_ref().filter(|own| !own.fullconn_is_written) else { continue };
        let next = program.proxies.get_mut(index).and_then(Arc::get_mut).and_then(|proxy| proxy.backend.as_mut());
        if let Some(next) = next.filter(|next| !next.fullconn_is_written) {
            next.fullconn = own.fullconn;
        }
    }
}

/// Moves the addresses of each frontend to their previous indices. The index of a removed address stays reserved.
fn seat_addresses(former: &Program, program: &mut Program) -> Result<(), String> {
    for (index, before) in former.proxies.enumerate() {
        let Some(own) = &before.frontend else { continue };
        let Some(proxy) = program.proxies.get_mut(index).filter(|after| after.name == before.name) else { continue };
        let Some(next) = Arc::get_mut(proxy).and_then(|proxy| proxy.frontend.as_mut()) else { continue };
        let is_same = |own: &Bind, next: &Bind| listened_at(own) == listened_at(next);
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

/// The key by which an address is the same for clients.
fn listened_at(bind: &Bind) -> (&BindAddress, Option<&str>, Option<&str>) {
    let socket = &bind.listening.socket;
    (&bind.address, socket.interface.as_deref(), socket.namespace.as_deref())
}

/// Has TLS sessions resumed at the addresses that they began at, whichever frontend listens there now, and with servers that stay.
fn resume_sessions(former: &Program, program: &Program) {
    let known: HashMap<_, &tls::Server> = secured(former).map(|(bind, tls)| (listened_at(bind), tls)).collect();
    for (bind, tls) in secured(program) {
        if let Some(before) = known.get(&listened_at(bind)) {
            tls.resume_for(before);
        }
    }
    for (index, before) in former.proxies.enumerate() {
        let next = program.proxies.get(index).and_then(|proxy| proxy.backend.as_ref());
        let (Some(own), Some(next)) = (&before.backend, next) else { continue };
        for (place, server) in next.servers.enumerate() {
            let own = own.servers.get(place).and_then(|own| own.connecting.tls.as_ref());
            if let (Some(own), Some(next)) = (own, &server.connecting.tls) {
                next.client.resume_for(&own.client);
            }
        }
    }
}

/// The addresses that clients can come to by TLS.
fn secured(program: &Program) -> impl Iterator<Item = (&Bind, &tls::Server)> {
    let binds = program.proxies.iter().filter_map(|proxy| proxy.frontend.as_ref()).flat_map(|frontend| &frontend.binds);
    binds.filter(|bind| !bind.is_removed).filter_map(|bind| Some((bind, bind.tls.as_deref()?)))
}

/// Puts the proxies at the places that they have, with something in the place of each that is removed, and those that come
/// behind them. Returns the places of those that are removed; `None`: everything was where it belongs.
fn arrange_proxies(spec: &mut Spec, former: &Program, program: &Program) -> Result<Option<BTreeSet<usize>>, String> {
    let places = 0..former.proxies.places();
    let is_same = |place: usize| {
        let before = former.proxies.get(place).filter(|_| former.proxies.is_present(place));
        before.map(|before| sides(before)) == program.proxies.get(place).map(|after| sides(after))
    };
    if places.end == program.proxies.places() && places.clone().all(is_same) {
        return Ok(None);
    }
    let names: HashSet<&str> = program.proxies.iter().map(|proxy| &*proxy.name).collect();
    if names.len() != program.proxies.len() {
        return Err("the number or order of proxies, some of which share a name".to_owned());
    }
    let found: HashMap<Sides<'_>, usize> = program.proxies.enumerate().map(|(at, proxy)| (sides(proxy), at)).collect();
    let mut written: Vec<Option<ProxySpec>> = spec.proxies.drain(..).map(Some).collect();
    let taken = places.clone().filter_map(|at| former.proxies.get(at)).map(|one| one.id);
    let of_lines = written.iter().flatten().filter(|proxy| proxy.id_is_written).map(|proxy| proxy.id);
    let mut numbers = FreeNumbers::from(2, taken.chain(of_lines));
    let mut vacant = None;
    let mut gone = BTreeSet::new();
    for place in places {
        let before = former.proxies.get(place).ok_or("the number of proxies")?;
        let found = found.get(&sides(before)).copied().filter(|_| former.proxies.is_present(place));
        match found.and_then(|at| written.get_mut(at)?.take()) {
            Some(mut proxy) => {
                if !proxy.id_is_written {
                    proxy.id = before.id;
                }
                spec.proxies.push(proxy);
            }
            None => {
                if vacant.is_none() {
                    vacant = vacant_proxy();
                }
                let vacant = vacant.clone().ok_or("the number of proxies")?;
                spec.proxies.push(ProxySpec { id: before.id, ..vacant });
                gone.insert(place);
            }
        }
    }
    for mut proxy in written.into_iter().flatten() {
        if !proxy.id_is_written {
            proxy.id = numbers.take();
        }
        spec.proxies.push(proxy);
    }
    Ok(Some(gone))
}

/// The key of a proxy: a frontend and a backend may share a name, and differ in their sides.
type Sides<'a> = (&'a str, bool, bool);

fn sides(proxy: &Proxy) -> Sides<'_> {
    (&proxy.name, proxy.frontend.is_some(), proxy.backend.is_some())
}

/// Moves the SPOE engines to their previous indices, with an empty one at the index of each removed one, and new
/// engines after them. Returns whether any had to be moved.
fn arrange_engines(spec: &mut Spec, former: &Program, program: &Program) -> bool {
    if former.spoe_logs == program.spoe_logs {
        return false;
    }
    let mut left: Vec<Option<usize>> = (0..program.spoe_logs.len()).map(Some).collect();
    // The last engine of a name is first.
    let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, after) in program.spoe_logs.iter().enumerate().rev() {
        named.entry(&after.engine).or_default().push(at);
    }
    let stays = |before: &SpoeLog| {
        let found = named.get_mut(&*before.engine).filter(|_| !before.engine.is_empty());
        found.and_then(Vec::pop).and_then(|at| left[at].take())
    };
    let mut seats: Vec<Option<usize>> = former.spoe_logs.iter().map(stays).collect();
    seats.extend(left.into_iter().flatten().map(Some));
    let mut written: Vec<Option<SpoeEngineSpec>> = spec.sections.spoe_engines.drain(..).map(Some).collect();
    let seated = seats.iter().map(|seat| seat.and_then(|at| written.get_mut(at)?.take()).unwrap_or_default());
    spec.sections.spoe_engines = seated.collect();
    let places: HashMap<usize, usize> =
        seats.iter().enumerate().filter_map(|(at, seat)| Some(((*seat)?, at))).collect();
    for filter in spec.proxies.iter_mut().flat_map(|proxy| &mut proxy.filters.list) {
        if let FilterSpec::Spoe(filter) = filter {
            filter.content = filter.content.and_then(|at| places.get(&at).copied());
        }
    }
    true
}

/// Returns the placeholder of a removed proxy: a backend without a name and servers. Nothing can refer to it.
fn vacant_proxy() -> Option<ProxySpec> {
    let file = InputFile { name: String::new(), bytes: b"backend removed\n    disabled\n".to_vec() };
    let mut proxy = config::load(&[file], Environment::new(), &LoadOptions::default()).spec.proxies.pop()?;
    proxy.name.value.clear();
    Some(proxy)
}

/// Moves the servers of each proxy to their previous indices, with a placeholder at the index of each removed one.
/// Returns the indices of the removed ones; `None` if nothing had to be moved.
fn arrange(
    spec: &mut Spec,
    former: &Program,
    vacant: &BTreeSet<ServerPlace>,
    program: &Program,
) -> Result<Option<BTreeSet<ServerPlace>>, String> {
    let mut gone = BTreeSet::new();
    let mut moved = false;
    for (index, before) in former.proxies.enumerate() {
        let Some(after) = program.proxies.get(index).filter(|after| after.name == before.name) else { continue };
        let (Some(own), Some(next)) = (&before.backend, &after.backend) else { continue };
        let Some(written) = spec.proxies.get_mut(index) else { continue };
        let arranged = seats(own, next, |server| vacant.contains(&ServerPlace { proxy: index, server }));
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
        let of_lines = servers.iter().flatten().filter(|server| server.id_is_written).map(|server| server.id);
        let mut numbers = FreeNumbers::from(1, own.servers.iter().map(|server| server.id).chain(of_lines));
        for (place, seat) in arranged.into_iter().enumerate() {
            let taken = seat.and_then(|seat| servers.get_mut(seat)?.take());
            let kept = own.servers.get(place).map(|server| server.id);
            let Some(mut server) = taken else {
                gone.insert(ServerPlace { proxy: index, server: place });
                written.servers.push(placeholder(kept.unwrap_or_default(), before.mode));
                continue;
            };
            if !server.id_is_written {
                server.id = kept.unwrap_or_else(|| numbers.take());
                numbers.taken.insert(server.id);
            }
            written.servers.push(server);
        }
        moved = true;
    }
    Ok(moved.then_some(gone))
}

/// Maximum number of servers that are tried at a vacant index. The rest are added.
const MOST_TRIED: usize = 64;

/// Assigns each index one of the servers of `next`: first the previous indices in `own`, then vacant ones that fit,
/// then new ones.
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
    // IDs in use: an index is reused together with the ID of its former server.
    let mut numbers: BTreeSet<u32> = own.servers.iter().map(|server| server.id).collect();
    numbers.extend(next.servers.iter().filter(|server| server.id_is_written).map(|server| server.id));
    for (place, seat) in seats.iter_mut().enumerate().filter(|(place, _)| !own.servers.is_present(*place)) {
        if rest.is_empty() {
            break;
        }
        let Some(former) = own.servers.get(place).filter(|_| is_vacant(place)) else { continue };
        let fits = |at: &usize| {
            next.servers.get(*at).is_some_and(|server| {
                let is_free = server.id_is_written || !numbers.contains(&former.id);
                let (index, id) = (place, if server.id_is_written { server.id } else { former.id });
                is_free && former.leaves_place_to(&Server { index, id, ..server.clone() })
            })
        };
        if let Some(found) = rest.iter().take(MOST_TRIED).position(fits) {
            *seat = Some(rest.remove(found));
            numbers.insert(former.id);
        }
    }
    seats.extend(rest.into_iter().map(Some));
    seats
}

/// Free IDs, in ascending order.
struct FreeNumbers {
    /// All IDs below this one are in use.
    next: u32,
    taken: HashSet<u32>,
}

impl FreeNumbers {
    fn from(next: u32, taken: impl Iterator<Item = u32>) -> Self {
        Self { next, taken: taken.collect() }
    }

    fn take(&mut self) -> u32 {
        let free = (self.next..).find(|number| !self.taken.contains(number)).unwrap_or(u32::MAX);
        self.taken.insert(free);
        self.next = free;
        free
    }
}

/// Returns the placeholder of a removed server. Nothing can refer to it.
fn placeholder(id: u32, mode: Mode) -> ServerSpec {
    let address = match mode {
        // Servers of log backends and of datagrams need an address of this family.
        Mode::Log | Mode::Udp => AddressSpec::Inet {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::Names;
    use base::append_only_vec::visits;

    const LIMITS: SystemLimits = SystemLimits { descriptors: 2_000, processors: 1, maxconn: None, memory: None };

    fn read(lines: impl Iterator<Item = String>) -> (Spec, Program) {
        let head =
            "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n balance roundrobin\n";
        let file =
            InputFile { name: "haproxy.cfg".to_owned(), bytes: (head.to_owned() + &lines.collect::<String>()).into() };
        let spec = config::load(&[file], Environment::new(), &LoadOptions::default()).spec;
        let program = compile(&spec, &mut Names, &LIMITS, &mut Vec::new());
        (spec, program.expect("a program"))
    }

    /// Backends with these numbers, each with two servers and a table.
    fn backends(numbers: impl Iterator<Item = usize>, weight: u32) -> (Spec, Program) {
        read(numbers.map(|number| {
            format!(
                "backend b{number}\n stick-table type ip size 10\n server a 127.0.0.1:1 weight {weight}\n server b 127.0.0.1:2\n"
            )
        }))
    }

    /// Creates the next configuration for a number of backends.
    type Change = fn(usize) -> (Spec, Program);

    #[test]
    fn work_grows_as_the_number_of_proxies() {
        let rows: [(&str, Change); 6] = [
            ("nothing", |size| backends(0..size, 1)),
            ("one more in front", |size| backends(std::iter::once(size).chain(0..size), 1)),
            ("half of them removed", |size| backends((0..size).step_by(2), 1)),
            ("all in another order", |size| backends((0..size).rev(), 1)),
            ("all of them others", |size| backends(size..2 * size, 1)),
            ("each with another weight", |size| backends(0..size, 7)),
        ];
        let work = |size: usize, change: Change| {
            let (_, former) = backends(0..size, 1);
            let (spec, program) = change(size);
            let before = visits();
            let found = succeed(&former, &BTreeSet::new(), spec, program, &mut Names, &LIMITS);
            assert!(found.is_ok(), "{:?}", found.err());
            visits() - before
        };
        for (what, change) in rows {
            let (few, many) = (work(50, change), work(200, change));
            assert!(many <= 5 * few, "{what}: {few} entries are looked at for 50 backends, {many} for 200");
        }
    }

    #[test]
    fn proxies_keep_places_and_numbers_in_any_order() {
        let (_, former) = backends(0..40, 1);
        let (spec, program) = backends((10..60).rev(), 1);
        let vacant = BTreeSet::new();
        let next = succeed(&former, &vacant, spec, program, &mut Names, &LIMITS).expect("it can follow");
        for (place, proxy) in former.proxies.enumerate() {
            let after = &next.program.proxies[place];
            assert_eq!((&after.name, after.id), (&proxy.name, proxy.id));
            assert_eq!(next.program.proxies.is_present(place), place >= 10, "{place}");
        }
        let ids: HashSet<u32> = next.program.proxies.iter().map(|proxy| proxy.id).collect();
        assert_eq!((next.program.proxies.places(), ids.len()), (60, 50));
    }

    const CERTIFICATE: &str = include_str!("../../tests/certificates/site.ecdsa.crt");
    const KEY: &str = include_str!("../../tests/certificates/site.ecdsa.key");

    /// One certificate.
    struct Site;

    impl Resolver for Site {
        fn resolve(&mut self, _: &str, _: Family) -> Result<std::net::IpAddr, String> {
            Err("nothing".to_owned())
        }

        fn file_reader(&self) -> crate::compile::ReadFile {
            |name| match name {
                "a.pem" => Ok([CERTIFICATE, KEY].concat().into_bytes()),
                _ => Err(std::io::ErrorKind::NotFound.into()),
            }
        }
    }

    /// The frontends of these names, at these ports.
    fn sites(rows: &[(&str, u16)]) -> (Spec, Program) {
        let head =
            "global\n maxconn 100\ndefaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n";
        let site = |(name, port): &(&str, u16)| format!("frontend {name}\n bind 127.0.0.1:{port} ssl crt a.pem\n");
        let bytes = (head.to_owned() + &rows.iter().map(site).collect::<String>()).into();
        let file = InputFile { name: "haproxy.cfg".to_owned(), bytes };
        let spec = config::load(&[file], Environment::new(), &LoadOptions::default()).spec;
        let program = compile(&spec, &mut Site, &LIMITS, &mut Vec::new());
        (spec, program.expect("a program"))
    }

    /// TLS sessions go on where an address stays, whichever frontend listens there.
    #[test]
    fn sessions_go_on_at_the_addresses_that_stay() {
        let rows: [(&[(&str, u16)], bool); 4] =
            [(&[("a", 443)], true), (&[("b", 443)], true), (&[("a", 8443), ("b", 443)], true), (&[("a", 8443)], false)];
        for (next, goes_on) in rows {
            let (_, former) = sites(&[("a", 443)]);
            let sessions = |program: &Program| program.tls.sessions.clone().expect("a store");
            assert!(sessions(&former).put(b"key".to_vec(), b"session".to_vec(), 1));
            let (spec, program) = sites(next);
            let next = succeed(&former, &BTreeSet::new(), spec, program, &mut Site, &LIMITS).expect("it can follow");
            assert_eq!(sessions(&next.program).get(b"key", 0).is_some(), goes_on, "{:?}", next.changes);
        }
    }
}
