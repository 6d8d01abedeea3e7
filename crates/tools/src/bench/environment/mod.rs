//! Properties of the machine that would distort a result, checked before the measurement. Must never change the
//! machine.

mod network;
mod processors;
mod quiet;

use super::child::Stop;
use super::machine::kilobytes;
use super::processor_assignment::Places;
use super::procfs::read;
use super::report::Unit;
use super::results::Finding;
use super::scenario::Scenario;
use super::steps::BenchStep;
use base::ProcessorSet;
use rt::process;
use std::time::Duration;

/// Requirements of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunRequirements<'a> {
    pub scenario: &'a Scenario,
    /// Combinations of the scenario.
    pub steps: &'a [BenchStep],
    /// Available processors.
    pub available: &'a ProcessorSet,
    /// Processors of each role in the widest step.
    pub places: Places,
    /// Duration for which the idle machine is observed.
    pub listen: Duration,
}

impl RunRequirements<'_> {
    /// Returns the maximum number of connections of a step.
    fn connections(&self) -> u64 {
        self.steps.iter().map(|step| u64::from(step.connections)).max().unwrap_or(0)
    }

    /// Returns the maximum number of workers of a step.
    fn workers(&self) -> u32 {
        self.steps.iter().map(|step| step.workers).max().unwrap_or(1)
    }

    /// Whether connections are closed and opened all the time.
    fn closes(&self) -> bool {
        let load = &self.scenario.load;
        let asked = load.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("connection") && value.get_ref().eq_ignore_ascii_case("close")
        });
        asked || load.requests_per_connection.as_ref().is_some_and(|number| *number.get_ref() < 100)
    }
}

/// Returns a finding without a warning.
fn well(subject: &str, seen: impl Into<String>) -> Finding {
    Finding { subject: subject.to_owned(), seen: seen.into(), warning: None }
}

/// Returns a finding, with a warning if `spoils` is set.
fn judged(subject: &str, seen: impl Into<String>, spoils: bool, warning: impl Into<String>) -> Finding {
    Finding { subject: subject.to_owned(), seen: seen.into(), warning: spoils.then(|| warning.into()) }
}

/// Raises the limit of descriptors as far as the run requires it, and runs all checks.
///
/// # Errors
/// An interruption.
pub fn check(needs: &RunRequirements<'_>) -> Result<Vec<Finding>, Stop> {
    let mut found = processors::check(needs);
    found.push(build());
    found.push(descriptors(needs));
    found.extend(network::check(needs));
    found.extend(memory(&read("/proc/meminfo"), &read("/sys/kernel/mm/transparent_hugepage/enabled"), needs));
    found.extend(quiet::check(needs)?);
    Ok(found)
}

/// Returns a readable summary: findings without a warning in one line, then every warning.
#[must_use]
pub fn text(findings: &[Finding]) -> String {
    let mut out = String::from("The environment:\n");
    for finding in findings {
        out.push_str(&format!("  {:<22} {}\n", finding.subject, finding.seen));
        if let Some(warning) = &finding.warning {
            out.push_str(&format!("  {:<22} WARNING: {warning}\n", ""));
        }
    }
    let warnings = findings.iter().filter(|finding| finding.warning.is_some()).count();
    let end = match warnings {
        0 => "Nothing here spoils the result.\n".to_owned(),
        1 => "One thing here may spoil the result.\n".to_owned(),
        number => format!("{number} things here may spoil the result.\n"),
    };
    out + &end
}

fn build() -> Finding {
    let slow = cfg!(debug_assertions);
    let seen = if slow { "built without optimisation" } else { "built with optimisation" };
    judged("this program", seen, slow, "load, origin and Weir are many times slower: build with --release")
}

fn descriptors(needs: &RunRequirements<'_>) -> Finding {
    let connections = needs.connections();
    // A proxy has one connection on either side of each, plus descriptors of its own.
    let wanted = needs.scenario.limits.descriptors.unwrap_or(connections * 2 + 1000);
    let limits = process::raise_descriptor_limit(wanted);
    let (soft, hard) = limits.unwrap_or_default();
    judged(
        "open files",
        format!("{soft} for each process, {wanted} wanted"),
        soft < wanted,
        format!("connections will fail: raise the hard limit, which is {hard} (ulimit -Hn, LimitNOFILE=)"),
    )
}

fn memory(meminfo: &str, huge: &str, needs: &RunRequirements<'_>) -> Vec<Finding> {
    let (total, available) = (kilobytes(meminfo, "MemTotal"), kilobytes(meminfo, "MemAvailable"));
    let swapped = kilobytes(meminfo, "SwapTotal").saturating_sub(kilobytes(meminfo, "SwapFree"));
    let shown = |bytes: u64| Unit::Memory.show(bytes as f64);
    // Sockets on both sides of a proxy, at the load and at the origin: about 40 KB per connection with a little
    // traffic.
    let wanted = (needs.connections() * 40 + 256 * 1024) * 1024;
    let always = huge.contains("[always]");
    vec![
        judged(
            "memory",
            format!("{} of {} are free, some {} are needed", shown(available), shown(total), shown(wanted)),
            available < wanted,
            "the machine will swap or end processes: take fewer connections, or end other programs",
        ),
        judged(
            "swap",
            format!("{} are in use", shown(swapped)),
            swapped > 0,
            "what was swapped out comes back while something is measured: swapoff -a, and on again afterwards",
        ),
        judged(
            "huge pages",
            if always { "always" } else { "only where a program asks" },
            always,
            "a few idle connections may count as 2 MB: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_read_as_lines() {
        let found = [well("a", "is well"), judged("b", "is ill", true, "mend it"), judged("c", "fine", false, "no")];
        let text = text(&found);
        assert!(text.contains("  a                      is well\n"), "{text}");
        assert!(text.contains("WARNING: mend it\n") && !text.contains("WARNING: no"), "{text}");
        assert!(text.ends_with("One thing here may spoil the result.\n"), "{text}");
    }
}
