//! `show rules` (Weir's own): the measured cost of each rule. Must never evaluate one.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::Arc;

use config::spec::RuntimeLevel;
use engine::rule_costs::{ListCosts, RuleCost, key};
use engine::worker::{Process, Worker};
use expression::sample::RulePlace;
use policy::program::{Program, Proxy};

use super::super::{Call, Command, Pending, Run};

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show rules",
    "show rules [bytime] [<proxy>]",
    "count and time the evaluations of each rule (see 'set profiling rules')",
    Run::Gradual(show_rules),
)
.at(RuntimeLevel::Operator)];

/// A rule and its cost.
pub(crate) struct RuleRow<'p> {
    pub(crate) proxy: &'p Proxy,
    /// The keyword of its rule set.
    pub(crate) set: &'static str,
    /// Its position in the configuration.
    pub(crate) place: RulePlace,
    pub(crate) cost: RuleCost,
}

/// Appends the rules of a proxy in the order of their evaluation.
pub(crate) fn rows<'p>(proxy: &'p Proxy, costs: &ListCosts, out: &mut Vec<RuleRow<'p>>) {
    let rules = &proxy.rules;
    let before = [
        ("quic-initial", &rules.quic_initial),
        ("tcp-request connection", &rules.connection),
        ("tcp-request session", &rules.session),
        ("tcp-request content", &rules.request_content),
        ("http-request", &rules.http_request),
        ("redirect", &rules.redirects),
    ];
    let after = [
        ("tcp-response content", &rules.response_content),
        ("http-response", &rules.http_response),
        ("http-after-response", &rules.http_after_response),
    ];
    let mut list = |set, at: usize, places: &mut dyn Iterator<Item = RulePlace>| {
        let list = costs.get(&at);
        for (at, place) in places.enumerate() {
            let cost = list.and_then(|list| list.get(at)).copied().unwrap_or_default();
            out.push(RuleRow { proxy, set, place, cost });
        }
    };
    for (set, rules) in before {
        list(set, key(rules), &mut rules.iter().map(|rule| rule.place));
    }
    if let Some(front) = &proxy.frontend {
        list("use_backend", key(&front.switching), &mut front.switching.iter().map(|rule| rule.place));
    }
    if let Some(back) = &proxy.backend {
        let (choice, stick) = (&back.choice.rules, &back.choice.stick);
        list("use-server", key(choice), &mut choice.iter().map(|rule| rule.place));
        list("stick", key(stick), &mut stick.iter().map(|rule| rule.place));
    }
    for (set, rules) in after {
        list(set, key(rules), &mut rules.iter().map(|rule| rule.place));
    }
}

fn show_rules<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let words = call.words.get(2..).unwrap_or_default();
        let (by_time, words) = match words {
            [first, rest @ ..] if first == "bytime" => (true, rest),
            all => (false, all),
        };
        let program = &call.generation.program;
        let wanted = match words {
            [] => None,
            [name] => match program.proxies.iter().find(|proxy| *proxy.name == **name) {
                Some(proxy) => Some(proxy.index),
                None => {
                    call.refuse("No such proxy.");
                    return Ok(());
                }
            },
            _ => {
                call.refuse("Expects 'bytime', a proxy, or both.");
                return Ok(());
            }
        };
        let costs = gather(&call.state.process, call.generation.number()).await;
        let mut all = Vec::new();
        for proxy in program.proxies.iter().filter(|proxy| wanted.is_none_or(|wanted| wanted == proxy.index)) {
            rows(proxy, &costs, &mut all);
        }
        if by_time {
            all.sort_by_key(|row| Reverse(row.cost.time));
        }
        call.answer.push("# pxname,ruleset,place,hits,matched,total_ns,mean_ns,\n");
        for row in all {
            write_row(program, row, call.answer);
            call.answer.relieve().await?;
        }
        Ok(())
    })
}

/// Returns the costs that all workers have measured for the configuration with that number.
pub(crate) async fn gather(process: &Arc<Process>, number: u32) -> ListCosts {
    let found = engine::on_every_worker(process, move |worker| worker.rule_costs.of(number)).await;
    let mut sum = ListCosts::default();
    for (list, costs) in found.into_iter().flatten() {
        match sum.get_mut(&list) {
            Some(known) => known.iter_mut().zip(&costs).for_each(|(known, cost)| known.add(*cost)),
            None => _ = sum.insert(list, costs),
        }
    }
    sum
}

fn write_row(program: &Program, row: RuleRow<'_>, out: &mut super::super::Answer) {
    let RuleRow { proxy, set, place, cost } = row;
    let (total, file) = (cost.time.as_nanos(), program.files.get(place.file as usize).map_or("", |name| name));
    let mean = total.checked_div(u128::from(cost.evaluated)).unwrap_or(0);
    let RuleCost { evaluated, taken, .. } = cost;
    let _ = writeln!(out, "{},{set},{file}:{},{evaluated},{taken},{total},{mean},", proxy.name, place.line);
}
