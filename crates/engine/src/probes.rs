//! What expressions may ask where there is no stream: the runtime API and health checks. Must never lend a connection.

use std::net::SocketAddr;

use base::moment::{WallTime, ZoneName};
use expression::record::Record;
use expression::sample::{Counted, Probes, ProcessFacts, Sink, Transport, UsageOf, Value};

use crate::worker::Worker;

/// What aliases of formats tell where there is no stream.
#[derive(Clone, Copy, Default)]
pub struct Names<'a> {
    /// `%f`.
    pub frontend: &'a str,
    /// `%b`.
    pub backend: &'a str,
    /// `%s`.
    pub server: &'a str,
}

/// How busy this worker, or all of them, were in their last turn, in percent.
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

/// The process alone.
pub struct ProcessProbes<'a> {
    /// Who evaluates.
    pub worker: &'a Worker,
    /// What it is about.
    pub names: Names<'a>,
    /// Gives it an identifier (`unique-id-format`) when it is first asked for one; `None`: it has none.
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

    fn counters(&self) -> Option<&dyn Counted> {
        Some(&self.worker.process.counters)
    }
}
