//! `set profiling`, `show profiling`, `show tasks`: the cost of the workers' tasks (management manual, section 9.3).
//! Must never stop a worker to inspect it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Pending, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "set profiling",
        "set profiling <what> {auto|on|off}",
        "enable/disable resource profiling (tasks,memory)",
        Run::Gradual(set_profiling),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "show profiling",
        "show profiling [<what>|<#lines>|<opts>]*",
        "show profiling state (all,status,tasks,memory)",
        Run::Gradual(show_profiling),
    )
    .at(RuntimeLevel::Admin),
    Command::new("show tasks", "show tasks", "show running tasks", Run::Gradual(show_tasks)),
];

/// `auto` is `on`: the cost of a clock reading does not depend on the load.
fn set_profiling<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        match (call.word(2), call.word(3)) {
            ("tasks", word @ ("on" | "auto" | "off")) => {
                let on = word != "off";
                engine::on_every_worker(&call.state.process, move |_| rt::measure_tasks(on)).await;
            }
            // Accepted without effect: Weir has no lock or memory profiling.
            ("tasks", "lock" | "no-lock" | "memory" | "no-memory") => {}
            ("tasks", _) => call.refuse(
                "Expects a combination of either 'on', 'auto', 'off', 'lock', 'no-lock', 'memory' or 'no-memory'.",
            ),
            // Weir's own.
            ("rules", word @ ("on" | "off")) => {
                let on = word == "on";
                engine::on_every_worker(&call.state.process, move |worker| worker.rule_costs.measure(on)).await;
            }
            ("rules", _) => call.refuse("Expects either 'on' or 'off'."),
            ("latency", word @ ("on" | "off")) => {
                for () in call.state.process.counters.switch_latency(word == "on") {
                    call.answer.relieve().await?;
                }
            }
            ("latency", _) => call.refuse("Expects either 'on' or 'off'."),
            ("memory", "on" | "off") => call.refuse("Memory profiling not compiled in."),
            ("memory", _) => call.refuse("Expects either 'on' or 'off'."),
            _ => call.refuse("Expects either 'tasks' or 'memory'."),
        }
        Ok(())
    })
}

/// The arguments of `show profiling`.
#[derive(Clone, Copy)]
struct ProfilingQuery {
    status: bool,
    tasks: bool,
    by_time: bool,
    lines: usize,
}

impl ProfilingQuery {
    fn read(words: &[String]) -> Option<Self> {
        let mut wish = Self { status: true, tasks: true, by_time: false, lines: usize::MAX };
        for word in words {
            match word.as_str() {
                "all" => (wish.status, wish.tasks) = (true, true),
                "status" => (wish.status, wish.tasks) = (true, false),
                "tasks" => (wish.status, wish.tasks) = (false, true),
                "memory" => (wish.status, wish.tasks) = (false, false),
                "bytime" => wish.by_time = true,
                "byaddr" | "byctx" | "aggr" => {}
                number => wish.lines = number.parse().ok()?,
            }
        }
        Some(wish)
    }
}

fn show_profiling<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let Some(wish) = ProfilingQuery::read(call.words.get(2..).unwrap_or_default()) else {
            call.refuse(
                "Expects either 'all', 'status', 'tasks', 'memory', 'byaddr', 'bytime', 'byctx', 'aggr' or a max number of \
                 output lines.",
            );
            return Ok(());
        };
        let found =
            engine::on_every_worker(&call.state.process, |_| (rt::task_profile(), rt::activity().measures)).await;
        let rules = call.state.rule_costs.is_on();
        let latency = call.state.process.counters.measures_latency();
        if wish.status {
            let state = if found.iter().any(|(_, measures)| *measures) { "on" } else { "off" };
            let _ = write!(
                call.answer,
                "Per-task CPU profiling              : {state:<14}# set profiling tasks {{on|auto|off}}\n\
                 Memory usage profiling              : off           # set profiling memory {{on|off}}\n"
            );
            if rules {
                call.answer
                    .push("Per-rule profiling                  : on            # set profiling rules {on|off}\n");
            }
            if latency {
                call.answer
                    .push("Latency of requests                 : on            # set profiling latency {on|off}\n");
            }
        }
        if wish.tasks {
            costs(call, &found, wish);
        }
        Ok(())
    })
}

fn costs(call: &mut Call<'_, Worker>, found: &[(rt::Profile, bool)], wish: ProfilingQuery) {
    let now = rt::now();
    let since = found.iter().filter_map(|(profile, _)| profile.since).min();
    let until = found.iter().filter_map(|(profile, _)| profile.until).max();
    let ago = until.map_or(Duration::ZERO, |until| now.saturating_since(until));
    let span = since.map_or(Duration::ZERO, |since| until.unwrap_or(now).saturating_since(since));
    let _ = write!(
        call.answer,
        "Tasks activity over {:.3} sec till {:.3} sec ago:\n  function                      calls   cpu_tot   cpu_avg   lkw_avg   \
         lkd_avg   mem_avg   lat_avg\n",
        span.as_secs_f64(),
        ago.as_secs_f64()
    );
    let mut rows = functions(found.iter().map(|(profile, _)| profile));
    rows.retain(|(_, cost)| cost.calls > 0);
    rows.sort_by_key(|(_, cost)| {
        std::cmp::Reverse(if wish.by_time { cost.busy.as_nanos() } else { u128::from(cost.calls) })
    });
    for (name, rt::FunctionCost { calls, busy, late, .. }) in rows.into_iter().take(wish.lines) {
        let mean = |time: Duration| time / u32::try_from(calls).unwrap_or(u32::MAX);
        let _ = writeln!(
            call.answer,
            "  {name:<24} {calls:>10}  {:>8}  {:>8}      -         -         -     {:>8}",
            short(busy),
            short(mean(busy)),
            short(mean(late))
        );
    }
}

/// Returns the costs of functions, summed over all workers, by name.
fn functions<'a>(found: impl Iterator<Item = &'a rt::Profile>) -> Vec<(String, rt::FunctionCost)> {
    let mut sums = BTreeMap::<String, rt::FunctionCost>::new();
    for row in found.flat_map(|profile| &profile.functions) {
        let sum = sums.entry(called(row.name)).or_default();
        sum.calls += row.calls;
        sum.busy += row.busy;
        sum.late += row.late;
        sum.queued += row.queued;
    }
    sums.into_iter().collect()
}

/// Returns the function that a future belongs to, from the name of the future's type: without the crates' common
/// prefix, blocks inside the function, and type parameters.
fn called(future: &str) -> String {
    let name = future.split('<').find(|part| !part.is_empty()).unwrap_or(future);
    let name = name.split("::{{closure}}").next().unwrap_or(name);
    name.strip_prefix("weir_").unwrap_or(name).trim_end_matches(':').to_owned()
}

/// Formats a time with four digits and its unit.
fn short(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let (value, unit) = match time.as_nanos() {
        0..1_000 => (nanos, "ns"),
        1_000..1_000_000 => (nanos / 1e3, "us"),
        1_000_000..1_000_000_000 => (nanos / 1e6, "ms"),
        1_000_000_000..60_000_000_000 => (nanos / 1e9, "s"),
        60_000_000_000..3_600_000_000_000 => (nanos / 60e9, "m"),
        _ => (nanos / 3600e9, "h"),
    };
    let digits = if value < 10.0 {
        3
    } else if value < 100.0 {
        2
    } else {
        1
    };
    format!("{value:.digits$}{unit}")
}

fn show_tasks<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let found = engine::on_every_worker(&call.state.process, |_| rt::task_profile()).await;
        let rows = functions(found.iter());
        let all: usize = rows.iter().map(|(_, cost)| cost.queued).sum();
        let _ = write!(
            call.answer,
            "Running tasks: {all} ({} threads)\n  function                     places     %    lat_tot   lat_avg  calls_tot  \
             calls_avg calls%\n",
            found.len()
        );
        let queued = rows.into_iter().map(|(name, cost)| (name, cost.queued));
        for (name, count) in queued.filter(|(_, count)| *count > 0) {
            let share = 100.0 * count as f64 / all as f64;
            let _ = writeln!(
                call.answer,
                "  {name:<24} {count:>10}  {share:>5.1}          -         -          -          -      -"
            );
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_as_they_are_written() {
        for (future, wanted) in [
            ("weir_engine::check::run::{{closure}}", "engine::check::run"),
            ("engine::listener::serve::{{closure}}::{{closure}}", "engine::listener::serve"),
            ("weir_conn::h2::drive<weir_conn::X>::{{closure}}", "conn::h2::drive"),
            ("<weir_control::Y as weir_engine::Z>::run::{{closure}}", "control::Y as weir_engine::Z>::run"),
        ] {
            assert_eq!(called(future), wanted);
        }
    }

    #[test]
    fn times_have_four_digits() {
        for (nanos, wanted) in [
            (0, "0.000ns"),
            (389, "389.0ns"),
            (5_896, "5.896us"),
            (88_440, "88.44us"),
            (1_500_000_000, "1.500s"),
            (7_200_000_000_000, "2.000h"),
        ] {
            assert_eq!(short(Duration::from_nanos(nanos)), wanted);
        }
    }
}
