//! Error codes and their scope (RFC 9114, section 8; RFC 9204, section 6; RFC 9297, section 5.2). Must never decide when
//! one applies.

use crate::fields::Malformed;

/// Declares the codes with their numbers and names.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// An error code of HTTP/3, QPACK or HTTP Datagrams.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u64)]
        pub enum ErrorCode {
            $($(#[$doc])* $name = $number),*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name of the code in its RFC.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text),*
                }
            }
        }
    };
}

codes! {
    /// An HTTP Datagram that cannot be parsed.
    DatagramError = 0x33, "H3_DATAGRAM_ERROR";
    /// No error.
    NoError = 0x100, "H3_NO_ERROR";
    /// A violation for which there is no other code.
    GeneralProtocolError = 0x101, "H3_GENERAL_PROTOCOL_ERROR";
    /// An error of this endpoint.
    InternalError = 0x102, "H3_INTERNAL_ERROR";
    /// A stream that is not accepted.
    StreamCreationError = 0x103, "H3_STREAM_CREATION_ERROR";
    /// A stream that the connection needs was closed.
    ClosedCriticalStream = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    /// A frame that is not permitted in this state, or on this stream.
    FrameUnexpected = 0x105, "H3_FRAME_UNEXPECTED";
    /// A frame whose layout or size is invalid.
    FrameError = 0x106, "H3_FRAME_ERROR";
    /// The peer generates excessive load.
    ExcessiveLoad = 0x107, "H3_EXCESSIVE_LOAD";
    /// A stream ID or push ID that is not permitted.
    IdError = 0x108, "H3_ID_ERROR";
    /// Invalid settings.
    SettingsError = 0x109, "H3_SETTINGS_ERROR";
    /// The control stream does not begin with SETTINGS.
    MissingSettings = 0x10a, "H3_MISSING_SETTINGS";
    /// A request that was not processed.
    RequestRejected = 0x10b, "H3_REQUEST_REJECTED";
    /// A request or response that is not needed.
    RequestCancelled = 0x10c, "H3_REQUEST_CANCELLED";
    /// A request that ends before it is complete.
    RequestIncomplete = 0x10d, "H3_REQUEST_INCOMPLETE";
    /// A malformed message.
    MessageError = 0x10e, "H3_MESSAGE_ERROR";
    /// The connection of a CONNECT request failed.
    ConnectError = 0x10f, "H3_CONNECT_ERROR";
    /// The request has to be repeated with HTTP/1.1.
    VersionFallback = 0x110, "H3_VERSION_FALLBACK";
    /// A field section that cannot be decoded.
    QpackDecompressionFailed = 0x200, "QPACK_DECOMPRESSION_FAILED";
    /// An invalid instruction on the encoder stream.
    QpackEncoderStreamError = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    /// An invalid instruction on the decoder stream.
    QpackDecoderStreamError = 0x202, "QPACK_DECODER_STREAM_ERROR";
}

impl ErrorCode {
    /// The number of the code on the wire.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// Returns the code with a number; `None` for unknown ones, which are equivalent to H3_NO_ERROR (RFC 9114, section 9).
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.number() == number)
    }
}

/// The extent of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The stream is reset; the connection continues.
    Stream,
    /// The connection is closed.
    Connection,
}

/// A violation by the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    pub code: ErrorCode,
    pub scope: Scope,
}

impl Error {
    /// An error that closes the connection.
    pub const fn connection(code: ErrorCode) -> Self {
        Self { code, scope: Scope::Connection }
    }

    /// An error that resets the stream.
    pub const fn stream(code: ErrorCode) -> Self {
        Self { code, scope: Scope::Stream }
    }
}

impl From<Malformed> for Error {
    fn from(_: Malformed) -> Self {
        Self::stream(ErrorCode::MessageError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_from_their_numbers() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::of(code.number()), Some(*code));
        }
        // RFC 9114, section 11.2.3; RFC 9204, section 8.3.
        let rows = [
            (0x33, "H3_DATAGRAM_ERROR"),
            (0x100, "H3_NO_ERROR"),
            (0x105, "H3_FRAME_UNEXPECTED"),
            (0x10a, "H3_MISSING_SETTINGS"),
            (0x10e, "H3_MESSAGE_ERROR"),
            (0x110, "H3_VERSION_FALLBACK"),
            (0x202, "QPACK_DECODER_STREAM_ERROR"),
        ];
        for (number, name) in rows {
            assert_eq!(ErrorCode::of(number).map(ErrorCode::name), Some(name));
        }
        for number in [0, 0xff, 0x111, 0x203, u64::MAX] {
            assert_eq!(ErrorCode::of(number), None);
        }
        assert_eq!(Error::from(Malformed), Error::stream(ErrorCode::MessageError));
    }
}
