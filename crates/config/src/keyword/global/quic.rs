//! QUIC (sections 3.1 and 3.2): connections of clients and to servers, and the process. Must never apply a default.

use super::{GlobalContext, GlobalKeyword, supported, tuning};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::argument::{lenient, milliseconds};
use crate::keyword::bind::QUIC_WINDOWS;
use crate::span::Spanned;
use crate::spec::QlogSpec;
use crate::units;
use std::ops::RangeInclusive;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported(
        "harden.reject-privileged-ports.quic",
        "{ on | off }",
        "Ignores QUIC clients whose source port is below 1024 (default on).",
        reject_privileged_ports,
    ),
    tuning("limited-quic", "", "Allows QUIC with a TLS library that lacks its interface; Weir's has it."),
    tuning(
        "tune.quic.be.cc.cubic-min-losses",
        "<number>",
        "Losses before cubic reduces the window towards servers; one in Weir, the default.",
    ),
    tuning(
        "tune.quic.be.cc.hystart",
        "{ on | off }",
        "HyStart++ towards servers; Weir has the slow start of RFC 9002 only.",
    ),
    tuning(
        "tune.quic.be.cc.max-frame-loss",
        "<number>",
        "Losses of one frame before a server connection is closed; Weir closes it by its idle timeout.",
    ),
    supported(
        "tune.quic.be.cc.max-win-size",
        "<size>",
        "Maximum congestion window towards servers, without one on the server line.",
        server_max_window,
    ),
    tuning(
        "tune.quic.be.cc.reorder-ratio",
        "<0..100>",
        "Share of the window that may arrive out of order; Weir has the packet threshold of RFC 9002.",
    ),
    supported(
        "tune.quic.be.max-idle-timeout",
        "<time>",
        "Idle time after which QUIC connections to servers end; 0: as the server says.",
        server_idle_timeout,
    ),
    supported(
        "tune.quic.be.sec.glitches-threshold",
        "<number>",
        "Number of glitches after which a QUIC server connection is closed.",
        server_glitches,
    ),
    supported(
        "tune.quic.be.stream.data-ratio",
        "<0..100>",
        "Share of the receive buffer of a QUIC server connection that one stream may take, in percent.",
        server_data_ratio,
    ),
    supported(
        "tune.quic.be.stream.max-concurrent",
        "<number>",
        "Number of buffers of a QUIC server connection; servers open no streams in HTTP/3.",
        server_streams,
    ),
    supported(
        "tune.quic.be.stream.rxbuf",
        "<size>",
        "Size of the receive buffer of a QUIC server connection; 0: that of its streams.",
        server_receive_buffer,
    ),
    tuning("tune.quic.be.tx.pacing", "{ on | off }", "Pacing towards servers; always on in Weir."),
    supported(
        "tune.quic.be.tx.udp-gso",
        "{ on | off }",
        "Passes several datagrams to servers to the kernel at once (UDP GSO).",
        server_segmentation,
    ),
    tuning(
        "tune.quic.fe.cc.cubic-min-losses",
        "<number>",
        "Losses before cubic reduces the window towards clients; one in Weir, the default.",
    ),
    tuning(
        "tune.quic.fe.cc.hystart",
        "{ on | off }",
        "HyStart++ towards clients; Weir has the slow start of RFC 9002 only.",
    ),
    tuning(
        "tune.quic.fe.cc.max-frame-loss",
        "<number>",
        "Losses of one frame before a client connection is closed; Weir closes it by its idle timeout.",
    ),
    supported(
        "tune.quic.fe.cc.max-win-size",
        "<size>",
        "Maximum congestion window towards clients, without one on the bind line.",
        max_window,
    ),
    tuning(
        "tune.quic.fe.cc.reorder-ratio",
        "<0..100>",
        "Share of the window that may arrive out of order; Weir has the packet threshold of RFC 9002.",
    ),
    supported(
        "tune.quic.fe.max-idle-timeout",
        "<time>",
        "Idle time after which QUIC connections of clients end; 0: as the client says.",
        idle_timeout,
    ),
    supported(
        "tune.quic.fe.sec.glitches-threshold",
        "<number>",
        "Number of glitches after which a QUIC client connection is closed.",
        glitches,
    ),
    supported(
        "tune.quic.fe.sec.retry-threshold",
        "<number>",
        "Number of handshakes in progress from which clients are validated by Retry packets; needs cluster-secret.",
        retry_threshold,
    ),
    tuning(
        "tune.quic.fe.sock-per-conn",
        "{ default-on | force-off }",
        "Whether every QUIC connection gets a socket of its own; Weir has one for each thread.",
    ),
    supported(
        "tune.quic.fe.stream.data-ratio",
        "<0..100>",
        "Share of the receive buffer of a QUIC connection that one stream may take, in percent.",
        data_ratio,
    ),
    supported(
        "tune.quic.fe.stream.max-concurrent",
        "<number>",
        "Maximum number of concurrent requests of a QUIC client connection.",
        streams,
    ),
    supported(
        "tune.quic.fe.stream.max-total",
        "<number>",
        "Total number of requests after which a QUIC client connection is closed.",
        total_streams,
    ),
    supported(
        "tune.quic.fe.stream.rxbuf",
        "<size>",
        "Size of the receive buffer of a QUIC client connection; 0: that of its streams.",
        receive_buffer,
    ),
    tuning("tune.quic.fe.tx.pacing", "{ on | off }", "Pacing towards clients; always on in Weir."),
    supported(
        "tune.quic.fe.tx.udp-gso",
        "{ on | off }",
        "Passes several datagrams to the kernel at once (UDP GSO).",
        segmentation,
    ),
    supported("tune.quic.listen", "{ on | off }", "Whether QUIC addresses receive anything.", listen),
    supported(
        "tune.quic.mem.tx-max",
        "<size>",
        "Maximum number of bytes that QUIC has in flight; Weir applies it to each connection.",
        transmit_memory,
    ),
    supported(
        "tune.quic.qlog-dir",
        "<directory> [files <number>] [size <size>]",
        "Weir's own: traces of QUIC connections in qlog's form, a file for each.",
        qlog_directory,
    ),
    tuning("tune.quic.zero-copy-fwd-send", "{ on | off }", "Zero-copy sending over QUIC; Weir has no such switch."),
];

/// Stores a value that could be read.
fn store<T>(value: Option<T>, place: &mut Option<T>) {
    if value.is_some() {
        *place = value;
    }
}

/// Parses `on` or `off`.
fn switch(context: &mut GlobalContext<'_>, line: &Line) -> Option<bool> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    match line.text(1) {
        "on" => Some(true),
        "off" => Some(false),
        _ => {
            context.report.alert(line.span(1), format!("'{name}' expects either 'on' or 'off'."));
            None
        }
    }
}

/// Parses a number within a range; `expected` describes the range.
fn number(context: &mut GlobalContext<'_>, line: &Line, permitted: RangeInclusive<u32>, expected: &str) -> Option<u32> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let value = line.words.get(1).map_or(-1, |word| lenient(word, name, &mut context.report));
    let value = u32::try_from(value).ok().filter(|value| permitted.contains(value));
    if value.is_none() {
        context.report.alert(line.span(1), format!("'{name}' expects {expected}."));
    }
    value
}

fn positive(context: &mut GlobalContext<'_>, line: &Line, least: u32) -> Option<u32> {
    number(context, line, least..=i32::MAX as u32, if least > 0 { "a number above 0" } else { "a positive number" })
}

/// Parses a size in bytes within a range; `expected` describes the range.
fn size(context: &mut GlobalContext<'_>, line: &Line, permitted: RangeInclusive<u64>, expected: &str) -> Option<u64> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), format!("'{name}' expects a size."));
        return None;
    };
    match units::size(&word.text, *permitted.end()) {
        Ok(size) if permitted.contains(&size) => Some(size),
        Ok(_) => {
            context.report.alert(word.span, format!("'{name}' expects {expected}."));
            None
        }
        Err(error) => {
            let found = Diagnostic::alert(word.span, error.message(name));
            context.report.push(found.with_hint(error.hint(*permitted.end())));
            None
        }
    }
}

fn reject_privileged_ports(context: &mut GlobalContext<'_>, line: &Line) {
    store(switch(context, line), &mut context.spec.tune.quic.reject_privileged_ports);
}

fn listen(context: &mut GlobalContext<'_>, line: &Line) {
    store(switch(context, line), &mut context.spec.tune.quic.listen);
}

fn segmentation(context: &mut GlobalContext<'_>, line: &Line) {
    store(switch(context, line), &mut context.spec.tune.quic.segmentation);
}

fn max_window(context: &mut GlobalContext<'_>, line: &Line) {
    store(size(context, line, QUIC_WINDOWS, "a size between 10k and 4g"), &mut context.spec.tune.quic.max_window);
}

/// Parses a time in milliseconds.
fn time(context: &mut GlobalContext<'_>, line: &Line) -> Option<u64> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    milliseconds(
        line.words.get(1),
        line,
        name,
        &format!("'{name}' expects a time."),
        &format!("unexpected character '%c' in argument to '{name}'."),
        &mut context.report,
    )
}

fn idle_timeout(context: &mut GlobalContext<'_>, line: &Line) {
    store(time(context, line), &mut context.spec.tune.quic.idle_timeout);
}

fn server_idle_timeout(context: &mut GlobalContext<'_>, line: &Line) {
    store(time(context, line), &mut context.spec.tune.quic.servers.idle_timeout);
}

fn server_max_window(context: &mut GlobalContext<'_>, line: &Line) {
    let size = size(context, line, QUIC_WINDOWS, "a size between 10k and 4g");
    store(size, &mut context.spec.tune.quic.servers.max_window);
}

fn server_glitches(context: &mut GlobalContext<'_>, line: &Line) {
    store(positive(context, line, 0), &mut context.spec.tune.quic.servers.glitches);
}

fn server_data_ratio(context: &mut GlobalContext<'_>, line: &Line) {
    let ratio = number(context, line, 0..=100, "a percentage between 0 and 100");
    store(ratio, &mut context.spec.tune.quic.servers.data_ratio);
}

fn server_streams(context: &mut GlobalContext<'_>, line: &Line) {
    store(positive(context, line, 1), &mut context.spec.tune.quic.servers.streams);
}

fn server_receive_buffer(context: &mut GlobalContext<'_>, line: &Line) {
    let size = size(context, line, 0..=u64::from(u32::MAX), "a size");
    store(size, &mut context.spec.tune.quic.servers.receive_buffer);
}

fn server_segmentation(context: &mut GlobalContext<'_>, line: &Line) {
    store(switch(context, line), &mut context.spec.tune.quic.servers.segmentation);
}

fn glitches(context: &mut GlobalContext<'_>, line: &Line) {
    store(positive(context, line, 0), &mut context.spec.tune.quic.glitches);
}

fn retry_threshold(context: &mut GlobalContext<'_>, line: &Line) {
    store(positive(context, line, 0), &mut context.spec.tune.quic.retry_threshold);
}

fn data_ratio(context: &mut GlobalContext<'_>, line: &Line) {
    store(number(context, line, 0..=100, "a percentage between 0 and 100"), &mut context.spec.tune.quic.data_ratio);
}

fn streams(context: &mut GlobalContext<'_>, line: &Line) {
    store(positive(context, line, 1), &mut context.spec.tune.quic.streams);
}

fn total_streams(context: &mut GlobalContext<'_>, line: &Line) {
    store(positive(context, line, 0), &mut context.spec.tune.quic.total_streams);
}

fn receive_buffer(context: &mut GlobalContext<'_>, line: &Line) {
    store(size(context, line, 0..=u64::from(u32::MAX), "a size"), &mut context.spec.tune.quic.receive_buffer);
}

fn transmit_memory(context: &mut GlobalContext<'_>, line: &Line) {
    store(size(context, line, 1..=u64::MAX >> 1, "a size above 0"), &mut context.spec.tune.quic.transmit_memory);
}

/// Permitted numbers of files of `tune.quic.qlog-dir`, and sizes of one in bytes.
const QLOG_FILES: RangeInclusive<u32> = 1..=100_000;
const QLOG_SIZES: RangeInclusive<u64> = 1 << 16..=1 << 30;

fn qlog_directory(context: &mut GlobalContext<'_>, line: &Line) {
    let name = line.keyword();
    let Some(directory) = line.words.get(1) else {
        return context.report.alert(line.span(1), format!("'{name}' expects a directory path as an argument."));
    };
    let directory = Spanned::new(directory.text.to_string(), directory.span);
    let mut spec = QlogSpec { directory, files: None, size: None };
    let mut words = line.words.iter().skip(2);
    while let Some(option) = words.next() {
        let value = words.next();
        let written = value.map_or("", |word| &*word.text);
        let done = match &*option.text {
            "files" => {
                written.parse().ok().filter(|files| QLOG_FILES.contains(files)).map(|files| spec.files = Some(files))
            }
            "size" => {
                let size = units::size(written, *QLOG_SIZES.end()).ok().filter(|size| QLOG_SIZES.contains(size));
                size.map(|size| spec.size = Some(size))
            }
            _ => {
                let message = format!("'{name}' : unknown option '{}', expected 'files' or 'size'.", option.text);
                return context.report.alert(option.span, message);
            }
        };
        if done.is_none() {
            let expected =
                if &*option.text == "files" { "a number between 1 and 100000" } else { "a size between 64k and 1g" };
            let span = value.map_or(option.span, |word| word.span);
            return context.report.alert(span, format!("'{name}' : '{}' expects {expected}.", option.text));
        }
    }
    context.spec.tune.qlog = Some(spec);
}
