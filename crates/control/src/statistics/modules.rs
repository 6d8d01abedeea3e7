//! Columns of the statistics: counters of HTTP/2 and TLS. In HAProxy's order, which programs rely on. Must
//! never count anything.

use super::column::{Column, ColumnObjects, column};
use super::object::{B, F, L, S};
use crate::field::Value;

/// The columns of HTTP/2 and TLS. A lone `-` precedes them in the CSV form.
pub(crate) const COLUMNS: &[Column] = &[
    column("h2_headers_rcvd", "MCPV", "Total number of received HEADERS frames", ColumnObjects::both(F | B), |o| {
        o.http2(|t| &t.headers_received)
    }),
    column("h2_data_rcvd", "MCPV", "Total number of received DATA frames", ColumnObjects::both(F | B), |o| {
        o.http2(|t| &t.data_received)
    }),
    column("h2_settings_rcvd", "MCPV", "Total number of received SETTINGS frames", ColumnObjects::both(F | B), |o| {
        o.http2(|t| &t.settings_received)
    }),
    column(
        "h2_rst_stream_rcvd",
        "MCPV",
        "Total number of received RST_STREAM frames",
        ColumnObjects::both(F | B),
        |o| o.http2(|t| &t.resets_received),
    ),
    column("h2_goaway_rcvd", "MCPV", "Total number of received GOAWAY frames", ColumnObjects::both(F | B), |o| {
        o.http2(|t| &t.departures_received)
    }),
    column(
        "h2_detected_conn_protocol_errors",
        "MCPV",
        "Total number of connection protocol errors",
        ColumnObjects::both(F | B),
        |o| o.http2(|t| &t.connection_errors),
    ),
    column(
        "h2_detected_strm_protocol_errors",
        "MCPV",
        "Total number of stream protocol errors",
        ColumnObjects::both(F | B),
        |o| o.http2(|t| &t.stream_errors),
    ),
    column(
        "h2_rst_stream_resp",
        "MCPV",
        "Total number of RST_STREAM sent on detected error",
        ColumnObjects::both(F | B),
        |o| o.http2(|t| &t.resets_sent),
    ),
    column(
        "h2_goaway_resp",
        "MCPV",
        "Total number of GOAWAY sent on detected error",
        ColumnObjects::both(F | B),
        |o| o.http2(|t| &t.departures_sent),
    ),
    column("h2_open_connections", "MGPV", "Count of currently open connections", ColumnObjects::both(F | B), |o| {
        o.http2(|t| &t.open_connections)
    }),
    column("h2_backend_open_streams", "MGPV", "Count of currently open streams", ColumnObjects::both(F | B), |o| {
        o.http2(|t| &t.open_streams)
    }),
    column("h2_total_connections", "MCPV", "Total number of connections", ColumnObjects::both(F | B), |o| {
        o.http2(|t| &t.connections)
    }),
    column("h2_backend_total_streams", "MCPV", "Total number of streams", ColumnObjects::both(F | B), |o| {
        o.http2(|t| &t.streams)
    }),
    column("ssl_sess", "MCPV", "Total number of ssl sessions established", ColumnObjects::both(F | L | S | B), |o| {
        o.count(|t| &t.tls_sessions)
    }),
    column("ssl_reused_sess", "MCPV", "Total number of ssl sessions reused", ColumnObjects::both(F | L | S | B), |o| {
        o.count(|t| &t.tls_resumed)
    }),
    column(
        "ssl_failed_handshake",
        "MCPV",
        "Total number of failed handshake",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.tls_failed),
    ),
    column(
        "ssl_ocsp_staple",
        "MCPV",
        "Total number of stapled OCSP responses",
        ColumnObjects::both(F | L | S | B),
        |_| Value::U64(0),
    ),
    column(
        "ssl_failed_ocsp_staple",
        "MCPV",
        "Total number of failed OCSP stapling (expired or error)",
        ColumnObjects::both(F | L | S | B),
        |_| Value::U64(0),
    ),
];
