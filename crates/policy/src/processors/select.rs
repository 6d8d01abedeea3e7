//! Selects the processors to use: `cpu-set` first, then `cpu-policy`. Must never look at single threads.

use super::Topology;
use super::groups::group_size;
use base::ProcessorSet;
use config::spec::{CpuAffinity, CpuPolicy, CpuSetSpec, CpuUnit, ProcessorsSpec};

/// The result of a policy.
pub(super) enum Choice {
    /// Processors for any number of threads.
    All(ProcessorSet),
    /// Thread groups: the number of threads, and the processors that they share.
    Groups(Vec<(u32, ProcessorSet)>),
}

/// Returns the processors that `cpu-set` leaves; all of them if it leaves none, since a process needs some processor.
pub(super) fn usable(spec: &ProcessorsSpec, topology: &Topology) -> ProcessorSet {
    let all: ProcessorSet = topology.processors.iter().map(|processor| processor.number).collect();
    let mut usable = topology.allowed.intersection(&all);
    if spec.sets.contains(&CpuSetSpec::Reset) {
        usable = all;
    }
    for directive in &spec.sets {
        let CpuSetSpec::Restrict { only, unit, numbers } = directive else { continue };
        let stays = topology.of(&usable).filter(|processor| {
            let number = match unit {
                CpuUnit::Cpu => processor.number,
                CpuUnit::Node => processor.node,
                CpuUnit::Cluster => processor.cluster,
                CpuUnit::Core => processor.core,
                CpuUnit::Thread => processor.thread,
            };
            numbers.contains(number) == *only
        });
        usable = stays.map(|processor| processor.number).collect();
    }
    if usable.is_empty() { topology.allowed } else { usable }
}

/// Returns the number of threads for a set of processors.
pub(super) fn threads_of(spec: &ProcessorsSpec, topology: &Topology, set: &ProcessorSet) -> u32 {
    let count = if spec.one_thread_per_core { topology.split(set, |one| one.core).len() } else { set.len() };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Applies a policy.
pub(super) fn choose(
    spec: &ProcessorsSpec,
    policy: CpuPolicy,
    threads: Option<u32>,
    topology: &Topology,
    usable: ProcessorSet,
) -> Choice {
    let is_open = threads.is_none() && spec.thread_groups.is_none();
    let (chosen, key, together): (_, Key, u32) = match policy {
        CpuPolicy::None => return Choice::All(usable),
        CpuPolicy::FirstUsableNode => {
            let is_restricted = topology.is_restricted() && !spec.sets.contains(&CpuSetSpec::Reset);
            let first = topology.split(&usable, |one| one.node).into_iter().next();
            let first = first.filter(|_| threads.is_none() && !is_restricted);
            return Choice::All(first.unwrap_or(usable));
        }
        CpuPolicy::Ccx(count) => (usable, |one| one.ccx, count),
        CpuPolicy::Clusters(count) => (usable, |one| one.cluster, count),
        CpuPolicy::Performance => (fastest(topology, usable), |one| one.ccx, 1),
        CpuPolicy::Efficiency => (slowest(topology, usable), |one| one.ccx, 1),
        CpuPolicy::Resource => (smallest(topology, usable), |one| one.cluster, 1),
    };
    if !is_open {
        return Choice::All(usable);
    }
    let parts = topology.split(&chosen, key);
    let together = parts.chunks(together.max(1) as usize);
    let pools = together.map(|parts| parts.iter().fold(ProcessorSet::EMPTY, |all, part| all.union(part)));
    let groups: Vec<(u32, ProcessorSet)> = pools.flat_map(|pool| divide(spec, topology, pool)).collect();
    if groups.is_empty() { Choice::All(usable) } else { Choice::Groups(groups) }
}

type Key = fn(&super::Processor) -> u32;

/// Divides processors that are too many for one group, by whole cores. Depending on `cpu-affinity`, each of these
/// groups may use all of them.
fn divide(spec: &ProcessorsSpec, topology: &Topology, pool: ProcessorSet) -> Vec<(u32, ProcessorSet)> {
    let threads = threads_of(spec, topology, &pool);
    let count = threads.div_ceil(group_size(spec)).max(1) as usize;
    if count == 1 {
        return vec![(threads, pool)];
    }
    let cores = topology.split(&pool, |one| one.core);
    let share = cores.len().div_ceil(count).max(1);
    let parts = cores.chunks(share).map(|cores| cores.iter().fold(ProcessorSet::EMPTY, |all, core| all.union(core)));
    let is_loose = spec.affinity == CpuAffinity::Group { loose: true };
    parts.map(|part| (threads_of(spec, topology, &part), if is_loose { pool } else { part })).collect()
}

/// Returns the clusters sorted by the speed of their processors, the fastest first.
fn by_speed(topology: &Topology, usable: &ProcessorSet) -> Vec<(u64, ProcessorSet)> {
    let clusters = topology.split(usable, |one| one.cluster);
    let mut clusters: Vec<_> = clusters.into_iter().map(|set| (u64::from(topology.speed(&set)), set)).collect();
    clusters.sort_by_key(|(speed, _)| std::cmp::Reverse(*speed));
    clusters
}

fn together(clusters: &[(u64, ProcessorSet)]) -> ProcessorSet {
    clusters.iter().fold(ProcessorSet::EMPTY, |all, (_, set)| all.union(set))
}

/// Drops the clusters after the first one that has less than 80 % of the speed of the next faster one.
fn fastest(topology: &Topology, usable: ProcessorSet) -> ProcessorSet {
    let clusters = by_speed(topology, &usable);
    let drop = clusters.windows(2).position(|pair| pair[1].0 * 100 < pair[0].0 * 80);
    together(&clusters[..drop.map_or(clusters.len(), |last| last + 1)])
}

/// Drops the clusters before the last one that has more than 125 % of the speed of the next slower one.
fn slowest(topology: &Topology, usable: ProcessorSet) -> ProcessorSet {
    let clusters = by_speed(topology, &usable);
    let drop = clusters.windows(2).rposition(|pair| pair[0].0 * 100 > pair[1].0 * 125);
    together(&clusters[drop.map_or(0, |last| last + 1)..])
}

/// Returns the slowest cluster; of equally fast ones, the one with the fewest processors.
fn smallest(topology: &Topology, usable: ProcessorSet) -> ProcessorSet {
    let clusters = by_speed(topology, &usable);
    let smallest = clusters.iter().min_by_key(|(speed, set)| (*speed, set.len()));
    smallest.map_or(usable, |(_, set)| *set)
}
