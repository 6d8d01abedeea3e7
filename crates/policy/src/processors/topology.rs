//! The processors of a machine and their topology. Must never know how it is used.

use base::ProcessorSet;

/// One processor (a hardware thread).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The system's number of the processor.
    pub number: u32,
    /// NUMA node.
    pub node: u32,
    /// Core complex: the processors that share a last-level cache. Unique within the machine.
    pub ccx: u32,
    /// Cluster: the similar processors of a complex. Unique within the machine.
    pub cluster: u32,
    /// Core, unique within the machine.
    pub core: u32,
    /// Index among the hardware threads of the core.
    pub thread: u32,
    /// Relative speed among the processors of the machine.
    pub capacity: u32,
}

/// All processors of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// The processors that are online, by number.
    pub processors: Vec<Processor>,
    /// The affinity of the process at startup.
    pub allowed: ProcessorSet,
}

impl Topology {
    /// Creates a topology in which only the numbers of processors are known.
    #[must_use]
    pub fn flat(allowed: ProcessorSet) -> Self {
        let of = |number| Processor { number, node: 0, ccx: 0, cluster: 0, core: number, thread: 0, capacity: 1024 };
        Self { processors: allowed.iter().map(of).collect(), allowed }
    }

    /// Whether the process may use only some of the processors.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.processors.iter().any(|processor| !self.allowed.contains(processor.number))
    }

    /// Returns the processors of a set, by number.
    pub(super) fn of<'a>(&'a self, set: &'a ProcessorSet) -> impl Iterator<Item = &'a Processor> {
        self.processors.iter().filter(|processor| set.contains(processor.number))
    }

    /// Splits a set by `key` of each processor; the parts are sorted by key.
    pub(super) fn split(&self, set: &ProcessorSet, key: impl Fn(&Processor) -> u32) -> Vec<ProcessorSet> {
        let mut keys: Vec<u32> = self.of(set).map(&key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter()
            .map(|wanted| self.of(set).filter(|one| key(one) == wanted).map(|one| one.number).collect())
            .collect()
    }

    /// Returns the speed of the fastest processor of a set.
    pub(super) fn speed(&self, set: &ProcessorSet) -> u32 {
        self.of(set).map(|processor| processor.capacity).max().unwrap_or(0)
    }
}
