//! The graph of frontends and backends: `use_backend` and `default_backend`. Must never decide where a request goes.

use policy::program::{Frontend, Program, Proxy};
use policy::rule::Target;

use super::answer::{Answer, put};
use super::json::{Commas, Quoted};
use super::request::DashboardRequest;

/// Returns the backends that a frontend can select, each with `rule` or `default`. The second value: a rule computes
/// the name of its backend per request.
fn edges<'p>(program: &'p Program, front: &Frontend) -> (Vec<(&'p Proxy, &'static str)>, bool) {
    let mut found: Vec<(&Proxy, &'static str)> = Vec::new();
    let mut by_name = false;
    let mut add = |index: usize, how| {
        if let Some(proxy) = program.proxies.get(index)
            && !found.iter().any(|(known, _)| known.index == index)
        {
            found.push((proxy, how));
        }
    };
    for rule in &front.switching {
        match &rule.target {
            Target::Proxy(index) => add(*index, "rule"),
            Target::Named(..) => by_name = true,
        }
    }
    if let Some(index) = front.target {
        add(index, "default");
    }
    (found, by_name)
}

/// `topology`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let program = &asked.generation.program;
    answer.begin_json();
    answer.push("{\"frontends\":[");
    let (mut commas, mut at) = (Commas::default(), 0);
    while let Some(proxy) = program.proxies.get(at) {
        at += 1;
        let Some(front) = proxy.frontend.as_ref().filter(|_| asked.shows(proxy)) else { continue };
        let (edges, by_name) = edges(program, front);
        let mut text = String::new();
        let name = Quoted(&proxy.name);
        put(&mut text, format_args!("{}{{\"name\":{name},\"by_name\":{by_name},\"backends\":[", commas.next()));
        let mut inner = Commas::default();
        for (backend, how) in edges.into_iter().filter(|(backend, _)| asked.shows(backend)) {
            let name = Quoted(&backend.name);
            put(&mut text, format_args!("{}{{\"name\":{name},\"how\":\"{how}\"}}", inner.next()));
        }
        text.push_str("]}");
        answer.push(&text);
        answer.relieve().await;
    }
    answer.push("]}\n");
}
