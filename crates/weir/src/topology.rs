//! The topology of the machine's processors, read from Linux's sysfs. Missing or invalid values are replaced by
//! guesses, so that every machine has a topology. Must never decide which processors are used.

use base::ProcessorSet;
use base::processors::MOST_PROCESSORS;
use policy::processors::{Processor, Topology};
use std::path::{Path, PathBuf};

/// Sysfs folder of devices.
pub const DEVICES: &str = "/sys/devices/system";

/// Maximum difference in capacity between similar processors of a core complex, in percent.
const SIMILAR: u64 = 5;

/// Reads the topology below `devices`. `allowed` are the processors that the process may use.
#[must_use]
pub fn read(devices: &Path, allowed: ProcessorSet) -> Topology {
    let online = list(&devices.join("cpu/online"));
    if online.is_empty() {
        return Topology::flat(allowed);
    }
    let raw: Vec<Raw> = online.iter().map(|number| Raw::read(devices, number)).collect();
    let mut ccx = Counter::default();
    let mut cores = Counter::default();
    let mut processors: Vec<Processor> = raw
        .iter()
        .map(|one| Processor {
            number: one.number,
            node: one.node,
            ccx: ccx.number(first(&one.ccx, one.number)),
            cluster: 0,
            core: cores.number(first(&one.core, one.number)),
            thread: u32::try_from(one.core.iter().position(|number| number == one.number).unwrap_or(0)).unwrap_or(0),
            capacity: one.capacity,
        })
        .collect();
    if raw.iter().any(|one| one.capacity == 0) {
        // One is unknown, and capacities from different sources cannot be compared.
        processors.iter_mut().for_each(|one| one.capacity = EQUAL);
    }
    find_clusters(&mut processors);
    Topology { processors, allowed }
}

/// Default capacity.
const EQUAL: u32 = 1_024;

/// Groups similar processors of a complex into clusters, the fastest first.
fn find_clusters(processors: &mut [Processor]) {
    let mut order: Vec<usize> = (0..processors.len()).collect();
    order.sort_by_key(|index| (processors[*index].ccx, std::cmp::Reverse(processors[*index].capacity), *index));
    let (mut cluster, mut fastest): (u32, Option<(u32, u64)>) = (0, None);
    for index in order {
        let (ccx, capacity) = (processors[index].ccx, u64::from(processors[index].capacity));
        match fastest {
            Some((known, speed)) if known == ccx && capacity * 100 >= speed * (100 - SIMILAR) => {}
            Some(_) => (cluster, fastest) = (cluster + 1, Some((ccx, capacity))),
            None => fastest = Some((ccx, capacity)),
        }
        processors[index].cluster = cluster;
    }
}

/// The values of one processor.
struct Raw {
    number: u32,
    node: u32,
    /// Processors that share its last-level cache.
    ccx: ProcessorSet,
    /// Hardware threads of its core.
    core: ProcessorSet,
    /// Capacity; 0 if unknown.
    capacity: u32,
}

impl Raw {
    fn read(devices: &Path, number: u32) -> Self {
        let folder = devices.join(format!("cpu/cpu{number}"));
        let alone = || [number].into_iter().collect();
        let known = |names: &[&str]| {
            let sets = names.iter().map(|name| list(&folder.join("topology").join(name)));
            sets.into_iter().find(|set| set.contains(number))
        };
        let core = known(&["core_cpus_list", "thread_siblings_list"]).unwrap_or_else(alone);
        let package = || known(&["die_cpus_list", "package_cpus_list", "core_siblings_list"]);
        let ccx = last_cache(&folder, number).or_else(package).unwrap_or_else(alone);
        Self { number, node: node(devices, &folder, number), ccx, core, capacity: capacity(&folder) }
    }
}

/// Returns the processors that share the third-level cache, which defines a complex.
fn last_cache(folder: &Path, number: u32) -> Option<ProcessorSet> {
    /// Maximum number of caches per processor.
    const CACHES: u32 = 16;
    let caches = (0..CACHES).map(|index| folder.join(format!("cache/index{index}")));
    let third = caches.take_while(|cache| cache.is_dir()).find(|cache| value(&cache.join("level")) == Some(3))?;
    Some(list(&third.join("shared_cpu_list"))).filter(|set| set.contains(number))
}

/// Returns the processor's node: its number is in the name of a file in the processor's folder.
fn node(devices: &Path, folder: &Path, number: u32) -> u32 {
    let nodes = list(&devices.join("node/online"));
    let here = nodes.iter().find(|node| folder.join(format!("node{node}")).exists());
    let there = || nodes.iter().find(|node| list(&devices.join(format!("node/node{node}/cpulist"))).contains(number));
    here.or_else(there).unwrap_or(0)
}

fn capacity(folder: &Path) -> u32 {
    let files = ["cpu_capacity", "acpi_cppc/nominal_perf", "cpufreq/cpuinfo_max_freq"];
    files.iter().find_map(|file| value(&folder.join(file))).unwrap_or(0)
}

fn text(path: &PathBuf) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn value(path: &PathBuf) -> Option<u32> {
    text(path)?.parse().ok()
}

/// Parses a list of numbers like `0-3,8`; empty if missing.
fn list(path: &PathBuf) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    for part in text(path).unwrap_or_default().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(low), Ok(high)) = (low.parse::<u32>(), high.parse::<u32>()) {
            (low..=high.min(MOST_PROCESSORS - 1)).for_each(|number| set.insert(number));
        }
    }
    set
}

/// Numbers groups from 0 in order of occurrence; a group is identified by its first processor.
#[derive(Default)]
struct Counter {
    known: Vec<u32>,
}

impl Counter {
    fn number(&mut self, name: u32) -> u32 {
        let place = self.known.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.known.push(name);
            self.known.len() - 1
        });
        u32::try_from(place).unwrap_or(u32::MAX)
    }
}

fn first(set: &ProcessorSet, otherwise: u32) -> u32 {
    set.iter().next().unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sysfs tree for a test.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-topology-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn write(&self, file: &str, content: &str) {
            let path = self.0.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{content}\n")).unwrap();
        }

        fn cpu(&self, number: u32, core: &str, cache: &str, capacity: &str) {
            let folder = format!("cpu/cpu{number}");
            self.write(&format!("{folder}/topology/core_cpus_list"), core);
            self.write(&format!("{folder}/topology/package_cpus_list"), "0-99");
            self.write(&format!("{folder}/cache/index0/level"), "1");
            if !cache.is_empty() {
                self.write(&format!("{folder}/cache/index1/level"), "3");
                self.write(&format!("{folder}/cache/index1/shared_cpu_list"), cache);
            }
            if !capacity.is_empty() {
                self.write(&format!("{folder}/cpu_capacity"), capacity);
            }
        }

        /// Shows number:node/ccx/cluster/core.thread.
        fn show(&self) -> String {
            let topology = read(&self.0, (0..4).collect());
            let show = |one: &Processor| {
                format!("{}:{}/{}/{}/{}.{}", one.number, one.node, one.ccx, one.cluster, one.core, one.thread)
            };
            topology.processors.iter().map(show).collect::<Vec<_>>().join(" ")
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn two_sockets_of_two_cores_of_two_threads() {
        let tree = Tree::new("sockets");
        tree.write("cpu/online", "0-7");
        tree.write("node/online", "0-1");
        tree.write("node/node0/cpulist", "0-1,4-5");
        tree.write("node/node1/cpulist", "2-3,6-7");
        for number in 0..8 {
            let core = number % 4;
            let cache = if core < 2 { "0-1,4-5" } else { "2-3,6-7" };
            tree.cpu(number, &format!("{core},{}", core + 4), cache, "");
        }
        let expected =
            "0:0/0/0/0.0 1:0/0/0/1.0 2:1/1/1/2.0 3:1/1/1/3.0 4:0/0/0/0.1 5:0/0/0/1.1 6:1/1/1/2.1 7:1/1/1/3.1";
        assert_eq!(tree.show(), expected);
    }

    #[test]
    fn slow_cores_are_a_cluster_of_their_own() {
        let tree = Tree::new("hybrid");
        tree.write("cpu/online", "0-3,5");
        for (number, core, speed) in
            [(0, "0-1", "1024"), (1, "0-1", "1000"), (2, "2", "600"), (3, "3", "590"), (5, "5", "300")]
        {
            tree.cpu(number, core, "0-5", speed);
        }
        assert_eq!(tree.show(), "0:0/0/0/0.0 1:0/0/0/0.1 2:0/0/1/1.0 3:0/0/1/2.0 5:0/0/2/3.0");
    }

    #[test]
    fn without_a_third_cache_the_package_counts() {
        let tree = Tree::new("package");
        tree.write("cpu/online", "0-1");
        tree.cpu(0, "0", "", "");
        tree.cpu(1, "1", "", "512");
        assert_eq!(tree.show(), "0:0/0/0/0.0 1:0/0/0/1.0");
    }

    #[test]
    fn nothing_and_nonsense_are_survived() {
        let tree = Tree::new("nonsense");
        assert_eq!(tree.show(), "0:0/0/0/0.0 1:0/0/0/1.0 2:0/0/0/2.0 3:0/0/0/3.0");
        tree.write("cpu/online", "0-1,99999999-4,x,-,7-");
        tree.cpu(0, "zero", "8-9", "-5");
        assert_eq!(tree.show(), "0:0/0/0/0.0 1:0/1/1/1.0");
    }

    #[test]
    fn this_machine_has_a_topology() {
        let allowed = rt::process::available_processors();
        let topology = read(Path::new(DEVICES), allowed);
        assert!(allowed.iter().all(|number| topology.processors.iter().any(|one| one.number == number)));
    }
}
