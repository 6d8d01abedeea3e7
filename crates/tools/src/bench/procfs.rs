//! Information of the kernel about processes and the machine in `/proc`, as text and as figures. Must never fail
//! because of a process that has exited: it counts as nothing.

use std::collections::BTreeMap;
use std::fs;

/// Clock ticks per second in the kernel's output (`USER_HZ`, the same on every machine that Weir supports).
const TICKS: f64 = 100.0;

/// Maximum number of processes that are read.
const MOST_PROCESSES: usize = 100_000;

/// Maximum number of threads of a process that are read.
const MOST_THREADS: usize = 10_000;

/// A process or thread, parsed from `stat`.
#[derive(Debug, Clone, PartialEq)]
pub struct Stat {
    pub name: String,
    /// Process id of the parent.
    pub parent: u32,
    /// Microseconds in user space.
    pub user: f64,
    /// Microseconds in the kernel.
    pub system: f64,
    /// CPU time of terminated and waited-for children, in microseconds.
    pub of_children: f64,
    /// Start time in ticks since boot: together with the id it identifies a process uniquely.
    pub begun: u64,
}

/// Parses a line of `stat`; the name may contain any byte, parentheses as well.
#[must_use]
pub fn stat(text: &str) -> Option<Stat> {
    let (head, rest) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field).and_then(|text| text.parse::<u64>().ok());
    let time = |field: usize| number(field).map(|ticks| ticks as f64 / TICKS * 1e6);
    Some(Stat {
        name,
        parent: u32::try_from(number(1)?).ok()?,
        user: time(11)?,
        system: time(12)?,
        of_children: time(13)? + time(14)?,
        begun: number(19)?,
    })
}

/// Parses the CPU time in microseconds from `schedstat`.
#[must_use]
pub fn schedstat(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse::<u64>().ok().map(|nanoseconds| nanoseconds as f64 / 1e3)
}

/// Parses anonymous and resident bytes from `smaps_rollup`.
#[must_use]
pub fn smaps_rollup(text: &str) -> (u64, u64) {
    let bytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    (bytes("Anonymous:"), bytes("Rss:"))
}

/// Parses packets received and sent by an interface from `/proc/net/dev`.
#[must_use]
pub fn packets(text: &str, interface: &str) -> Option<(u64, u64)> {
    let (_, figures) =
        text.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == interface))?;
    let figures: Vec<&str> = figures.split_whitespace().collect();
    Some((figures.get(1)?.parse().ok()?, figures.get(9)?.parse().ok()?))
}

/// Time of one processor, or of all, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Processor {
    /// Total.
    pub all: u64,
    /// Idle.
    pub idle: u64,
    /// Stolen by other guests of the same host.
    pub steal: u64,
    /// Software interrupts.
    pub softirq: u64,
}

/// Parses the line of all processors in `/proc/stat`.
#[must_use]
pub fn processor(text: &str) -> Option<Processor> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|tick| tick.parse().ok()).collect();
    let at = |field: usize| ticks.get(field).copied().unwrap_or(0);
    Some(Processor { all: ticks.iter().sum(), idle: at(3) + at(4), steal: at(7), softirq: at(6) })
}

/// Parses the device interrupts of each processor from `/proc/interrupts`: the lines with a number.
#[must_use]
pub fn interrupts(text: &str) -> Vec<u64> {
    let mut lines = text.lines();
    let processors = lines.next().map_or(0, |head| head.split_whitespace().count());
    let mut sums = vec![0; processors];
    for line in lines {
        let Some((_, counts)) = line.split_once(':').filter(|(name, _)| name.trim().parse::<u32>().is_ok()) else {
            continue;
        };
        for (sum, count) in sums.iter_mut().zip(counts.split_whitespace()) {
            *sum += count.parse::<u64>().unwrap_or(0);
        }
    }
    sums
}

/// Whether a TCP port has a listener, from `/proc/net/tcp` or `tcp6`.
#[must_use]
pub fn listens(text: &str, port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    text.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&suffix)) && fields.nth(1) == Some("0A")
    })
}

/// Whether a TCP port of this machine has a listener.
#[must_use]
pub fn listens_now(port: u16) -> bool {
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].iter().any(|file| listens(&read(file), port))
}

/// Reads a file of `/proc` or `/sys`; empty if it cannot be read.
#[must_use]
pub fn read(file: &str) -> String {
    fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Returns every process by its id.
#[must_use]
pub fn processes() -> BTreeMap<u32, Stat> {
    numbers("/proc", MOST_PROCESSES)
        .into_iter()
        .filter_map(|process| Some((process, stat(&read(&format!("/proc/{process}/stat")))?)))
        .collect()
}

/// Returns a process and its descendants, with the start times that distinguish them from later ones with the same id.
#[must_use]
pub fn family(of: u32) -> Vec<(u32, u64)> {
    let all = processes();
    let mut found: Vec<(u32, u64)> = all.get(&of).map(|stat| (of, stat.begun)).into_iter().collect();
    let mut at = 0;
    while let Some(&(parent, _)) = found.get(at) {
        found
            .extend(all.iter().filter(|(_, stat)| stat.parent == parent).map(|(process, stat)| (*process, stat.begun)));
        at += 1;
    }
    found
}

/// CPU time of a thread since its start: the exact sum, and the kernel's split.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Name, and the split in ticks.
    pub stat: Stat,
    /// Exact CPU time, in microseconds.
    pub time: f64,
}

/// Returns every thread of a process and of its descendants, by process and thread id.
#[must_use]
pub fn threads(of: u32) -> BTreeMap<(u32, u32), Thread> {
    let mut found = BTreeMap::new();
    for (process, _) in family(of) {
        for thread in numbers(&format!("/proc/{process}/task"), MOST_THREADS) {
            let folder = format!("/proc/{process}/task/{thread}");
            let Some(stat) = stat(&read(&format!("{folder}/stat"))) else { continue };
            // Without the scheduler's statistics, the ticks are used.
            let time = schedstat(&read(&format!("{folder}/schedstat"))).unwrap_or(stat.user + stat.system);
            found.insert((process, thread), Thread { stat, time });
        }
    }
    found
}

/// Returns anonymous and resident bytes of a process and its descendants.
#[must_use]
pub fn memory(of: u32) -> (u64, u64) {
    let each = family(of).into_iter().map(|(process, _)| smaps_rollup(&read(&format!("/proc/{process}/smaps_rollup"))));
    each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Returns the numeric entries of a folder.
fn numbers(folder: &str, most: usize) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_is_read_whatever_the_name_is() {
        let text = "4711 (a) b (c)) S 4700 4711 4711 0 -1 4194560 230 0 0 0 17 23 5 6 20 0 3 0 998877 1 2 3\n";
        let read = stat(text).unwrap();
        assert_eq!((read.name.as_str(), read.parent, read.begun), ("a) b (c)", 4700, 998_877));
        assert_eq!((read.user, read.system, read.of_children), (170_000.0, 230_000.0, 110_000.0));
        for wrong in ["", "1", "1 (a", "1 (a) S", "1 (a) S 2 3 x"] {
            assert_eq!(stat(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn figures_are_found_in_recorded_text() {
        assert_eq!(schedstat("123456789 555 42\n"), Some(123_456.789));
        assert_eq!(schedstat(""), None);
        let text = "55-7f ---p 0 00:00 0 [rollup]\nRss:  1968 kB\nPss: 100 kB\nAnonymous:   104 kB\nKSM: 0 kB\n";
        assert_eq!(smaps_rollup(text), (104 << 10, 1968 << 10));
        assert_eq!(smaps_rollup(""), (0, 0));
        let text = "Inter-|   Receive    |  Transmit\n face |bytes packets errs\n    lo: 10 11 0 0 0 0 0 0 20 21 0 0 0 0 0 0\n\
                    eth0:1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n";
        assert_eq!(packets(text, "lo"), Some((11, 21)));
        assert_eq!(packets(text, "eth0"), Some((2, 4)));
        assert_eq!(packets(text, "eth"), None);
        let text = "cpu  100 1 50 800 20 3 6 20 0 0\ncpu0 1 1 1 1\nintr 5\n";
        assert_eq!(processor(text), Some(Processor { all: 1000, idle: 820, steal: 20, softirq: 6 }));
        let text = "           CPU0       CPU1\n  1:          9          0   IO-APIC   1-edge      i8042\n\
                     24:        100        200   PCI-MSI 512-edge     virtio\nLOC:   5000   6000   Local timer\n";
        assert_eq!(interrupts(text), [109, 200]);
    }

    #[test]
    fn only_a_listening_socket_listens() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue\n\
                    \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1\n\
                    \x20  1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 0 0 2 1\n";
        assert!(listens(text, 8080));
        assert!(!listens(text, 8081) && !listens(text, 80) && !listens("", 8080));
    }

    #[test]
    fn this_process_is_seen() {
        let own = std::process::id();
        assert!(threads(own).values().any(|thread| thread.time > 0.0));
        let (anonymous, resident) = memory(own);
        assert!(anonymous > 0 && resident >= anonymous);
        assert_eq!(family(own)[0].0, own);
    }
}
