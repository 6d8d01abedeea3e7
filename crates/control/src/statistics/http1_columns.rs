//! Columns of the statistics, last part: counters of HTTP/1. In HAProxy's order, which programs rely on. Must never count
//! anything.

use live::counters::ProtocolCounter;

use super::column::{Column, ColumnObjects, column};
use super::object::{B, F};
use crate::field::Value;

/// The columns after those of QUIC.
pub(crate) const COLUMNS: &[Column] = &[
    column("h1_open_connections", "MGPV", "Count of currently open connections", ColumnObjects::both(F | B), |o| {
        o.open_links()
    }),
    column("h1_open_streams", "MGPV", "Count of currently open streams", ColumnObjects::both(F | B), |_| Value::U64(0)),
    column("h1_total_connections", "MCPV", "Total number of connections", ColumnObjects::both(F | B), |o| {
        o.protocol_count(ProtocolCounter::Connections)
    }),
    column("h1_total_streams", "MCPV", "Total number of streams", ColumnObjects::both(F | B), |o| {
        o.protocol_count(ProtocolCounter::Streams)
    }),
    column("h1_bytes_in", "MCPV", "Total number of bytes received", ColumnObjects::both(F | B), |o| {
        o.protocol_count(ProtocolCounter::Received)
    }),
    column("h1_bytes_out", "MCPV", "Total number of bytes send", ColumnObjects::both(F | B), |o| {
        o.protocol_count(ProtocolCounter::Sent)
    }),
    column(
        "h1_spliced_bytes_in",
        "MCPV",
        "Total number of bytes received using kernel splicing",
        ColumnObjects::both(F | B),
        |o| o.protocol_count(ProtocolCounter::SplicedIn),
    ),
    column(
        "h1_spliced_bytes_out",
        "MCPV",
        "Total number of bytes sendusing kernel splicing",
        ColumnObjects::both(F | B),
        |o| o.protocol_count(ProtocolCounter::SplicedOut),
    ),
];
