//! `-dL`: the program file and the loaded libraries. Must never load anything itself.

use std::collections::BTreeSet;

/// Returns one path per line, the program first.
#[must_use]
pub fn list() -> String {
    let program = std::fs::read_link("/proc/self/exe").map(|path| path.display().to_string()).unwrap_or_default();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths = loaded(&maps);
    paths.remove(program.as_str());
    [program.as_str()]
        .into_iter()
        .chain(paths)
        .filter(|path| !path.is_empty())
        .map(|path| format!("{path}\n"))
        .collect()
}

/// Returns the executable files in a memory map.
fn loaded(maps: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in maps.lines() {
        // Address, permissions, offset, device, inode; then the path, which may contain spaces.
        let executable = line.split_whitespace().nth(1).is_some_and(|permissions| permissions.contains('x'));
        if let (true, Some(at)) = (executable, line.find('/')) {
            found.insert(&line[at..]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_files_are_listed() {
        let maps = "55-56 r-xp 00000000 fd:00 1 /usr/bin/a b\n55-56 rw-p 00000000 fd:00 1 /usr/lib/data\n\
                    7f-80 r-xp 00000000 00:00 0 [vdso]\n7f-80 r-xp 00000000 fd:00 2 /usr/lib/c.so\n";
        assert_eq!(loaded(maps).into_iter().collect::<Vec<_>>(), ["/usr/bin/a b", "/usr/lib/c.so"]);
    }
}
