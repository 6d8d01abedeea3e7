//! Description of the machine. Must never judge it: [`super::environment`] does.

use super::procfs;
use super::results::Machine;
use rt::process;
use wire::date::Date;

/// Returns the description of this machine.
#[must_use]
pub fn machine() -> Machine {
    let cores = process::available_processors().len();
    Machine {
        processor: model(&procfs::read("/proc/cpuinfo")),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        memory: kilobytes(&procfs::read("/proc/meminfo"), "MemTotal"),
        kernel: format!(
            "{} {}",
            procfs::read("/proc/sys/kernel/ostype").trim(),
            procfs::read("/proc/sys/kernel/osrelease").trim()
        ),
    }
}

/// Parses the processor's model from `/proc/cpuinfo`.
fn model(text: &str) -> String {
    let line = text.lines().find(|line| line.starts_with("model name") || line.starts_with("Model"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.filter(|name| !name.is_empty()).unwrap_or("unknown").to_owned()
}

/// Parses the bytes in a line of `/proc/meminfo`; 0 if it is missing.
#[must_use]
pub fn kilobytes(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

/// Formats a time in seconds since 1970 by RFC 3339, in UTC.
#[must_use]
pub fn rfc3339(seconds: u64) -> String {
    let Date { year, month, day, hour, minute, second } = Date::since_epoch(seconds.try_into().unwrap_or(i64::MAX));
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        let rows = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_795_182_933, "2026-11-20T13:55:33Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in rows {
            assert_eq!(rfc3339(seconds), text);
        }
    }

    #[test]
    fn the_machine_is_read_from_what_it_says() {
        assert_eq!(model("processor : 0\nmodel name\t: AMD EPYC\n"), "AMD EPYC");
        assert_eq!(model(""), "unknown");
        let text = "MemTotal:       24 kB\nMemTotalX: 1 kB\nSwapTotal: 0 kB\n";
        assert_eq!((kilobytes(text, "MemTotal"), kilobytes(text, "SwapTotal"), kilobytes(text, "X")), (24 << 10, 0, 0));
        assert!(machine().cores > 0);
    }
}
