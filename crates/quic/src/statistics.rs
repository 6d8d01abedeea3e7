//! The counts of a connection.

use std::time::Duration;

/// The measurements and counts of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    pub min_rtt: Duration,
    /// The congestion window in bytes.
    pub window: u64,
    /// The maximum size of a datagram on the path, in bytes.
    pub mtu: u16,
    /// Number of times that the window was reduced.
    pub congestion_events: u64,
    pub sent_packets: u64,
    pub lost_packets: u64,
    pub lost_bytes: u64,
    /// Number of times that the path turned out to carry less than its maximum.
    pub black_holes: u64,
    pub sent_datagrams: u64,
    pub sent_bytes: u64,
    pub received_datagrams: u64,
    pub received_bytes: u64,
    /// Number of received frames that a well-behaved peer needs rarely, by type.
    pub received_frames: RareFrames,
}

/// Counts of received frames by which floods are recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RareFrames {
    pub resets: u64,
    pub stops: u64,
    pub pings: u64,
    pub path_challenges: u64,
    pub new_ids: u64,
    pub retired_ids: u64,
    pub data_blocked: u64,
    pub stream_data_blocked: u64,
    /// STREAMS_BLOCKED of bidirectional and of unidirectional streams.
    pub streams_blocked: [u64; 2],
}

impl Statistics {
    pub(crate) fn of(counts: &quinn_proto::ConnectionStats) -> Self {
        let (path, frames) = (&counts.path, &counts.frame_rx);
        Self {
            rtt: path.rtt,
            min_rtt: path.min_rtt,
            window: path.cwnd,
            mtu: path.current_mtu,
            congestion_events: path.congestion_events,
            sent_packets: path.sent_packets,
            lost_packets: path.lost_packets,
            lost_bytes: path.lost_bytes,
            black_holes: path.black_holes_detected,
            sent_datagrams: counts.udp_tx.datagrams,
            sent_bytes: counts.udp_tx.bytes,
            received_datagrams: counts.udp_rx.datagrams,
            received_bytes: counts.udp_rx.bytes,
            received_frames: RareFrames {
                resets: frames.reset_stream,
                stops: frames.stop_sending,
                pings: frames.ping,
                path_challenges: frames.path_challenge,
                new_ids: frames.new_connection_id,
                retired_ids: frames.retire_connection_id,
                data_blocked: frames.data_blocked,
                stream_data_blocked: frames.stream_data_blocked,
                streams_blocked: [frames.streams_blocked_bidi, frames.streams_blocked_uni],
            },
        }
    }
}
