//! Counters of HTTP/2 on one side of a proxy. Must never be written by two threads.

use super::cell::Count;

/// Counters of a frontend's connections with clients, or of a backend's with servers. The frames counted are those of
/// HAProxy's counters of the same names; the last five counters are Weir's own.
#[derive(Debug, Default)]
pub struct Http2Counters {
    pub headers_received: Count,
    pub data_received: Count,
    pub settings_received: Count,
    pub resets_received: Count,
    pub departures_received: Count,
    pub connection_errors: Count,
    pub stream_errors: Count,
    /// RST_STREAM and GOAWAY frames sent because of errors.
    pub resets_sent: Count,
    pub departures_sent: Count,
    /// Open connections and streams.
    pub open_connections: Count,
    pub open_streams: Count,
    pub connections: Count,
    pub streams: Count,
    /// Glitches, including those of HTTP/1, but not those of HTTP/3.
    pub glitches: Count,
    /// How often payload was blocked by the window of its stream, or of its connection.
    pub stream_stalls: Count,
    pub connection_stalls: Count,
}

impl Http2Counters {
    /// Clears all but the open connections and streams.
    pub(super) fn clear(&self) {
        let counts = [
            &self.headers_received,
            &self.data_received,
            &self.settings_received,
            &self.resets_received,
            &self.departures_received,
            &self.connection_errors,
            &self.stream_errors,
            &self.resets_sent,
            &self.departures_sent,
            &self.connections,
            &self.streams,
            &self.glitches,
            &self.stream_stalls,
            &self.connection_stalls,
        ];
        counts.into_iter().for_each(|count| count.set(0));
    }
}
