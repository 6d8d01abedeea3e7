//! The object of a line of the statistics: a frontend, a listener, a server, a backend; and the values of its columns.
//! Must never change anything.

use std::{borrow::Cow, time::Duration};

use base::Moment;
use config::spec::{BalanceSpec, Mode};
use live::counters::{
    ContentCounters, Count, Http2Counters, ObjectCounters, Peak, ProtocolCounter, QuicCount, QuicCounters, Rate, Sum,
};
use live::health::Health;
use live::{Admin, Checker, ServerStatus};
use policy::program::{Bind, Program, Proxy, Server, ServerAddress, ServerPort};

use crate::field::Value;
use engine::worker::Worker;

/// Bit of frontends in a set of kinds.
pub(crate) const F: u8 = 1;
/// Bit of backends.
pub(crate) const B: u8 = 2;
/// Bit of servers.
pub(crate) const S: u8 = 4;
/// Bit of listeners.
pub(crate) const L: u8 = 8;

/// Kind of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    Frontend,
    Listener(&'a Bind),
    Server(&'a Server),
    Backend,
}

impl Kind<'_> {
    /// Returns the bit of this kind.
    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Frontend => F,
            Self::Listener(_) => L,
            Self::Server(_) => S,
            Self::Backend => B,
        }
    }

    /// Returns `type` in the statistics.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Frontend => 0,
            Self::Backend => 1,
            Self::Server(_) => 2,
            Self::Listener(_) => 3,
        }
    }

    /// Returns the abbreviation in the typed form, and the name in JSON.
    pub(crate) const fn names(self) -> (char, &'static str) {
        match self {
            Self::Frontend => ('F', "Frontend"),
            Self::Listener(_) => ('L', "Listener"),
            Self::Server(_) => ('S', "Server"),
            Self::Backend => ('B', "Backend"),
        }
    }
}

/// An object with its counters.
pub(crate) struct Object<'a> {
    pub(crate) worker: &'a Worker,
    program: &'a Program,
    pub(crate) proxy: &'a Proxy,
    pub(crate) kind: Kind<'a>,
    pub(crate) now: Moment,
    /// Whether a backend's status includes the number of its usable servers (`up` and `no-maint`).
    pub(crate) counts_servers: bool,
    pub(crate) sum: Sum<'a>,
}

impl<'a> Object<'a> {
    /// Creates the object. `counts_servers`: see [`Object::counts_servers`].
    pub(crate) fn new(
        worker: &'a Worker,
        program: &'a Program,
        proxy: &'a Proxy,
        kind: Kind<'a>,
        counts_servers: bool,
    ) -> Self {
        let index = proxy.index;
        let sum = worker.process.counters.of(|counters| match kind {
            Kind::Frontend => Some(&counters.proxies[index].front),
            Kind::Backend => counters.proxies[index].known_back(),
            Kind::Listener(bind) => counters.proxies[index].binds.get(bind.index),
            Kind::Server(server) => counters.known_server(server.serial),
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
            Mode::Udp => "udp",
        }
    }

    pub(crate) fn name(&self) -> Cow<'a, str> {
        match self.kind {
            Kind::Frontend => "FRONTEND".into(),
            Kind::Backend => "BACKEND".into(),
            Kind::Server(server) => Cow::Borrowed(&*server.name),
            // An unnamed listener is named by its id.
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
    /// The part of a count that is of neither HTTP/2 nor HTTP/3; 0 in TCP mode.
    pub(crate) fn http1_count(
        &self,
        of: impl Fn(&ObjectCounters) -> &Count,
        of_http2: impl Fn(&Http2Counters) -> &Count,
        of_http3: impl Fn(&QuicCounters) -> &Count,
    ) -> Value {
        if !self.is_http() {
            return Value::U64(0);
        }
        let others = self.http2_count(of_http2) + self.quic_count(of_http3);
        Value::U64(self.sum.count(of).saturating_sub(others))
    }

    /// Returns a counter of QUIC and HTTP/3 of the object's side, under HAProxy's name.
    pub(crate) fn quic(&self, count: QuicCount) -> Value {
        self.quic_own(|counters| counters.of(count))
    }

    /// Returns a counter of QUIC and HTTP/3 of the object's side.
    pub(crate) fn quic_own(&self, of: impl Fn(&QuicCounters) -> &Count) -> Value {
        Value::U64(self.quic_count(of))
    }

    fn quic_count(&self, of: impl Fn(&QuicCounters) -> &Count) -> u64 {
        let front = !matches!(self.kind, Kind::Backend | Kind::Server(_));
        self.worker.process.counters.quic(self.proxy.index, front, of)
    }

    pub(crate) fn tcp_count(&self, of: impl Fn(&ObjectCounters) -> &Count) -> Value {
        Value::U64(if self.is_http() { 0 } else { self.sum.count(of) })
    }

    /// Returns an HTTP/1 counter, 0 in TCP mode.
    pub(crate) fn protocol_count(&self, which: ProtocolCounter) -> Value {
        let front = matches!(self.kind, Kind::Frontend | Kind::Listener(_));
        Value::U64(if self.is_http() { self.sum.protocol(which, front) } else { 0 })
    }

    /// Returns an HTTP/2 counter of the object's side; 0 in TCP mode.
    pub(crate) fn http2(&self, of: impl Fn(&Http2Counters) -> &Count) -> Value {
        Value::U64(if self.is_http() { self.http2_count(of) } else { 0 })
    }

    /// Returns a counter of bodies of the object's side; 0 in TCP mode.
    pub(crate) fn content(&self, of: impl Fn(&ContentCounters) -> &Count) -> Value {
        let front = matches!(self.kind, Kind::Frontend);
        Value::U64(if self.is_http() { self.worker.process.counters.content(self.proxy.index, front, of) } else { 0 })
    }

    fn http2_count(&self, of: impl Fn(&Http2Counters) -> &Count) -> u64 {
        let front = !matches!(self.kind, Kind::Backend | Kind::Server(_));
        self.worker.process.counters.http2(self.proxy.index, front, of)
    }

    /// Returns the number of open HTTP/1 connections, for a backend to its servers, including idle ones; 0 in TCP mode.
    pub(crate) fn open_links(&self) -> Value {
        let open = match self.kind {
            _ if !self.is_http() => 0,
            Kind::Backend => {
                // HTTP/2 requests are subtracted: they are not connections, and idle HTTP/2 connections are not
                // included.
                let all: u64 = self.servers().map(|server| self.links(server)).sum();
                let streams = self.http2_count(|counters| &counters.open_streams);
                all.saturating_sub(streams)
            }
            _ => u64::from(self.current()).saturating_sub(self.http2_count(|counters| &counters.open_connections)),
        };
        Value::U64(open)
    }

    /// Returns the number of a server's current requests and of its idle connections that are not multiplexed.
    fn links(&self, server: &Server) -> u64 {
        let used = self.state().counts(Some(server.index)).srv_conn;
        u64::from(used) + self.worker.process.pool.idle(server.serial) as u64
    }

    /// Returns the counter of streams: a frontend's requests, a backend's sessions.
    pub(crate) fn streams<'t>(&self, counters: &'t ObjectCounters) -> &'t Count {
        if matches!(self.kind, Kind::Frontend) { &counters.requests } else { &counters.sessions }
    }

    /// Returns the number of requests: for a backend its sessions, for a server its responses.
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

    /// Whether `stats calculate-max-counters` is on.
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

    /// Returns the number of current sessions or requests.
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
            // With `minconn` the limit depends on the load; the maximum is shown.
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

    /// Returns the seconds that a server, or all servers of a backend at the same time, were down. A backend's downtime
    /// is only measured if a server of it is checked.
    pub(crate) fn downtime(&self) -> Value {
        let seconds = |time: Duration| Value::U32(u32::try_from(time.as_secs()).unwrap_or(u32::MAX));
        match self.kind {
            Kind::Server(server) if server.check.is_some() => seconds(self.state().downtime(server.index, self.now)),
            Kind::Server(_) => Value::None,
            _ if self.servers().next().is_none() => Value::None,
            _ => seconds(self.state().outages(self.now).total),
        }
    }

    /// Returns a value for servers only.
    fn of_server(&self, value: impl FnOnce(&'a Server) -> Value) -> Value {
        if let Kind::Server(server) = self.kind { value(server) } else { Value::None }
    }

    /// Returns the state of a server's health check, if enabled.
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

    /// Returns the state of a server's check, enabled or not.
    pub(crate) fn checks(&self, checker: Checker) -> Option<Health> {
        if let Kind::Server(server) = self.kind { self.checks_of(server, checker) } else { None }
    }

    /// Returns the servers of its proxy as objects.
    pub(crate) fn servers_of_backend(&self) -> impl Iterator<Item = Object<'a>> {
        let (worker, program, proxy) = (self.worker, self.program, self.proxy);
        self.servers().map(move |server| Object::new(worker, program, proxy, Kind::Server(server), false))
    }

    /// Returns a value of a server's health check; nothing without one.
    pub(crate) fn of_health(&self, value: impl FnOnce(&Health) -> Value) -> Value {
        self.health().as_ref().map_or(Value::None, value)
    }

    /// Returns a value of a server's last check; nothing in maintenance.
    pub(crate) fn of_check(&self, value: impl FnOnce(&Health) -> Value) -> Value {
        if self.is_in_maintenance() { Value::None } else { self.of_health(value) }
    }

    /// Returns a value of a server's agent check.
    pub(crate) fn of_agent(&self, value: impl FnOnce(&Health) -> Value) -> Value {
        self.of_server(|server| self.enabled(server, Checker::Agent).as_ref().map_or(Value::None, value))
    }

    /// Returns how often a server's traffic has reached the error limit, if it is observed. A server that tracks an
    /// observed server has the column, but no observed traffic.
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

    /// Returns the server whose checks determine a server's state: the last one of a chain of tracked servers, or the
    /// server itself.
    pub(super) fn checked(&self, server: &'a Server) -> &'a Server {
        let mut checked = server;
        while let Some(leader) = checked.tracking.leader.and_then(|at| self.program.server_at(at)) {
            checked = leader;
        }
        checked
    }

    /// Returns the tracked server.
    pub(crate) fn tracked(&self) -> Value {
        self.of_server(|server| self.leader(server).map_or(Value::None, Value::Text))
    }

    pub(super) fn leader(&self, server: &Server) -> Option<String> {
        let (program, leader) = (self.program, server.tracking.leader?);
        Some(format!("{}/{}", program.proxies.get(leader.proxy)?.name, program.server_at(leader)?.name))
    }

    /// Returns how often a server, or all servers of a backend, went down.
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

    /// Returns the servers of a class, active or backup, that can be given requests.
    fn usable_servers(&self, backup: bool) -> impl Iterator<Item = ServerStatus> {
        let state = self.state();
        let servers = self.servers().filter(move |server| server.backup == backup);
        let statuses = servers.filter_map(|server| state.status(server.index));
        statuses.filter(|one| one.admin == Admin::Ready && one.up && !one.stopping)
    }

    /// Returns the number of servers of the class that are up with a weight; for a server, whether it is of the class.
    pub(crate) fn usable(&self, backup: bool) -> u32 {
        match self.kind {
            Kind::Server(server) => u32::from(server.backup == backup),
            _ => self.usable_servers(backup).filter(|one| one.weight > 0).count() as u32,
        }
    }

    /// Returns a server's weight, configured or effective; for a backend the sum over its usable active servers, or the
    /// weight of its first usable backup server.
    pub(crate) fn weight(&self, of: fn(&ServerStatus) -> u32) -> u32 {
        match self.kind {
            Kind::Server(server) => self.state().status(server.index).as_ref().map_or(0, of),
            _ => match self.usable_servers(false).map(|one| of(&one)).sum() {
                0 => self.usable_servers(true).map(|one| of(&one)).find(|weight| *weight > 0).unwrap_or(0),
                active => active,
            },
        }
    }

    /// Returns the percentage of its share that a server receives during `slowstart`.
    pub(crate) fn throttle(&self) -> Value {
        let Kind::Server(server) = self.kind else { return Value::None };
        let status = self.state().status(server.index);
        let is_warming = |one: &ServerStatus| one.throttle < 100 && one.up && one.admin != Admin::Maintenance;
        status.filter(is_warming).map_or(Value::None, |one| Value::U32(one.throttle))
    }

    /// Returns the seconds since a server's last state change, or since the start; for other objects since the start. 0
    /// from `clear counters all` to the next change, as in HAProxy.
    pub(crate) fn since_change(&self) -> u32 {
        let changed = match self.kind {
            Kind::Server(server) => self.state().status(server.index).map(|status| status.changed),
            Kind::Backend => Some(self.state().outages(self.now).changed),
            _ => None,
        };
        let elapsed = changed.unwrap_or_default().elapsed(self.worker.process.host.started().0, self.now);
        u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX)
    }

    pub(crate) fn is_in_maintenance(&self) -> bool {
        match self.kind {
            Kind::Server(server) => !self.state().setting(server.index).is_some_and(|setting| setting.enabled),
            _ => false,
        }
    }

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
                BindAddress::Inet(address) | BindAddress::Quic(address) | BindAddress::Udp(address) => {
                    address.to_string()
                }
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
        use config::spec::SocketKind;
        use policy::program::BindAddress;
        match self.kind {
            Kind::Listener(bind) => Value::text(match &bind.address {
                BindAddress::Inet(address) => {
                    let place = 2 * usize::from(bind.listening.socket.multipath) + usize::from(address.is_ipv6());
                    ["tcpv4", "tcpv6", "mptcpv4", "mptcpv6"][place]
                }
                BindAddress::Descriptor { is_carrier: true, .. } => "sockpair",
                BindAddress::Descriptor { kind: SocketKind::Quic, .. } => "quic4",
                BindAddress::Descriptor { .. } => "tcpv4",
                BindAddress::Quic(address) => ["quic4", "quic6"][usize::from(address.is_ipv6())],
                BindAddress::Udp(address) => ["udp4", "udp6"][usize::from(address.is_ipv6())],
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
            // HAProxy shows no name for these.
            BalanceSpec::Sticky | BalanceSpec::LogHash(_) => "unknown",
        })
    }
}
