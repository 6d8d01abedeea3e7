//! The measured cost of rules (profiling). Must never evaluate one.

use std::cmp::Reverse;

use super::answer::{Answer, put};
use super::json::{Commas, Quoted};
use super::request::DashboardRequest;
use crate::runtime::process::{RuleRow, gather_rule_costs, rule_rows};

/// Default and maximum of `limit`: rules per answer.
const USUAL: usize = 1_000;
const MOST: usize = 1_000_000;

/// `rules`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let program = &asked.generation.program;
    let wanted = asked.target.parameter("proxy");
    let costs = gather_rule_costs(&asked.worker.process, asked.generation.number()).await;
    let mut rows = Vec::new();
    let proxies = program.proxies.iter().filter(|proxy| asked.shows(proxy));
    for proxy in proxies.filter(|proxy| wanted.is_none_or(|wanted| wanted == &*proxy.name)) {
        rule_rows(proxy, &costs, &mut rows);
    }
    if asked.target.parameter("sort") == Some("time") {
        rows.sort_by_key(|row| Reverse(row.cost.time));
    }
    let most = asked.target.number("limit", USUAL, MOST);
    answer.begin_json();
    answer.push(&format!("{{\"measured\":{},\"rules\":[", asked.worker.rule_costs.is_on()));
    let mut commas = Commas::default();
    for row in rows.iter().take(most) {
        let RuleRow { proxy, set, place, cost } = row;
        let file = program.files.get(place.file as usize).map_or("", |name| name);
        let mut text = String::new();
        put(
            &mut text,
            format_args!(
                "{}{{\"proxy\":{},\"ruleset\":{},\"file\":{},\"line\":{},\"hits\":{},\"matched\":{},\"total_ns\":{}}}",
                commas.next(),
                Quoted(&proxy.name),
                Quoted(set),
                Quoted(file),
                place.line,
                cost.evaluated,
                cost.taken,
                cost.time.as_nanos()
            ),
        );
        answer.push(&text);
        answer.relieve().await;
    }
    answer.push(&format!("],\"complete\":{}}}\n", rows.len() <= most));
}
