//! `show udp-lb` (Weir's own): the flows of `udp-lb` sections, and the datagrams that were not passed on. Must never end a flow.

use config::spec::RuntimeLevel;
use engine::worker::Worker;
use live::counters::DatagramCounters;
use policy::program::Proxy;

use super::super::{Call, Command, Pending, Run};

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show udp-lb",
    "show udp-lb [<name>]",
    "report the flows of sections for datagrams, and lost datagrams",
    Run::Gradual(show),
)
.at(RuntimeLevel::Operator)];

fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let worker = call.state;
        let generation = worker.generation();
        let name = call.word(2).to_owned();
        let is_meant = |proxy: &Proxy| proxy.flows.is_some() && (name.is_empty() || *proxy.name == *name);
        let mut found = false;
        for proxy in &generation.program.proxies {
            if !is_meant(proxy) {
                continue;
            }
            found = true;
            call.answer.push(line(worker, proxy));
            call.answer.relieve().await?;
        }
        if !found && !name.is_empty() {
            call.refuse("No such udp-lb section.");
        }
        Ok(())
    })
}

/// Returns the line of a section.
fn line(worker: &Worker, proxy: &Proxy) -> String {
    let flows = worker.process.live.proxies[proxy.index].feconn();
    let sums = worker.process.counters.datagrams(proxy.index);
    let counts = DatagramCounters::NAMES.iter().zip(sums).map(|(name, sum)| format!(" {name} {sum}"));
    format!("udp-lb {} flows {flows}{}\n", proxy.name, counts.collect::<String>())
}
