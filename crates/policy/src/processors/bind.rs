//! Binds threads to processors: by `cpu-affinity` within the chosen ones, or by `cpu-map`. Must never choose the number
//! of threads.

use super::{Topology, select};
use base::ProcessorSet;
use config::spec::{CpuAffinity, CpuMapSpec, ProcessorsSpec};

/// Binds the threads of each group to the group's processors.
pub(super) fn by_affinity(
    spec: &ProcessorsSpec,
    topology: &Topology,
    groups: &[u32],
    pools: &[ProcessorSet],
) -> Vec<Option<ProcessorSet>> {
    let mut bindings = Vec::new();
    let mut earlier = 0;
    for (index, (threads, pool)) in groups.iter().zip(pools).enumerate() {
        // Groups that share a set divide its parts: each continues where the previous one stopped.
        let shares = index > 0 && pools[index - 1] == *pool;
        earlier = if shares { earlier } else { 0 };
        let parts = parts(spec, topology, pool);
        for thread in 0..*threads {
            let part = parts.get((earlier + thread as usize) % parts.len().max(1));
            bindings.push(part.copied().filter(|part| !part.is_empty()));
        }
        earlier += *threads as usize;
    }
    bindings
}

/// Returns the processors for the threads of a group, in order.
fn parts(spec: &ProcessorsSpec, topology: &Topology, pool: &ProcessorSet) -> Vec<ProcessorSet> {
    match spec.affinity {
        CpuAffinity::Auto if spec.one_thread_per_core => topology.split(pool, |one| one.core),
        CpuAffinity::Core => topology.split(pool, |one| one.core),
        CpuAffinity::Ccx => {
            // Each complex is repeated for each of its threads.
            let parts = topology.split(pool, |one| one.ccx);
            let turns = |part: ProcessorSet| {
                let threads = select::threads_of(spec, topology, &part) as usize;
                std::iter::repeat_n(part, threads)
            };
            parts.into_iter().flat_map(turns).collect()
        }
        CpuAffinity::Thread => {
            let alone = |number: u32| ProcessorSet::from_iter([number]);
            if !spec.one_thread_per_core {
                return pool.iter().map(alone).collect();
            }
            let cores = topology.split(pool, |one| one.core);
            cores.iter().filter_map(|core| core.iter().next()).map(alone).collect()
        }
        CpuAffinity::Auto | CpuAffinity::Group { .. } => vec![*pool],
    }
}

/// Binds threads by `cpu-map` lines; later lines replace earlier ones.
pub(super) fn by_map(maps: &[CpuMapSpec], groups: &[u32]) -> Vec<Option<ProcessorSet>> {
    let mut bindings = vec![None; groups.iter().sum::<u32>() as usize];
    for map in maps {
        let mut processors = map.processors.iter();
        let mut start = 0;
        // All 64 groups are visited, since `auto:` also counts groups that do not exist.
        for group in 0..u64::BITS {
            let size = groups.get(group as usize).copied().unwrap_or(0);
            let first = start;
            start += size as usize;
            if map.groups >> group & 1 == 0 {
                continue;
            }
            if map.auto && map.threads.is_some() {
                processors = map.processors.iter();
            }
            let of_group = (map.auto && map.threads.is_none()).then(|| processors.next()).flatten();
            for thread in 0..u64::BITS {
                if map.threads.is_some_and(|threads| threads >> thread & 1 == 0) {
                    continue;
                }
                let set = match (map.auto, map.threads) {
                    (false, _) => Some(map.processors),
                    (true, None) => of_group.map(|number| ProcessorSet::from_iter([number])),
                    (true, Some(_)) => processors.next().map(|number| ProcessorSet::from_iter([number])),
                };
                if thread < size
                    && let Some(set) = set
                    && let Some(binding) = bindings.get_mut(first + thread as usize)
                {
                    *binding = Some(set);
                }
            }
        }
    }
    bindings
}
