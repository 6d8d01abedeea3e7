//! Sections that are neither proxies nor `global`, and their keywords. To support one, add to its row a function that
//! opens it (`opened`), turn its keywords from `not_yet` into `supported`, and let them fill the value that the opening
//! function added to [`SectionContext::content`]. Must never read a proxy.

mod acme;
mod bgp;
pub(super) mod cache;
mod cookie;
mod crt_list;
mod crt_store;
mod crt_store_load;
mod fcgi_app;
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
pub(super) mod store;
mod traces;
mod userlist;

pub(super) use ring::{EVENTS, PROVISIONING};

use super::ReadContext;
use super::negation::{self, Negation};
use super::report::{KeywordTable, Report};
use super::table::{Keyword, Status};
use crate::document::{Line, Section};
use crate::spec::SectionsSpec;
use std::borrow::Cow;

/// Context of a section keyword's parser.
pub(crate) struct SectionContext<'a> {
    /// All sections read so far; the open one is the last of its kind.
    pub(crate) content: &'a mut SectionsSpec,
    pub(crate) around: ReadContext<'a>,
    pub(crate) report: Report<'a>,
    /// Settings of a `peers` section that apply to its later lines.
    pub(crate) drafts: peers::Drafts,
    /// The base directories of a `crt-store` section at this line.
    pub(crate) bases: crt_store::Bases,
    /// Prefix of the keyword.
    pub(crate) negation: Negation,
}

/// Parser of a line.
pub(crate) type SectionParse = fn(&mut SectionContext<'_>, &Line);

/// Parser of the line that opens a section. Returns false if the section's lines cannot be read.
pub(crate) type SectionOpen = fn(&mut SectionContext<'_>, &Line) -> bool;

/// A keyword of such a section.
pub(crate) type SectionKeyword = Keyword<SectionParse>;

const fn supported(name: &'static str, usage: &'static str, doc: &'static str, parse: SectionParse) -> SectionKeyword {
    Keyword::new((), name, usage, doc, Status::Supported(parse))
}

const fn tuning(name: &'static str, usage: &'static str, doc: &'static str) -> SectionKeyword {
    Keyword::new((), name, usage, doc, Status::Tuning)
}

const fn not_yet(name: &'static str, usage: &'static str, doc: &'static str) -> SectionKeyword {
    Keyword::new((), name, usage, doc, Status::NotYet)
}

const fn removed(name: &'static str, usage: &'static str, doc: &'static str, sentence: &'static str) -> SectionKeyword {
    Keyword::new((), name, usage, doc, Status::Removed(sentence))
}

/// A section, or a list of names inside one.
#[derive(Debug)]
pub(crate) struct SectionRow {
    pub(crate) name: &'static str,
    /// Usage of the arguments.
    pub(crate) usage: &'static str,
    /// Description.
    pub(crate) doc: &'static str,
    /// HAProxy's sentence about a removed section.
    pub(crate) removed: Option<&'static str>,
    pub(crate) rows: &'static [SectionKeyword],
    /// Opens the section; `None`: not supported yet.
    open: Option<SectionOpen>,
    /// HAProxy's noun for an unknown word in it.
    unknown: Option<&'static str>,
}

impl SectionRow {
    /// Marks a section as supported. HAProxy's noun for unknown words in it is `unknown`, such as `unknown statement`.
    const fn opened(self, open: SectionOpen, unknown: Option<&'static str>) -> Self {
        Self { open: Some(open), unknown, ..self }
    }
}

const fn section(
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    rows: &'static [SectionKeyword],
) -> SectionRow {
    SectionRow { name, usage, doc, removed: None, rows, open: None, unknown: None }
}

/// The sections.
pub(crate) static TABLE: &[SectionRow] = &[
    section("acme", "<name>", "How certificates are obtained from an ACME server.", acme::TABLE)
        .opened(acme::open, None),
    section("bgp", "<name>", "Weir's own: announces addresses to routers while servers are up.", bgp::TABLE)
        .opened(bgp::open, None),
    section("cache", "<name>", "A cache of small responses.", cache::TABLE).opened(cache::open, None),
    section("crt-store", "[<name>]", "Certificates loaded by name.", crt_store::TABLE).opened(crt_store::open, None),
    section("fcgi-app", "<name>", "A FastCGI application.", fcgi_app::TABLE).opened(fcgi_app::open, None),
    section("healthcheck", "<name>", "A health check that servers refer to.", healthcheck::TABLE)
        .opened(healthcheck::open, None),
    section("http-errors", "<name>", "A set of error pages.", http_errors::TABLE).opened(http_errors::open, None),
    section("log-forward", "<name>", "A relay of log lines.", log_forward::TABLE).opened(log_forward::open, None),
    section("log-profile", "<name>", "Log formats by event.", log_profile::TABLE).opened(log_profile::open, None),
    section("mailers", "<name>", "Mail servers.", mailers::TABLE).opened(mailers::open, None),
    section("namespace_list", "", "Network namespaces.", namespace_list::TABLE).opened(namespace_list::open, None),
    section("peers", "<name>", "Instances that share stick tables.", peers::TABLE).opened(peers::open, None),
    section("resolvers", "<name>", "Name servers.", resolvers::TABLE).opened(resolvers::open, None),
    section("ring", "<name>", "A ring of log lines, read by servers.", ring::TABLE)
        .opened(ring::open, Some("unknown statement")),
    section("store", "<name>", "Weir's own: a server whose limits hold over several nodes.", store::TABLE)
        .opened(store::open, None),
    section("traces", "", "Developers' traces.", traces::TABLE).opened(traces::open, None),
    section("userlist", "<name>", "Users and groups.", userlist::TABLE).opened(userlist::open, None),
    SectionRow {
        name: "program",
        usage: "<name>",
        doc: "A program that the master process ran; HAProxy 3.3 removed it, a service manager does it better.",
        removed: Some("unknown keyword 'program' out of section."),
        rows: program::TABLE,
        open: None,
        unknown: None,
    },
];

/// Names that are looked up inside a line or in files of their own.
pub(crate) static NAMES: &[SectionRow] = &[
    section("crt-list", "", "Options of a line of a crt-list file.", crt_list::TABLE),
    section("load", "", "Options of \"load\" in a crt-store section.", crt_store_load::TABLE),
    section("stick-table", "", "Arguments of \"stick-table\".", stick_table::TABLE),
    section("cookie", "", "Arguments of \"cookie\".", cookie::TABLE),
    section("spoe-agent", "<name>", "Agent section of an SPOE file.", spoe_agent::TABLE).opened(spoe_agent::open, None),
    section("spoe-group", "<name>", "Group section of an SPOE file.", spoe_group::TABLE).opened(spoe_group::open, None),
    section("spoe-message", "<name>", "Message section of an SPOE file.", spoe_message::TABLE)
        .opened(spoe_message::open, None),
];

/// Returns the row of a section.
pub(crate) fn find(name: &str) -> Option<&'static SectionRow> {
    TABLE.iter().find(|row| row.name == name)
}

/// Returns the row of a section in a file of its own.
pub(crate) fn find_named(name: &str) -> Option<&'static SectionRow> {
    NAMES.iter().find(|row| row.name == name && row.open.is_some())
}

/// Reads a section. One that is not supported yet is rejected by name, and its unknown words are reported as by
/// HAProxy.
pub(crate) fn read(
    row: &SectionRow,
    section: &Section,
    content: &mut SectionsSpec,
    around: ReadContext<'_>,
    report: &mut Report<'_>,
) {
    let line = &section.line;
    if let Some(sentence) = row.removed {
        let hint = "run it from the service manager that runs Weir".to_owned();
        report.push(crate::diagnostic::Diagnostic::alert(line.span(0), sentence).with_hint(hint));
        return;
    }
    if row.usage.starts_with('<') && line.words.len() < 2 {
        let message = match row.name {
            "acme" => "section 'acme' requires an ID argument.".to_owned(),
            "cache" => "'cache' expects a <name> argument".to_owned(),
            "fcgi-app" => "'fcgi-app' expects <name> as argument.".to_owned(),
            "ring" => "missing ring name.".to_owned(),
            "userlist" => "'userlist' expects <name> as arguments.".to_owned(),
            name => format!("missing name for {name} section."),
        };
        report.alert(line.span(1), message);
        if row.open.is_some() {
            return;
        }
    }
    match row.open {
        Some(open) => read_lines(
            row,
            open,
            section,
            &mut SectionContext {
                content,
                around,
                report: report.reborrow(),
                drafts: peers::Drafts::default(),
                bases: crt_store::Bases::default(),
                negation: Negation::None,
            },
        ),
        None => refuse(row, section, report),
    }
}

fn read_lines(row: &SectionRow, open: SectionOpen, section: &Section, context: &mut SectionContext<'_>) {
    if !open(context, &section.line) {
        return;
    }
    let place =
        format!("section '{}'", section.line.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "));
    for line in &section.body {
        let (line, negation) = match row.name {
            "fcgi-app" | "spoe-agent" => match negation::take(line, &mut context.report) {
                Some(taken) => taken,
                None => continue,
            },
            _ => (Cow::Borrowed(line), Negation::None),
        };
        context.negation = negation;
        let line = &*line;
        let Some(keyword) = row.rows.iter().find(|keyword| starts(keyword, line.text(0), line.text(1))) else {
            unknown(row, line, &mut context.report);
            continue;
        };
        match keyword.status {
            Status::Supported(parse) | Status::Group(parse) => parse(context, line),
            Status::NotYet => context.report.not_yet(line.span(0), keyword.name, &place),
            Status::Tuning => {
                if row.name != "spoe-agent" || spoe_agent::is_sound(line, &mut context.report) {
                    context.report.no_counterpart(line.span(0), keyword.name, &place);
                }
            }
            Status::Removed(sentence) | Status::Refused(sentence) => {
                context.report.removed(line.span(0), sentence, line.text(1))
            }
        }
    }
}

fn unknown(row: &SectionRow, line: &Line, report: &mut Report<'_>) {
    let Some(word) = line.words.first() else { return };
    if spoe_agent::unknown(row.name, line, report) {
        return;
    }
    let names: Vec<_> = row.rows.iter().map(|row| row.name.split(' ').next().unwrap_or_default()).collect();
    match row.unknown {
        Some(sentence) => {
            let known = crate::suggest::nearest(&word.text, names)
                .filter(|&known| known != word.text)
                .map(|known| format!("write '{known}'"));
            let mut diagnostic =
                crate::diagnostic::Diagnostic::alert(word.span, format!("{sentence} '{}'.", word.text));
            diagnostic.hint = known.or_else(|| report.elsewhere(word, KeywordTable::Section));
            report.push(diagnostic);
        }
        // The first word is known, the second one is not.
        None if names.contains(&word.text.as_str()) => {
            let second = line.text(1);
            let message = match word.text.as_str() {
                "option" if row.name == "fcgi-app" && second.is_empty() => {
                    "'option' expects an option name.".to_owned()
                }
                "option" => format!("unknown option '{second}' in {} section.", row.name),
                "timeout" if row.name == "resolvers" && second.is_empty() => {
                    "'timeout' expects 'retry' or 'resolve' and <time> as arguments.".to_owned()
                }
                "timeout" if row.name == "resolvers" => {
                    format!("'timeout' expects 'retry' or 'resolve' and <time> as arguments got '{second}'.")
                }
                "timeout" if row.name == "mailers" && second.is_empty() => {
                    "'timeout' expects 'mail' and <time> as arguments.".to_owned()
                }
                "timeout" if row.name == "mailers" => {
                    format!("'timeout' expects 'mail' and <time> as arguments got '{second}'.")
                }
                first => format!("unknown keyword '{first} {second}' in {} section.", row.name),
            };
            let seconds = row.rows.iter().filter_map(|row| row.name.split_once(' ')).filter(|name| name.0 == word.text);
            let known = crate::suggest::nearest(second, seconds.map(|name| name.1));
            let mut diagnostic = crate::diagnostic::Diagnostic::alert(line.span(1), message);
            diagnostic.hint = known.map(|known| format!("write '{} {known}'", word.text));
            report.push(diagnostic);
        }
        None => report.unknown(word, row.name, names, KeywordTable::Section),
    }
}

fn refuse(row: &SectionRow, section: &Section, report: &mut Report<'_>) {
    let line = &section.line;
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
        report.unknown(word, row.name, names, KeywordTable::Section);
    }
}

fn starts(keyword: &SectionKeyword, first: &str, second: &str) -> bool {
    match keyword.name.split_once(' ') {
        None => keyword.name == first,
        Some((head, tail)) => head == first && tail == second,
    }
}
