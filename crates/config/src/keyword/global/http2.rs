//! Multiplexers: HTTP/1 glitches, HTTP/2 (section 3.2).

use super::{GlobalContext, GlobalKeyword, not_yet, supported, tune, tuning};
use crate::document::Line;
use crate::keyword::argument::lenient;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    not_yet("tune.h1.be.glitches-threshold", "<number>", "Oddities after which an HTTP/1 server connection is closed."),
    not_yet("tune.h1.fe.glitches-threshold", "<number>", "Oddities after which an HTTP/1 client connection is closed."),
    not_yet("tune.h2.be.glitches-threshold", "<number>", "Oddities after which an HTTP/2 server connection is closed."),
    supported("tune.h2.be.initial-window-size", "<number>", "Window announced to HTTP/2 servers.", server_window),
    supported(
        "tune.h2.be.max-concurrent-streams",
        "<number>",
        "Streams at once on a server connection.",
        server_streams,
    ),
    tuning(
        "tune.h2.be.max-frames-at-once",
        "<number>",
        "Frames handled in a row on a server connection; Weir's turns are bounded by time.",
    ),
    supported(
        "tune.h2.be.rxbuf",
        "<size>",
        "Receive buffers that streams of a server connection share.",
        server_buffers,
    ),
    not_yet("tune.h2.fe.glitches-threshold", "<number>", "Oddities after which an HTTP/2 client connection is closed."),
    supported("tune.h2.fe.initial-window-size", "<number>", "Window announced to HTTP/2 clients.", client_window),
    supported(
        "tune.h2.fe.max-concurrent-streams",
        "<number> [<argument>...]",
        "Streams at once on a client connection.",
        client_streams,
    ),
    tuning(
        "tune.h2.fe.max-frames-at-once",
        "<number>",
        "Frames handled in a row on a client connection; Weir's turns are bounded by time.",
    ),
    tuning(
        "tune.h2.fe.max-rst-at-once",
        "<number>",
        "RST_STREAM frames handled in a row on a client connection; Weir's turns are bounded by time.",
    ),
    supported(
        "tune.h2.fe.max-total-streams",
        "<number>",
        "Streams in all after which a client connection is closed.",
        total_streams,
    ),
    supported(
        "tune.h2.fe.rxbuf",
        "<size>",
        "Receive buffers that streams of a client connection share.",
        client_buffers,
    ),
    supported("tune.h2.header-table-size", "<number>", "Size of the dynamic header table.", table_size),
    supported("tune.h2.initial-window-size", "<number>", "Window announced on both sides.", window),
    not_yet("tune.h2.log-errors", "{ none | connection | stream }", "Which HTTP/2 errors are logged."),
    supported("tune.h2.max-concurrent-streams", "<number>", "Streams at once on both sides.", streams),
    tuning("tune.h2.max-frame-size", "<number>", "Largest frame announced; Weir takes 16384 bytes."),
];

/// The number behind the keyword, from `least` to `most`; else what HAProxy says of it.
fn number(context: &mut GlobalContext<'_>, line: &Line, (least, most): (u32, u32), expected: &str) -> Option<u32> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let value = line.words.get(1).map_or(0, |word| lenient(word, name, &mut context.report));
    let value = u32::try_from(value).ok().filter(|value| (least..=most).contains(value));
    if value.is_none() {
        context.report.alert(line.span(1), format!("'{name}' expects a {expected}."));
    }
    value
}

fn positive(context: &mut GlobalContext<'_>, line: &Line) -> Option<u32> {
    number(context, line, (0, i32::MAX as u32), "positive numeric value")
}

fn window(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.window = positive(context, line);
}

fn client_window(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.client_window = positive(context, line);
}

fn server_window(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.server_window = positive(context, line);
}

fn client_buffers(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.client_buffers = tune::size(context, line);
}

fn server_buffers(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.server_buffers = tune::size(context, line);
}

fn server_streams(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.server_streams = positive(context, line);
}

fn streams(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.streams = positive(context, line);
}

fn client_streams(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(word) = line.words.get(2) {
        let name = line.keyword();
        let message = match word.text.as_str() {
            "rq-load" | "min" => format!("'{name} ... {}' is not supported yet by Weir", word.text),
            other => format!("'{name}' only supports 'rq-load' or 'min' after the numeric value, but found '{other}'."),
        };
        context.report.alert(word.span, message);
        return;
    }
    context.spec.tune.http2.client_streams = positive(context, line);
}

fn total_streams(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.total_streams = positive(context, line);
}

fn table_size(context: &mut GlobalContext<'_>, line: &Line) {
    let expected = "numeric value between 4096 and 65536";
    context.spec.tune.http2.table_size = number(context, line, (4096, 65536), expected);
}
