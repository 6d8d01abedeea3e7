//! Number of threads and their processors (configuration manual, sections 3.1 and 3.2).

use base::ProcessorSet;

/// Settings of threads and processors in the `global` section, except `nbthread`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessorsSpec {
    /// `thread-groups`, from 1.
    pub thread_groups: Option<u32>,
    /// `max-threads-per-group`, from 1; default 16.
    pub max_threads_per_group: Option<u32>,
    /// `thread-group` lines: the group's number and its number of threads. The last line of a group applies.
    pub groups: Vec<(u32, u32)>,
    /// `thread-hard-limit`.
    pub thread_hard_limit: Option<u32>,
    /// `cpu-map` lines in file order: a later line replaces earlier ones where they overlap.
    pub maps: Vec<CpuMapSpec>,
    /// `cpu-policy`.
    pub policy: Option<CpuPolicy>,
    /// `cpu-policy … threads-per-core 1`.
    pub one_thread_per_core: bool,
    /// `cpu-affinity`.
    pub affinity: CpuAffinity,
    /// `cpu-set` directives in file order.
    pub sets: Vec<CpuSetSpec>,
    /// `no numa-cpu-mapping`.
    pub no_numa_mapping: bool,
}

/// One `cpu-map` line.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuMapSpec {
    /// `auto:`: the threads (or the groups) are bound to one processor each, in order.
    pub auto: bool,
    /// Groups, bit 0 for group 1.
    pub groups: u64,
    /// Threads of each group, bit 0 for thread 1; `None` for all of them.
    pub threads: Option<u64>,
    /// The processors.
    pub processors: ProcessorSet,
}

/// `cpu-policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuPolicy {
    /// All processors, one group.
    None,
    /// The first NUMA node that has processors.
    FirstUsableNode,
    /// One group per this number of core complexes (processors that share their last-level cache).
    Ccx(u32),
    /// One group per this number of clusters (similar processors of a complex).
    Clusters(u32),
    /// Complexes without clusters that are clearly slower than the next faster ones.
    Performance,
    /// Complexes without clusters that are clearly faster than the next slower ones.
    Efficiency,
    /// Only the smallest and slowest cluster.
    Resource,
}

/// `cpu-affinity`: granularity of the binding of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CpuAffinity {
    /// To its group, or to a core if each core has one thread.
    #[default]
    Auto,
    /// To all hardware threads of a core.
    Core,
    /// To all processors of its group.
    Group {
        /// Groups that share a set of processors may each use all of it.
        loose: bool,
    },
    /// To one hardware thread.
    Thread,
    /// To all processors that share a last-level cache.
    Ccx,
}

/// One directive of `cpu-set`.
#[derive(Debug, Clone, PartialEq)]
pub enum CpuSetSpec {
    /// `reset`: removes the restrictions inherited at startup.
    Reset,
    /// `only-…` and `drop-…`.
    Restrict {
        /// `only-…`.
        only: bool,
        /// Unit of the numbers.
        unit: CpuUnit,
        numbers: ProcessorSet,
    },
}

/// Unit of the numbers of `cpu-set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuUnit {
    /// Processors, numbered as by the system.
    Cpu,
    /// NUMA nodes.
    Node,
    /// Clusters of similar processors.
    Cluster,
    /// Cores.
    Core,
    /// Hardware threads within their core.
    Thread,
}
