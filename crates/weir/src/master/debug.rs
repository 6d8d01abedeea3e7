//! Commands of the master CLI with `mcli-debug-mode on`, about the master process itself (management guide, section
//! 9.4.1). Must never change anything.

use super::counter::Counter;
use crate::{identity, libraries, version};
use config::spec::RuntimeLevel;
use control::runtime::{Call, Command, CommandTarget, Mode, Run};
use std::fmt::Write as _;

const fn row(name: &'static str, doc: &'static str, run: fn(&mut Call<'_, Counter>)) -> Command<Counter> {
    Command::new(name, name, doc, Run::Now(run)).at(RuntimeLevel::Operator).in_mode(Mode::Debug)
}

pub(super) const TABLE: &[Command<Counter>] = &[
    row("show fd", "dump list of file descriptors in use", show_fd),
    row("show info", "report information about the running process", show_info),
    row("show libs", "show loaded object files and libraries", show_libs),
];

/// Lists the file descriptors of the process with their targets (proc(5), `fd`), sorted by number.
fn show_fd(call: &mut Call<'_, Counter>) {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let read = |entry: std::fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse::<u32>().ok()?;
        // Skips the descriptor of the folder itself, which is closed by now.
        Some((number, std::fs::read_link(entry.path()).ok()?))
    };
    let mut found: Vec<_> = entries.filter_map(read).collect();
    found.sort();
    for (number, target) in found {
        let _ = writeln!(call.answer, "{number:>7} : {}", target.display());
    }
}

/// Shows the first lines of a worker's `show info`, and the resident memory in kilobytes (proc(5), `VmRSS`).
fn show_info(call: &mut Call<'_, Counter>) {
    let up = call.state.uptime(call.conversation);
    let (days, hours, minutes, seconds) = (up / 86_400, up / 3_600 % 24, up / 60 % 60, up % 60);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .map_or("0", |rest| rest.trim().trim_end_matches(" kB"));
    let _ = write!(
        call.answer,
        "Name: {}\nVersion: {}\nPid: {}\nUptime: {days}d {hours}h{minutes:02}m{seconds:02}s\nUptime_sec: {up}\nResident_kB: {held}\n",
        identity::product(),
        version::runtime(),
        std::process::id(),
    );
}

fn show_libs(call: &mut Call<'_, Counter>) {
    call.answer.push(libraries::list());
}
