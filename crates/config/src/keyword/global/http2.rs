//! Multiplexers: HTTP/1 glitches, HTTP/2 (section 3.2).

use super::{GlobalKeyword, not_yet};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    not_yet("tune.h1.be.glitches-threshold", "<number>", "Oddities after which an HTTP/1 server connection is closed."),
    not_yet("tune.h1.fe.glitches-threshold", "<number>", "Oddities after which an HTTP/1 client connection is closed."),
    not_yet("tune.h2.be.glitches-threshold", "<number>", "Oddities after which an HTTP/2 server connection is closed."),
    not_yet("tune.h2.be.initial-window-size", "<number>", "Window announced to HTTP/2 servers."),
    not_yet("tune.h2.be.max-concurrent-streams", "<number>", "Streams at once on a server connection."),
    not_yet("tune.h2.be.max-frames-at-once", "<number>", "Frames handled in a row on a server connection."),
    not_yet("tune.h2.be.rxbuf", "<size>", "Receive buffers of a server connection."),
    not_yet("tune.h2.fe.glitches-threshold", "<number>", "Oddities after which an HTTP/2 client connection is closed."),
    not_yet("tune.h2.fe.initial-window-size", "<number>", "Window announced to HTTP/2 clients."),
    not_yet("tune.h2.fe.max-concurrent-streams", "<number> [<argument>...]", "Streams at once on a client connection."),
    not_yet("tune.h2.fe.max-frames-at-once", "<number>", "Frames handled in a row on a client connection."),
    not_yet("tune.h2.fe.max-rst-at-once", "<number>", "RST_STREAM frames handled in a row on a client connection."),
    not_yet("tune.h2.fe.max-total-streams", "<number>", "Streams in all after which a client connection is closed."),
    not_yet("tune.h2.fe.rxbuf", "<size>", "Receive buffers of a client connection."),
    not_yet("tune.h2.header-table-size", "<number>", "Size of the dynamic header table."),
    not_yet("tune.h2.initial-window-size", "<number>", "Window announced on both sides."),
    not_yet("tune.h2.log-errors", "{ none | connection | stream }", "Which HTTP/2 errors are logged."),
    not_yet("tune.h2.max-concurrent-streams", "<number>", "Streams at once on both sides."),
    not_yet("tune.h2.max-frame-size", "<number>", "Largest frame announced."),
];
