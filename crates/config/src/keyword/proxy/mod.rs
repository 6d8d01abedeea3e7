//! Keywords of `defaults`, `frontend`, `listen` and `backend`, by family. Owns their dispatch; each is parsed in
//! its family's file.

mod balance;
mod capture;
mod certificates;
mod checks;
mod compression;
mod connecting;
mod cookie;
mod draft;
mod errors;
mod general;
mod hash;
mod keep_alive;
mod limits;
mod listening;
mod logs;
mod mail;
mod otel;
mod persistence;
mod reliability;
mod removed;
mod rules;
mod state;
mod stats;
mod switching;
mod timeouts;

pub(crate) use draft::{ChosenFormat, Pages, ProxyDraft};
pub(crate) use otel::percent;

use super::ReadContext;
use super::negation::{self, Negation};
use super::place::places::BACK_SECTION;
use super::place::{Holder, KeywordScope, Section as Kind, places};
use super::report::{KeywordTable, Report, did_you_mean};
use super::table::{Family, Keyword, RowLookup, Status, find, rows};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Section};
use crate::language::section::SECTIONS;
use crate::spec::RuleLineSpec;
use crate::suggest;

/// Context of a proxy keyword's parser.
pub(crate) struct ProxyContext<'a> {
    pub(crate) draft: &'a mut ProxyDraft,
    pub(crate) holder: Holder<'a>,
    pub(crate) report: Report<'a>,
    /// Prefix of the keyword.
    pub(crate) negation: Negation,
    pub(crate) around: ReadContext<'a>,
}

impl ProxyContext<'_> {
    /// Returns the proxy's name; empty for an anonymous `defaults` section.
    pub(crate) fn name(&self) -> &str {
        self.holder.name.unwrap_or_default()
    }

    /// The proxy's lines get that format. In a `defaults` section the former one was most likely meant.
    pub(crate) fn choose_format(&mut self, chosen: ChosenFormat) {
        let named = |format: &ChosenFormat| match format.option {
            "log-format" => "log-format".to_owned(),
            option => format!("option {option}"),
        };
        if let Some(before) = self.draft.format.as_ref().filter(|_| self.holder.section == Kind::Defaults) {
            let message = format!("'{}' overrides previous '{}' in 'defaults' section.", named(&chosen), named(before));
            self.report.push(Diagnostic::warning(chosen.span, message).with_form(Form::ParsingTight));
        }
        self.draft.format = Some(chosen);
    }
}

/// Parser of one line.
pub(crate) type ProxyParse = fn(&mut ProxyContext<'_>, &Line);

/// A row of the proxy tables.
pub(crate) type ProxyKeyword = Keyword<ProxyParse, KeywordScope>;

const fn supported(
    place: KeywordScope,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    parse: ProxyParse,
) -> ProxyKeyword {
    Keyword::new(place, name, usage, doc, Status::Supported(parse))
}

const fn group(
    place: KeywordScope,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    parse: ProxyParse,
) -> ProxyKeyword {
    Keyword::new(place, name, usage, doc, Status::Group(parse))
}

const fn removed(name: &'static str, usage: &'static str, doc: &'static str, sentence: &'static str) -> ProxyKeyword {
    Keyword::new(places::ANY, name, usage, doc, Status::Removed(sentence))
}

/// Reads the condition of a line that requires one: it begins at the word at `at`.
fn condition_line(context: &mut ProxyContext<'_>, line: &Line, at: usize, name: &str) -> Option<RuleLineSpec> {
    if matches!(line.text(at), "if" | "unless") {
        return Some(context.around.rule_line(line, at));
    }
    let message = format!("'{name}' requires either 'if' or 'unless' followed by a condition.");
    let mut diagnostic = Diagnostic::alert(line.span(at), message);
    diagnostic.hint = suggest::nearest(line.text(at), ["if", "unless"]).map(|known| format!("did you mean '{known}'?"));
    context.report.push(diagnostic);
    None
}

/// Every keyword of a proxy.
pub(crate) static FAMILIES: &[Family<ProxyKeyword>] = &[
    Family { title: "General", rows: general::TABLE },
    Family { title: "TCP keep-alive", rows: keep_alive::TABLE },
    Family { title: "Addresses and servers", rows: listening::TABLE },
    Family { title: "Certificates", rows: certificates::TABLE },
    Family { title: "Connections to servers", rows: connecting::TABLE },
    Family { title: "Server selection", rows: balance::TABLE },
    Family { title: "Hashes", rows: hash::TABLE },
    Family { title: "Queues, rates and retries", rows: limits::TABLE },
    Family { title: "Servers that fail", rows: reliability::TABLE },
    Family { title: "Backend selection", rows: switching::TABLE },
    Family { title: "Timeouts", rows: timeouts::TABLE },
    Family { title: "Errors and monitoring", rows: errors::TABLE },
    Family { title: "Logs", rows: logs::TABLE },
    Family { title: "OpenTelemetry", rows: otel::TABLE },
    Family { title: "Mails", rows: mail::TABLE },
    Family { title: "Captures", rows: capture::TABLE },
    Family { title: "Rules", rows: rules::TABLE },
    Family { title: "Compression", rows: compression::TABLE },
    Family { title: "Persistence", rows: persistence::TABLE },
    Family { title: "Persistence by cookies", rows: cookie::TABLE },
    Family { title: "Health checks", rows: checks::TABLE },
    Family { title: "Server states", rows: state::TABLE },
    Family { title: "Statistics page", rows: stats::TABLE },
    Family { title: "Removed", rows: removed::TABLE },
];

/// HAProxy's sentence about an unknown second word of a group; `%1` is the word.
const GROUPS: &[(&str, &str)] = &[
    (
        "timeout",
        "'timeout' supports 'client', 'server', 'connect', 'check', 'queue', 'handshake', 'http-keep-alive', \
         'http-request', 'tunnel', 'tarpit', 'client-fin' and 'server-fin' (got '%1')",
    ),
    (
        "stats",
        "unknown stats parameter '%1', expects 'admin', 'uri', 'realm', 'auth', 'scope', 'enable', 'hide-version', \
         'show-node', 'show-desc' , 'show-legends' or 'show-version'.",
    ),
    ("capture", "'capture' expects 'cookie' or 'request header' or 'response header'."),
    ("declare", "unknown declaration type '%1' (supports 'capture')"),
    ("stick", "'stick' expects 'on', 'match', or 'store'."),
    (
        "http-check",
        "'http-check' only supports 'disable-on-404', 'send-state', 'comment', 'connect', 'send', 'expect', \
         'set-var-fmt(*)', 'set-var(*)', 'unset-var(*)'. but got '%1'",
    ),
    (
        "tcp-check",
        "'tcp-check' only supports 'comment', 'connect', 'send', 'send-binary', 'expect', 'set-var-fmt(*)', \
         'set-var(*)', 'unset-var(*)'. but got '%1'",
    ),
    ("tcp-request", "'tcp-request' expects 'inspect-delay', 'connection', or 'content' in %p (got '%1')"),
    ("tcp-response", "'tcp-response' expects 'inspect-delay' or 'content' in %p (got '%1')"),
    ("email-alert", "email-alert: unknown argument '%1'."),
    ("compression", "'compression' expects 'algo', 'type', 'direction', 'offload', 'minsize-req' or 'minsize-res'."),
    ("persist", "unknown persist method."),
    ("monitor", "'monitor' only supports 'fail'."),
    ("rate-limit", "'rate-limit' only supports 'sessions' (got '%1')"),
    ("external-check", "'external-check' only supports 'command' and 'path'. but got '%1'."),
];

/// Reads the lines of a section into a draft.
pub(crate) fn read(
    section: &Section,
    draft: &mut ProxyDraft,
    holder: Holder<'_>,
    around: ReadContext<'_>,
    report: &mut Report<'_>,
) {
    for line in &section.body {
        let Some((line, negation)) = negation::take(line, report) else { continue };
        let mut context = ProxyContext { draft, holder, report: report.reborrow(), negation, around };
        read_line(&mut context, &line);
    }
}

/// Reads one line.
pub(crate) fn read_line(context: &mut ProxyContext<'_>, line: &Line) {
    match find(FAMILIES, line.keyword(), line.text(1), line.text(2)) {
        RowLookup::Row(row, words) => read_row(context, line, row, words),
        RowLookup::Group if line.keyword() == "persist" && line.words.len() < 2 => {
            context.report.alert(line.span(1), "missing persist method.");
        }
        RowLookup::Group if line.keyword() == "external-check" && line.words.len() < 2 => {
            context.report.alert(line.span(1), "missing argument after 'external-check'.");
        }
        RowLookup::Group if line.keyword() == "email-alert" && line.words.len() < 2 => {
            context.report.alert(line.span(0), "missing argument after 'email-alert'.");
        }
        RowLookup::Group => wrong_member(context, line),
        RowLookup::Unknown => {
            let Some(word) = line.words.first() else { return };
            let names = rows(FAMILIES).map(|row| row.name.split(' ').next().unwrap_or_default());
            let names = names.chain(SECTIONS.iter().copied()).collect();
            context.report.unknown(word, context.holder.section.keyword(), names, KeywordTable::Proxy);
        }
    }
}

/// Keywords that are read together with the other lines of the proxy even after a warning that they have no effect.
const READ_ANYWHERE: &[&str] = &[
    "default_backend",
    "error-log-format",
    "force-persist",
    "http-check comment",
    "http-check connect",
    "http-check expect",
    "http-check send",
    "http-check set-var",
    "http-check set-var-fmt",
    "http-check unset-var",
    "http-reuse",
    "ignore-persist",
    "monitor fail",
    "tcp-check comment",
    "tcp-check connect",
    "tcp-check expect",
    "tcp-check send",
    "tcp-check send-binary",
    "tcp-check send-binary-lf",
    "tcp-check send-lf",
    "tcp-check set-var",
    "tcp-check set-var-fmt",
    "tcp-check unset-var",
    "use-server",
    "use_backend",
];

/// Keywords that HAProxy does not parse where they have no effect.
const PASSED_OVER: &[&str] = &["stick match", "stick on", "stick store-request", "stick store-response"];

fn read_row(context: &mut ProxyContext<'_>, line: &Line, row: &ProxyKeyword, words: usize) {
    let removed = matches!(row.status, Status::Removed(_));
    let (span, first) = (line.span(0), line.keyword());
    let is_read = context.holder.section != Kind::Defaults && READ_ANYWHERE.contains(&row.name);
    if !removed && !row.extra.admits(context.holder, span, first, row.name, &mut context.report) && !is_read {
        if row.extra.is_idle_in(context.holder.section)
            && !PASSED_OVER.contains(&row.name)
            && let Status::Supported(parse) | Status::Group(parse) = row.status
        {
            check_line(context, line, parse);
        }
        return;
    }
    match row.status {
        Status::Supported(parse) | Status::Group(parse) => parse(context, line),
        Status::NotYet => {
            let place = context.holder.describe();
            context.report.not_yet(line.span(0), row.name, &place);
        }
        Status::Tuning => {
            let place = context.holder.describe();
            context.report.no_counterpart(line.span(0), row.name, &place);
        }
        Status::Removed(sentence) | Status::Refused(sentence) => {
            context.report.removed(line.span(0), sentence, line.text(words))
        }
    }
}

/// Parses a line only to report its errors.
pub(crate) fn check_line(context: &mut ProxyContext<'_>, line: &Line, parse: ProxyParse) {
    let mut draft = ProxyDraft::documented();
    draft.spec.kind = context.draft.spec.kind;
    draft.spec.mode = context.draft.spec.mode;
    let report = context.report.reborrow();
    let (holder, negation, around) = (context.holder, context.negation, context.around);
    parse(&mut ProxyContext { draft: &mut draft, holder, report, negation, around }, line);
}

/// Reports an unknown second word of a group.
fn wrong_member(context: &mut ProxyContext<'_>, line: &Line) {
    if context.holder.section == Kind::Frontend && line.keyword() == "stick" {
        BACK_SECTION.admits(context.holder, line.span(0), "stick", "stick", &mut context.report);
        return;
    }
    let (first, second) = (line.keyword(), line.text(1));
    let sentence = match GROUPS.iter().find(|group| group.0 == first) {
        Some(group) => group.1.replace("%1", second).replace("%p", &context.holder.describe()),
        None => format!("'{first}' does not know '{second}'."),
    };
    let members = rows(FAMILIES).filter_map(|row| row.name.strip_prefix(first)?.strip_prefix(' '));
    let known = suggest::nearest(second, members);
    let mut diagnostic = Diagnostic::alert(line.span(1), sentence);
    diagnostic.hint = known.map(|known| format!("write '{first} {known}'"));
    context.report.push(diagnostic);
}

/// Reports an unknown `option`.
pub(crate) fn unknown_option(context: &mut ProxyContext<'_>, line: &Line, names: Vec<&'static str>) {
    let name = line.text(1);
    let known = suggest::nearest(name, names);
    let mut message = format!("unknown option '{name}'{}", did_you_mean(known));
    if known.is_none() {
        message.push('.');
    }
    context.report.alert(line.span(1), message);
}
