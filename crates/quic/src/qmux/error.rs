//! The error codes of the transport. Must never know what has caused one.

/// Transport error codes (RFC 9000, section 20.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    Internal = 0x1,
    FlowControl = 0x3,
    StreamLimit = 0x4,
    StreamState = 0x5,
    FinalSize = 0x6,
    FrameEncoding = 0x7,
    TransportParameter = 0x8,
    ProtocolViolation = 0xa,
}

impl ErrorCode {
    /// Returns the name that a CONNECTION_CLOSE frame carries as its reason.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Internal => "INTERNAL_ERROR",
            Self::FlowControl => "FLOW_CONTROL_ERROR",
            Self::StreamLimit => "STREAM_LIMIT_ERROR",
            Self::StreamState => "STREAM_STATE_ERROR",
            Self::FinalSize => "FINAL_SIZE_ERROR",
            Self::FrameEncoding => "FRAME_ENCODING_ERROR",
            Self::TransportParameter => "TRANSPORT_PARAMETER_ERROR",
            Self::ProtocolViolation => "PROTOCOL_VIOLATION",
        }
    }
}
