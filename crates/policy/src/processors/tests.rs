//! Machines, directives, and the resulting threads.

use super::*;
use base::ProcessorSet;
use config::spec::{CpuMapSpec, CpuSetSpec, CpuUnit};

/// `nodes` nodes with `complexes` complexes of `cores` cores of two threads; siblings are numbered after all cores, as
/// on most servers.
fn server(nodes: u32, complexes: u32, cores: u32) -> Topology {
    let all = nodes * complexes * cores;
    let of = |number: u32| {
        let core = number % all;
        let ccx = core / cores;
        Processor { number, node: ccx / complexes, ccx, cluster: ccx, core, thread: number / all, capacity: 1024 }
    };
    Topology { processors: (0..all * 2).map(of).collect(), allowed: (0..all * 2).collect() }
}

/// A laptop: four fast cores of two threads, eight slow ones of one, one complex.
fn laptop() -> Topology {
    let fast = |number| Processor {
        number,
        node: 0,
        ccx: 0,
        cluster: 0,
        core: number / 2,
        thread: number % 2,
        capacity: 1024,
    };
    let slow = |number| Processor { number, node: 0, ccx: 0, cluster: 1, core: number - 4, thread: 0, capacity: 600 };
    Topology { processors: (0..8).map(fast).chain((8..16).map(slow)).collect(), allowed: (0..16).collect() }
}

fn two() -> Topology {
    Topology::flat((0..2).collect())
}

fn spec() -> ProcessorsSpec {
    ProcessorsSpec::default()
}

fn show(plan: &Plan) -> String {
    let mut runs: Vec<(String, usize)> = Vec::new();
    for binding in &plan.bindings {
        let text = binding.map_or("free".to_owned(), |set| set.to_string());
        match runs.last_mut() {
            Some((known, count)) if *known == text => *count += 1,
            _ => runs.push((text, 1)),
        }
    }
    let runs: Vec<String> = runs.into_iter().map(|(text, count)| format!("{count}x{text}")).collect();
    format!("{:?} {}", plan.groups, runs.join(" "))
}

fn planned(spec: &ProcessorsSpec, threads: Option<u32>, topology: &Topology) -> String {
    plan(spec, threads, topology).map_or_else(|error| error, |plan| show(&plan))
}

fn set(numbers: impl IntoIterator<Item = u32>) -> ProcessorSet {
    numbers.into_iter().collect()
}

#[test]
fn one_complex_leaves_the_threads_to_the_system() {
    assert_eq!(planned(&spec(), None, &two()), "[2] 2xfree");
    assert_eq!(planned(&spec(), Some(4), &two()), "[4] 4xfree");
    assert_eq!(planned(&spec(), None, &server(1, 1, 8)), "[16] 16xfree");
}

#[test]
fn policies_choose_processors() {
    let policy = |policy| ProcessorsSpec { policy: Some(policy), ..spec() };
    let server = server(2, 2, 4);
    let rows = [
        (CpuPolicy::Performance, &server, "[8, 8, 8, 8] 8x0-3,16-19 8x4-7,20-23 8x8-11,24-27 8x12-15,28-31"),
        (CpuPolicy::Ccx(1), &server, "[8, 8, 8, 8] 8x0-3,16-19 8x4-7,20-23 8x8-11,24-27 8x12-15,28-31"),
        (CpuPolicy::Ccx(2), &server, "[16, 16] 16x0-7,16-23 16x8-15,24-31"),
        (CpuPolicy::Ccx(3), &server, "[12, 12, 8] 12x0-5,16-21 12x6-11,22-27 8x12-15,28-31"),
        (CpuPolicy::Clusters(4), &server, "[16, 16] 16x0-7,16-23 16x8-15,24-31"),
        (CpuPolicy::None, &server, "[16, 16] 32xfree"),
        (CpuPolicy::FirstUsableNode, &server, "[16] 16x0-7,16-23"),
        (CpuPolicy::Resource, &server, "[8] 8x0-3,16-19"),
        (CpuPolicy::Performance, &laptop(), "[8] 8x0-7"),
        (CpuPolicy::Efficiency, &laptop(), "[8] 8x8-15"),
        (CpuPolicy::Resource, &laptop(), "[8] 8x8-15"),
        (CpuPolicy::Clusters(1), &laptop(), "[8, 8] 8x0-7 8x8-15"),
        (CpuPolicy::Ccx(1), &laptop(), "[16] 16xfree"),
    ];
    for (policy_name, topology, expected) in rows {
        assert_eq!(planned(&policy(policy_name), None, topology), expected, "{policy_name:?}");
    }
}

#[test]
fn what_is_written_overrules_the_grouping() {
    let server = server(2, 2, 4);
    assert_eq!(planned(&spec(), Some(20), &server), "[10, 10] 20xfree");
    let groups = ProcessorsSpec { thread_groups: Some(2), ..spec() };
    assert_eq!(planned(&groups, None, &server), "[16, 16] 32xfree");
    let off = ProcessorsSpec { no_numa_mapping: true, policy: Some(CpuPolicy::Resource), ..spec() };
    assert_eq!(planned(&off, None, &server), "[16, 16] 32xfree");
    let large = self::server(1, 1, 20);
    assert_eq!(planned(&spec(), None, &large), "[14, 14, 12] 14x0-6,20-26 14x7-13,27-33 12x14-19,34-39");
    let loose = ProcessorsSpec { affinity: CpuAffinity::Group { loose: true }, ..spec() };
    assert_eq!(planned(&loose, None, &large), "[14, 14, 12] 40xfree");
    let limited = ProcessorsSpec { thread_hard_limit: Some(12), ..spec() };
    assert_eq!(planned(&limited, None, &server), "[8, 4] 8x0-3,16-19 4x4-7,20-23");
}

#[test]
fn affinity_binds_within_a_group() {
    let server = server(1, 1, 4);
    let with = |affinity, one_thread_per_core| ProcessorsSpec { affinity, one_thread_per_core, ..spec() };
    let rows = [
        (with(CpuAffinity::Core, false), "[8] 1x0,4 1x1,5 1x2,6 1x3,7 1x0,4 1x1,5 1x2,6 1x3,7"),
        (with(CpuAffinity::Thread, false), "[8] 1x0 1x1 1x2 1x3 1x4 1x5 1x6 1x7"),
        (with(CpuAffinity::Thread, true), "[4] 1x0 1x1 1x2 1x3"),
        (with(CpuAffinity::Auto, true), "[4] 1x0,4 1x1,5 1x2,6 1x3,7"),
        (with(CpuAffinity::Group { loose: false }, true), "[4] 4x0-7"),
        (with(CpuAffinity::Ccx, false), "[8] 8x0-7"),
    ];
    for (spec, expected) in rows {
        assert_eq!(planned(&spec, None, &server), expected, "{:?}", spec.affinity);
    }
}

#[test]
fn sets_restrict() {
    let server = server(2, 1, 4);
    let restrict = |only, unit, numbers: ProcessorSet| CpuSetSpec::Restrict { only, unit, numbers };
    let rows: Vec<(Vec<CpuSetSpec>, &str)> = vec![
        (vec![restrict(true, CpuUnit::Cpu, set(0..3))], "[3] 3x0-2"),
        (vec![restrict(false, CpuUnit::Node, set([0]))], "[8] 8x4-7,12-15"),
        (vec![restrict(false, CpuUnit::Thread, set([1]))], "[4, 4] 4x0-3 4x4-7"),
        (vec![restrict(true, CpuUnit::Core, set([1, 5]))], "[2, 2] 2x1,9 2x5,13"),
        (vec![restrict(true, CpuUnit::Cluster, set([1]))], "[8] 8x4-7,12-15"),
        (vec![restrict(true, CpuUnit::Cpu, set([99]))], "[8, 8] 8x0-3,8-11 8x4-7,12-15"),
    ];
    for (sets, expected) in rows {
        assert_eq!(planned(&ProcessorsSpec { sets: sets.clone(), ..spec() }, None, &server), expected, "{sets:?}");
    }
    let bound = Topology { allowed: set(0..2), ..server };
    assert_eq!(planned(&spec(), None, &bound), "[2] 2xfree");
    let reset = ProcessorsSpec { sets: vec![CpuSetSpec::Reset], ..spec() };
    assert_eq!(planned(&reset, None, &bound), "[8, 8] 8x0-3,8-11 8x4-7,12-15");
}

fn map(auto: bool, groups: u64, threads: Option<u64>, processors: ProcessorSet) -> CpuMapSpec {
    CpuMapSpec { auto, groups, threads, processors }
}

#[test]
fn maps_bind_threads() {
    let rows: Vec<(Vec<CpuMapSpec>, u32, &str)> = vec![
        (vec![map(false, 1, None, set(0..4))], 4, "[4] 4x0-3"),
        (vec![map(true, 1, Some(0b1111), set(0..4))], 4, "[4] 1x0 1x1 1x2 1x3"),
        (vec![map(true, 1, Some(u64::MAX), set(0..64))], 2, "[2] 1x0 1x1"),
        (vec![map(true, 1, Some(0x5555_5555_5555_5555), set(0..32))], 4, "[4] 1x0 1xfree 1x1 1xfree"),
        (vec![map(false, 1, None, set(0..4)), map(false, 1, Some(0b10), set([7]))], 3, "[3] 1x0-3 1x7 1x0-3"),
        (vec![map(false, 2, None, set(0..4))], 2, "[2] 2xfree"),
    ];
    for (maps, threads, expected) in rows {
        let spec = ProcessorsSpec { maps: maps.clone(), ..spec() };
        assert_eq!(planned(&spec, Some(threads), &server(1, 1, 4)), expected, "{maps:?}");
    }
    let groups = ProcessorsSpec { thread_groups: Some(2), maps: vec![map(true, 0b11, None, set([3, 5]))], ..spec() };
    assert_eq!(planned(&groups, Some(4), &server(1, 1, 4)), "[2, 2] 2x3 2x5");
    let second = ProcessorsSpec { maps: vec![map(true, 0b10, Some(0b11), set([3, 5]))], ..groups };
    assert_eq!(planned(&second, Some(4), &server(1, 1, 4)), "[2, 2] 2xfree 1x3 1x5");
}

#[test]
fn threads_are_split_into_groups() {
    let with =
        |thread_groups, groups: &[(u32, u32)]| ProcessorsSpec { thread_groups, groups: groups.to_vec(), ..spec() };
    let rows = [
        (with(Some(17), &[]), 2, "More unassigned thread-groups (17) than threads (2). Please reduce thread-groups"),
        (with(Some(2), &[(1, 3)]), 4, "[3, 1] 4xfree"),
        (
            with(Some(2), &[(3, 3)]),
            1,
            "More unassigned thread-groups (2) than threads (1). Please reduce thread-groups",
        ),
        (with(Some(1), &[]), 65, "[64] 64xfree"),
        (with(Some(3), &[]), 8, "[3, 3, 2] 8xfree"),
        (with(None, &[]), 20, "[10, 10] 20xfree"),
    ];
    for (spec, threads, expected) in rows {
        assert_eq!(planned(&spec, Some(threads), &two()), expected, "{:?}", spec.thread_groups);
    }
    assert_eq!(plan(&spec(), Some(1024), &two()).map(|plan| plan.threads()), Ok(512));
}

#[test]
fn crowds_and_gaps_are_warned_of() {
    let count = |spec: &ProcessorsSpec, threads| plan(spec, Some(threads), &two()).map(|plan| plan.warnings.len());
    assert_eq!(count(&spec(), 2), Ok(0));
    assert_eq!(count(&spec(), 3), Ok(1));
    let partly = ProcessorsSpec { maps: vec![map(false, 1, Some(1), set([0]))], ..spec() };
    assert_eq!(count(&partly, 2), Ok(1));
    let limited = ProcessorsSpec { thread_hard_limit: Some(1), ..spec() };
    assert_eq!(count(&limited, 2), Ok(1));
    let both = ProcessorsSpec { policy: Some(CpuPolicy::None), ..partly };
    assert_eq!(plan(&both, Some(2), &two()).map(|plan| plan.notices.len()), Ok(1));
}
