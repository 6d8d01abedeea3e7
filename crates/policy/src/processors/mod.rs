//! The number of threads of a program and the processors of each (configuration manual, "nbthread", "thread-groups",
//! "cpu-map", "cpu-policy", "cpu-set", "cpu-affinity").
//!
//! Weir's threads share everything, so a thread group is only a name for some of them, used by "cpu-map" and by
//! policies that choose the processors of a group together. Must never query the system: the topology is an argument.

mod bind;
mod groups;
mod select;
#[cfg(test)]
mod tests;
mod topology;

pub use topology::{Processor, Topology};

use base::ProcessorSet;
use config::spec::{CpuAffinity, CpuPolicy, ProcessorsSpec};
use groups::{MOST_OF_GROUP, group_size};
use select::Choice;

/// Maximum number of thread groups.
const MOST_GROUPS: u32 = 32;

/// The threads of a program and their processors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The number of threads of each group; their sum is the number of threads.
    pub groups: Vec<u32>,
    /// The processors of each thread; `None` if it is not bound.
    pub bindings: Vec<Option<ProcessorSet>>,
    /// Notices for the log.
    pub notices: Vec<String>,
    /// Warnings about probable mistakes.
    pub warnings: Vec<String>,
}

impl Plan {
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.groups.iter().sum()
    }
}

/// Computes the threads of a program. `threads` is the value of `nbthread`.
///
/// # Errors
/// HAProxy's message about groups without threads.
pub fn plan(spec: &ProcessorsSpec, threads: Option<u32>, topology: &Topology) -> Result<Plan, String> {
    let usable = select::usable(spec, topology);
    let mut plan = Plan::default();
    if !spec.maps.is_empty() && spec.policy.is_some() {
        plan.notices.push("cpu-policy is ignored when cpu-map is set.".into());
    }
    if spec.thread_groups.is_some() && spec.max_threads_per_group.is_some() {
        plan.notices.push(
            "max-threads-per-group is used to automatically calculate the optimal number of thread groups. It is \
             ignored when thread-groups is set."
                .into(),
        );
    }
    let choice = if spec.maps.is_empty() && !spec.no_numa_mapping {
        let policy = spec.policy.unwrap_or(CpuPolicy::Performance);
        select::choose(spec, policy, threads, topology, usable)
    } else {
        Choice::All(usable)
    };
    let pools = match choice {
        Choice::All(usable) => {
            let threads = default_threads(spec, threads, topology, &usable, &mut plan.warnings);
            plan.groups = sizes(spec, threads)?;
            vec![usable; plan.groups.len()]
        }
        Choice::Groups(groups) => {
            let mut left = spec.thread_hard_limit.unwrap_or(u32::MAX);
            for (threads, _) in &groups {
                let threads = (*threads).min(left);
                left -= threads;
                plan.groups.extend((threads > 0).then_some(threads));
            }
            groups.into_iter().map(|(_, pool)| pool).collect()
        }
    };
    let one_pool = pools.windows(2).all(|pair| pair[0] == pair[1]);
    let leaves_all = one_pool && pools.first().is_some_and(|pool| *pool == topology.allowed);
    let is_bound = !leaves_all || !matches!(spec.affinity, CpuAffinity::Auto | CpuAffinity::Group { .. });
    plan.bindings = bind::by_affinity(spec, topology, &plan.groups, &pools);
    if spec.maps.is_empty() {
        warn_of_competition(&mut plan, &pools);
    }
    if !(is_bound || spec.one_thread_per_core) {
        // The system's own restriction has the same effect.
        plan.bindings.fill(None);
    }
    if !spec.maps.is_empty() {
        plan.bindings = bind::by_map(&spec.maps, &plan.groups);
        warn_of_map(&mut plan, spec);
    }
    Ok(plan)
}

/// Returns the number of threads if no policy has determined it.
fn default_threads(
    spec: &ProcessorsSpec,
    threads: Option<u32>,
    topology: &Topology,
    usable: &ProcessorSet,
    warnings: &mut Vec<String>,
) -> u32 {
    let limit = spec.thread_hard_limit.unwrap_or(u32::MAX);
    if let Some(threads) = threads.filter(|threads| *threads > limit) {
        warnings.push(format!(
            "nbthread forced to a higher value ({threads}) than the configured thread-hard-limit ({limit}), enforcing \
             the limit. Please fix either value to remove this warning."
        ));
    }
    let threads = threads.unwrap_or_else(|| select::threads_of(spec, topology, usable));
    let most = match spec.thread_groups {
        Some(groups) => groups * MOST_OF_GROUP,
        None => MOST_GROUPS * group_size(spec),
    };
    threads.min(limit).min(most).max(1)
}

/// Returns the number of threads of each group, for references to a thread by its group. Groups that do not fit are
/// merged into one.
pub(crate) fn group_sizes(spec: &ProcessorsSpec, threads: u32) -> Vec<u32> {
    sizes(spec, threads).unwrap_or_else(|_| vec![threads])
}

/// Splits threads into groups: those of `thread-group` lines first, the rest evenly.
fn sizes(spec: &ProcessorsSpec, threads: u32) -> Result<Vec<u32>, String> {
    let count = spec.thread_groups.unwrap_or_else(|| threads.div_ceil(group_size(spec)));
    let mut sizes = vec![None; count as usize];
    let mut left = threads;
    for (group, size) in &spec.groups {
        if let Some(place) = sizes.get_mut(*group as usize - 1) {
            let size = (*size).min(left);
            left -= size;
            *place = Some(size);
        }
    }
    let mut open = sizes.iter().filter(|size| size.is_none()).count() as u32;
    if open > left {
        return Err(format!(
            "More unassigned thread-groups ({open}) than threads ({left}). Please reduce thread-groups"
        ));
    }
    // Threads that are left over without an open group are not started, as in HAProxy.
    for size in sizes.iter_mut().filter(|size| size.is_none()) {
        let share = left.div_ceil(open).min(MOST_OF_GROUP);
        *size = Some(share);
        left -= share;
        open -= 1;
    }
    Ok(sizes.into_iter().flatten().filter(|size| *size > 0).collect())
}

fn warn_of_competition(plan: &mut Plan, pools: &[ProcessorSet]) {
    let processors = pools.iter().fold(ProcessorSet::EMPTY, |all, pool| all.union(pool)).len();
    warn_of_crowd(&mut plan.warnings, plan.groups.iter().sum::<u32>() as usize, processors);
}

fn warn_of_crowd(warnings: &mut Vec<String>, threads: usize, processors: usize) {
    if processors > 0 && threads > processors {
        warnings.push(format!(
            "This configuration binds {threads} threads to a total of {processors} CPUs via cpu-map directives. This \
             means that some threads will compete for the same CPU, which will cause severe performance degradation. \
             Please fix either the 'cpu-map' directives or set the global 'nbthread' value accordingly."
        ));
    }
}

/// Warns when some threads are bound and others not, or when more are bound than there are processors for them.
fn warn_of_map(plan: &mut Plan, spec: &ProcessorsSpec) {
    let bound = plan.bindings.iter().flatten().count();
    let free = plan.bindings.len() - bound;
    let first = |is_bound: bool| plan.bindings.iter().position(|set| set.is_some() == is_bound);
    if let (Some(first_bound), Some(first_free)) = (first(true), first(false)) {
        plan.warnings.push(format!(
            "Found {bound} thread(s) mapped to a CPU and {free} thread(s) not mapped to any CPU. This will result in \
             some threads being randomly assigned to the same CPU, which will occasionally cause severe performance \
             degradation. First thread bound is {first_bound} and first thread not bound is {first_free}. Please \
             either bind all threads or none (maybe some cpu-map directives are missing?)."
        ));
    }
    // As HAProxy counts: processors of groups without threads as well.
    let all = spec.maps.iter().fold(ProcessorSet::EMPTY, |all, map| all.union(&map.processors));
    warn_of_crowd(&mut plan.warnings, bound, all.len());
}
