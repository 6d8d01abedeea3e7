//! `tune.*` and QUIC, as text.

use super::field;
use weir_config::span::Span;
use weir_config::spec::{
    Http2TuneSpec, ListenerTuneSpec, QuicBindSpec, QuicConnectingSpec, QuicServerTuneSpec, QuicTuneSpec, ServerSpec,
    TuneSpec,
};

/// The `tune.*` keywords.
pub fn all(tune: &TuneSpec, out: &mut String) {
    let default = TuneSpec::default();
    changed!(out, tune, default, TuneSpec {
        bufsize, large_bufsize, maxrewrite, http_maxhdr, http_logurilen, http_cookielen, maxaccept, idle_pool_shared, pool_low_fd_ratio,
        pool_high_fd_ratio, rcvbuf_client, rcvbuf_server, rcvbuf_frontend, sndbuf_client, sndbuf_server, sndbuf_frontend, sndbuf_backend, pipesize, maxpollevents, peers_max_updates, max_rules_at_once, evaluation_time, variables,
        stick_counters, purge, glitches, streams_elasticity, qlog,
    } but { listener, http2, quic });
    quic(&tune.quic, out);
    changed!(out, &tune.http2, default.http2, Http2TuneSpec {
        window, client_window, server_window, client_buffers, server_buffers, streams, client_streams, server_streams,
        total_streams, conceals_websockets, table_size, streams_load, least_streams, logged_errors,
    } but {});
    changed!(out, &tune.listener, default.listener, ListenerTuneSpec { default_shards, multi_queue } but {});
}

/// The `default-server` lines of a proxy.
pub fn default_servers(servers: &[ServerSpec], for_added: Option<Span>, out: &mut String) {
    let named = servers.iter().map(|server| &server.name.value).filter(|name| !name.is_empty());
    field(out, "default_servers", &named.collect::<Vec<_>>(), &Vec::new());
    field(out, "for_added", &for_added.is_some(), &false);
}

/// `tune.quic.*`.
fn quic(written: &QuicTuneSpec, out: &mut String) {
    changed!(out, written, QuicTuneSpec::default(), QuicTuneSpec {
        listen, transmit_memory, reject_privileged_ports, idle_timeout, max_window, glitches, retry_threshold, streams,
        total_streams, receive_buffer, data_ratio, segmentation,
    } but { servers });
    if written.servers != QuicServerTuneSpec::default() {
        out.push_str(" servers:");
    }
    changed!(out, &written.servers, QuicServerTuneSpec::default(), QuicServerTuneSpec {
        idle_timeout, max_window, glitches, streams, receive_buffer, data_ratio, segmentation,
    } but {});
}

/// QUIC options of a `server` line.
pub fn quic_server(written: &QuicConnectingSpec, out: &mut String) {
    changed!(out, written, QuicConnectingSpec::default(), QuicConnectingSpec { congestion, max_window } but { webtransport });
    field(out, "webtransport", &written.webtransport.is_some(), &false);
}

/// Options of a `bind` line.
pub fn quic_bind(written: &QuicBindSpec, out: &mut String) {
    changed!(out, written, QuicBindSpec::default(), QuicBindSpec { congestion, max_window } but { force_retry, webtransport });
    field(out, "force_retry", &written.force_retry.is_some(), &false);
    field(out, "webtransport", &written.webtransport.is_some(), &false);
}
