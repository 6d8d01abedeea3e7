//! Restores servers ("load-server-state-from-file") and counters ("stats-file") from a previous process, before the
//! first worker runs. Must never read a file.

use std::collections::BTreeMap;

use base::moment::Moment;
use live::ServerPlace;
use live::counters::{CounterLine, Side};
use live::saved_state::SavedState;
use live::{Live, Transition};
use policy::program::saved_state::{Changes, with_port};
use policy::program::{Program, Proxy, Server};

use engine::resolve::Resolving;
use engine::service::transitions;
use engine::worker::Process;

/// The saved state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedServer {
    /// Indexes of the backend and of the server.
    pub place: ServerPlace,
    pub state: SavedState,
    /// Changes of settings.
    pub changes: Changes,
}

impl SavedServer {
    /// Creates it for the server at `place`; `None`: there is none.
    pub fn new(program: &Program, place: ServerPlace, state: SavedState) -> Option<Self> {
        let changes = Changes::of(program.server_at(place)?, &state);
        Some(Self { place, state, changes })
    }
}

/// Restores the state of a server and of the servers that track it. Returns warnings.
pub fn resume(program: &Program, live: &Live, saved: &SavedServer, now: Moment) -> Vec<String> {
    let Some((proxy, server)) = lookup(program, saved.place) else { return Vec::new() };
    let mut said = Vec::new();
    if let Some(transition) = live.proxies[proxy.index].resume(&server.plan(), &saved.state, now) {
        said.extend(transitions::resumed(program, live, proxy, server, transition, None));
        program.followers(server, |leader, follower| {
            let Some(transition) = live.follow(leader, follower, now) else { return false };
            said.extend(told_of_follower(program, live, leader, follower, transition));
            transition.before != transition.after
        });
    }
    if let Some(why) = &saved.changes.left_out {
        said.push(format!("server-state partially applied for server '{}/{}', {why}", proxy.name, server.name));
    }
    said
}

fn told_of_follower(
    program: &Program,
    live: &Live,
    leader: ServerPlace,
    follower: ServerPlace,
    transition: Transition,
) -> Option<String> {
    let (proxy, server) = lookup(program, leader)?;
    let leader = format!("{}/{}", proxy.name, server.name);
    let (proxy, server) = lookup(program, follower)?;
    transitions::resumed(program, live, proxy, server, transition, Some(&leader))
}

fn lookup(program: &Program, place: ServerPlace) -> Option<(&Proxy, &Server)> {
    Some((program.proxies.get(place.proxy)?, program.server_at(place)?))
}

/// Restores the FQDN, ports and check targets of a server.
pub fn direct(shared: &Process, saved: &SavedServer) {
    let generation = shared.generation();
    let Some((_, server)) = lookup(&generation.program, saved.place) else { return };
    let changes = &saved.changes;
    if let Some(port) = changes.port {
        let now = shared.outgoing.address(server).into_owned();
        let moved = with_port(&now, port);
        if moved != now {
            shared.outgoing.set_address(server, moved);
        }
    }
    let (check, agent) = (changes.check, changes.agent);
    if check != Default::default() {
        shared
            .checks
            .targets
            .change_check(server.serial, |orders| (orders.address, orders.port) = (check.address, check.port));
    }
    if agent != Default::default() {
        shared
            .checks
            .targets
            .change_agent(server.serial, |orders| (orders.address, orders.port) = (agent.address, agent.port));
    }
    match (&changes.renamed, &changes.host) {
        (Some(name), _) => shared.service::<Resolving>().resume(server, name, true),
        (None, Some(host)) => shared.service::<Resolving>().resume(server, host, false),
        (None, None) => {}
    }
}

/// The owner of counters named by a `guid`.
#[derive(Clone, Copy)]
enum Owner<'p> {
    Frontend(&'p Proxy),
    Listener(&'p Proxy, usize),
    Backend(&'p Proxy),
    Server(&'p Proxy, &'p Server),
}

/// All objects with a `guid`, by side.
pub struct Owners<'p> {
    front: BTreeMap<&'p str, Owner<'p>>,
    back: BTreeMap<&'p str, Owner<'p>>,
}

impl<'p> Owners<'p> {
    /// Collects the objects of a program.
    pub fn of(program: &'p Program) -> Self {
        let mut owners = Self { front: BTreeMap::new(), back: BTreeMap::new() };
        for proxy in program.proxies.iter().filter(|proxy| !proxy.disabled) {
            let guid = proxy.guid.as_deref();
            if let Some(frontend) = &proxy.frontend {
                // Listeners have counters only if configured.
                let binds = frontend.binds.iter().filter(|_| frontend.reception.socket_stats);
                let listeners = binds.filter_map(|bind| {
                    let guid = bind.listening.guid.as_deref()?;
                    Some((guid, Owner::Listener(proxy, bind.index)))
                });
                owners.front.extend(listeners.chain(guid.map(|guid| (guid, Owner::Frontend(proxy)))));
            }
            if let Some(backend) = &proxy.backend {
                let servers = backend.servers.iter();
                let servers =
                    servers.filter_map(|server| Some((server.guid.as_deref()?, Owner::Server(proxy, server))));
                owners.back.extend(servers.chain(guid.map(|guid| (guid, Owner::Backend(proxy)))));
            }
        }
        owners
    }

    fn find(&self, side: Side, guid: &str) -> Option<Owner<'p>> {
        let owners = match side {
            Side::Front => &self.front,
            Side::Back => &self.back,
        };
        owners.get(guid).copied()
    }

    /// Whether an object of that side has that `guid`.
    pub fn is_known(&self, side: Side, guid: &str) -> bool {
        self.find(side, guid).is_some()
    }
}

/// Restores counters. They are added to the first worker's cells, which are not in use yet.
pub fn preset(shared: &Process, kept: &[CounterLine], now: Moment) {
    let generation = shared.generation();
    let owners = Owners::of(&generation.program);
    let Some(first) = shared.counters.workers.first() else { return };
    for kept in kept {
        let Some(owner) = owners.find(kept.side, &kept.guid) else { continue };
        let (counters, live) = match owner {
            Owner::Frontend(proxy) => (&first.proxies[proxy.index].front, None),
            Owner::Listener(proxy, bind) => (&first.proxies[proxy.index].binds[bind], None),
            Owner::Backend(proxy) => (first.proxies[proxy.index].back(), Some((proxy, None))),
            Owner::Server(proxy, server) => (first.server(server.serial), Some((proxy, Some(server.index)))),
        };
        let bodies = match owner {
            Owner::Frontend(proxy) => Some(&first.proxies[proxy.index].front_content),
            Owner::Backend(proxy) => Some(&first.proxies[proxy.index].serving().content),
            Owner::Listener(..) | Owner::Server(..) => None,
        };
        for (column, value) in &kept.values {
            counters.preset(column, *value, now);
            if let Some(bodies) = bodies {
                bodies.preset(column, *value);
            }
            if let Owner::Frontend(proxy) = owner {
                first.proxies[proxy.index].front_http2.preset(column, *value);
            }
            if let Some((proxy, server)) = live {
                shared.live.proxies[proxy.index].preset(server, column, *value, now);
            }
        }
        if matches!(owner, Owner::Frontend(_)) {
            counters.requests.set(kept.requests());
        }
    }
}
