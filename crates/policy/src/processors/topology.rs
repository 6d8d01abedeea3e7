//! What is known of a machine's processors, and how they lie to each other. Must never know what is done with it.

use base::ProcessorSet;

/// One processor (a hardware thread).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The system's number.
    pub number: u32,
    /// Its NUMA node.
    pub node: u32,
    /// Its core complex: the processors that share a last cache. Counted over the machine.
    pub ccx: u32,
    /// Its cluster: the similar processors of a complex. Counted over the machine.
    pub cluster: u32,
    /// Its core, counted over the machine.
    pub core: u32,
    /// Its place among the hardware threads of the core.
    pub thread: u32,
    /// How fast it is, compared with the others of the machine.
    pub capacity: u32,
}

/// All processors of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// Those that are switched on, by number.
    pub processors: Vec<Processor>,
    /// Those that the process was started on.
    pub allowed: ProcessorSet,
}

impl Topology {
    /// Processors of which nothing but the number is known.
    #[must_use]
    pub fn flat(allowed: ProcessorSet) -> Self {
        let of = |number| Processor { number, node: 0, ccx: 0, cluster: 0, core: number, thread: 0, capacity: 1024 };
        Self { processors: allowed.iter().map(of).collect(), allowed }
    }

    /// Whether the process may use less than there is.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.processors.iter().any(|processor| !self.allowed.contains(processor.number))
    }

    /// The processors of a set, by number.
    pub(super) fn of<'a>(&'a self, set: &'a ProcessorSet) -> impl Iterator<Item = &'a Processor> {
        self.processors.iter().filter(|processor| set.contains(processor.number))
    }

    /// Splits a set by what `key` says of each processor; the parts stand in the order of their keys.
    pub(super) fn split(&self, set: &ProcessorSet, key: impl Fn(&Processor) -> u32) -> Vec<ProcessorSet> {
        let mut keys: Vec<u32> = self.of(set).map(&key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter()
            .map(|wanted| self.of(set).filter(|one| key(one) == wanted).map(|one| one.number).collect())
            .collect()
    }

    /// The speed of the fastest processor of a set.
    pub(super) fn speed(&self, set: &ProcessorSet) -> u32 {
        self.of(set).map(|processor| processor.capacity).max().unwrap_or(0)
    }
}
