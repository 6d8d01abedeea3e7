//! Columns of the statistics: counters of HTTP/3 and QUIC. In HAProxy's order, which programs rely on. Must
//! never count anything.

use live::counters::QuicCount;

use super::column::{Column, ColumnObjects, column};
use super::object::{B, F};

/// Returns a column of a counter.
macro_rules! row {
    ($name:literal, $kind:literal, $description:literal, $count:ident) => {
        column($name, $kind, $description, ColumnObjects::both(F | B), |o| o.quic(QuicCount::$count))
    };
}

/// The columns between those of TLS and those of HTTP/1.
pub(crate) const COLUMNS: &[Column] = &[
    row!("h3_data", "MCPV", "Total number of DATA frames received", Http3Data),
    row!("h3_headers", "MCPV", "Total number of HEADERS frames received", Http3Headers),
    row!("h3_cancel_push", "MCPV", "Total number of CANCEL_PUSH frames received", Http3CancelPush),
    row!("h3_push_promise", "MCPV", "Total number of PUSH_PROMISE frames received", Http3PushPromise),
    row!("h3_max_push_id", "MCPV", "Total number of MAX_PUSH_ID frames received", Http3MaxPushId),
    row!("h3_goaway", "MCPV", "Total number of GOAWAY frames received", Http3Goaway),
    row!("h3_settings", "MCPV", "Total number of SETTINGS frames received", Http3Settings),
    row!("h3_no_error", "MCPV", "Total number of H3_NO_ERROR errors received", Http3NoError),
    row!(
        "h3_general_protocol_error",
        "MCPV",
        "Total number of H3_GENERAL_PROTOCOL_ERROR errors received",
        Http3GeneralProtocolError
    ),
    row!("h3_internal_error", "MCPV", "Total number of H3_INTERNAL_ERROR errors received", Http3InternalError),
    row!(
        "h3_stream_creation_error",
        "MCPV",
        "Total number of H3_STREAM_CREATION_ERROR errors received",
        Http3StreamCreationError
    ),
    row!(
        "h3_closed_critical_stream",
        "MCPV",
        "Total number of H3_CLOSED_CRITICAL_STREAM errors received",
        Http3ClosedCriticalStream
    ),
    row!("h3_frame_unexpected", "MCPV", "Total number of H3_FRAME_UNEXPECTED errors received", Http3FrameUnexpected),
    row!("h3_frame_error", "MCPV", "Total number of H3_FRAME_ERROR errors received", Http3FrameError),
    row!("h3_excessive_load", "MCPV", "Total number of H3_EXCESSIVE_LOAD errors received", Http3ExcessiveLoad),
    row!("h3_id_error", "MCPV", "Total number of H3_ID_ERROR errors received", Http3IdError),
    row!("h3_settings_error", "MCPV", "Total number of H3_SETTINGS_ERROR errors received", Http3SettingsError),
    row!("h3_missing_settings", "MCPV", "Total number of H3_MISSING_SETTINGS errors received", Http3MissingSettings),
    row!("h3_request_rejected", "MCPV", "Total number of H3_REQUEST_REJECTED errors received", Http3RequestRejected),
    row!("h3_request_cancelled", "MCPV", "Total number of H3_REQUEST_CANCELLED errors received", Http3RequestCancelled),
    row!(
        "h3_request_incomplete",
        "MCPV",
        "Total number of H3_REQUEST_INCOMPLETE errors received",
        Http3RequestIncomplete
    ),
    row!("h3_message_error", "MCPV", "Total number of H3_MESSAGE_ERROR errors received", Http3MessageError),
    row!("h3_connect_error", "MCPV", "Total number of H3_CONNECT_ERROR errors received", Http3ConnectError),
    row!("h3_version_fallback", "MCPV", "Total number of H3_VERSION_FALLBACK errors received", Http3VersionFallback),
    row!(
        "pack_decompression_failed",
        "MCPV",
        "Total number of QPACK_DECOMPRESSION_FAILED errors received",
        QpackDecompressionFailed
    ),
    row!(
        "qpack_encoder_stream_error",
        "MCPV",
        "Total number of QPACK_ENCODER_STREAM_ERROR errors received",
        QpackEncoderStreamError
    ),
    row!(
        "qpack_decoder_stream_error",
        "MCPV",
        "Total number of QPACK_DECODER_STREAM_ERROR errors received",
        QpackDecoderStreamError
    ),
    row!(
        "quic_rxbuf_full",
        "MCPV",
        "Total number of cancelled reception due to full receiver buffer",
        ReceiveBufferFull
    ),
    row!("quic_dropped_pkt", "MCPV", "Total number of dropped packets", DroppedPacket),
    row!(
        "quic_dropped_pkt_bufoverrun",
        "MCPV",
        "Total number of dropped packets because of buffer overrun",
        DroppedPacketBufferOverrun
    ),
    row!(
        "quic_dropped_parsing_pkt",
        "MCPV",
        "Total number of dropped packets upon parsing error",
        DroppedParsingPacket
    ),
    row!("quic_socket_full", "MCPV", "Total number of EAGAIN error on sendto() calls", SocketFull),
    row!("quic_sendto_err", "MCPV", "Total number of error on sendto() calls, EAGAIN excepted", SendError),
    row!(
        "quic_sendto_err_unknwn",
        "MCPV",
        "Total number of error on sendto() calls not explicitly listed",
        SendErrorUnknown
    ),
    row!("quic_sent_pkt", "MCPV", "Total number of sent packets", SentPacket),
    row!("quic_lost_pkt", "MCPV", "Total number of lost sent packets", LostPacket),
    row!("quic_too_short_dgram", "MCPV", "Total number of too short dgrams with Initial packets", TooShortDatagram),
    row!("quic_retry_sent", "MCPV", "Total number of Retry sent", RetrySent),
    row!("quic_retry_validated", "MCPV", "Total number of validated Retry tokens", RetryValidated),
    row!("quic_retry_error", "MCPV", "Total number of Retry tokens errors", RetryError),
    row!("quic_half_open_conn", "MGPV", "Total number of half open connections", HalfOpenConnection),
    row!("quic_hdshk_fail", "MCPV", "Total number of handshake failures", HandshakeFail),
    row!("quic_stless_rst_sent", "MCPV", "Total number of stateless reset packet sent", StatelessResetSent),
    row!("quic_conn_migration_done", "MCPV", "Total number of connection migration proceeded", ConnectionMigrationDone),
    row!("quic_transp_err_no_error", "MCPV", "Total number of NO_ERROR errors received", TransportNoError),
    row!(
        "quic_transp_err_internal_error",
        "MCPV",
        "Total number of INTERNAL_ERROR errors received",
        TransportInternalError
    ),
    row!(
        "quic_transp_err_connection_refused",
        "MCPV",
        "Total number of CONNECTION_REFUSED errors received",
        TransportConnectionRefused
    ),
    row!(
        "quic_transp_err_flow_control_error",
        "MCPV",
        "Total number of FLOW_CONTROL_ERROR errors received",
        TransportFlowControlError
    ),
    row!(
        "quic_transp_err_stream_limit_error",
        "MCPV",
        "Total number of STREAM_LIMIT_ERROR errors received",
        TransportStreamLimitError
    ),
    row!(
        "quic_transp_err_stream_state_error",
        "MCPV",
        "Total number of STREAM_STATE_ERROR errors received",
        TransportStreamStateError
    ),
    row!(
        "quic_transp_err_final_size_error",
        "MCPV",
        "Total number of FINAL_SIZE_ERROR errors received",
        TransportFinalSizeError
    ),
    row!(
        "quic_transp_err_frame_encoding_error",
        "MCPV",
        "Total number of FRAME_ENCODING_ERROR errors received",
        TransportFrameEncodingError
    ),
    row!(
        "quic_transp_err_transport_parameter_error",
        "MCPV",
        "Total number of TRANSPORT_PARAMETER_ERROR errors received",
        TransportTransportParameterError
    ),
    row!(
        "quic_transp_err_connection_id_limit",
        "MCPV",
        "Total number of CONNECTION_ID_LIMIT_ERROR errors received",
        TransportConnectionIdLimit
    ),
    row!(
        "quic_transp_err_protocol_violation_error",
        "MCPV",
        "Total number of PROTOCOL_VIOLATION errors received",
        TransportProtocolViolationError
    ),
    row!(
        "quic_transp_err_invalid_token",
        "MCPV",
        "Total number of INVALID_TOKEN errors received",
        TransportInvalidToken
    ),
    row!(
        "quic_transp_err_application_error",
        "MCPV",
        "Total number of APPLICATION_ERROR errors received",
        TransportApplicationError
    ),
    row!(
        "quic_transp_err_crypto_buffer_exceeded",
        "MCPV",
        "Total number of CRYPTO_BUFFER_EXCEEDED errors received",
        TransportCryptoBufferExceeded
    ),
    row!(
        "quic_transp_err_key_update_error",
        "MCPV",
        "Total number of KEY_UPDATE_ERROR errors received",
        TransportKeyUpdateError
    ),
    row!(
        "quic_transp_err_aead_limit_reached",
        "MCPV",
        "Total number of AEAD_LIMIT_REACHED errors received",
        TransportAeadLimitReached
    ),
    row!(
        "quic_transp_err_no_viable_path",
        "MCPV",
        "Total number of NO_VIABLE_PATH errors received",
        TransportNoViablePath
    ),
    row!("quic_transp_err_crypto_error", "MCPV", "Total number of CRYPTO_ERROR errors received", TransportCryptoError),
    row!(
        "quic_transp_err_unknown_error",
        "MCPV",
        "Total number of UNKNOWN_ERROR errors received",
        TransportUnknownError
    ),
    row!("quic_data_blocked", "MCPV", "Total number of received DATA_BLOCKED frames", DataBlocked),
    row!("quic_stream_data_blocked", "MCPV", "Total number of received STREAM_DATA_BLOCKED frames", StreamDataBlocked),
    row!(
        "quic_streams_blocked_bidi",
        "MCPV",
        "Total number of received STREAMS_BLOCKED_BIDI frames",
        StreamsBlockedBidirectional
    ),
    row!(
        "quic_streams_blocked_uni",
        "MCPV",
        "Total number of received STREAMS_BLOCKED_UNI frames",
        StreamsBlockedUnidirectional
    ),
    row!(
        "quic_ncbuf_gap_limit",
        "MCPV",
        "Total number of failures to add to ncbuf because of gap size limit",
        ReassemblyGapLimit
    ),
];
