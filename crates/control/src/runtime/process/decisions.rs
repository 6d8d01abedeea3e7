//! `show auth-cache` and `clear auth-cache` (Weir's own): the permissions that `http-request auth-request` rules reuse. Must never show
//! a key or a field of a permission.

use std::fmt::Write as _;

use config::spec::RuntimeLevel;
use engine::worker::Worker;

use super::super::{Call, Command, Pending, Run};

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "clear auth-cache",
        "clear auth-cache [<proxy>]",
        "remove the permissions that auth-request rules reuse",
        Run::Now(clear),
    )
    .at(RuntimeLevel::Operator),
    Command::new(
        "show auth-cache",
        "show auth-cache [<proxy>]",
        "report the permissions that auth-request rules reuse",
        Run::Gradual(show),
    )
    .at(RuntimeLevel::Operator),
];

/// Returns the indices of the proxies with the name of the command's argument; `None`: all of them.
fn chosen(call: &Call<'_, Worker>) -> Option<Vec<usize>> {
    let name = call.word(2);
    let named = |found: &policy::program::DecisionRule<'_>| (*found.proxy.name == *name).then_some(found.proxy.index);
    (!name.is_empty()).then(|| call.generation.program.decision_rules().filter_map(|rule| named(&rule)).collect())
}

/// Removes permissions, and answers with their number.
fn clear(call: &mut Call<'_, Worker>) {
    let process = &call.state.process;
    let count = match chosen(call) {
        None => process.clear_decisions(None),
        Some(proxies) if proxies.is_empty() => return call.refuse(MISSING),
        Some(proxies) => proxies.into_iter().map(|index| process.clear_decisions(Some(index))).sum(),
    };
    let _ = writeln!(call.answer, "{count} removed");
}

const MISSING: &str = "No such proxy with 'auth-request ... cache'.";

fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let proxies = chosen(call);
        if proxies.as_ref().is_some_and(Vec::is_empty) {
            call.refuse(MISSING);
            return Ok(());
        }
        let generation = std::sync::Arc::clone(&call.state.process.generation());
        for rule in generation.program.decision_rules() {
            if proxies.as_ref().is_some_and(|proxies| !proxies.contains(&rule.proxy.index)) {
                continue;
            }
            let Some(cache) = generation.decisions.get(rule.caching.place) else { continue };
            let counts = cache.counts(rt::now());
            let backend = &generation.proxy(rule.request.backend).name;
            call.answer.push(format!(
                "auth-cache {} line {} backend {backend} time {}ms size {} entries {} bytes {} hits {} misses {} stored {} evicted {}\n",
                rule.proxy.name,
                rule.rule.place.line,
                rule.caching.time.as_millis(),
                rule.caching.size,
                counts.entries,
                counts.bytes,
                counts.hits,
                counts.misses,
                counts.stored,
                counts.evicted,
            ));
            call.answer.relieve().await?;
        }
        Ok(())
    })
}
