//! Keywords of the `global` section, by family. Owns their dispatch; each is parsed in its family's file.

mod compression;
mod debugging;
mod http1;
mod http2;
mod httpclient;
mod kept;
mod lifetime;
mod limits;
mod log;
mod lua;
mod machine;
pub(crate) mod otel;
mod percentages;
mod process;
mod processors;
mod quic;
mod ranges;
mod rights;
mod runtime;
mod sockets;
mod tls;
mod tokens;
mod tune;
mod vendor;

use super::ReadContext;
use super::negation::{self, Negation};
use super::report::{KeywordTable, Report};
use super::table::{Family, Keyword, RowLookup, Status, find, rows};
use crate::document::{Line, Section, Word};
use crate::language::section::SECTIONS;
use crate::spec::GlobalSpec;
use crate::units;

/// Context of a `global` keyword's parser.
pub(crate) struct GlobalContext<'a> {
    pub(crate) spec: &'a mut GlobalSpec,
    pub(crate) report: Report<'a>,
    pub(crate) around: ReadContext<'a>,
    /// The line is preceded by `no`.
    pub(crate) negated: bool,
}

/// Parser of one line.
pub(crate) type GlobalParse = fn(&mut GlobalContext<'_>, &Line);

/// A row of the global tables.
pub(crate) type GlobalKeyword = Keyword<GlobalParse>;

const fn supported(name: &'static str, usage: &'static str, doc: &'static str, parse: GlobalParse) -> GlobalKeyword {
    Keyword::new((), name, usage, doc, Status::Supported(parse))
}

const fn tuning(name: &'static str, usage: &'static str, doc: &'static str) -> GlobalKeyword {
    Keyword::new((), name, usage, doc, Status::Tuning)
}

const fn removed(name: &'static str, usage: &'static str, doc: &'static str, sentence: &'static str) -> GlobalKeyword {
    Keyword::new((), name, usage, doc, Status::Removed(sentence))
}

/// Every keyword of `global`.
pub(crate) static FAMILIES: &[Family<GlobalKeyword>] = &[
    Family { title: "Process", rows: process::TABLE },
    Family { title: "State files", rows: kept::TABLE },
    Family { title: "Limits", rows: limits::TABLE },
    Family { title: "Compression", rows: compression::TABLE },
    Family { title: "Threads and processors", rows: processors::TABLE },
    Family { title: "Rights", rows: rights::TABLE },
    Family { title: "Machine", rows: machine::TABLE },
    Family { title: "Runtime API", rows: runtime::TABLE },
    Family { title: "Listening sockets", rows: sockets::TABLE },
    Family { title: "Logs", rows: log::TABLE },
    Family { title: "Tuning", rows: tune::TABLE },
    Family { title: "TLS", rows: tls::TABLE },
    Family { title: "Tokens", rows: tokens::TABLE },
    Family { title: "HTTP/1 and statuses", rows: http1::TABLE },
    Family { title: "HTTP/1 and HTTP/2", rows: http2::TABLE },
    Family { title: "QUIC", rows: quic::TABLE },
    Family { title: "Lua", rows: lua::TABLE },
    Family { title: "Internal HTTP client", rows: httpclient::TABLE },
    Family { title: "OpenTelemetry", rows: otel::TABLE },
    Family { title: "Device detection", rows: vendor::TABLE },
    Family { title: "Debugging", rows: debugging::TABLE },
];

/// Reads a `global` section.
pub(crate) fn read(section: &Section, spec: &mut GlobalSpec, around: ReadContext<'_>, report: &mut Report<'_>) {
    report.too_many(&section.line, 1, "global");
    for line in &section.body {
        let Some((line, negation)) = negation::take(line, report) else { continue };
        let negated = negation == Negation::No;
        let mut context = GlobalContext { spec, report: report.reborrow(), around, negated };
        read_line(&mut context, &line);
    }
}

/// Reads files that may only be read after every `global` section.
pub(crate) fn finish(spec: &mut GlobalSpec, around: ReadContext<'_>, report: &mut Report<'_>) {
    let mut context = GlobalContext { spec, report: report.reborrow(), around, negated: false };
    http1::read_case_adjust_file(&mut context);
    tune::check_bufsize(&mut context);
}

fn read_line(context: &mut GlobalContext<'_>, line: &Line) {
    const PLACE: &str = "section 'global'";
    let row = match find(FAMILIES, line.keyword(), line.text(1), line.text(2)) {
        RowLookup::Row(row, _) => row,
        RowLookup::Group => {
            context.report.alert(
                line.span(1),
                format!(
                    "'{}' only supports 'socket', 'maxconn', 'bind-process', 'calculate-max-counters'  and 'timeout' \
                     (got '{}')",
                    line.keyword(),
                    line.text(1)
                ),
            );
            return;
        }
        RowLookup::Unknown => {
            let Some(word) = line.words.first() else { return };
            unknown(context, word);
            return;
        }
    };
    if row.name.starts_with("tune.fd.") && !context.around.experimental.permits() {
        let why = "directive is experimental, must be allowed via a global 'expose-experimental-directives'";
        return context.report.alert(line.span(0), format!("'{}' {why}", row.name));
    }
    match row.status {
        Status::Supported(parse) | Status::Group(parse) => parse(context, line),
        Status::NotYet => context.report.not_yet(line.span(0), row.name, PLACE),
        Status::Tuning => {
            if is_well_formed(row, line, &mut context.report) {
                context.report.no_counterpart(line.span(0), row.name, PLACE);
            }
        }
        Status::Removed(sentence) | Status::Refused(sentence) => {
            context.report.removed(line.span(0), sentence, line.text(1))
        }
    }
}

/// Whether the argument of a line without effect has the form that HAProxy accepts, by the row's usage.
fn is_well_formed(row: &GlobalKeyword, line: &Line, report: &mut Report<'_>) -> bool {
    let words = row.name.split(' ').count();
    match row.usage {
        "" => !report.too_many(line, words, row.name),
        "{ on | off }" | "<size>" | "<number>" | "<percent>" if report.too_many(line, words + 1, row.name) => false,
        "<number>" | "<percent>" => ranges::is_within(row, line, report),
        "{ on | off }" if !matches!(line.text(words), "on" | "off") => {
            report.alert(line.span(words), format!("'{}' expects 'on' or 'off'.", row.name));
            false
        }
        "<size>" => match units::size(line.text(words), u64::from(u32::MAX)) {
            Ok(_) => true,
            Err(error) => {
                report.alert(line.span(words), error.message(row.name));
                false
            }
        },
        _ => true,
    }
}

fn unknown(context: &mut GlobalContext<'_>, word: &Word) {
    let names = rows(FAMILIES).map(|row| row.name.split(' ').next().unwrap_or_default());
    let names = names.chain(SECTIONS.iter().copied()).collect();
    context.report.unknown(word, "global", names, KeywordTable::Global);
}
