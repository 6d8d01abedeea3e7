//! `show store` (Weir's own): the state of stores, and of the limits and slots that nodes share. Must never send a command to a store.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use config::spec::RuntimeLevel;
use engine::store::{Client, Stores};
use engine::worker::Worker;
use live::lease::Limit;
use live::lease::slots::LeasedServer;

use super::super::{Call, Command, Pending, Run};

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show store",
    "show store [<name>]",
    "report the connections of stores, and the leases of limits and servers",
    Run::Gradual(show_store),
)
.at(RuntimeLevel::Operator)];

fn show_store<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let process = std::sync::Arc::clone(&call.state.process);
        let name = call.word(2);
        let stores = process.service::<Stores>();
        if !name.is_empty() && stores.find(name).is_none() {
            call.refuse("No such store.");
            return Ok(());
        }
        let name = name.to_owned();
        for (index, client) in stores.all().iter().enumerate() {
            if !name.is_empty() && *client.plan.name != *name {
                continue;
            }
            let nodes = process.live.limits.of_store(index).next().map(|(_, limit)| limit.standing.nodes());
            call.answer.push(store_line(client, nodes));
            for (_, limit) in process.live.limits.of_store(index) {
                call.answer.push(limit_line(&client.plan.name, limit));
                call.answer.relieve().await?;
            }
            for (_, server) in process.live.slots.of_store(index) {
                call.answer.push(slots_line(&client.plan.name, server));
                call.answer.relieve().await?;
            }
        }
        Ok(())
    })
}

fn store_line(client: &Client, nodes: Option<u32>) -> String {
    let (plan, counts) = (&client.plan, &client.counts);
    let state = if client.is_ready() { "UP" } else { "LOST" };
    let [commands, refused, connections, faults, delay] =
        [&counts.commands, &counts.refused, &counts.connections, &counts.faults, &counts.round_trip]
            .map(|count| count.load(Relaxed));
    let mut line = format!(
        "store {} server {} state {state} nodes {} round_trip {delay}us connections {connections} commands {commands} \
         refused {refused} faults {faults} fault ",
        plan.name,
        plan.server.name,
        nodes.unwrap_or(0),
    );
    // A string accepts all text.
    let _ = match client.fault() {
        None => writeln!(line, "-"),
        Some(fault) => writeln!(line, "\"{}\"", fault.to_string().escape_default()),
    };
    line
}

fn limit_line(store: &str, limit: &Limit) -> String {
    let (plan, counts) = (&limit.plan, limit.counts());
    format!(
        "limit {store}/{} rate {} period {}ms burst {} lost {} keys {} size {} leased {} admitted {} unleased {} exceeded {} \
         evicted {} foreign {}\n",
        plan.name,
        plan.rate,
        plan.period.as_millis(),
        plan.burst,
        plan.lost.name(),
        counts.keys,
        plan.size,
        counts.leased,
        counts.admitted,
        counts.optimistic,
        counts.exceeded,
        counts.evicted,
        counts.foreign,
    )
}

fn slots_line(store: &str, server: &LeasedServer) -> String {
    let report = server.report();
    format!(
        "slots {store} server {} state {} maxconn {} leased {} used {} waiting {} nodes {} lost {}\n",
        server.plan.name,
        report.state,
        number(report.reading.most),
        number(report.leased),
        report.reading.served,
        report.reading.waiting,
        report.nodes,
        server.plan.lost.name(),
    )
}

/// Returns a number of slots as text; `-` if there is no limit.
fn number(slots: u32) -> String {
    if slots == u32::MAX { "-".to_owned() } else { slots.to_string() }
}
