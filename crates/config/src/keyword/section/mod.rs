//! Sections and, for those that are not proxies or `global`, their keywords by name. To support one, give its keywords
//! a context and functions of their own as the proxies have them.

mod acme;
mod cache;
mod cookie;
mod crt_list;
mod crt_store;
mod crt_store_load;
mod fcgi_app;
pub(super) mod filter;
mod healthcheck;
mod http_errors;
mod log_forward;
mod log_profile;
mod mailers;
mod namespace_list;
mod peers;
mod program;
mod resolvers;
mod ring;
mod spoe_agent;
mod spoe_group;
mod spoe_message;
mod stick_table;
mod traces;
mod userlist;

use super::elsewhere;
use super::report::Report;
use super::table::{Keyword, Status};
use crate::document::Section;
use std::convert::Infallible;

/// A keyword that is known by name only.
pub(crate) type SectionKeyword = Keyword<Infallible>;

const fn not_yet(name: &'static str, usage: &'static str, doc: &'static str) -> SectionKeyword {
    Keyword::new((), name, usage, doc, Status::NotYet)
}

/// A section, or a list of names inside one.
#[derive(Debug)]
pub(crate) struct SectionRow {
    /// Its keyword.
    pub(crate) name: &'static str,
    /// What stands behind it.
    pub(crate) usage: &'static str,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// What HAProxy says about it if it exists no more.
    pub(crate) removed: Option<&'static str>,
    /// Its keywords.
    pub(crate) rows: &'static [SectionKeyword],
}

const fn section(
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    rows: &'static [SectionKeyword],
) -> SectionRow {
    SectionRow { name, usage, doc, removed: None, rows }
}

/// The sections that no stage has reached yet.
pub(crate) static TABLE: &[SectionRow] = &[
    section("acme", "<name>", "How certificates are obtained from an ACME server.", acme::TABLE),
    section("cache", "<name>", "A cache of small responses.", cache::TABLE),
    section("crt-store", "[<name>]", "Certificates loaded by name.", crt_store::TABLE),
    section("fcgi-app", "<name>", "A FastCGI application.", fcgi_app::TABLE),
    section("healthcheck", "<name>", "A health check that servers refer to.", healthcheck::TABLE),
    section("http-errors", "<name>", "A set of error pages.", http_errors::TABLE),
    section("log-forward", "<name>", "A relay of log lines.", log_forward::TABLE),
    section("log-profile", "<name>", "Log formats by event.", log_profile::TABLE),
    section("mailers", "<name>", "Mail servers.", mailers::TABLE),
    section("namespace_list", "", "Network namespaces.", namespace_list::TABLE),
    section("peers", "<name>", "Instances that share stick tables.", peers::TABLE),
    section("resolvers", "<name>", "Name servers.", resolvers::TABLE),
    section("ring", "<name>", "A ring of log lines, read by servers.", ring::TABLE),
    section("traces", "", "Developers' traces.", traces::TABLE),
    section("userlist", "<name>", "Users and groups.", userlist::TABLE),
    SectionRow {
        name: "program",
        usage: "<name>",
        doc: "A program that the master process ran; HAProxy 3.3 removed it, a service manager does it better.",
        removed: Some("unknown keyword 'program' out of section."),
        rows: program::TABLE,
    },
];

/// Names that are looked up inside a line or in files of their own.
pub(crate) static NAMES: &[SectionRow] = &[
    section("crt-list", "", "Options of a line of a crt-list file.", crt_list::TABLE),
    section("load", "", "Options of \"load\" in a crt-store section.", crt_store_load::TABLE),
    section("filter", "", "Filters.", filter::TABLE),
    section("stick-table", "", "Arguments of \"stick-table\".", stick_table::TABLE),
    section("cookie", "", "Arguments of \"cookie\".", cookie::TABLE),
    section("spoe-agent", "<name>", "Agent section of an SPOE file.", spoe_agent::TABLE),
    section("spoe-group", "<name>", "Group section of an SPOE file.", spoe_group::TABLE),
    section("spoe-message", "<name>", "Message section of an SPOE file.", spoe_message::TABLE),
];

/// The row of a section.
pub(crate) fn find(name: &str) -> Option<&'static SectionRow> {
    TABLE.iter().find(|row| row.name == name)
}

/// Refuses a section by name, and what is in it where HAProxy would not know it either.
pub(crate) fn read(row: &SectionRow, section: &Section, report: &mut Report<'_>) {
    let line = &section.line;
    if let Some(sentence) = row.removed {
        let hint = "run it from the service manager that runs Weir".to_owned();
        report.push(crate::diagnostic::Diagnostic::alert(line.span(0), sentence).with_hint(hint));
        return;
    }
    if row.usage.starts_with('<') && line.words.len() < 2 {
        let message = match row.name {
            "cache" => "'cache' expects a <name> argument".to_owned(),
            "fcgi-app" => "'fcgi-app' expects <name> as argument.".to_owned(),
            "ring" => "missing ring name.".to_owned(),
            "userlist" => "'userlist' expects <name> as arguments.".to_owned(),
            name => format!("missing name for {name} section."),
        };
        report.alert(line.span(1), message);
    }
    report.alert(line.span(0), format!("section '{}' is not supported yet by Weir.", row.name));
    for line in &section.body {
        let negated = matches!(line.keyword(), "no" | "default") && line.words.len() > 1;
        let at = usize::from(negated);
        if row.rows.iter().any(|keyword| starts(keyword, line.text(at), line.text(at + 1))) {
            continue;
        }
        let Some(word) = line.words.get(at) else { continue };
        if row.rows.iter().any(|keyword| keyword.name.split(' ').next() == Some(line.text(at))) {
            let message = format!("unknown {} '{}' in '{}' section", word.text, line.text(at + 1), row.name);
            report.alert(line.span(at + 1), message);
            continue;
        }
        let names = row.rows.iter().map(|row| row.name.split(' ').next().unwrap_or_default()).collect();
        report.unknown(word, row.name, names, elsewhere::hint(&word.text, elsewhere::Where::Section));
    }
}

fn starts(keyword: &SectionKeyword, first: &str, second: &str) -> bool {
    match keyword.name.split_once(' ') {
        None => keyword.name == first,
        Some((head, tail)) => head == first && tail == second,
    }
}
