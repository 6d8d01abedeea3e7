//! `show latency`, Weir's own: percentiles of the response times of the last seconds. Must never start to measure them.

use std::fmt::Write as _;

use super::super::{Call, Command, Pending, Run};
use crate::statistics::{B, F, Object, S, kinds};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show latency",
    "show latency [<proxy>]",
    "report percentiles of the last seconds' response times (see 'set profiling latency')",
    Run::Gradual(show),
)];

/// Prints a line for each object with requests in the last seconds, in milliseconds.
fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let program = &call.generation.program;
        let wanted = call.word(2).to_owned();
        if !wanted.is_empty() && !program.proxies.iter().any(|proxy| *proxy.name == *wanted) {
            call.refuse("No such proxy.");
            return Ok(());
        }
        if !call.state.process.counters.measures_latency() {
            call.refuse("Latency is not measured: 'set profiling latency on' starts it.");
            return Ok(());
        }
        call.answer.push("# pxname,svname,type,count,p50,p95,p99,\n");
        for proxy in program.proxies.iter().filter(|proxy| wanted.is_empty() || *proxy.name == *wanted) {
            for kind in kinds(proxy, F | B | S) {
                let object = Object::new(call.state, program, proxy, kind, false);
                let sum = object.sum.latencies(object.now);
                if let [Some(half), Some(most), Some(nearly_all)] = [500, 950, 990].map(|part| sum.quantile(part)) {
                    let (name, kind, count) = (object.name(), object.kind.number(), sum.count());
                    let _ = writeln!(
                        call.answer,
                        "{},{name},{kind},{count},{half:.3},{most:.3},{nearly_all:.3},",
                        proxy.name
                    );
                }
                call.answer.relieve().await?;
            }
        }
        Ok(())
    })
}
