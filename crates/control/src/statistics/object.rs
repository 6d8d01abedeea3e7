//! What a line of the statistics is about: a frontend, a listening address, a server, a backend; and the values that its
//! columns take from it. Must never change anything.

use std::{borrow::Cow, time::Duration};

use base::Moment;
use config::spec::{BalanceSpec, Mode};
use live::counters::{ContentCounters, Count, Http2Counters, ObjectCounters, Peak, ProtocolCounter, Rate, Sum};
use live::health::Health;
use live::{Admin, Checker, ServerStatus};
use policy::program::{Bind, Program, Proxy, Server, ServerAddress, ServerPort};

use crate::field::Value;
use engine::worker::Worker;

/// Frontends, in a set of kinds.
pub(crate) const F: u8 = 1;
/// Backends.
pub(crate) const B: u8 = 2;
/// Servers.
pub(crate) const S: u8 = 4;
/// Listening addresses.
pub(crate) const L: u8 = 8;

/// What an object is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    Frontend,
    Listener(&'a Bind),
    Server(&'a Server),
    Backend,
}

impl Kind<'_> {
    /// The set that holds this kind alone.
    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Frontend => F,
            Self::Listener(_) => L,
            Self::Server(_) => S,
            Self::Backend => B,
        }
    }

    /// `type` in the statistics.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Frontend => 0,
            Self::Backend => 1,
            Self::Server(_) => 2,
            Self::Listener(_) => 3,
        }
    }

    /// As the typed form abbreviates it, and as JSON names it.
    pub(crate) const fn names(self) -> (char, &'static str) {
        match self {
            Self::Frontend => ('F', "Frontend"),
            Self::Listener(_) => ('L', "Listener"),
            Self::Server(_) => ('S', "Server"),
            Self::Backend => ('B', "Backend"),
        }
    }
}

/// One line.
pub(crate) struct Object<'a> {
    pub(crate) worker: &'a Worker,
    program: &'a Program,
    pub(crate) proxy: &'a Proxy,
    pub(crate) kind: Kind<'a>,
    pub(crate) now: Moment,
    /// `up` and `no-maint` have a backend tell how many of its servers work.
    pub(crate) counts_servers: bool,
    pub(crate) sum: Sum<'a>,
}

impl<'a> Object<'a> {
    /// `counts_servers`: a backend shows how many of its servers work.
    pub(crate) fn new(
        worker: &'a Worker,
        program: &'a Program,
        (proxy, kind): (&'a Proxy, Kind<'a>),
        counts_servers: bool,
    ) -> Self {
        let index = proxy.index;
        let sum = worker.process.counters.of(|counters| match kind {
            Kind::Frontend => &counters.proxies[index].front,
            Kind::Backend => &counters.proxies[index].back,
            Kind::Listener(bind) => &counters.proxies[index].binds[bind.index],
            Kind::Server(server) => &counters.servers[server.serial],
        });
        Self { worker, program, proxy, kind, now: rt::now(), counts_servers, sum }
    }

    pub(crate) fn is_http(&self) -> bool {
        self.proxy.mode == Mode::Http
    }

    pub(crate) fn mode(&self) -> &'static str {
        match self.proxy.mode {
            Mode::Http => "http",
            Mode::Tcp => "tcp",
            Mode::Log => "syslog",
            Mode::Spop => "spop",
        }
    }

    pub(crate) fn name(&self) -> Cow<'a, str> {
        match self.kind {
            Kind::Frontend => "FRONTEND".into(),
            Kind::Backend => "BACKEND".into(),
            Kind::Server(server) => Cow::Borrowed(&*server.name),
            // An address without a name has its number for one.
            Kind::Listener(bind) if *bind.name == *bind.id.to_string() => format!("sock-{}", bind.id).into(),
            Kind::Listener(bind) => Cow::Borrowed(&*bind.name),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        match self.kind {
            Kind::Frontend | Kind::Backend => 0,
            Kind::Server(server) => server.id,
            Kind::Listener(bind) => bind.id,
        }
    }

    pub(crate) fn number(&self, value: u32) -> Value {
        Value::U32(value)
    }

    pub(crate) fn count(&self, of: impl Fn(&ObjectCounters) -> &Count) -> Value {
        Value::U64(self.sum.count(of))
    }

    /// A count of what HTTP does, 0 in TCP mode.
    /// The part of a count that is not of HTTP/2; 0 in TCP mode.
    pub(crate) fn http1_count(
        &self,
        of: impl Fn(&ObjectCounters) -> &Count,
        of_http2: impl Fn(&Http2Counters) -> &Count,
    ) -> Value {
        Value::U64(if self.is_http() { self.sum.count(of).saturating_sub(self.http2_count(of_http2)) } else { 0 })
    }

    pub(crate) fn tcp_count(&self, of: impl Fn(&ObjectCounters) -> &Count) -> Value {
        Value::U64(if self.is_http() { 0 } else { self.sum.count(of) })
    }

    /// A counter of HTTP/1, 0 in TCP mode.
    pub(crate) fn protocol_count(&self, which: ProtocolCounter) -> Value {
        let front = matches!(self.kind, Kind::Frontend | Kind::Listener(_));
        Value::U64(if self.is_http() { self.sum.protocol(which, front) } else { 0 })
    }

    /// A count of HTTP/2 on the object's side; 0 in TCP mode.
    pub(crate) fn http2(&self, of: impl Fn(&Http2Counters) -> &Count) -> Value {
        Value::U64(if self.is_http() { self.http2_count(of) } else { 0 })
    }

    /// A count of bodies on the object's side; 0 in TCP mode.
    pub(crate) fn content(&self, of: impl Fn(&ContentCounters) -> &Count) -> Value {
        let front = matches!(self.kind, Kind::Frontend);
        Value::U64(if self.is_http() { self.worker.process.counters.content(self.proxy.index, front, of) } else { 0 })
    }

    fn http2_count(&self, of: impl Fn(&Http2Counters) -> &Count) -> u64 {
        let front = !matches!(self.kind, Kind::Backend | Kind::Server(_));
        self.worker.process.counters.http2(self.proxy.index, front, of)
    }

    /// HTTP/1 connections that are open: a backend's to its servers, idle ones included; 0 in TCP mode.
    pub(crate) fn open_links(&self) -> Value {
        let open = match self.kind {
            _ if !self.is_http() => 0,
            Kind::Backend => {
                // Requests of HTTP/2 are no connections, and its idle connections are not among these.
                let all: u64 = self.servers().map(|server| self.links(server)).sum();
                let streams = self.http2_count(|counters| &counters.open_streams);
                all.saturating_sub(streams)
            }
            _ => u64::from(self.current()).saturating_sub(self.http2_count(|counters| &counters.open_connections)),
        };
        Value::U64(open)
    }

    /// Requests of a server that are under way, and its idle connections of one request at a time.
    fn links(&self, server: &Server) -> u64 {
        let used = self.state().counts(Some(server.index)).srv_conn;
        u64::from(used) + self.worker.process.pool.idle(server.serial) as u64
    }

    /// What a frontend calls a request, a backend a session.
    pub(crate) fn streams<'t>(&self, counters: &'t ObjectCounters) -> &'t Count {
        if matches!(self.kind, Kind::Frontend) { &counters.requests } else { &counters.sessions }
    }

    /// Requests of a backend are its sessions, those of a server its answers.
    pub(crate) fn requests(&self) -> Value {
        match self.kind {
            Kind::Server(_) => {
                Value::U64((0..6).map(|class| self.sum.count(|counters| &counters.answers[class])).sum())
            }
            _ => self.count(|counters| self.streams(counters)),
        }
    }

    pub(crate) fn peak(&self, of: impl Fn(&ObjectCounters) -> &Peak) -> Value {
        Value::count(if self.counts_maxima() { self.sum.peak(of) } else { 0 })
    }

    pub(crate) fn rate(&self, of: impl Fn(&ObjectCounters) -> &Rate) -> Value {
        Value::count(self.sum.rate(self.now, of) as u64)
    }

    pub(crate) fn most(&self, of: impl Fn(&ObjectCounters) -> &Rate + Clone) -> Value {
        Value::count(if self.counts_maxima() { self.sum.most(self.now, of) } else { 0 })
    }

    /// `stats calculate-max-counters`.
    fn counts_maxima(&self) -> bool {
        self.program.runtime.counts_maxima
    }

    pub(crate) fn average(&self, which: usize) -> Value {
        Value::count(self.sum.average(which))
    }

    pub(crate) fn last_session(&self) -> Value {
        match self.sum.idle_seconds(self.now) {
            Some(seconds) => Value::S32(i32::try_from(seconds).unwrap_or(i32::MAX)),
            None => Value::S32(-1),
        }
    }

    pub(super) fn state(&self) -> &'a live::ProxyState {
        &self.worker.process.live.proxies[self.proxy.index]
    }

    /// Sessions or requests that run.
    pub(crate) fn current(&self) -> u32 {
        match self.kind {
            Kind::Frontend => self.state().feconn(),
            Kind::Backend => self.state().counts(None).beconn,
            Kind::Server(server) => self.state().counts(Some(server.index)).srv_conn,
            Kind::Listener(_) => u32::try_from(self.sum.running()).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn queued(&self) -> u32 {
        match self.kind {
            Kind::Server(server) => self.state().queued(Some(server.index)).1,
            _ => self.state().queued(None).0,
        }
    }

    pub(crate) fn limit(&self) -> Value {
        match self.kind {
            Kind::Frontend => Value::U32(self.state().frontend_gate().bound()),
            Kind::Backend => self.proxy.backend.as_ref().map_or(Value::None, |back| Value::U32(back.fullconn)),
            Kind::Listener(bind) => Value::U32(bind.maxconn.unwrap_or(0)),
            // With `minconn` the limit follows the load; what is shown is where that leads.
            Kind::Server(server) if server.minconn.is_some() => server.maxconn.map_or(Value::None, Value::U32),
            Kind::Server(server) => {
                let limit = self.state().status(server.index).map(|status| status.full_limit);
                limit.filter(|limit| *limit != u32::MAX).map_or(Value::None, Value::U32)
            }
        }
    }

    pub(crate) fn queue_limit(&self) -> Value {
        self.of_server(|server| server.maxqueue.map_or(Value::None, Value::U32))
    }

    /// Seconds that a server, or all servers of a backend at once, could not be used. That of a backend is not measured
    /// before a server of it is checked.
    pub(crate) fn downtime(&self) -> Value {
        let seconds = |time: Duration| Value::U32(u32::try_from(time.as_secs()).unwrap_or(u32::MAX));
        match self.kind {
            Kind::Server(server) if server.check.is_some() => seconds(self.state().downtime(server.index, self.now)),
            Kind::Server(_) => Value::None,
            _ if self.servers().next().is_none() => Value::None,
            _ => seconds(self.state().outages(self.now).total),
        }
    }

    /// Something of a server alone.
    fn of_server(&self, value: impl FnOnce(&'a Server) -> Value) -> Value {
        if let Kind::Server(server) = self.kind { value(server) } else { Value::None }
    }

    /// What a server's checks say; nothing while they are paused.
    fn health(&self) -> Option<Health> {
        match self.kind {
            Kind::Server(server) => self.enabled(server, Checker::Health),
            _ => None,
        }
    }

    pub(super) fn enabled(&self, server: &Server, checker: Checker) -> Option<Health> {
        self.checks_of(server, checker).filter(|health| health.is_enabled())
    }

    pub(super) fn checks_of(&self, server: &Server, checker: Checker) -> Option<Health> {
        self.worker.process.live.proxies[server.tracking.proxy].health(server.index, checker)
    }

    /// What a server's checks say, those that are paused as well.
    pub(crate) fn checks(&self, checker: Checker) -> Option<Health> {
        if let Kind::Server(server) = self.kind { self.checks_of(server, checker) } else { None }
    }

    /// The servers of its proxy, as objects.
    pub(crate) fn servers_of_backend(&self) -> impl Iterator<Item = Object<'a>> {
        let (worker, program, proxy) = (self.worker, self.program, self.proxy);
        self.servers().map(move |server| Object::new(worker, program, (proxy, Kind::Server(server)), false))
    }

    /// Something of what a server's checks add up to; nothing where there are none.
    pub(crate) fn of_health(&self, value: impl FnOnce(&Health) -> Value) -> Value {
        self.health().as_ref().map_or(Value::None, value)
    }

    /// Something of a server's last check; nothing in maintenance either.
    pub(crate) fn of_check(&self, value: impl FnOnce(&Health) -> Value) -> Value {
        if self.is_in_maintenance() { Value::None } else { self.of_health(value) }
    }

    /// Something of what a server's agent says.
    pub(crate) fn of_agent(&self, value: impl FnOnce(&Health) -> Value) -> Value {
        self.of_server(|server| self.enabled(server, Checker::Agent).as_ref().map_or(Value::None, value))
    }

    /// How often a server's traffic has shown too many errors, where it is observed. One that tracks such a server has the
    /// column, and no traffic that is observed.
    pub(crate) fn analyzed(&self) -> Value {
        let Kind::Server(server) = self.kind else { return Value::None };
        let checked = self.checked(server);
        if checked.check.as_ref().is_none_or(|check| check.observed.is_none()) {
            return Value::None;
        }
        if std::ptr::eq(checked, server) {
            // It stays while checks are paused.
            self.checks(Checker::Health).map_or(Value::None, |health| Value::U64(health.analyzed()))
        } else {
            Value::U64(0)
        }
    }

    /// The server whose checks tell the state of a server: the one at the end of what it tracks, or itself.
    pub(super) fn checked(&self, server: &'a Server) -> &'a Server {
        let mut checked = server;
        while let Some(leader) = checked.tracking.leader.and_then(|at| self.program.server_at(at)) {
            checked = leader;
        }
        checked
    }

    /// The server that a server tracks.
    pub(crate) fn tracked(&self) -> Value {
        self.of_server(|server| self.leader(server).map_or(Value::None, Value::Text))
    }

    pub(super) fn leader(&self, server: &Server) -> Option<String> {
        let (program, leader) = (self.program, server.tracking.leader?);
        Some(format!("{}/{}", program.proxies.get(leader.0)?.name, program.server_at(leader)?.name))
    }

    /// How often a server, or all servers of a backend, went down.
    pub(crate) fn downs(&self) -> Value {
        match self.kind {
            Kind::Server(server) => {
                let downs = self.state().status(server.index).map_or(0, |status| status.downs);
                self.of_health(|_| Value::U64(downs))
            }
            _ => Value::U64(self.state().outages(self.now).count),
        }
    }

    pub(crate) fn idle_limit(&self) -> Value {
        self.of_server(|server| server.pool_max_conn.map_or(Value::None, Value::U32))
    }

    pub(crate) fn rate_limit(&self) -> Value {
        Value::U32(self.proxy.frontend.as_ref().and_then(|front| front.limits.sessions_a_second).unwrap_or(0))
    }

    pub(crate) fn idle(&self) -> u32 {
        match self.kind {
            Kind::Server(server) => {
                u32::try_from(self.worker.process.pool.idle_connections(server.serial)).unwrap_or(u32::MAX)
            }
            _ => 0,
        }
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &'a Server> + use<'a> {
        self.proxy.servers()
    }

    /// Servers that can be given requests, of one class.
    fn usable_servers(&self, backup: bool) -> impl Iterator<Item = ServerStatus> {
        let state = self.state();
        let servers = self.servers().filter(move |server| server.backup == backup);
        let statuses = servers.filter_map(|server| state.status(server.index));
        statuses.filter(|one| one.admin == Admin::Ready && one.up && !one.stopping)
    }

    /// Servers of the class that are up and have a weight; a server tells its own class.
    pub(crate) fn usable(&self, backup: bool) -> u32 {
        match self.kind {
            Kind::Server(server) => u32::from(server.backup == backup),
            _ => self.usable_servers(backup).filter(|one| one.weight > 0).count() as u32,
        }
    }

    /// A weight of a server, the one that was set or the one that counts; of a backend those of its servers together.
    pub(crate) fn weight(&self, of: fn(&ServerStatus) -> u32) -> u32 {
        match self.kind {
            Kind::Server(server) => self.state().status(server.index).as_ref().map_or(0, of),
            _ => match self.usable_servers(false).map(|one| of(&one)).sum() {
                0 => self.usable_servers(true).map(|one| of(&one)).find(|weight| *weight > 0).unwrap_or(0),
                active => active,
            },
        }
    }

    /// How much of its share a server has by now, per cent, while `slowstart` leaves it less than all.
    pub(crate) fn throttle(&self) -> Value {
        let Kind::Server(server) = self.kind else { return Value::None };
        let status = self.state().status(server.index);
        let is_warming = |one: &ServerStatus| one.throttle < 100 && one.up && one.admin != Admin::Maintenance;
        status.filter(is_warming).map_or(Value::None, |one| Value::U32(one.throttle))
    }

    /// Seconds since a server last began or ceased to be usable, or its start; since the start for all others. 0 from
    /// `clear counters all` to the next change, as in HAProxy.
    pub(crate) fn since_change(&self) -> u32 {
        let changed = match self.kind {
            Kind::Server(server) => self.state().status(server.index).map(|status| status.changed),
            Kind::Backend => Some(self.state().outages(self.now).changed),
            _ => None,
        };
        let elapsed = changed.unwrap_or_default().elapsed(self.worker.process.host.started().0, self.now);
        u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX)
    }

    /// Whether a server is in maintenance.
    pub(crate) fn is_in_maintenance(&self) -> bool {
        match self.kind {
            Kind::Server(server) => !self.state().setting(server.index).is_some_and(|setting| setting.enabled),
            _ => false,
        }
    }

    /// Whether a server is down.
    pub(crate) fn is_down(&self) -> bool {
        match self.kind {
            Kind::Server(server) => !self.state().status(server.index).is_some_and(|status| status.up),
            _ => false,
        }
    }

    pub(crate) fn address(&self) -> Value {
        use policy::program::BindAddress;
        match self.kind {
            Kind::Listener(bind) => Value::Text(match &bind.address {
                BindAddress::Inet(address) => address.to_string(),
                BindAddress::Unix(_) | BindAddress::Abstract(_) => "unix".to_owned(),
                BindAddress::Descriptor { .. } | BindAddress::Reverse { .. } => bind.text.to_string(),
            }),
            Kind::Server(server) => Value::Text(match &*self.worker.process.outgoing.address(server) {
                ServerAddress::Inet { ip, port } => {
                    let port = match port {
                        ServerPort::Exact(port) => *port,
                        ServerPort::Offset(offset) => *offset as u16,
                    };
                    std::net::SocketAddr::new(*ip, port).to_string()
                }
                ServerAddress::Unix(_) | ServerAddress::Abstract(_) => "unix".to_owned(),
                ServerAddress::Carrier(number) => format!("sockpair@{number}"),
                ServerAddress::Unresolved { .. } | ServerAddress::Reversed => return Value::None,
            }),
            Kind::Frontend | Kind::Backend => Value::None,
        }
    }

    pub(crate) fn protocol(&self) -> Value {
        use policy::program::BindAddress;
        match self.kind {
            Kind::Listener(bind) => Value::text(match &bind.address {
                BindAddress::Inet(address) => {
                    let place = 2 * usize::from(bind.listening.socket.multipath) + usize::from(address.is_ipv6());
                    ["tcpv4", "tcpv6", "mptcpv4", "mptcpv6"][place]
                }
                BindAddress::Descriptor { is_carrier: true, .. } => "sockpair",
                BindAddress::Descriptor { .. } => "tcpv4",
                BindAddress::Unix(_) => "unix_stream",
                BindAddress::Abstract(_) => "abns_stream",
                BindAddress::Reverse { .. } => "rev",
            }),
            _ => Value::None,
        }
    }

    pub(crate) fn cookie(&self) -> Value {
        let Some(plan) = self.proxy.backend.as_ref().map(|backend| &backend.persistence) else { return Value::None };
        let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into_owned());
        match self.kind {
            Kind::Backend => plan.cookie.as_ref().map_or(Value::None, |cookie| text(&cookie.name)),
            Kind::Server(server) => {
                let state = &self.worker.process.live.proxies[self.proxy.index];
                state.cookies.with_values(plan, |values| values.of(server.index).map_or(Value::None, text))
            }
            _ => Value::None,
        }
    }

    pub(crate) fn algorithm(&self) -> Value {
        let Some(backend) = &self.proxy.backend else { return Value::None };
        Value::text(match &backend.balance {
            BalanceSpec::RoundRobin => "roundrobin",
            BalanceSpec::StaticRr => "static-rr",
            BalanceSpec::LeastConn => "leastconn",
            BalanceSpec::First => "first",
            BalanceSpec::Source => "source",
            BalanceSpec::Uri(_) => "uri",
            BalanceSpec::UrlParam { .. } => "url_param",
            BalanceSpec::Header { .. } => "hdr",
            BalanceSpec::RdpCookie { .. } => "rdp-cookie",
            BalanceSpec::Hash(_) => "hash",
            BalanceSpec::Random { .. } => "random",
            BalanceSpec::Ewma { .. } => "ewma",
            // HAProxy has no name for them here.
            BalanceSpec::Sticky | BalanceSpec::LogHash(_) => "unknown",
        })
    }
}
