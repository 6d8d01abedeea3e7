//! Information for debugging (`show dev`, `show libs`): the machine and the process at the start, from files of the
//! kernel. Must never be read while the process serves.

use engine::host::Platform;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the properties of this machine and this process.
#[must_use]
pub fn describe() -> Platform {
    let mut machine = Vec::new();
    let info = read("/proc/cpuinfo");
    let mut add = |name: &'static str, value: Option<String>| machine.extend(value.map(|value| (name, value)));
    add("cpu model", field(&info, "model name"));
    add("virtual machine", Some(yes(info.contains(" hypervisor"))));
    add("OS name", kernel("ostype"));
    add("OS release", kernel("osrelease"));
    add("OS version", kernel("version"));
    add("OS architecture", Some(std::env::consts::ARCH.to_owned()));
    let release = read("/etc/os-release");
    let pretty = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    add("distro pretty name", pretty.map(|name| name.trim_matches('"').to_owned()));
    let status = read("/proc/self/status");
    let first = |name: &str| field(&status, name).and_then(|ids| ids.split_whitespace().next().map(str::to_owned));
    let limits = read("/proc/self/limits");
    let mut process = Vec::new();
    let mut add = |name: &'static str, value: Option<String>| process.extend(value.map(|value| (name, value)));
    add("cmdline", Some(std::env::args().collect::<Vec<_>>().join(" ")));
    add("boot uid", first("Uid"));
    add("boot gid", first("Gid"));
    add("boot capabilities", first("CapEff"));
    add("fd limit (soft)", limit(&limits, "Max open files", 0));
    add("fd limit (hard)", limit(&limits, "Max open files", 1));
    add("ram limit (soft)", limit(&limits, "Max address space", 0).filter(|value| value != "unlimited"));
    add("ram limit (hard)", limit(&limits, "Max address space", 1).filter(|value| value != "unlimited"));
    Platform { machine, process, libraries: libraries(&read("/proc/self/maps")) }
}

fn read(path: &str) -> String {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn kernel(name: &str) -> Option<String> {
    let text = read(&format!("/proc/sys/kernel/{name}"));
    (!text.is_empty()).then(|| text.trim().to_owned())
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

/// Returns the value of the first line `NAME : VALUE`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (own, value) = line.split_once(':')?;
        (own.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Returns a column of a line of `/proc/self/limits`.
fn limit(text: &str, name: &str, column: usize) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().nth(column).map(str::to_owned)
}

/// Lists every mapped file with code: its address range, the size, its path.
fn libraries(maps: &str) -> String {
    let mut ranges: BTreeMap<&str, (u64, u64, bool)> = BTreeMap::new();
    let mut order = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights), Some(path)) = (words.next(), words.next(), words.nth(3)) else { continue };
        let ends = range.split_once('-');
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((from, to)) = ends.and_then(|(from, to)| Some((number(from)?, number(to)?))) else { continue };
        if !path.starts_with('/') {
            continue;
        }
        let known = ranges.entry(path).or_insert_with(|| {
            order.push(path);
            (from, to, false)
        });
        *known = (known.0.min(from), known.1.max(to), known.2 || rights.contains('x'));
    }
    let mut text = String::new();
    for path in order {
        if let Some((from, to, true)) = ranges.get(path) {
            let _ = writeln!(text, "{from:#014x}-{:#014x} ({:#09x}) {path}", to - 1, to - from);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_itself_is_among_the_libraries() {
        let maps = "1000-2000 r--p 00000000 fe:00 1 /bin/a\n2000-3000 r-xp 00001000 fe:00 1 /bin/a\n\
                    5000-6000 r--p 00000000 fe:00 2 /usr/data\n7000-8000 rw-p 00000000 00:00 0\n\
                    9000-a000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(libraries(maps), "0x000000001000-0x000000002fff (0x0002000) /bin/a\n");
        let platform = describe();
        assert!(platform.libraries.lines().next().is_some(), "{platform:?}");
        assert!(platform.machine.contains(&("OS name", "Linux".to_owned())), "{platform:?}");
        assert!(platform.process.iter().any(|(name, _)| *name == "boot uid"), "{platform:?}");
    }

    #[test]
    fn limits_have_two_columns() {
        let text = "Limit   Soft Limit Hard Limit Units\nMax open files            1024                 4096                 files\n";
        assert_eq!(limit(text, "Max open files", 0).as_deref(), Some("1024"));
        assert_eq!(limit(text, "Max open files", 1).as_deref(), Some("4096"));
        assert_eq!(limit(text, "Max locks", 1), None);
    }
}
