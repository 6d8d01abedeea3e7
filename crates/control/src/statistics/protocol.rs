//! Columns of the statistics, third part: sessions and bytes by protocol. In HAProxy's order, which programs rely on.
//! Must never count anything.

use super::column::{Column, ColumnObjects, column};
use super::object::{B, F, L, S};
use crate::field::Value;

/// Columns 104 to 118.
pub(crate) const COLUMNS: &[Column] = &[
    column(
        "sess_other",
        "MCPV",
        "Total number of sessions other than HTTP since process started",
        ColumnObjects::both(F),
        |o| o.tcp_count(|t| &t.sessions),
    ),
    column("h1sess", "MCPP", "Total number of HTTP/1 sessions since process started", ColumnObjects::both(F), |o| {
        o.http1_count(|t| &t.sessions, |t| &t.connections, |t| &t.connections)
    }),
    column("h2sess", "MCPP", "Total number of HTTP/2 sessions since process started", ColumnObjects::both(F), |o| {
        o.http2(|t| &t.connections)
    }),
    column("h3sess", "MCPP", "Total number of HTTP/3 sessions since process started", ColumnObjects::both(F), |o| {
        o.quic_own(|counters| &counters.connections)
    }),
    column(
        "req_other",
        "MCPP",
        "Total number of sessions other than HTTP processed by this object since the worker process started",
        ColumnObjects::both(F),
        |_| Value::U64(0),
    ),
    column(
        "h1req",
        "MCPP",
        "Total number of HTTP/1 sessions processed by this object since the worker process started",
        ColumnObjects::both(F),
        |o| o.http1_count(|t| &t.requests, |t| &t.streams, |t| &t.streams),
    ),
    column(
        "h2req",
        "MCPP",
        "Total number of hTTP/2 sessions processed by this object since the worker process started",
        ColumnObjects::both(F),
        |o| o.http2(|t| &t.streams),
    ),
    column(
        "h3req",
        "MCPP",
        "Total number of HTTP/3 sessions processed by this object since the worker process started",
        ColumnObjects::both(F),
        |o| o.quic_own(|counters| &counters.streams),
    ),
    column("proto", "SGPV", "Protocol", ColumnObjects::both(L), |o| o.protocol()),
    column("priv_idle_cur", "MGPV", "Current number of private idle connections", ColumnObjects::both(S), |_| {
        Value::U32(0)
    }),
    column(
        "reqbin",
        "MCPP",
        "Total number of request bytes received since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.bytes_in),
    ),
    column(
        "reqbout",
        "MCPP",
        "Total number of request bytes sent since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.sent),
    ),
    column(
        "resbin",
        "MCPP",
        "Total number of response bytes received since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.received),
    ),
    column(
        "resbout",
        "MCPP",
        "Total number of response bytes sent since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.bytes_out),
    ),
    column(
        "cache_hint_hits",
        "MCPP",
        "Total number of HTTP requests for which a 103 Early Hints response was emitted from the cache on this frontend/backend since the worker process started",
        ColumnObjects::http(F | B),
        |o| o.content(|counters| &counters.cache_hint_hits),
    ),
];
