//! Counters of QUIC and HTTP/3, of a frontend's connections with clients or of a backend's with servers. Must never be counted
//! in by two threads.

use std::sync::OnceLock;

use super::cell::Count;

/// A counter. Names and order are those of HAProxy's statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicCount {
    /// `h3_data`
    Http3Data,
    /// `h3_headers`
    Http3Headers,
    /// `h3_cancel_push`
    Http3CancelPush,
    /// `h3_push_promise`
    Http3PushPromise,
    /// `h3_max_push_id`
    Http3MaxPushId,
    /// `h3_goaway`
    Http3Goaway,
    /// `h3_settings`
    Http3Settings,
    /// `h3_no_error`
    Http3NoError,
    /// `h3_general_protocol_error`
    Http3GeneralProtocolError,
    /// `h3_internal_error`
    Http3InternalError,
    /// `h3_stream_creation_error`
    Http3StreamCreationError,
    /// `h3_closed_critical_stream`
    Http3ClosedCriticalStream,
    /// `h3_frame_unexpected`
    Http3FrameUnexpected,
    /// `h3_frame_error`
    Http3FrameError,
    /// `h3_excessive_load`
    Http3ExcessiveLoad,
    /// `h3_id_error`
    Http3IdError,
    /// `h3_settings_error`
    Http3SettingsError,
    /// `h3_missing_settings`
    Http3MissingSettings,
    /// `h3_request_rejected`
    Http3RequestRejected,
    /// `h3_request_cancelled`
    Http3RequestCancelled,
    /// `h3_request_incomplete`
    Http3RequestIncomplete,
    /// `h3_message_error`
    Http3MessageError,
    /// `h3_connect_error`
    Http3ConnectError,
    /// `h3_version_fallback`
    Http3VersionFallback,
    /// `pack_decompression_failed`
    QpackDecompressionFailed,
    /// `qpack_encoder_stream_error`
    QpackEncoderStreamError,
    /// `qpack_decoder_stream_error`
    QpackDecoderStreamError,
    /// `quic_rxbuf_full`
    ReceiveBufferFull,
    /// `quic_dropped_pkt`
    DroppedPacket,
    /// `quic_dropped_pkt_bufoverrun`
    DroppedPacketBufferOverrun,
    /// `quic_dropped_parsing_pkt`
    DroppedParsingPacket,
    /// `quic_socket_full`
    SocketFull,
    /// `quic_sendto_err`
    SendError,
    /// `quic_sendto_err_unknwn`
    SendErrorUnknown,
    /// `quic_sent_pkt`
    SentPacket,
    /// `quic_lost_pkt`
    LostPacket,
    /// `quic_too_short_dgram`
    TooShortDatagram,
    /// `quic_retry_sent`
    RetrySent,
    /// `quic_retry_validated`
    RetryValidated,
    /// `quic_retry_error`
    RetryError,
    /// `quic_half_open_conn`
    HalfOpenConnection,
    /// `quic_hdshk_fail`
    HandshakeFail,
    /// `quic_stless_rst_sent`
    StatelessResetSent,
    /// `quic_conn_migration_done`
    ConnectionMigrationDone,
    /// `quic_transp_err_no_error`
    TransportNoError,
    /// `quic_transp_err_internal_error`
    TransportInternalError,
    /// `quic_transp_err_connection_refused`
    TransportConnectionRefused,
    /// `quic_transp_err_flow_control_error`
    TransportFlowControlError,
    /// `quic_transp_err_stream_limit_error`
    TransportStreamLimitError,
    /// `quic_transp_err_stream_state_error`
    TransportStreamStateError,
    /// `quic_transp_err_final_size_error`
    TransportFinalSizeError,
    /// `quic_transp_err_frame_encoding_error`
    TransportFrameEncodingError,
    /// `quic_transp_err_transport_parameter_error`
    TransportTransportParameterError,
    /// `quic_transp_err_connection_id_limit`
    TransportConnectionIdLimit,
    /// `quic_transp_err_protocol_violation_error`
    TransportProtocolViolationError,
    /// `quic_transp_err_invalid_token`
    TransportInvalidToken,
    /// `quic_transp_err_application_error`
    TransportApplicationError,
    /// `quic_transp_err_crypto_buffer_exceeded`
    TransportCryptoBufferExceeded,
    /// `quic_transp_err_key_update_error`
    TransportKeyUpdateError,
    /// `quic_transp_err_aead_limit_reached`
    TransportAeadLimitReached,
    /// `quic_transp_err_no_viable_path`
    TransportNoViablePath,
    /// `quic_transp_err_crypto_error`
    TransportCryptoError,
    /// `quic_transp_err_unknown_error`
    TransportUnknownError,
    /// `quic_data_blocked`
    DataBlocked,
    /// `quic_stream_data_blocked`
    StreamDataBlocked,
    /// `quic_streams_blocked_bidi`
    StreamsBlockedBidirectional,
    /// `quic_streams_blocked_uni`
    StreamsBlockedUnidirectional,
    /// `quic_ncbuf_gap_limit`
    ReassemblyGapLimit,
}

/// The number of counters.
const COUNTS: usize = QuicCount::ReassemblyGapLimit as usize + 1;

/// The counters of a frontend with a QUIC listener, or of a backend with a QUIC server; others have none.
#[derive(Debug)]
pub struct QuicCounters {
    counts: [Count; COUNTS],
    /// Connections and streams; a stream is counted when its request begins.
    pub connections: Count,
    pub streams: Count,
    /// Glitches of its peers.
    pub glitches: Count,
}

impl Default for QuicCounters {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| Count::default()),
            connections: Count::default(),
            streams: Count::default(),
            glitches: Count::default(),
        }
    }
}

impl QuicCounters {
    /// Returns a counter.
    pub fn of(&self, count: QuicCount) -> &Count {
        &self.counts[count as usize]
    }

    /// Clears all but the numbers of what is open.
    pub(super) fn clear(&self) {
        let own = [&self.connections, &self.streams, &self.glitches];
        let counts = self.counts.iter().enumerate().filter(|(at, _)| *at != QuicCount::HalfOpenConnection as usize);
        counts.map(|(_, count)| count).chain(own).for_each(|count| count.set(0));
    }
}

/// Counters that are allocated when the first one is counted.
#[derive(Debug, Default)]
pub struct LazyQuicCounters(OnceLock<Box<QuicCounters>>);

impl LazyQuicCounters {
    /// Returns the counters to count in.
    pub fn used(&self) -> &QuicCounters {
        self.0.get_or_init(Box::default)
    }

    /// Returns the counters to read; `None`: nothing was counted.
    pub fn known(&self) -> Option<&QuicCounters> {
        self.0.get().map(|counters| &**counters)
    }
}
