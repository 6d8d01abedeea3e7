//! Debugging and profiling (section 3.3).

use super::{GlobalContext, GlobalKeyword, supported, tuning};
use crate::document::Line;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    tuning("debug.counters", "{ on | off }", "Event counters for developers; Weir always counts its own."),
    tuning("profiling.memory", "{ on | off }", "Profile of memory calls; use perf or similar tools with Weir."),
    supported(
        "profiling.rules",
        "{ on | off }",
        "Weir's own: measures the cost of each rule, for 'show rules'.",
        rules,
    ),
    supported(
        "profiling.tasks",
        "{ auto | on | off | lock | no-lock | memory | no-memory }...",
        "With 'on', measures processor time and latency of tasks, for cpu_ns_tot and similar fetches.",
        tasks,
    ),
];

/// Arguments, and whether they enable measuring.
const WORDS: [(&str, Option<bool>); 7] = [
    ("on", Some(true)),
    ("auto", Some(false)),
    ("off", Some(false)),
    ("lock", None),
    ("no-lock", None),
    ("memory", None),
    ("no-memory", None),
];

fn rules(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.machine.measure_rules = match line.text(1) {
        "on" => true,
        "off" => false,
        text => {
            let message = format!("'profiling.rules' expects either 'on' or 'off' but got '{text}'.");
            return context.report.alert(line.span(1), message);
        }
    };
}

fn tasks(context: &mut GlobalContext<'_>, line: &Line) {
    for at in 1..line.words.len().max(2) {
        let text = line.text(at);
        match WORDS.iter().find(|row| row.0 == text) {
            Some((_, measures)) => {
                let machine = &mut context.spec.machine;
                machine.measure_tasks = measures.unwrap_or(machine.measure_tasks);
            }
            None => {
                let message = format!(
                    "'profiling.tasks' expects a combination of either 'on', 'auto', 'off', 'lock', 'no-lock', 'memory', \
                     or 'no-memory', but got '{text}'."
                );
                return context.report.alert(line.span(at), message);
            }
        }
    }
}
