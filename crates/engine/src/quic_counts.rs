//! Counts what QUIC connections and their sockets do, in the counters of their frontend or backend. Must never decide on a connection.

use conn::h3;
use conn::qmux::EndCounts;
use conn::quic::{CloseCode, LinkCounts, SocketCounts};
use live::counters::{QuicCount, QuicCounters};
use wire::h3::ErrorCode;

/// Adds counts.
fn add<const N: usize>(counters: &QuicCounters, rows: [(QuicCount, u64); N]) {
    rows.iter().filter(|(_, count)| *count > 0).for_each(|(of, count)| counters.of(*of).add(*count));
}

/// Adds the counts of a socket.
pub fn add_socket(counters: &QuicCounters, counts: &SocketCounts) {
    let SocketCounts { endpoint, full } = counts;
    add(
        counters,
        [
            (QuicCount::DroppedPacket, endpoint.dropped),
            (QuicCount::TooShortDatagram, endpoint.short_initials),
            (QuicCount::RetrySent, endpoint.retries_sent),
            (QuicCount::RetryValidated, endpoint.valid_tokens),
            (QuicCount::RetryError, endpoint.invalid_tokens),
            (QuicCount::StatelessResetSent, endpoint.resets_sent),
            (QuicCount::SocketFull, *full),
        ],
    );
}

/// Adds the events of HTTP/3 on a connection.
pub fn add_http3(counters: &QuicCounters, counts: &h3::Counts) {
    add(
        counters,
        [
            (QuicCount::Http3Headers, counts.headers.into()),
            (QuicCount::Http3Data, counts.data.into()),
            (QuicCount::Http3Settings, counts.settings.into()),
            (QuicCount::Http3Goaway, counts.departures.into()),
            (QuicCount::Http3MaxPushId, counts.push_limits.into()),
            (QuicCount::DroppedPacketBufferOverrun, counts.dropped.into()),
        ],
    );
    counters.streams.add(counts.streams.into());
    for (code, count) in counts.errors.iter() {
        if let Some(of) = of_error(code) {
            counters.of(of).add(count.into());
        }
    }
}

/// Counts the code with which a peer has closed its connection.
pub fn add_close(counters: &QuicCounters, code: CloseCode) {
    let of = match code {
        CloseCode::Transport(code) => Some(of_transport(code)),
        CloseCode::Application(code) => ErrorCode::of(code).and_then(of_error),
    };
    if let Some(of) = of {
        counters.of(of).increment();
    }
}

/// Adds the counts of a connection of QMux that has ended.
pub fn add_end(counters: &QuicCounters, counts: &EndCounts) {
    add_link(counters, &counts.frames);
    if let Some(code) = counts.close_code {
        add_close(counters, code);
    }
}

/// Returns the counter of an error of HTTP/3 or QPACK.
fn of_error(code: ErrorCode) -> Option<QuicCount> {
    Some(match code {
        ErrorCode::NoError => QuicCount::Http3NoError,
        ErrorCode::GeneralProtocolError => QuicCount::Http3GeneralProtocolError,
        ErrorCode::InternalError => QuicCount::Http3InternalError,
        ErrorCode::StreamCreationError => QuicCount::Http3StreamCreationError,
        ErrorCode::ClosedCriticalStream => QuicCount::Http3ClosedCriticalStream,
        ErrorCode::FrameUnexpected => QuicCount::Http3FrameUnexpected,
        ErrorCode::FrameError => QuicCount::Http3FrameError,
        ErrorCode::ExcessiveLoad => QuicCount::Http3ExcessiveLoad,
        ErrorCode::IdError => QuicCount::Http3IdError,
        ErrorCode::SettingsError => QuicCount::Http3SettingsError,
        ErrorCode::MissingSettings => QuicCount::Http3MissingSettings,
        ErrorCode::RequestRejected => QuicCount::Http3RequestRejected,
        ErrorCode::RequestCancelled => QuicCount::Http3RequestCancelled,
        ErrorCode::RequestIncomplete => QuicCount::Http3RequestIncomplete,
        ErrorCode::MessageError => QuicCount::Http3MessageError,
        ErrorCode::ConnectError => QuicCount::Http3ConnectError,
        ErrorCode::VersionFallback => QuicCount::Http3VersionFallback,
        ErrorCode::QpackDecompressionFailed => QuicCount::QpackDecompressionFailed,
        ErrorCode::QpackEncoderStreamError => QuicCount::QpackEncoderStreamError,
        ErrorCode::QpackDecoderStreamError => QuicCount::QpackDecoderStreamError,
        ErrorCode::DatagramError => return None,
    })
}

/// Returns the counter of a transport error (RFC 9000, section 20.1).
fn of_transport(code: u64) -> QuicCount {
    match code {
        0x00 => QuicCount::TransportNoError,
        0x01 => QuicCount::TransportInternalError,
        0x02 => QuicCount::TransportConnectionRefused,
        0x03 => QuicCount::TransportFlowControlError,
        0x04 => QuicCount::TransportStreamLimitError,
        0x05 => QuicCount::TransportStreamStateError,
        0x06 => QuicCount::TransportFinalSizeError,
        0x07 => QuicCount::TransportFrameEncodingError,
        0x08 => QuicCount::TransportTransportParameterError,
        0x09 => QuicCount::TransportConnectionIdLimit,
        0x0a => QuicCount::TransportProtocolViolationError,
        0x0b => QuicCount::TransportInvalidToken,
        0x0c => QuicCount::TransportApplicationError,
        0x0d => QuicCount::TransportCryptoBufferExceeded,
        0x0e => QuicCount::TransportKeyUpdateError,
        0x0f => QuicCount::TransportAeadLimitReached,
        0x10 => QuicCount::TransportNoViablePath,
        0x100..=0x1ff => QuicCount::TransportCryptoError,
        _ => QuicCount::TransportUnknownError,
    }
}

/// Adds the counts of a connection.
pub fn add_link(counters: &QuicCounters, counts: &LinkCounts) {
    add(
        counters,
        [
            (QuicCount::SentPacket, counts.sent_packets),
            (QuicCount::LostPacket, counts.lost_packets),
            (QuicCount::DataBlocked, counts.data_blocked),
            (QuicCount::StreamDataBlocked, counts.stream_data_blocked),
            (QuicCount::StreamsBlockedBidirectional, counts.streams_blocked[0]),
            (QuicCount::StreamsBlockedUnidirectional, counts.streams_blocked[1]),
            (QuicCount::ConnectionMigrationDone, counts.migrations),
        ],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code has its own counter.
    #[test]
    fn errors_are_counted_by_their_code() {
        let of_http3 = ErrorCode::ALL.iter().filter_map(|code| of_error(*code));
        let of_quic = (0..=0x11).chain([0x100]).map(of_transport);
        let mut all: Vec<usize> = of_http3.chain(of_quic).map(|count| count as usize).collect();
        let known = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), known), (20 + 19, 20 + 19));
        assert_eq!(of_transport(0x128), QuicCount::TransportCryptoError);
    }
}
