//! Checks of the processors: whether there are enough for the scenario, and whether their speed is steady.

use super::{Finding, RunRequirements, judged, well};
use crate::bench::processor_assignment::missing;
use crate::bench::procfs::read;
use crate::bench::scenario::quantity::processors as list;
use base::ProcessorSet;
use std::collections::BTreeSet;

pub fn check(needs: &RunRequirements<'_>) -> Vec<Finding> {
    let mut found = vec![seats(needs)];
    found.extend(lacking(needs));
    let of_each = |file: &str| {
        needs
            .available
            .iter()
            .map(|number| read(&format!("/sys/devices/system/cpu/cpu{number}/{file}")))
            .collect::<Vec<_>>()
    };
    found.push(governor(&of_each("cpufreq/scaling_governor")));
    found.push(siblings(needs, &of_each("topology/thread_siblings_list")));
    found.push(virtual_machine(&read("/proc/cpuinfo")));
    found.push(clock(read("/sys/devices/system/clocksource/clocksource0/current_clocksource").trim()));
    found.push(mitigations());
    found
}

fn seats(needs: &RunRequirements<'_>) -> Finding {
    let places = needs.places;
    let seen = format!(
        "{} of {}: proxy on {}, origin on {}, load on {}",
        needs.available.len(),
        needs.available,
        places.proxy,
        places.origin,
        places.load
    );
    let others = places.origin.union(&places.load);
    let shared = places.proxy.intersection(&others);
    let few = (places.proxy.len() as u64) < u64::from(needs.workers());
    let warning = if few {
        format!(
            "{} workers share {} processors: what is measured is how they wait for each other",
            needs.workers(),
            places.proxy.len()
        )
    } else {
        "the proxy shares processors with load or origin: compare CPU time a request, not requests a second; one \
         processor more helps"
            .to_owned()
    };
    judged("processors", seen, few || !shared.is_empty(), warning)
}

fn lacking(needs: &RunRequirements<'_>) -> Option<Finding> {
    let seats = needs.scenario.processors;
    let lacking = [seats.proxy, seats.origin, seats.load]
        .into_iter()
        .fold(ProcessorSet::EMPTY, |all, seat| all.union(&missing(seat, needs.available)));
    (!lacking.is_empty()).then(|| {
        judged(
            "pinning",
            format!("the scenario names processors {lacking}, which are not here or must not be used"),
            true,
            "what was to run there runs elsewhere: write \"workers\" and \"rest\" under [processors]",
        )
    })
}

fn governor(texts: &[String]) -> Finding {
    let names: BTreeSet<&str> = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    if names.is_empty() {
        return well("frequency", "not told by the kernel, as usual in a virtual machine");
    }
    let seen = names.iter().copied().collect::<Vec<_>>().join(", ");
    let spoils = seen != "performance";
    judged(
        "frequency",
        seen,
        spoils,
        "clocks rise with the load, so a lighter proxy runs slower: cpupower frequency-set -g performance",
    )
}

fn siblings(needs: &RunRequirements<'_>, texts: &[String]) -> Finding {
    let others = needs.places.origin.union(&needs.places.load);
    let mut shared = ProcessorSet::EMPTY;
    let mut threads = 1;
    for (number, text) in needs.available.iter().zip(texts) {
        let Some(core) = list(text.trim()) else { continue };
        threads = threads.max(core.len());
        let beside = core.intersection(&others).iter().any(|other| other != number);
        if needs.places.proxy.contains(number) && beside && !others.contains(number) {
            shared.insert(number);
        }
    }
    judged(
        "threads of a core",
        format!("{threads}"),
        !shared.is_empty(),
        format!("the proxy's processors {shared} are threads of cores that load or origin use: pin by whole cores"),
    )
}

fn virtual_machine(cpuinfo: &str) -> Finding {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let guest = flags.split_whitespace().any(|flag| flag == "hypervisor");
    well(
        "machine",
        if guest { "virtual: others may share its host, so compare medians within one run" } else { "not virtual" },
    )
}

fn clock(source: &str) -> Finding {
    let slow = matches!(source, "hpet" | "acpi_pm" | "jiffies");
    let seen = if source.is_empty() { "not told" } else { source };
    judged(
        "clock",
        seen,
        slow,
        "reading it is a slow access to hardware, which programs that read it often pay for: clocksource=tsc",
    )
}

fn mitigations() -> Finding {
    let off = read("/proc/cmdline").split_whitespace().any(|word| word == "mitigations=off");
    let files = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into_iter().flatten().flatten();
    let active = files.filter(|file| read(&file.path().display().to_string()).starts_with("Mitigation")).count();
    let how = if off { "switched off on the kernel's command line" } else { "as the kernel chose" };
    well("mitigations", format!("{active} are active, {how}: they make system calls dearer for everybody"))
}

#[cfg(test)]
mod tests {
    use super::super::RunRequirements;
    use super::*;
    use crate::bench::processor_assignment::places;
    use crate::bench::scenario::read;
    use crate::bench::steps::steps;
    use std::time::Duration;

    fn with<T>(available: &str, extra: &str, judge: impl FnOnce(&RunRequirements<'_>) -> T) -> T {
        let text = format!(
            "name = \"a\"\ntitle = \"\"\n[load]\npath = \"/\"\nduration = 1\n{extra}\n[[proxy]]\nname = \"p\"\ncommand = [\"p\"]\n"
        );
        let scenario = read("a.toml", &text).unwrap().scenario;
        let (steps, available) = (steps(&scenario), list(available).unwrap());
        let workers = steps.iter().map(|step| step.workers).max().unwrap();
        let places = places(&scenario.processors, workers, &available);
        judge(&RunRequirements {
            scenario: &scenario,
            steps: &steps,
            available: &available,
            places,
            listen: Duration::ZERO,
        })
    }

    #[test]
    fn shared_and_missing_processors_are_warned_of() {
        assert_eq!(with("0-3", "", |needs| seats(needs).warning), None);
        assert!(with("0", "", |needs| seats(needs).warning).unwrap().contains("shares processors"));
        let warning = with("0-1", "[sweep]\nworkers = [1, 4]", |needs| seats(needs).warning).unwrap();
        assert!(warning.starts_with("4 workers share 2 processors"), "{warning}");
        assert!(with("0-1", "", lacking).is_none());
        let found = with("0-1", "[processors]\nload = \"2-3\"", lacking).unwrap();
        assert!(found.seen.contains("processors 2-3"), "{}", found.seen);
    }

    #[test]
    fn threads_of_one_core_are_warned_of() {
        let cores = ["0,2", "1,3", "0,2", "1,3"].map(str::to_owned);
        assert!(with("0-3", "", |needs| siblings(needs, &cores)).warning.unwrap().contains("processors 0 are threads"));
        let apart = "[processors]\nproxy = \"0,2\"\nload = \"1,3\"\norigin = \"1,3\"";
        assert_eq!(with("0-3", apart, |needs| siblings(needs, &cores)).warning, None);
    }

    #[test]
    fn governors_and_clocks_are_judged() {
        assert_eq!(governor(&[String::new()]).warning, None);
        assert_eq!(governor(&["performance\n".to_owned(), "performance\n".to_owned()]).warning, None);
        assert!(governor(&["performance\n".to_owned(), "powersave\n".to_owned()]).warning.is_some());
        assert!(clock("hpet").warning.is_some() && clock("tsc").warning.is_none());
        assert!(virtual_machine("flags : fpu hypervisor\n").seen.starts_with("virtual"));
    }
}
