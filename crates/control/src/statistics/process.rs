//! Values of the process (management manual, section 9.3, "show info"). Owns their table; the values are gathered once
//! per answer. Must never count anything itself.

use std::rc::Rc;
use std::time::Duration;

use engine::host::Host;
use engine::peering::Exchange;
use engine::worker::Worker;
use live::ProcessState;
use live::counters::Counters;
use policy::program::{Global, Program};

use crate::field::{Field, Value};

/// Returns the number of tasks of a worker, and the bytes of its buffers in use.
pub(crate) fn look(_: &Rc<Worker>) -> (u64, u64) {
    (rt::tasks() as u64, (rt::buffers_in_use() * rt::buffer_size()) as u64)
}

/// The sources of the rows.
pub(crate) struct ProcessInfo<'a> {
    host: &'a Host,
    global: &'a Global,
    uptime: Duration,
    threads: u64,
    connections: u64,
    listeners: u64,
    stopping: bool,
    /// Connections with identified peers. HAProxy counts unidentified ones separately.
    peers: u64,
    dropped_logs: u64,
    /// Calls of script functions that failed or were aborted.
    failed_scripts: u64,
    received_logs: u64,
    tasks: u64,
    process: &'a ProcessState,
    /// Percent of the time that this worker was idle.
    idle: u32,
    /// Bytes of buffers in use.
    pooled: u64,
    totals: Totals,
    /// Session lookups by clients without tickets, and misses.
    sessions: (u64, u64),
    /// Whether rates and times have fractions.
    fractions: bool,
}

/// Sums over the workers.
#[derive(Default)]
struct Totals {
    connections: u64,
    /// Open connections of the runtime API.
    commands: u64,
    connection_rate: f64,
    connection_rate_max: u64,
    session_rate: f64,
    session_rate_max: u64,
    tls_connections: u64,
    tls_rate: f64,
    tls_rate_max: u64,
    front_key_rate: f64,
    front_key_rate_max: u64,
    back_key_rate: f64,
    back_key_rate_max: u64,
    requests: u64,
    bytes_out: u64,
    spliced_bytes_out: u64,
    bytes_out_rate: u64,
    compressor_in_rate: f64,
    compressor_out_rate: f64,
}

impl Totals {
    fn gather(counters: &Counters) -> Self {
        let now = rt::now();
        let (connection_rate, connection_rate_max) = counters.process_rate(now, |process| &process.connection_rate);
        let (session_rate, session_rate_max) = counters.process_rate(now, |process| &process.session_rate);
        let (tls_rate, tls_rate_max) = counters.process_rate(now, |process| &process.tls_rate);
        let (front_key_rate, front_key_rate_max) = counters.process_rate(now, |process| &process.front_key_rate);
        let (back_key_rate, back_key_rate_max) = counters.process_rate(now, |process| &process.back_key_rate);
        Self {
            tls_connections: counters.process(|process| &process.tls_connections),
            tls_rate,
            tls_rate_max,
            front_key_rate,
            front_key_rate_max,
            back_key_rate,
            back_key_rate_max,
            connections: counters.process(|process| &process.connections),
            commands: counters
                .process(|process| &process.commands_begun)
                .saturating_sub(counters.process(|process| &process.commands_ended)),
            connection_rate,
            connection_rate_max,
            session_rate,
            session_rate_max,
            requests: counters.process(|process| &process.requests),
            bytes_out: counters.process(|process| &process.bytes_out),
            spliced_bytes_out: counters.process(|process| &process.spliced_out),
            // Counted in units of 32 bytes.
            bytes_out_rate: counters.process_rate(now, |process| &process.bytes_out_rate).0 as u64 * 32,
            compressor_in_rate: counters.process_rate(now, |process| &process.compressor_in_rate).0,
            compressor_out_rate: counters.process_rate(now, |process| &process.compressor_out_rate).0,
        }
    }
}

impl Totals {
    /// Returns the percentage of client handshakes in the last second that resumed a session.
    fn reused_percent(&self) -> f64 {
        let reused = (self.tls_rate - self.front_key_rate).max(0.0);
        if self.tls_rate > 0.0 { 100.0 * reused / self.tls_rate } else { 0.0 }
    }
}

impl<'a> ProcessInfo<'a> {
    /// Gathers the values. `here`: tasks and bytes of buffers, by worker ([`look`]). `fractions`: rates and times have
    /// fractions.
    pub(crate) fn gather(worker: &'a Worker, program: &'a Program, here: &[(u64, u64)], fractions: bool) -> Self {
        let shared = &worker.process;
        let binds = program
            .proxies
            .iter()
            .filter_map(|proxy| proxy.frontend.as_ref())
            .map(|one| one.binds.iter().filter(|bind| !bind.is_removed).count());
        Self {
            host: &shared.host,
            global: &program.global,
            uptime: shared.host.uptime(),
            threads: shared.workers() as u64,
            connections: shared.sessions() as u64,
            listeners: (binds.sum::<usize>() + program.runtime.sockets.len()) as u64,
            stopping: shared.is_stopping(),
            peers: shared.service::<Exchange>().connected(),
            dropped_logs: shared.log_targets.dropped(),
            failed_scripts: shared.services.failures(),
            received_logs: shared.log_targets.received(),
            process: &shared.live.process,
            idle: rt::idle_percent(),
            tasks: here.iter().map(|one| one.0).sum(),
            pooled: here.iter().map(|one| one.1).sum(),
            totals: Totals::gather(&shared.counters),
            sessions: program.tls.sessions.as_ref().map_or((0, 0), |store| (store.lookups(), store.misses())),
            fractions,
        }
    }

    /// Returns `description` of the global section.
    pub(crate) fn description(&self) -> Option<&'a str> {
        self.host.description.as_deref()
    }

    fn seconds(&self, time: Duration) -> Value {
        if self.fractions { Value::Float(time.as_secs_f64()) } else { Value::count(time.as_secs()) }
    }

    /// Returns the start time of the process in seconds since the Unix epoch.
    fn start(&self) -> Value {
        let start = self.host.started().1;
        let seconds = start.seconds.unsigned_abs();
        if self.fractions { Value::Float(seconds as f64 + f64::from(start.nanos) / 1e9) } else { Value::count(seconds) }
    }

    fn rate(&self, rate: f64) -> Value {
        if self.fractions { Value::Float(rate) } else { Value::count(rate as u64) }
    }
}

pub(crate) struct Row {
    pub(crate) field: Field,
    pub(crate) value: fn(&ProcessInfo<'_>) -> Value,
}

impl Row {
    /// Returns name and tags: a value with a fraction is a rate, even if the integer is a gauge.
    pub(crate) fn field_of(&self, value: &Value) -> Field {
        let is_rate = matches!(self.field.name, "SslFrontendKeyRate" | "SslFrontendSessionReuse_pct");
        let tags = if is_rate && matches!(value, Value::Float(_)) { "MRPV" } else { self.field.tags };
        Field { tags, ..self.field }
    }
}

const fn row(name: &'static str, tags: &'static str, doc: &'static str, value: fn(&ProcessInfo<'_>) -> Value) -> Row {
    Row { field: Field { name, tags, doc }, value }
}

/// Formats a duration as `0d 0h01m31s`.
fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{days}d {hours}h{minutes:02}m{:02}s", seconds % 60)
}

/// All values in HAProxy's order, which programs rely on.
pub(crate) const ROWS: &[Row] = &[
    row("Name", "POSV", "Product name", |info| Value::text(&*info.host.product)),
    row("Version", "POSV", "Product version", |info| Value::text(&*info.host.version)),
    row("Release_date", "POSV", "Date of latest source code update", |info| Value::text(&*info.host.release_date)),
    row("Nbthread", "CGSV", "Number of started threads (global.nbthread)", |info| Value::count(info.threads)),
    row("Nbproc", "CGSV", "Number of started worker processes (historical, always 1)", |_| Value::U32(1)),
    row("Process_num", "KGPV", "Relative worker process number (1)", |_| Value::U32(1)),
    row("Pid", "SGPV", "This worker process identifier for the system", |info| Value::U32(info.host.pid)),
    row("Uptime", "MDPV", "How long ago this worker process was started (days+hours+minutes+seconds)", |info| {
        Value::text(duration(info.uptime.as_secs()))
    }),
    row("Uptime_sec", "MDPV", "How long ago this worker process was started (seconds)", |info| {
        info.seconds(info.uptime)
    }),
    row("Memmax_MB", "CLPV", "Worker process's hard limit on memory usage in MB (-m on command line)", |info| {
        Value::count(info.host.memory)
    }),
    row("PoolAlloc_MB", "MGPV", "Amount of memory allocated in pools (in MB)", |info| Value::count(info.pooled >> 20)),
    row("PoolUsed_MB", "MGPV", "Amount of pool memory currently used (in MB)", |info| Value::count(info.pooled >> 20)),
    row("PoolFailed", "MCPV", "Number of failed pool allocations since this worker was started", |_| {
        Value::count(base::memory::PROCESS.failed() as u64)
    }),
    row("Ulimit-n", "CLPV", "Hard limit on the number of per-process file descriptors", |info| {
        Value::count(info.global.descriptors)
    }),
    row("Maxsock", "CLPV", "Hard limit on the number of per-process sockets", |info| {
        Value::count(info.global.descriptors)
    }),
    row(
        "Maxconn",
        "CLPV",
        "Hard limit on the number of per-process connections (configured or imposed by Ulimit-n)",
        |info| Value::U32(info.process.gate().bound()),
    ),
    row(
        "Hard_maxconn",
        "CLPV",
        "Hard limit on the number of per-process connections (imposed by Memmax_MB or Ulimit-n)",
        |info| Value::U32(info.global.maxconn),
    ),
    row("CurrConns", "MGPV", "Current number of connections on this worker process", |info| {
        Value::count(info.connections)
    }),
    row("CumConns", "MCPV", "Total number of connections on this worker process since started", |info| {
        Value::count(info.totals.connections)
    }),
    row("CumReq", "MCPV", "Total number of requests on this worker process since started", |info| {
        Value::count(info.totals.requests)
    }),
    row(
        "MaxSslConns",
        "MMPV",
        "Hard limit on the number of per-process SSL endpoints (front+back), 0=unlimited",
        |info| Value::U32(info.global.max_tls_connections),
    ),
    row("CurrSslConns", "MGPV", "Current number of SSL endpoints on this worker process (front+back)", |_| {
        Value::count(conn::transport::open_tls_connections())
    }),
    row(
        "CumSslConns",
        "MCPV",
        "Total number of SSL endpoints on this worker process since started (front+back)",
        |info| Value::count(info.totals.tls_connections),
    ),
    row("Maxpipes", "CLPV", "Hard limit on the number of pipes for splicing, 0=unlimited", |_| Value::U32(0)),
    row("PipesUsed", "MGPV", "Current number of pipes in use in this worker process", |_| Value::U32(0)),
    row("PipesFree", "MGPV", "Current number of allocated and available pipes in this worker process", |_| {
        Value::U32(0)
    }),
    row(
        "ConnRate",
        "MRPV",
        "Number of front connections created on this worker process over the last second",
        |info| info.rate(info.totals.connection_rate),
    ),
    row("ConnRateLimit", "CLPV", "Hard limit for ConnRate (global.maxconnrate)", |info| {
        Value::U32(info.process.connection_throttle().limit())
    }),
    row(
        "MaxConnRate",
        "MMPV",
        "Highest ConnRate reached on this worker process since started (in connections per second)",
        |info| Value::count(info.totals.connection_rate_max),
    ),
    row("SessRate", "MRPV", "Number of sessions created on this worker process over the last second", |info| {
        info.rate(info.totals.session_rate)
    }),
    row("SessRateLimit", "CLPV", "Hard limit for SessRate (global.maxsessrate)", |info| {
        Value::U32(info.process.session_throttle().limit())
    }),
    row(
        "MaxSessRate",
        "MRPV",
        "Highest SessRate reached on this worker process since started (in sessions per second)",
        |info| Value::count(info.totals.session_rate_max),
    ),
    row("SslRate", "MRPV", "Number of SSL connections created on this worker process over the last second", |info| {
        info.rate(info.totals.tls_rate)
    }),
    row("SslRateLimit", "CLPV", "Hard limit for SslRate (global.maxsslrate)", |info| {
        Value::U32(info.process.tls_session_throttle().limit())
    }),
    row(
        "MaxSslRate",
        "MMPV",
        "Highest SslRate reached on this worker process since started (in connections per second)",
        |info| Value::count(info.totals.tls_rate_max),
    ),
    row(
        "SslFrontendKeyRate",
        "MGPV",
        "Number of SSL keys created on frontends in this worker process over the last second",
        |info| info.rate(info.totals.front_key_rate),
    ),
    row(
        "SslFrontendMaxKeyRate",
        "MMPV",
        "Highest SslFrontendKeyRate reached on this worker process since started (in SSL keys per second)",
        |info| Value::count(info.totals.front_key_rate_max),
    ),
    row(
        "SslFrontendSessionReuse_pct",
        "MGPV",
        "Percent of frontend SSL connections which did not require a new key",
        |info| info.rate(info.totals.reused_percent()),
    ),
    row(
        "SslBackendKeyRate",
        "MRPV",
        "Number of SSL keys created on backends in this worker process over the last second",
        |info| info.rate(info.totals.back_key_rate),
    ),
    row(
        "SslBackendMaxKeyRate",
        "MMPV",
        "Highest SslBackendKeyRate reached on this worker process since started (in SSL keys per second)",
        |info| Value::count(info.totals.back_key_rate_max),
    ),
    row(
        "SslCacheLookups",
        "MCPV",
        "Total number of SSL session ID lookups in the SSL session cache on this worker since started",
        |info| Value::count(info.sessions.0),
    ),
    row(
        "SslCacheMisses",
        "MCPV",
        "Total number of SSL session ID lookups that didn't find a session in the SSL session cache on this worker since started",
        |info| Value::count(info.sessions.1),
    ),
    row(
        "CompressBpsIn",
        "MRPV",
        "Number of bytes submitted to the HTTP compressor in this worker process over the last second",
        |info| info.rate(info.totals.compressor_in_rate),
    ),
    row(
        "CompressBpsOut",
        "MRPV",
        "Number of bytes emitted by the HTTP compressor in this worker process over the last second",
        |info| info.rate(info.totals.compressor_out_rate),
    ),
    row(
        "CompressBpsRateLim",
        "CLPV",
        "Limit of CompressBpsOut beyond which HTTP compression is automatically disabled",
        |info| Value::count(info.process.compression.bytes_a_second()),
    ),
    row(
        "ZlibMemUsage",
        "MGPV",
        "Amount of memory currently used by HTTP compression on the current worker process (in bytes)",
        |info| Value::count(info.process.compression.memory()),
    ),
    row(
        "MaxZlibMemUsage",
        "CLPV",
        "Limit on the amount of memory used by HTTP compression above which it is automatically disabled (in bytes, see global.maxzlibmem)",
        |info| Value::count(info.global.compression.memory),
    ),
    row("Tasks", "MGPV", "Total number of tasks in the current worker process (active + sleeping)", |info| {
        Value::count(info.tasks)
    }),
    row("Run_queue", "MGPV", "Total number of active tasks+tasklets in the current worker process", |_| Value::U32(0)),
    row("Idle_pct", "MaPV", "Percentage of last second spent waiting in the current worker thread", |info| {
        Value::U32(info.idle)
    }),
    row("node", "COSV", "Node name (global.node)", |info| Value::text(&*info.host.node)),
    row("description", "COSV", "Node description (global.description)", |info| {
        info.host.description.as_deref().map_or(Value::None, Value::text)
    }),
    row("Stopping", "MGPV", "1 if the worker process is currently stopping, otherwise zero", |info| {
        Value::U32(u32::from(info.stopping))
    }),
    row(
        "Jobs",
        "MGPV",
        "Current number of active jobs on the current worker process (frontend connections, master connections, listeners)",
        |info| Value::count(info.connections + info.totals.commands + info.listeners),
    ),
    row(
        "Unstoppable Jobs",
        "MGPV",
        "Current number of unstoppable jobs on the current worker process (master connections)",
        |_| Value::U32(0),
    ),
    row("Listeners", "MGPV", "Current number of active listeners on the current worker process", |info| {
        Value::count(info.listeners)
    }),
    row(
        "ActivePeers",
        "MGPV",
        "Current number of verified active peers connections on the current worker process",
        |info| Value::count(info.peers),
    ),
    row(
        "ConnectedPeers",
        "MGPV",
        "Current number of peers having passed the connection step on the current worker process",
        |info| Value::count(info.peers),
    ),
    row("DroppedLogs", "MGPV", "Total number of dropped logs for current worker process since started", |info| {
        Value::count(info.dropped_logs)
    }),
    row(
        "BusyPolling",
        "MGPV",
        "1 if busy-polling is currently in use on the worker process, otherwise zero (config.busy-polling)",
        |_| Value::U32(u32::from(rt::is_spinning())),
    ),
    row(
        "FailedResolutions",
        "MGPV",
        "Total number of failed DNS resolutions in current worker process since started",
        |_| Value::U32(0),
    ),
    row("TotalBytesOut", "MGPV", "Total number of bytes emitted by current worker process since started", |info| {
        Value::U64(info.totals.bytes_out)
    }),
    row(
        "TotalSplicedBytesOut",
        "MGPV",
        "Total number of bytes emitted by current worker process through a kernel pipe since started",
        |info| Value::U64(info.totals.spliced_bytes_out),
    ),
    row("BytesOutRate", "MRPV", "Number of bytes emitted by current worker process over the last second", |info| {
        Value::U64(info.totals.bytes_out_rate)
    }),
    row(
        "DebugCommandsIssued",
        "MGPV",
        "Number of debug commands issued on this process (anything > 0 is unsafe)",
        |_| Value::U32(0),
    ),
    row(
        "CumRecvLogs",
        "MCPV",
        "Total number of log messages received by log-forwarding listeners on this worker process since started",
        |info| Value::count(info.received_logs),
    ),
    row("Build info", "POSV", "Build info", |info| Value::text(&*info.host.version)),
    row("Memmax_bytes", "CLPV", "Worker process's hard limit on memory usage in bytes (-m on command line)", |info| {
        Value::count(info.host.memory << 20)
    }),
    row("PoolAlloc_bytes", "MGPV", "Amount of memory allocated in pools (in bytes)", |info| Value::U64(info.pooled)),
    row("PoolUsed_bytes", "MGPV", "Amount of pool memory currently used (in bytes)", |info| Value::U64(info.pooled)),
    row("Start_time_sec", "MDPV", "Start time in seconds", |info| info.start()),
    row("Tainted", "SGPV", "Experimental features used", |_| Value::text("0")),
    row("TotalWarnings", "MCPV", "Total warnings issued", |info| Value::count(info.host.warnings)),
    row("MaxconnReached", "MCPV", "Number of times an accepted connection resulted in Maxconn being reached", |_| {
        Value::U32(0)
    }),
    row(
        "BootTime_ms",
        "MDPV",
        "How long ago it took to parse and process the config before being ready (milliseconds)",
        |info| Value::count(info.host.boot_time().as_millis() as u64),
    ),
    row(
        "Niced_tasks",
        "MGPV",
        "Total number of active tasks+tasklets in the current worker process (Run_queue) that are niced",
        |_| Value::U32(0),
    ),
    row("CurrStreams", "MGPV", "Current number of streams on this worker process", |info| {
        Value::U64(info.connections + info.totals.commands)
    }),
    row("CumStreams", "MGPV", "Total number of streams created on this worker process since started", |info| {
        Value::U64(info.totals.requests)
    }),
    row(
        "BlockedTrafficWarnings",
        "MGPV",
        "Total number of warnings issued about traffic being blocked by too slow a task",
        |_| Value::U32(0),
    ),
    row("PatternsAdded", "MGPV", "Total number of patterns added (acl/map entries)", |_| Value::U64(0)),
    row("PatternsFreed", "MGPV", "Total number of patterns freed (acl/map entries)", |_| Value::U64(0)),
    row("NbThreadGroups", "CGSV", "Number of started thread groups (global.thread-groups)", |_| Value::U32(1)),
    row(
        "FailedScripts",
        "MCPV",
        "Total number of calls of functions of Lua scripts that failed or were ended since started",
        |info| Value::U64(info.failed_scripts),
    ),
    row("Implementation", "POSV", "Implementation of the product and its own version", |info| {
        Value::text(&*info.host.implementation)
    }),
    row("Driver", "SOPV", "Calls for sockets (tune.driver), and the preloaded library that replaces them", |info| {
        Value::text(&*info.host.driver)
    }),
];
