//! Fetches of the cost of serving: calls of the stream's task, their time, the load of workers (section 7.3.2). Must
//! never measure anything.

use super::{Fetch, plain};
use crate::sample::{Context, Cost, Places, Type, UsageOf, Value};
use std::time::Duration;

const RUNNING: Places = Places::RUNNING;
const INT: Type = Type::Int;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    plain("cpu_calls", INT, RUNNING, "Number of calls of the stream's task.", |c, _| {
        Some(Value::Int(cost(c)?.calls.into()))
    }),
    plain(
        "cpu_ns_avg",
        INT,
        RUNNING,
        "Average processor time of a call of the stream's task, in nanoseconds; 0 without `profiling.tasks on`.",
        |c, _| average(cost(c)?, |cost| cost.busy),
    ),
    plain(
        "cpu_ns_tot",
        INT,
        RUNNING,
        "Total processor time of the stream's task, in nanoseconds; 0 without `profiling.tasks on`.",
        |c, _| Some(nanos(cost(c)?.busy)),
    ),
    plain(
        "cpu_usage_grp",
        INT,
        RUNNING,
        "Load of the thread group over the last event-loop iteration, in percent.",
        |c, _| usage(c, UsageOf::Process),
    ),
    plain(
        "cpu_usage_proc",
        INT,
        RUNNING,
        "Load of all threads over the last event-loop iteration, in percent.",
        |c, _| usage(c, UsageOf::Process),
    ),
    plain(
        "cpu_usage_thr",
        INT,
        RUNNING,
        "Load of the current thread over the last event-loop iteration, in percent.",
        |c, _| usage(c, UsageOf::Worker),
    ),
    plain(
        "lat_ns_avg",
        INT,
        RUNNING,
        "Average scheduling latency of a call of the stream's task, in nanoseconds; 0 without `profiling.tasks on`.",
        |c, _| average(cost(c)?, |cost| cost.late),
    ),
    plain(
        "lat_ns_tot",
        INT,
        RUNNING,
        "Total scheduling latency of the stream's task, in nanoseconds; 0 without `profiling.tasks on`.",
        |c, _| Some(nanos(cost(c)?.late)),
    ),
];

fn cost(context: &Context<'_>) -> Option<Cost> {
    context.probes.cost()
}

fn nanos<'a>(time: Duration) -> Value<'a> {
    Value::Int(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

fn average<'a>(cost: Cost, of: impl Fn(&Cost) -> Duration) -> Option<Value<'a>> {
    Some(nanos(of(&cost) / cost.calls.max(1)))
}

fn usage<'a>(context: &Context<'a>, of: UsageOf) -> Option<Value<'a>> {
    Some(Value::Int(context.probes.usage(of)?.into()))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn what_the_stream_and_the_workers_cost() {
        let rows = [
            ("cpu_calls", "4"),
            ("cpu_ns_tot", "6002"),
            ("cpu_ns_avg", "1500"),
            ("lat_ns_tot", "900"),
            ("lat_ns_avg", "225"),
            ("cpu_usage_thr", "30"),
            ("cpu_usage_grp", "20"),
            ("cpu_usage_proc", "20"),
        ];
        check_rows(&Scene::default(), &rows);
    }
}
