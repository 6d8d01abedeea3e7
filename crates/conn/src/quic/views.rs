//! The events and streams of a connection, as they are counted and shown. Must never refer to a connection.

use quic::statistics::RareFrames;
use quic::{Closed, EndpointCounts, Statistics};

/// Events of a connection since they were last taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    pub sent_packets: u64,
    pub lost_packets: u64,
    /// Frames received: DATA_BLOCKED, STREAM_DATA_BLOCKED, and STREAMS_BLOCKED of both directions.
    pub data_blocked: u64,
    pub stream_data_blocked: u64,
    pub streams_blocked: [u64; 2],
    /// Changes of the client's address.
    pub migrations: u64,
}

/// The counts of a socket since they were last taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketCounts {
    /// Those of its datagrams that no connection has received.
    pub endpoint: EndpointCounts,
    /// How often the kernel had no room for datagrams.
    pub full: u64,
}

/// The code with which a peer has closed its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCode {
    /// Of its transport.
    Transport(u64),
    /// Of its application.
    Application(u64),
}

impl CloseCode {
    /// Returns the code if the peer has closed the connection.
    pub(crate) fn of(closed: &Closed) -> Option<Self> {
        match closed {
            Closed::ByPeer { code, .. } => Some(Self::Application(*code)),
            Closed::PeerTransport { code, .. } => Some(Self::Transport(*code)),
            _ => None,
        }
    }
}

impl LinkCounts {
    pub(super) fn of(statistics: &Statistics, migrations: u64) -> Self {
        let Statistics { sent_packets, lost_packets, .. } = *statistics;
        Self { sent_packets, lost_packets, migrations, ..Self::of_frames(&statistics.received_frames) }
    }

    /// Returns those of frames.
    pub(crate) fn of_frames(frames: &RareFrames) -> Self {
        Self {
            data_blocked: frames.data_blocked,
            stream_data_blocked: frames.stream_data_blocked,
            streams_blocked: frames.streams_blocked,
            ..Self::default()
        }
    }

    /// Returns what was added since `before`. Counts of a path begin anew with another path.
    pub(super) fn since(self, before: &Self) -> Self {
        let path = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self {
            sent_packets: path(self.sent_packets, before.sent_packets),
            lost_packets: path(self.lost_packets, before.lost_packets),
            data_blocked: self.data_blocked - before.data_blocked,
            stream_data_blocked: self.stream_data_blocked - before.stream_data_blocked,
            streams_blocked: [0, 1].map(|at| self.streams_blocked[at] - before.streams_blocked[at]),
            migrations: self.migrations - before.migrations,
        }
    }
}

/// A request stream of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamView {
    /// The identifier of the stream.
    pub id: u64,
    /// Bytes that were received and not taken by the stream's task.
    pub unread: usize,
    /// Whether the peer has ended its message.
    pub is_ended: bool,
    /// Whether Weir has ended its own.
    pub is_complete: bool,
    /// Whether its task has released it: the peer has not acknowledged all of it.
    pub is_released: bool,
}

/// The protocol that a connection carries, for those that show it.
pub(crate) trait Carried {
    /// Returns the streams from the oldest on, at most `most` of them, and the number of all.
    fn streams(&self, most: usize) -> (Vec<StreamView>, usize);
}
