//! Data for expressions without a stream: of the runtime API and of health checks. Must never lend a connection.

use std::net::SocketAddr;

use base::moment::{WallTime, ZoneName};
use expression::record::Record;
use expression::sample::{CounterSource, Probes, ProcessFacts, Sink, Transport, UsageOf, Value};

use crate::worker::Worker;

/// Names for log format aliases without a stream.
#[derive(Clone, Copy, Default)]
pub struct Names<'a> {
    /// `%f`.
    pub frontend: &'a str,
    /// `%b`.
    pub backend: &'a str,
    /// `%s`.
    pub server: &'a str,
}

/// Returns the usage of this worker, or the average of all, in its last event-loop iteration, in percent.
pub(crate) fn usage(of: UsageOf) -> u32 {
    match of {
        UsageOf::Worker => rt::usage_of(rt::worker()),
        UsageOf::Process => {
            let workers = rt::WorkerId::try_from(rt::workers()).unwrap_or(rt::WorkerId::MAX);
            let sum: u32 = (0..workers).map(rt::usage_of).sum();
            sum / u32::from(workers).max(1)
        }
    }
}

/// Probes that know only the process.
pub struct ProcessProbes<'a> {
    /// The evaluating worker.
    pub worker: &'a Worker,
    /// Names of the proxies and the server.
    pub names: Names<'a>,
    /// Generates the unique ID (`unique-id-format`) on first use; `None`: there is none.
    pub identify: Option<&'a dyn Fn() -> Option<&'a [u8]>>,
}

impl Probes for ProcessProbes<'_> {
    fn source(&self) -> Option<SocketAddr> {
        None
    }

    fn destination(&self) -> Option<SocketAddr> {
        None
    }

    fn wall(&self) -> WallTime {
        rt::wall()
    }

    fn random(&self) -> u64 {
        rt::random()
    }

    fn transport(&self, _: Transport) -> Option<Value<'static>> {
        None
    }

    fn local_offset(&self, seconds: i64) -> i32 {
        rt::local_offset(seconds)
    }

    fn zone_name(&self, seconds: i64) -> ZoneName {
        rt::zone_name(seconds)
    }

    fn lend_record(&self, with: &mut dyn FnMut(&Record<'_>)) {
        let (shared, wall) = (&self.worker.process, rt::wall());
        with(&Record {
            accept_date: wall,
            request_date: wall,
            local_offset: rt::local_offset(wall.seconds),
            pid: shared.host.pid,
            hostname: &shared.log_targets.hostname,
            frontend: self.names.frontend,
            backend: self.names.backend,
            server: self.names.server,
            ..Record::default()
        });
    }

    fn unique_id(&self) -> Option<&[u8]> {
        self.identify.and_then(|identify| identify())
    }

    fn usage(&self, of: UsageOf) -> Option<u32> {
        Some(usage(of))
    }

    fn tell(&self, sink: Sink, line: &[u8]) {
        self.worker.process.log_targets.tell(sink, line);
    }

    fn process(&self) -> ProcessFacts<'_> {
        self.worker.process_facts()
    }

    fn environment(&self, name: &[u8]) -> Option<&[u8]> {
        self.worker.process.host.variable(name)
    }

    fn counters(&self) -> Option<&dyn CounterSource> {
        Some(&self.worker.process.counters)
    }
}
