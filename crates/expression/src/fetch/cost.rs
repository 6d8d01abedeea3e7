//! Fetches of the cost of serving: calls of the stream's task, their time, the load of workers (section 7.3.2). Must
//! never measure anything.

use super::{Fetch, plain};
use crate::sample::{Context, Cost, Places, Type, UsageOf, Value};
use std::time::Duration;

const RUNNING: Places = Places::RUNNING;
const INT: Type = Type::Int;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    plain("cpu_calls", INT, RUNNING, "How often the stream's task was called since it began.", |c, _| {
        Some(Value::Int(cost(c)?.calls.into()))
    }),
    plain(
        "cpu_ns_avg",
        INT,
        RUNNING,
        "Nanoseconds of such a call, on average; 0 without profiling.tasks on.",
        |c, _| average(cost(c)?, |cost| cost.busy),
    ),
    plain("cpu_ns_tot", INT, RUNNING, "Nanoseconds of these calls; 0 without profiling.tasks on.", |c, _| {
        Some(nanos(cost(c)?.busy))
    }),
    plain(
        "cpu_usage_grp",
        INT,
        RUNNING,
        "How busy the workers of the group were in their last turn, in percent.",
        |c, _| usage(c, UsageOf::Process),
    ),
    plain("cpu_usage_proc", INT, RUNNING, "How busy all workers were in their last turn, in percent.", |c, _| {
        usage(c, UsageOf::Process)
    }),
    plain("cpu_usage_thr", INT, RUNNING, "How busy the worker was in its last turn, in percent.", |c, _| {
        usage(c, UsageOf::Worker)
    }),
    plain(
        "lat_ns_avg",
        INT,
        RUNNING,
        "Nanoseconds that a call was late, on average; 0 without profiling.tasks on.",
        |c, _| average(cost(c)?, |cost| cost.late),
    ),
    plain("lat_ns_tot", INT, RUNNING, "Nanoseconds that calls were late; 0 without profiling.tasks on.", |c, _| {
        Some(nanos(cost(c)?.late))
    }),
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
