//! Counters of a connection of HTTP/2. Must never decide the consequences of a count.

/// The number of CONTINUATION frames of a block that are no glitch.
const FEW_PIECES: u32 = 4;

/// Average size of a block's pieces in bytes above which they are no glitch, whatever their number.
const WORTHWHILE_PIECE: usize = 512;

/// The number of pieces that add one glitch.
const MORE_PIECES: u32 = 16;

/// Counters of a connection since they were last taken. Names are those of HAProxy's counters if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// HEADERS frames received.
    pub headers: u32,
    /// DATA frames received.
    pub data: u32,
    /// SETTINGS frames received.
    pub settings: u32,
    /// RST_STREAM frames received.
    pub resets: u32,
    /// GOAWAY frames received.
    pub departures: u32,
    /// Errors of the peer that have ended the connection.
    pub connection_errors: u32,
    /// Errors of the peer that have ended a stream.
    pub stream_errors: u32,
    /// RST_STREAM frames sent because of an error.
    pub resets_sent: u32,
    /// GOAWAY frames sent because of an error.
    pub departures_sent: u32,
    /// Streams that have begun.
    pub streams: u32,
    /// Streams that have ended.
    pub ended: u32,
    /// How often payload had to wait because the peer's window of the stream was used up.
    pub stream_stalls: u32,
    /// How often payload had to wait because the peer's window of the connection was used up.
    pub connection_stalls: u32,
    pub glitches: u32,
    /// Requests that did not become a stream because they were invalid.
    pub malformed: u32,
    /// Heads whose errors have ended the connection.
    pub fatal: u32,
}

/// The number of glitches of a block of `bytes` bytes received in that number of CONTINUATION frames.
pub(super) fn of_pieces(pieces: u32, bytes: usize) -> u32 {
    if pieces <= FEW_PIECES || bytes / pieces as usize > WORTHWHILE_PIECE {
        return 0;
    }
    1 + (pieces - 1) / MORE_PIECES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As counted by HAProxy 3.5.
    #[test]
    fn many_small_pieces_are_glitches() {
        let rows =
            [(1, 10, 0), (4, 0, 0), (5, 0, 1), (16, 1600, 1), (17, 1700, 2), (32, 320, 2), (33, 33, 3), (6, 12_000, 0)];
        for (pieces, bytes, glitches) in rows {
            assert_eq!(of_pieces(pieces, bytes), glitches, "{pieces} of {bytes} bytes");
        }
    }
}
