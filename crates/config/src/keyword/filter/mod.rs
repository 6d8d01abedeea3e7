//! The lines `filter` and `filter-sequence` (configuration manual, sections 4 and 9). Owns the
//! table of filters by name; the arguments of each are parsed in its own file. Must never implement a filter.

mod bandwidth;
mod cache;
mod compression;
mod fcgi_app;
mod otel;
mod sequence;
mod spoe;
mod trace;

pub(crate) use fcgi_app::use_fcgi_app;
pub(crate) use sequence::read as read_sequence;

use super::proxy::{ProxyContext, ProxyDraft, ProxyParse};
use super::report::Report;
use super::table::{Keyword, Status};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::span::Spanned;
use crate::spec::{CacheSpec, FilterSpec, PlainFilter, ScriptFilterSpec};
use crate::suggest;

pub(crate) type FilterKeyword = Keyword<ProxyParse>;

const fn supported(name: &'static str, usage: &'static str, doc: &'static str, parse: ProxyParse) -> FilterKeyword {
    Keyword::new((), name, usage, doc, Status::Supported(parse))
}

const fn refused(name: &'static str, usage: &'static str, doc: &'static str, sentence: &'static str) -> FilterKeyword {
    Keyword::new((), name, usage, doc, Status::Refused(sentence))
}

pub(crate) const TABLE: &[FilterKeyword] = &[
    supported(
        "bwlim-in",
        "<name> default-limit <size> default-period <time> [min-size <size>]",
        "Limits the bandwidth from the client.",
        bandwidth::upload,
    ),
    supported(
        "bwlim-out",
        "<name> default-limit <size> default-period <time> [min-size <size>]",
        "Limits the bandwidth towards the client.",
        bandwidth::download,
    ),
    supported("cache", "<cache>", "Position of the cache among the filters.", cache::read),
    supported("comp-req", "", "Position of the compression of requests among the filters.", compression::request),
    supported("comp-res", "", "Position of the compression of responses among the filters.", compression::response),
    supported("compression", "", "Position of the compression among the filters.", compression::both),
    supported("fcgi-app", "<section>", "Position of a FastCGI application among the filters.", fcgi_app::read),
    supported("grpc-web", "", "Translates gRPC-Web of clients to gRPC of servers, and back. Weir's own.", grpc_web),
    supported("opentelemetry", "[id <id>] config <file>", "Sends spans of streams to a collector.", otel::read),
    refused(
        "opentracing",
        "[id <id>] config <file>",
        "OpenTracing.",
        "'filter opentracing' is not supported by Weir: the OpenTracing project has ended, and HAProxy 3.5 has removed it. \
             'filter otel config <file>' takes its place and sends spans to an OpenTelemetry collector.",
    ),
    refused(
        "ot",
        "[id <id>] config <file>",
        "OpenTracing, by its short name.",
        "'filter ot' is not supported by Weir: the OpenTracing project has ended, and HAProxy 3.5 has removed it. \
             'filter otel config <file>' takes its place and sends spans to an OpenTelemetry collector.",
    ),
    supported("otel", "[id <id>] config <file>", "OpenTelemetry, by its short name.", otel::read),
    supported("spoe", "[engine <name>] config <file>", "Stream processing by external agents (SPOE).", spoe::read),
    supported(
        "trace",
        "[name <name>] [random-forwarding] [max-fwd <bytes>] [hexdump] [quiet]",
        "Traces the events of a stream on standard error.",
        trace::read,
    ),
];

/// Reads a `filter` line.
pub(crate) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let name = line.text(1);
    if name.is_empty() {
        let message = format!("missing argument for 'filter' in proxy '{}'.", context.name());
        context.report.alert(line.span(1), message);
        return;
    }
    match TABLE.iter().find(|row| row.name == name).map(|row| row.status) {
        Some(Status::Supported(parse) | Status::Group(parse)) => parse(context, line),
        Some(Status::Refused(sentence)) => context.report.removed(line.span(1), sentence, name),
        Some(_) => refuse(context, line),
        None if name.starts_with("lua.") => script(context, line),
        None => {
            let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
            let mut diagnostic = Diagnostic::alert(
                line.span(1),
                format!("'filter' : unknown keyword '{name}'. Registered keywords : {}", names.join(", ")),
            );
            diagnostic.hint = suggest::nearest(name, names).map(|known| format!("write 'filter {known}'"));
            context.report.push(diagnostic);
        }
    }
}

/// Adds the filters that other lines imply, and reports errors in the filters of each proxy.
pub(crate) fn complete(drafts: &mut [ProxyDraft], caches: &[CacheSpec], report: &mut Report<'_>) {
    cache::verify(drafts, caches, report);
    compression::verify(drafts, report);
    fcgi_app::verify(drafts, report);
    drafts.iter_mut().for_each(imply);
    sequence::verify(drafts, report);
}

/// Adds the filters that other lines of a proxy imply.
pub(crate) fn imply(draft: &mut ProxyDraft) {
    compression::imply(draft);
    cache::imply(draft);
}

fn grpc_web(context: &mut ProxyContext<'_>, line: &Line) {
    if !context.report.too_many(line, 2, "filter grpc-web") {
        context.draft.spec.filters.list.push(FilterSpec::Plain(PlainFilter::GrpcWeb));
    }
}

/// Parses a filter registered by a script; whether it exists is checked when scripts are loaded.
fn script(context: &mut ProxyContext<'_>, line: &Line) {
    let arguments = line.words.iter().skip(2).map(|word| word.text.clone()).collect();
    let name = Spanned::new(line.text(1).to_owned(), line.span(1));
    context.draft.spec.filters.list.push(FilterSpec::Script(ScriptFilterSpec { name, arguments }));
}

fn refuse(context: &mut ProxyContext<'_>, line: &Line) {
    let place = context.holder.describe();
    context.report.not_yet(line.span(0), &format!("filter {}", line.text(1)), &place);
}

/// Returns the supported filters, and the families that HAProxy assigns them to.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let working = TABLE.iter().filter(|row| matches!(row.status, Status::Supported(_)));
    working.map(|row| match row.name {
        "bwlim-in" | "bwlim-out" => (row.name, "BWLIM"),
        "cache" => (row.name, "CACHE"),
        "comp-req" | "comp-res" | "compression" => (row.name, "COMP"),
        "grpc-web" => (row.name, "GRPCWEB"),
        "fcgi-app" => (row.name, "FCGI"),
        "spoe" => (row.name, "SPOE"),
        "opentelemetry" | "otel" => (row.name, "OTEL"),
        _ => (row.name, "TRACE"),
    })
}
