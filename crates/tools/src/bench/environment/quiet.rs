//! Checks of background activity during an idle second.

use super::{Finding, RunRequirements, judged};
use crate::bench::child::{Stop, pause};
use crate::bench::procfs::{self, Processor, Stat, read};
use base::ProcessorSet;
use std::collections::BTreeMap;

/// Maximum share of all processors' time that other processes may use, percent.
const NOISE: f64 = 3.0;

/// Maximum share of time stolen by the host, percent.
const STEAL: f64 = 0.5;

/// Maximum number of device interrupts per second on a processor of the proxy.
const INTERRUPTS: f64 = 500.0;

pub fn check(needs: &RunRequirements<'_>) -> Result<Vec<Finding>, Stop> {
    let look = || {
        let processor = procfs::processor(&read("/proc/stat")).unwrap_or_default();
        (processor, procfs::processes(), procfs::interrupts(&read("/proc/interrupts")))
    };
    let (before, processes_before, interrupts_before) = look();
    pause(needs.listen)?;
    let (after, processes_after, interrupts_after) = look();
    let busiest = busiest(&processes_before, &processes_after);
    let [noise, steal] = noise(&before, &after, busiest);
    let seconds = needs.listen.as_secs_f64().max(0.01);
    Ok(vec![noise, steal, interrupts(&interrupts_before, &interrupts_after, seconds, &needs.places.proxy)])
}

/// Returns the name of the process that used the most time, except this one.
fn busiest(before: &BTreeMap<u32, Stat>, after: &BTreeMap<u32, Stat>) -> Option<String> {
    let own = std::process::id();
    let spent = |(process, now): (&u32, &Stat)| {
        let then = before.get(process).filter(|then| then.begun == now.begun);
        let ticks = now.user + now.system - then.map_or(0.0, |then| then.user + then.system);
        (*process != own && ticks > 0.0).then(|| (ticks, format!("{} ({process})", now.name)))
    };
    let all = after.iter().filter_map(spent);
    all.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, name)| name)
}

fn noise(before: &Processor, after: &Processor, busiest: Option<String>) -> [Finding; 2] {
    let all = after.all.saturating_sub(before.all).max(1) as f64;
    let percent = |ticks: u64| ticks as f64 * 100.0 / all;
    let steal = percent(after.steal.saturating_sub(before.steal));
    let idle = percent(after.idle.saturating_sub(before.idle));
    let busy = (100.0 - idle - steal).max(0.0);
    let most = busiest.map_or_else(String::new, |name| format!(", most of it by {name}"));
    [
        judged(
            "idle second",
            format!("{busy:.1} % of the processors' time is taken{most}"),
            busy > NOISE,
            "other programs take time and caches: end them, or compare CPU time a request over more rounds",
        ),
        judged(
            "host",
            format!("takes {steal:.1} % of the time away"),
            steal > STEAL,
            "other guests of the host are in the way: requests a second mean little here, CPU time a request does",
        ),
    ]
}

fn interrupts(before: &[u64], after: &[u64], seconds: f64, proxy: &ProcessorSet) -> Finding {
    let rates = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before) as f64 / seconds);
    // The columns are the processors that are online, nearly always all of them.
    let of_proxy = rates.enumerate().filter(|(number, _)| proxy.contains(*number as u32)).map(|(_, rate)| rate);
    let most = of_proxy.fold(0.0, f64::max);
    judged(
        "interrupts",
        format!("{most:.0} a second on a processor of the proxy, while nothing runs"),
        most > INTERRUPTS,
        "devices interrupt the proxy: bind their interrupts to other processors (/proc/irq/*/smp_affinity_list)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_what_is_neither_idle_nor_taken_away() {
        let before = Processor { all: 1000, idle: 500, steal: 0, softirq: 0 };
        let quiet = Processor { all: 1200, idle: 698, steal: 0, softirq: 0 };
        let [noise_of_quiet, host] = noise(&before, &quiet, None);
        assert_eq!((noise_of_quiet.warning, host.warning), (None, None));
        let loud = Processor { all: 1200, idle: 600, steal: 20, softirq: 0 };
        let [busy, host] = noise(&before, &loud, Some("cc1 (7)".to_owned()));
        assert_eq!(busy.seen, "40.0 % of the processors' time is taken, most of it by cc1 (7)");
        assert!(busy.warning.is_some() && host.warning.is_some());
    }

    #[test]
    fn interrupts_count_on_the_proxys_processors() {
        let proxy: ProcessorSet = [1].into_iter().collect();
        assert!(interrupts(&[0, 0], &[5000, 10], 1.0, &proxy).warning.is_none());
        assert!(interrupts(&[0, 0], &[0, 5000], 1.0, &proxy).warning.is_some());
    }

    #[test]
    fn the_busiest_process_is_named() {
        let stat = |name: &str, user: f64, begun| Stat {
            name: name.to_owned(),
            parent: 1,
            user,
            system: 0.0,
            of_children: 0.0,
            begun,
        };
        let before = [(4_000_001, stat("a", 100.0, 1)), (4_000_002, stat("b", 900.0, 1))].into();
        let after = [(4_000_001, stat("a", 150.0, 1)), (4_000_002, stat("b", 910.0, 1))].into();
        assert_eq!(busiest(&before, &after).as_deref(), Some("a (4000001)"));
        assert_eq!(busiest(&before, &before), None);
    }
}
