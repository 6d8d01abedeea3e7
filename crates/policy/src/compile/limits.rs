//! How many connections the process may have (configuration manual, "maxconn", "ulimit-n", "fd-hard-limit"; management
//! manual, section 5). The manuals say "half of the descriptors, less some tens"; the exact terms are those that HAProxy
//! 2.6 and 3.5 show. Must never ask the system: what it allows is an argument.

use super::listening::shards;
use config::spec::{GlobalSpec, Spec};

/// What the system and the command line allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemLimits {
    /// Descriptors that the process may have: the larger of the soft and the hard limit.
    pub descriptors: u64,
    /// Processors that it may use: the default of `nbthread`.
    pub processors: u32,
    /// `-n`: takes precedence over the global `maxconn`.
    pub maxconn: Option<u32>,
    /// `-m`, megabytes: bounds the `maxconn` that is worked out.
    pub memory: Option<u64>,
}

impl Default for SystemLimits {
    fn default() -> Self {
        Self { descriptors: 1024, processors: 1, maxconn: None, memory: None }
    }
}

/// `fd-hard-limit` where none is written.
const DESCRIPTORS_AT_MOST: u64 = 1_048_576;

/// What is worked out is never less: on a system that does not allow even that, starting fails with a clear message.
const MAXCONN_AT_LEAST: u64 = 100;

/// Descriptors for the standard streams, the configuration, the loggers and the like.
const DESCRIPTORS_OF_PROCESS: u64 = 10;

/// Descriptors for a thread's poller and its wake-up.
const DESCRIPTORS_OF_THREAD: u64 = 3;

/// Memory of a connection besides its two buffers, bytes.
const MEMORY_OF_CONNECTION: u64 = 4_096;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkedOut {
    pub(super) maxconn: u32,
    pub(super) is_automatic: bool,
    /// Descriptors for so many connections and everything else.
    pub(super) descriptors: u64,
}

impl SystemLimits {
    pub(super) fn threads(&self, global: &GlobalSpec) -> u32 {
        global.nbthread.unwrap_or(self.processors).max(1)
    }

    pub(super) fn work_out(&self, spec: &Spec) -> WorkedOut {
        let overhead = self.overhead(spec);
        let splices = spec.proxies.iter().map(|proxy| proxy.options.splice);
        let splices = splices.into_iter().any(|splice| splice.auto || splice.request || splice.response);
        let written = self.maxconn.or(spec.global.maxconn).filter(|maxconn| *maxconn > 0);
        let maxconn = written.unwrap_or_else(|| self.automatic(spec, overhead, splices));
        // One pipe for four connections, two descriptors each.
        let wanted = spec.global.maxpipes.unwrap_or(maxconn / 4);
        let pipes = if splices { u64::from(wanted) } else { 0 };
        WorkedOut {
            maxconn,
            is_automatic: written.is_none(),
            descriptors: u64::from(maxconn) * 2 + pipes * 2 + overhead,
        }
    }

    /// Descriptors that are not a connection's.
    fn overhead(&self, spec: &Spec) -> u64 {
        let threads = self.threads(&spec.global);
        let binds = spec.proxies.iter().flat_map(|proxy| &proxy.binds);
        let runtime = &spec.global.runtime;
        let of_bind = |bind| u64::from(shards(bind, &spec.global, threads));
        let sockets: u64 = binds.chain(&runtime.sockets).map(of_bind).sum();
        let connections = if runtime.sockets.is_empty() { 0 } else { u64::from(runtime.maxconn.unwrap_or(10)) };
        DESCRIPTORS_OF_PROCESS + sockets + connections + DESCRIPTORS_OF_THREAD * u64::from(threads)
    }

    fn automatic(&self, spec: &Spec, overhead: u64, splices: bool) -> u32 {
        let allowed = self.descriptors.min(spec.global.fd_hard_limit.unwrap_or(DESCRIPTORS_AT_MOST));
        let left = allowed.saturating_sub(overhead);
        let by_descriptors = match spec.global.maxpipes {
            Some(pipes) if splices => left.saturating_sub(2 * u64::from(pipes)) / 2,
            None if splices => left * 2 / 5,
            _ => left / 2,
        };
        let by_memory = self.memory.map_or(u64::MAX, |megabytes| {
            let buffer = u64::from(spec.global.tune.bufsize.unwrap_or(16_384));
            two_digits(megabytes * 1_048_576 / (2 * buffer + MEMORY_OF_CONNECTION))
        });
        let maxconn = by_descriptors.min(by_memory).max(MAXCONN_AT_LEAST);
        u32::try_from(maxconn).unwrap_or(u32::MAX)
    }
}

/// An estimate should look like one.
fn two_digits(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    number / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::{bind, frontend, spec};

    /// Descriptors allowed, threads, listening sockets, splicing; the `Maxconn` that HAProxy shows, and its `Maxsock`.
    /// (It opens a statistics socket to tell that, which costs 11 descriptors: they are taken off here.)
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
}
