//! QMux (draft-ietf-quic-qmux-01): the streams of QUIC over one ordered stream of bytes, without I/O. Bytes and times are
//! arguments. Must never know a transport, nor what streams carry.
//!
//! A connection has the operations and events of [`crate::Connection`], so that what streams carry is the same over both.

mod connection;
mod frame;
mod output;
mod parameters;
mod reader;
mod stream;
mod table;
mod varint;

#[cfg(test)]
mod tests;

pub use connection::Connection;
pub use parameters::Settings;

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
    fn name(self) -> &'static str {
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
