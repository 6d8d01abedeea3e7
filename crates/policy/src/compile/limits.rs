//! Computes the maximum number of connections of the process (configuration manual, "maxconn", "ulimit-n",
//! "fd-hard-limit"; management manual, section 5). The manuals say "half of the descriptors, less some tens"; the exact
//! terms are those of HAProxy 2.6 and 3.5. Must never query the system: its limits are an argument.

use super::listening::shards;
use config::spec::{BindSpec, GlobalSpec, ProxySpec, Spec};

/// Limits of the system and the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemLimits {
    /// Maximum number of file descriptors: the larger of the soft and the hard limit.
    pub descriptors: u64,
    /// Number of usable processors: the default of `nbthread`.
    pub processors: u32,
    /// `-n`: takes precedence over the global `maxconn`.
    pub maxconn: Option<u32>,
    /// `-m`, megabytes: limits the computed `maxconn`.
    pub memory: Option<u64>,
}

impl Default for SystemLimits {
    fn default() -> Self {
        Self { descriptors: 1024, processors: 1, maxconn: None, memory: None }
    }
}

/// Default of `fd-hard-limit`.
const DESCRIPTORS_AT_MOST: u64 = 1_048_576;

/// Minimum of the computed `maxconn`: on a system that does not permit even that, startup fails with a clear message.
const MAXCONN_AT_LEAST: u64 = 100;

/// File descriptors of the standard streams, the configuration, the loggers and others.
const DESCRIPTORS_OF_PROCESS: u64 = 10;

/// File descriptors of a thread: its poller and its wake-up.
const DESCRIPTORS_OF_THREAD: u64 = 3;

/// Sockets to servers that a thread keeps for further flows of `udp-lb`, of both versions of IP.
pub const KEPT_DATAGRAM_SOCKETS: u64 = 256;

/// Memory of a connection without its two buffers, in bytes.
const MEMORY_OF_CONNECTION: u64 = 2_944;

/// Memory of TLS on one side of a connection, in bytes.
const MEMORY_OF_TLS: u64 = 16 << 10;

/// Memory of the handshakes of a connection, in bytes.
const MEMORY_OF_HANDSHAKE: u64 = 76 << 10;

/// Memory of a session in the cache, in bytes (`tune.ssl.cachesize`).
const MEMORY_OF_SESSION: u64 = 200;

/// Default number of sessions in the cache.
const SESSIONS: u32 = 20_000;

/// Percentage of the memory that connections may use.
const USABLE: u64 = 97;

/// The computed limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ComputedLimits {
    pub(super) maxconn: u32,
    pub(super) is_automatic: bool,
    /// Maximum number of concurrent TLS connections, of both sides; 0 for no separate limit.
    pub(super) max_tls: u32,
    /// The message about a configured limit that exceeds the memory.
    pub(super) excess: Option<String>,
    /// File descriptors for these connections and everything else.
    pub(super) descriptors: u64,
}

impl SystemLimits {
    pub(super) fn threads(&self, global: &GlobalSpec) -> u32 {
        global.nbthread.unwrap_or(self.processors).max(1)
    }

    pub(super) fn work_out(&self, spec: &Spec) -> ComputedLimits {
        let overhead = self.overhead(spec);
        let splices = spec.proxies.iter().map(|proxy| proxy.options.splice);
        let splices = splices.into_iter().any(|splice| splice.auto || splice.request || splice.response);
        let written = self.maxconn.or(spec.global.maxconn).filter(|maxconn| *maxconn > 0);
        let memory = self.memory.map(|megabytes| Memory::of(spec, megabytes));
        let (by_memory, excess) = match &memory {
            Some(memory) if written.is_none() => memory.connections(spec.global.tls.max_connections),
            _ => (u64::MAX, None),
        };
        let maxconn = written.unwrap_or_else(|| self.automatic(spec, overhead, splices, by_memory));
        let (max_tls, other_excess) = match (&memory, spec.global.tls.max_connections) {
            (Some(memory), 0) => memory.tls(maxconn, written.is_none()),
            (_, most) => (most, None),
        };
        // One pipe for four connections, two descriptors each.
        let wanted = spec.global.maxpipes.unwrap_or(maxconn / 4);
        let pipes = if splices { u64::from(wanted) } else { 0 };
        ComputedLimits {
            maxconn,
            is_automatic: written.is_none(),
            max_tls,
            excess: excess.or(other_excess),
            descriptors: u64::from(maxconn) * 2 + pipes * 2 + overhead,
        }
    }

    /// Returns the number of file descriptors that are not for connections.
    fn overhead(&self, spec: &Spec) -> u64 {
        let threads = self.threads(&spec.global);
        let runtime = &spec.global.runtime;
        // Each worker has a UDP socket of its own, of which the process keeps a copy.
        let of_bind = |bind: &BindSpec, is_udp: bool| match is_udp || bind.address.is_quic() {
            true => 2 * u64::from(threads),
            false => u64::from(shards(bind, &spec.global, threads)),
        };
        let of_proxy =
            |proxy: &ProxySpec| proxy.binds.iter().map(|bind| of_bind(bind, proxy.udp.is_some())).sum::<u64>();
        let of_commands: u64 = runtime.sockets.iter().map(|bind| of_bind(bind, false)).sum();
        let has_flows = spec.proxies.iter().any(|proxy| proxy.udp.is_some());
        let kept = if has_flows { KEPT_DATAGRAM_SOCKETS * u64::from(threads) } else { 0 };
        let sockets = spec.proxies.iter().map(of_proxy).sum::<u64>() + of_commands + kept;
        let connections = if runtime.sockets.is_empty() { 0 } else { u64::from(runtime.maxconn.unwrap_or(10)) };
        DESCRIPTORS_OF_PROCESS + sockets + connections + DESCRIPTORS_OF_THREAD * u64::from(threads)
    }

    fn automatic(&self, spec: &Spec, overhead: u64, splices: bool, by_memory: u64) -> u32 {
        let allowed = self.descriptors.min(spec.global.fd_hard_limit.unwrap_or(DESCRIPTORS_AT_MOST));
        let left = allowed.saturating_sub(overhead);
        let by_descriptors = match spec.global.maxpipes {
            Some(pipes) if splices => left.saturating_sub(2 * u64::from(pipes)) / 2,
            None if splices => left * 2 / 5,
            _ => left / 2,
        };
        let found = by_descriptors.min(by_memory);
        let found = if self.memory.is_some() { two_digits(found) } else { found };
        let maxconn = found.max(MAXCONN_AT_LEAST);
        u32::try_from(maxconn).unwrap_or(u32::MAX)
    }
}

/// The memory available for connections (configuration manual, "maxconn", "maxsslconn"). The terms reproduce the
/// numbers of HAProxy 3.5.
struct Memory {
    megabytes: u64,
    /// Memory for connections in bytes.
    usable: u64,
    /// Memory of a connection without TLS in bytes.
    connection: u64,
    /// Number of sides that use TLS: 0 to 2.
    sides: u64,
}

impl Memory {
    fn of(spec: &Spec, megabytes: u64) -> Self {
        let binds = spec.proxies.iter().flat_map(|proxy| &proxy.binds).chain(&spec.global.runtime.sockets);
        let mut by_tls = binds.filter_map(|bind| bind.tls.as_deref()).filter(|tls| tls.ssl);
        let servers = spec.proxies.iter().flat_map(|proxy| &proxy.servers).filter_map(|server| server.tls.as_deref());
        let mut secured = servers.filter(|tls| tls.ssl || tls.check == Some(true));
        let sides = u64::from(by_tls.next().is_some()) + u64::from(secured.next().is_some());
        let sessions = if sides > 0 { spec.global.tls.cache_size.unwrap_or(SESSIONS) } else { 0 };
        let compression = u64::from(spec.global.compression.memory.unwrap_or(0));
        let taken = u64::from(sessions) * MEMORY_OF_SESSION;
        let usable = (megabytes.saturating_sub(compression) << 20).saturating_sub(taken) * USABLE / 100;
        let buffer = u64::from(spec.global.tune.bufsize.unwrap_or(16_384));
        Self { megabytes, usable, connection: 2 * buffer + MEMORY_OF_CONNECTION, sides }
    }

    /// Returns the number of connections that fit: with TLS on all of them, or on `max_tls` of their sides
    /// (`maxsslconn`; 0: not specified). The message is set if `max_tls` exceeds the memory.
    fn connections(&self, max_tls: u32) -> (u64, Option<String>) {
        const OF_ONE: u64 = MEMORY_OF_TLS + MEMORY_OF_HANDSHAKE;
        if self.sides == 0 {
            return (self.usable / self.connection, None);
        }
        if max_tls == 0 {
            let by_tls = self.connection + self.sides * MEMORY_OF_TLS + MEMORY_OF_HANDSHAKE;
            return (self.usable / by_tls, None);
        }
        if let Some(left) = self.usable.checked_sub(u64::from(max_tls) * OF_ONE) {
            return (left / self.connection, None);
        }
        let excess = format!(
            "Cannot compute the automatic maxconn because global.maxsslconn is already too high for the global.memmax \
             value ({} MB). The absolute maximum possible value is {}, but {max_tls} was found.",
            self.megabytes,
            self.usable / OF_ONE
        );
        (0, Some(excess))
    }

    /// Returns the number of sides of `maxconn` connections that may use TLS concurrently; 0: TLS is not used.
    fn tls(&self, maxconn: u32, is_automatic: bool) -> (u32, Option<String>) {
        if self.sides == 0 {
            return (0, None);
        }
        let all = u64::from(maxconn) * self.sides;
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        if is_automatic {
            return (number(all), None);
        }
        if let Some(left) = self.usable.checked_sub(u64::from(maxconn) * self.connection) {
            let fitting = two_digits(left / (MEMORY_OF_TLS + MEMORY_OF_HANDSHAKE));
            return (number(fitting.min(all)), None);
        }
        let excess = format!(
            "Cannot compute the automatic maxsslconn because global.maxconn is already too high for the global.memmax \
             value ({} MB). The absolute maximum possible value without SSL is {}, but {maxconn} was found and SSL is in \
             use.",
            self.megabytes,
            self.usable / self.connection
        );
        (0, Some(excess))
    }
}

/// Rounds an estimate to two significant digits.
fn two_digits(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    number / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::{backend, bind, frontend, spec};
    use config::spec::{BindTlsSpec, ServerTlsSpec};

    /// Permitted descriptors, threads, listening sockets, splicing; HAProxy's `Maxconn` and `Maxsock`. (HAProxy opens a
    /// statistics socket to report these, which costs 11 descriptors; they are subtracted.)
    const ROWS: &[(u64, u32, usize, bool, u32, u64)] = &[
        (1_024 - 11, 2, 1, false, 498, 1_013),
        (4_096 - 11, 2, 1, false, 2_034, 4_085),
        (20_000 - 11, 2, 1, false, 9_986, 19_989),
        (256 - 11, 2, 1, false, 114, 245),
        (4_001 - 11, 2, 1, false, 1_986, 3_989),
        (2_048 - 11, 1, 1, false, 1_011, 2_036),
        (2_048 - 11, 4, 1, false, 1_007, 2_037),
        (1_024 - 11, 1, 1, true, 399, 1_010),
        (128, 2, 1, false, 100, 217),
        (64, 1, 5, false, 100, 218),
    ];

    #[test]
    fn the_automatic_maxconn_is_haproxys() {
        for &(descriptors, threads, sockets, splices, maxconn, needed) in ROWS {
            let mut front = frontend("f");
            front.binds = vec![bind(); sockets];
            front.options.splice.auto = splices;
            let limits = SystemLimits { descriptors, processors: threads, ..SystemLimits::default() };
            let found = limits.work_out(&spec(vec![front]));
            assert_eq!((found.maxconn, found.descriptors), (maxconn, needed), "of {descriptors} descriptors");
            assert!(found.is_automatic);
        }
    }

    /// The sockets of a `udp-lb` section: each thread has one of each address, and keeps some to servers.
    #[test]
    fn sockets_of_flows_are_counted() {
        let mut front = frontend("f");
        front.binds = vec![bind(); 4];
        let limits = SystemLimits { descriptors: 20_000, processors: 4, ..SystemLimits::default() };
        let without = limits.work_out(&spec(vec![front.clone()]));
        front.udp = Some(Box::default());
        let with = limits.work_out(&spec(vec![front.clone(), front]));
        let more = 2 * 4 * 2 * 4 - 4 + 4 * KEPT_DATAGRAM_SOCKETS;
        assert_eq!(u64::from(without.maxconn - with.maxconn), more / 2);
        assert_eq!(
            with.descriptors - u64::from(with.maxconn) * 2,
            without.descriptors - u64::from(without.maxconn) * 2 + more
        );
    }

    #[test]
    fn what_is_written_counts_and_the_command_line_counts_more() {
        let mut written = spec(vec![frontend("f")]);
        written.global.maxconn = Some(3_000);
        let limits = SystemLimits { descriptors: 512, ..SystemLimits::default() };
        assert_eq!(limits.work_out(&written).maxconn, 3_000);
        assert_eq!(limits.work_out(&written).descriptors, 6_014);
        let limits = SystemLimits { maxconn: Some(4_000), ..limits };
        assert_eq!(limits.work_out(&written).maxconn, 4_000);
        assert_eq!(limits.work_out(&written).descriptors, 8_014);
    }

    #[test]
    fn zero_means_automatic() {
        let mut written = spec(vec![frontend("f")]);
        written.global.maxconn = Some(0);
        assert!(SystemLimits::default().work_out(&written).is_automatic);
    }

    #[test]
    fn fd_hard_limit_only_lowers() {
        let mut written = spec(vec![frontend("f")]);
        written.global.fd_hard_limit = Some(600);
        let limits = SystemLimits { descriptors: 2_048, ..SystemLimits::default() };
        assert_eq!(limits.work_out(&written).maxconn, (600 - 14) / 2);
        written.global.fd_hard_limit = Some(1_000_000);
        assert_eq!(limits.work_out(&written).maxconn, (2_048 - 14) / 2);
        written.global.fd_hard_limit = None;
        let limits = SystemLimits { descriptors: u64::MAX, ..SystemLimits::default() };
        assert_eq!(limits.work_out(&written).maxconn, (1_048_576 - 14) / 2);
    }

    #[test]
    fn memory_bounds_the_automatic_maxconn_as_in_haproxy() {
        let rows =
            [(16, 450), (32, 910), (64, 1_800), (100, 2_800), (128, 3_600), (200, 5_600), (256, 7_200), (300, 8_500)];
        let mut written = spec(vec![frontend("f")]);
        for (memory, maxconn) in rows {
            let limits = SystemLimits { descriptors: 20_000, memory: Some(memory), ..SystemLimits::default() };
            assert_eq!(limits.work_out(&written).maxconn, maxconn, "-m {memory}");
        }
        written.global.tune.bufsize = Some(32_768);
        let limits = SystemLimits { descriptors: 20_000, memory: Some(256), ..SystemLimits::default() };
        assert_eq!(limits.work_out(&written).maxconn, 3_800);
    }

    /// HAProxy 3.5's `Maxconn` and `MaxSslConns` with `-m`: megabytes; whether clients and servers use TLS; `maxconn`,
    /// `maxsslconn`, `tune.ssl.cachesize` and `maxzlibmem` if specified.
    type MemoryRow = (u64, bool, bool, Option<u32>, u32, Option<u32>, Option<u32>, u32, u32);

    const MEMORY_ROWS: &[MemoryRow] = &[
        (64, true, false, None, 0, None, None, 470, 470),
        (64, false, true, None, 0, None, None, 470, 470),
        (64, true, true, None, 0, None, None, 410, 820),
        (100, true, false, None, 0, None, None, 750, 750),
        (100, true, true, None, 0, None, None, 660, 1_320),
        (128, true, false, None, 0, Some(0), None, 1_000, 1_000),
        (128, true, false, None, 0, Some(200_000), None, 700, 700),
        (256, false, false, None, 0, None, None, 7_200, 0),
        (256, false, false, None, 500, None, None, 7_200, 500),
        (256, true, false, None, 0, None, None, 1_900, 1_900),
        (256, true, true, None, 0, None, None, 1_700, 3_400),
        (256, true, true, None, 500, None, None, 5_800, 500),
        (256, true, false, Some(1_000), 0, None, None, 1_000, 1_000),
        (256, true, true, Some(500), 0, None, None, 500, 1_000),
        (256, true, true, Some(300), 500, None, None, 300, 500),
        (256, true, false, Some(500), 5_000, None, None, 500, 5_000),
        (256, true, false, Some(5_000), 0, None, None, 5_000, 820),
        (256, true, true, Some(5_000), 0, None, None, 5_000, 820),
        (256, false, true, Some(6_900), 0, None, None, 6_900, 100),
        (256, false, true, Some(7_100), 0, None, None, 7_100, 31),
        (256, false, false, Some(8_000), 0, None, None, 8_000, 0),
        (256, true, true, Some(9_000), 500, None, None, 9_000, 500),
        (256, false, false, None, 0, None, Some(100), 4_400, 0),
        (256, true, true, None, 0, None, Some(100), 1_000, 2_000),
        (400, false, false, None, 0, None, None, 9_900, 0),
        (900, true, false, None, 0, None, None, 7_000, 7_000),
        (1_024, true, true, None, 0, None, None, 7_000, 14_000),
    ];

    /// A configuration whose clients and servers use TLS or not.
    fn secured(clients: bool, servers: bool) -> Spec {
        let (mut front, mut back) = (frontend("f"), backend("b"));
        front.binds[0].tls = clients.then(|| Box::new(BindTlsSpec { ssl: true, ..BindTlsSpec::default() }));
        back.servers[0].tls = servers.then(|| Box::new(ServerTlsSpec { ssl: true, ..ServerTlsSpec::default() }));
        spec(vec![front, back])
    }

    #[test]
    fn memory_bounds_connections_by_tls_as_in_haproxy() {
        for &(memory, clients, servers, maxconn, maxsslconn, cache, zlib, expected, expected_tls) in MEMORY_ROWS {
            let mut written = secured(clients, servers);
            (written.global.maxconn, written.global.tls.max_connections) = (maxconn, maxsslconn);
            (written.global.tls.cache_size, written.global.compression.memory) = (cache, zlib);
            let limits = SystemLimits { descriptors: 20_000, memory: Some(memory), ..SystemLimits::default() };
            let found = limits.work_out(&written);
            let row = format!("-m {memory}, {clients} {servers}, {maxconn:?} {maxsslconn} {cache:?} {zlib:?}");
            assert_eq!((found.maxconn, found.max_tls, found.excess), (expected, expected_tls, None), "{row}");
        }
    }

    #[test]
    fn what_the_memory_has_no_room_for_is_refused() {
        let limits = SystemLimits { descriptors: 20_000, memory: Some(256), ..SystemLimits::default() };
        let mut written = secured(true, true);
        written.global.maxconn = Some(8_000);
        let excess = limits.work_out(&written).excess.unwrap();
        assert!(excess.contains("without SSL is 7182, but 8000 was found and SSL is in use."), "{excess}");
        written.global.maxconn = None;
        written.global.tls.max_connections = 5_000;
        let excess = limits.work_out(&written).excess.unwrap();
        assert!(excess.ends_with("The absolute maximum possible value is 2722, but 5000 was found."), "{excess}");
    }
}
