//! Multiplexers: HTTP/1 glitches, HTTP/2 (section 3.2).

use super::{GlobalContext, GlobalKeyword, supported, tune, tuning};
use crate::document::{Line, Word};
use crate::keyword::argument::{leading_number, lenient};
use crate::spec::{Http2ErrorsSpec, StreamsLoadSpec};
use std::ops::RangeInclusive;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported(
        "tune.h1.be.glitches-threshold",
        "<number>",
        "Number of glitches after which an HTTP/1 server connection is closed.",
        glitches,
    ),
    supported(
        "tune.h1.fe.glitches-threshold",
        "<number>",
        "Number of glitches after which an HTTP/1 client connection is closed.",
        glitches,
    ),
    supported(
        "tune.h2.be.glitches-threshold",
        "<number>",
        "Number of glitches after which an HTTP/2 server connection is closed.",
        glitches,
    ),
    supported(
        "tune.h2.be.initial-window-size",
        "<number>",
        "Initial window size announced to HTTP/2 servers.",
        server_window,
    ),
    supported(
        "tune.h2.be.max-concurrent-streams",
        "<number>",
        "Maximum number of concurrent streams of a server connection.",
        server_streams,
    ),
    tuning(
        "tune.h2.be.max-frames-at-once",
        "<number>",
        "Maximum number of frames of a server connection handled in a row; Weir bounds this by time.",
    ),
    supported(
        "tune.h2.be.rxbuf",
        "<size>",
        "Size of the receive buffers shared by the streams of a server connection.",
        server_buffers,
    ),
    supported(
        "tune.h2.fe.glitches-threshold",
        "<number>",
        "Number of glitches after which an HTTP/2 client connection is closed.",
        glitches,
    ),
    supported(
        "tune.h2.fe.initial-window-size",
        "<number>",
        "Initial window size announced to HTTP/2 clients.",
        client_window,
    ),
    supported(
        "tune.h2.fe.max-concurrent-streams",
        "<number> [rq-load { <number> | auto | ignore }] [min <number>]",
        "Maximum number of concurrent streams of a client connection.",
        client_streams,
    ),
    tuning(
        "tune.h2.fe.max-frames-at-once",
        "<number>",
        "Maximum number of frames of a client connection handled in a row; Weir bounds this by time.",
    ),
    tuning(
        "tune.h2.fe.max-rst-at-once",
        "<number>",
        "Maximum number of RST_STREAM frames of a client connection handled in a row; Weir bounds this by time.",
    ),
    supported(
        "tune.h2.fe.max-total-streams",
        "<number>",
        "Total number of streams after which a client connection is closed.",
        total_streams,
    ),
    supported(
        "tune.h2.fe.rxbuf",
        "<size>",
        "Size of the receive buffers shared by the streams of a client connection.",
        client_buffers,
    ),
    supported("tune.h2.header-table-size", "<number>", "Size of the dynamic HPACK table.", table_size),
    supported("tune.h2.initial-window-size", "<number>", "Initial window size announced on both sides.", window),
    supported("tune.h2.log-errors", "{ none | connection | stream }", "Which HTTP/2 errors are logged.", log_errors),
    supported(
        "tune.h2.max-concurrent-streams",
        "<number>",
        "Maximum number of concurrent streams of connections on both sides.",
        streams,
    ),
    tuning("tune.h2.max-frame-size", "<number>", "Maximum frame size announced; always 16384 bytes in Weir."),
];

/// Parses the number after the keyword; if it is outside of the permitted range, reports HAProxy's sentence.
fn number(context: &mut GlobalContext<'_>, line: &Line, permitted: RangeInclusive<u32>, expected: &str) -> Option<u32> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let value = line.words.get(1).map_or(0, |word| lenient(word, name, &mut context.report));
    let value = u32::try_from(value).ok().filter(|value| permitted.contains(value));
    if value.is_none() {
        context.report.alert(line.span(1), format!("'{name}' expects a {expected}."));
    }
    value
}

fn positive(context: &mut GlobalContext<'_>, line: &Line) -> Option<u32> {
    number(context, line, 0..=i32::MAX as u32, "positive numeric value")
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
    let name = line.keyword();
    let most = line.words.get(1).map_or(0, |word| lenient(word, name, &mut context.report));
    let Some(most) = u32::try_from(most).ok().filter(|most| i32::try_from(*most).is_ok()) else {
        return context.report.alert(line.span(1), format!("'{name}' expects a positive numeric value."));
    };
    let (mut load, mut least) = (StreamsLoadSpec::Ignore, None);
    for pair in line.words.get(2..).unwrap_or_default().chunks(2) {
        let [word, value @ ..] = pair else { continue };
        let at = value.first().map_or(word.span, |word| word.span);
        match word.text.as_str() {
            "rq-load" => match value.first().and_then(streams_load) {
                Some(read) => load = read,
                None => {
                    let expected = "expects a strictly positive run-queue length, or 'auto' or 'ignore'.";
                    return context.report.alert(at, format!("'{name}' {expected}"));
                }
            },
            "min" => {
                let read = value.first().map_or(0, |word| leading_number(&word.text).0);
                least = u32::try_from(read).ok().filter(|least| *least > 0);
                match least {
                    None => {
                        let expected = "expects a strictly positive minimum number of streams'.";
                        return context.report.alert(at, format!("'{name}' {expected}"));
                    }
                    Some(least) if most > 0 && least > most => {
                        let limits = format!("({least}) cannot be higher than the maximum ({most})'.");
                        return context.report.alert(at, format!("'{name}' minimum number of streams {limits}"));
                    }
                    Some(_) => {}
                }
            }
            other => {
                let found = format!("only supports 'rq-load' or 'min' after the numeric value, but found '{other}'.");
                return context.report.alert(word.span, format!("'{name}' {found}"));
            }
        }
    }
    let http2 = &mut context.spec.tune.http2;
    (http2.client_streams, http2.streams_load, http2.least_streams) = (Some(most), load, least);
}

/// Parses the argument of `rq-load`.
fn streams_load(word: &Word) -> Option<StreamsLoadSpec> {
    match word.text.as_str() {
        "auto" => Some(StreamsLoadSpec::Auto),
        "ignore" => Some(StreamsLoadSpec::Ignore),
        number => u32::try_from(leading_number(number).0).ok().filter(|tasks| *tasks > 0).map(StreamsLoadSpec::Tasks),
    }
}

fn glitches(context: &mut GlobalContext<'_>, line: &Line) {
    let Some(threshold) = positive(context, line) else { return };
    let glitches = &mut context.spec.tune.glitches;
    let place = match line.keyword() {
        "tune.h1.fe.glitches-threshold" => &mut glitches.http1_clients,
        "tune.h1.be.glitches-threshold" => &mut glitches.http1_servers,
        "tune.h2.fe.glitches-threshold" => glitches.http2_clients.insert(threshold),
        _ => glitches.http2_servers.insert(threshold),
    };
    *place = threshold;
}

fn log_errors(context: &mut GlobalContext<'_>, line: &Line) {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return;
    }
    let level = match line.words.get(1).map(|word| word.text.as_str()) {
        Some("none") => Http2ErrorsSpec::None,
        Some("connection") => Http2ErrorsSpec::Connection,
        Some("stream") => Http2ErrorsSpec::Stream,
        _ => {
            let expected = "expects 'none', 'connection', or 'stream'";
            return context.report.alert(line.span(1), format!("'{name}' {expected}"));
        }
    };
    context.spec.tune.http2.logged_errors = level;
}

fn total_streams(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.http2.total_streams = positive(context, line);
}

fn table_size(context: &mut GlobalContext<'_>, line: &Line) {
    let expected = "numeric value between 4096 and 65536";
    context.spec.tune.http2.table_size = number(context, line, 4096..=65536, expected);
}
