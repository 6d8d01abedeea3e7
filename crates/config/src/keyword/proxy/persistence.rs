//! Persistence and stick tables.

use super::{ProxyContext, ProxyKeyword, condition_line, supported};
use crate::document::Line;
use crate::keyword::place::noun;
use crate::keyword::place::places::{ANY, BACK_SECTION, STICK_TABLE};
use crate::keyword::stick_table;
use crate::spec::PersistRuleSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(ANY, "persist rdp-cookie", "[(<name>)]", "Persistence by the RDP cookie.", rdp_cookie),
    supported(
        BACK_SECTION,
        "force-persist",
        "{ if | unless } <condition>",
        "Forces persistence to servers that are down.",
        force_persist,
    ),
    supported(BACK_SECTION, "ignore-persist", "{ if | unless } <condition>", "Ignores persistence.", ignore_persist),
    supported(
        BACK_SECTION,
        "stick match",
        "<expression> [table <table>] [{ if | unless } <condition>]",
        "Applies persistence from a table.",
        stick,
    ),
    supported(
        BACK_SECTION,
        "stick on",
        "<expression> [table <table>] [{ if | unless } <condition>]",
        "Stores and applies persistence.",
        stick,
    ),
    supported(
        BACK_SECTION,
        "stick store-request",
        "<expression> [table <table>] [{ if | unless } <condition>]",
        "Stores persistence entries from requests.",
        stick,
    ),
    supported(
        BACK_SECTION,
        "stick store-response",
        "<expression> [table <table>] [{ if | unless } <condition>]",
        "Stores persistence entries from responses.",
        stick,
    ),
    supported(
        STICK_TABLE,
        "stick-table",
        "type <type> size <size> [<option>...]",
        "Table of counters and server entries for rules.",
        table,
    ),
];

fn table(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(known) = &context.draft.spec.stick_table {
        let (name, kind) = (context.name(), noun(context.draft.spec.kind));
        let place = context.around.place(known.span);
        let message = format!("stick-table name '{name}' conflicts with table declared in {kind} '{name}' at {place}.");
        context.report.alert(line.span(0), message);
        return;
    }
    let Some(read) = stick_table::read(line, 1, &mut context.report) else { return };
    context.draft.spec.stick_table = Some(read);
}

/// Name of the RDP cookie of Microsoft terminal servers.
const RDP_COOKIE: &str = "msts";

fn rdp_cookie(context: &mut ProxyContext<'_>, line: &Line) {
    let name = match line.text(1).strip_prefix("rdp-cookie").unwrap_or_default() {
        "" => RDP_COOKIE,
        written => match written.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((name, _)) if !name.is_empty() => name,
            _ => {
                let message = "persist rdp-cookie(name)' requires an rdp cookie name.";
                return context.report.alert(line.span(1), message);
            }
        },
    };
    context.draft.spec.persistence.rdp_cookie = Some(name.to_owned());
}

fn stick(context: &mut ProxyContext<'_>, line: &Line) {
    let rule = context.around.rule_line(line, 1);
    context.draft.spec.rules.stick.push(rule);
}

fn force_persist(context: &mut ProxyContext<'_>, line: &Line) {
    persist_rule(context, line, true);
}

fn ignore_persist(context: &mut ProxyContext<'_>, line: &Line) {
    persist_rule(context, line, false);
}

fn persist_rule(context: &mut ProxyContext<'_>, line: &Line, forces: bool) {
    if let Some(line) = condition_line(context, line, 1, if forces { "force-persist" } else { "ignore-persist" }) {
        context.draft.spec.rules.persistence.push(PersistRuleSpec { forces, line });
    }
}
