//! QUIC (sections 3.1 and 3.2).

use super::{GlobalKeyword, not_yet};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    not_yet("limited-quic", "", "Allows QUIC listeners with a TLS library without QUIC support."),
    not_yet("tune.quic.be.cc.cubic-min-losses", "<number>", "Losses before cubic slows down, towards servers."),
    not_yet("tune.quic.be.cc.hystart", "{ on | off }", "HyStart++ towards servers."),
    not_yet(
        "tune.quic.be.cc.max-frame-loss",
        "<number>",
        "Losses of one frame before the connection is closed, towards servers.",
    ),
    not_yet("tune.quic.be.cc.max-win-size", "<size>", "Maximum congestion window towards servers."),
    not_yet(
        "tune.quic.be.cc.reorder-ratio",
        "<0..100>",
        "Share of the window that may arrive out of order, towards servers.",
    ),
    not_yet("tune.quic.be.max-idle-timeout", "<time>", "Idle time announced to servers."),
    not_yet(
        "tune.quic.be.sec.glitches-threshold",
        "<number>",
        "Number of glitches after which a server connection is closed.",
    ),
    not_yet(
        "tune.quic.be.stream.data-ratio",
        "<0..100>",
        "Share of the buffers that one stream may take, towards servers.",
    ),
    not_yet("tune.quic.be.stream.max-concurrent", "<number>", "Streams that a server may open at once."),
    not_yet("tune.quic.be.stream.rxbuf", "<size>", "Receive buffers of a server connection."),
    not_yet("tune.quic.be.tx.pacing", "{ on | off }", "Pacing towards servers."),
    not_yet("tune.quic.be.tx.udp-gso", "{ on | off }", "UDP segmentation offload towards servers."),
    not_yet("tune.quic.fe.cc.cubic-min-losses", "<number>", "Losses before cubic slows down, towards clients."),
    not_yet("tune.quic.fe.cc.hystart", "{ on | off }", "HyStart++ towards clients."),
    not_yet(
        "tune.quic.fe.cc.max-frame-loss",
        "<number>",
        "Losses of one frame before the connection is closed, towards clients.",
    ),
    not_yet("tune.quic.fe.cc.max-win-size", "<size>", "Maximum congestion window towards clients."),
    not_yet(
        "tune.quic.fe.cc.reorder-ratio",
        "<0..100>",
        "Share of the window that may arrive out of order, towards clients.",
    ),
    not_yet("tune.quic.fe.max-idle-timeout", "<time>", "Idle time announced to clients."),
    not_yet(
        "tune.quic.fe.sec.glitches-threshold",
        "<number>",
        "Number of glitches after which a client connection is closed.",
    ),
    not_yet("tune.quic.fe.sec.retry-threshold", "<number>", "Half-open connections from which Retry packets are sent."),
    not_yet(
        "tune.quic.fe.sock-per-conn",
        "{ default-on | force-off }",
        "Whether every connection gets a socket of its own.",
    ),
    not_yet(
        "tune.quic.fe.stream.data-ratio",
        "<0..100>",
        "Share of the buffers that one stream may take, towards clients.",
    ),
    not_yet("tune.quic.fe.stream.max-concurrent", "<number>", "Streams that a client may open at once."),
    not_yet(
        "tune.quic.fe.stream.max-total",
        "<number>",
        "Total number of streams after which a client connection is closed.",
    ),
    not_yet("tune.quic.fe.stream.rxbuf", "<size>", "Receive buffers of a client connection."),
    not_yet("tune.quic.fe.tx.pacing", "{ on | off }", "Pacing towards clients."),
    not_yet("tune.quic.fe.tx.udp-gso", "{ on | off }", "UDP segmentation offload towards clients."),
    not_yet("tune.quic.listen", "{ on | off }", "Whether QUIC listeners are opened at all."),
    not_yet("tune.quic.mem.tx-max", "<size>", "Maximum memory of data in flight, over all connections."),
];
