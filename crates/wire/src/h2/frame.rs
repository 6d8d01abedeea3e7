//! Frames (RFC 9113, section 4): headers, types, flags, settings and error codes. Must never keep one.

/// Length of a frame header in bytes.
pub const HEADER_LENGTH: usize = 9;

/// Maximum length of a frame's payload in bytes, unless SETTINGS_MAX_FRAME_SIZE permits more (RFC 9113, section 4.2).
pub const MAX_FRAME_SIZE: usize = 16_384;

/// The type of a frame. Unknown types are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Payload of a message.
    Data,
    /// The start of a head, or of trailers.
    Headers,
    /// A priority of the deprecated scheme, ignored.
    Priority,
    /// Aborts a stream.
    RstStream,
    /// Settings, or their acknowledgement.
    Settings,
    /// A promised request.
    PushPromise,
    /// A liveness probe, or the response to it.
    Ping,
    /// The sender accepts no new streams.
    GoAway,
    /// The flow-control window grows.
    WindowUpdate,
    /// The continuation of a head.
    Continuation,
    /// Any other type.
    Unknown,
    /// A changed priority of a request (RFC 9218, section 7.1).
    PriorityUpdate = 0x10,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Data,
        Self::Headers,
        Self::Priority,
        Self::RstStream,
        Self::Settings,
        Self::PushPromise,
        Self::Ping,
        Self::GoAway,
        Self::WindowUpdate,
        Self::Continuation,
    ];

    /// Returns the type with a number.
    pub fn of(number: u8) -> Self {
        match number {
            0x10 => Self::PriorityUpdate,
            number => Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unknown),
        }
    }
}

pub mod flag {
    /// The frame ends the sender's message.
    pub const END_STREAM: u8 = 0x1;
    /// The frame acknowledges settings or a ping.
    pub const ACK: u8 = 0x1;
    /// The frame ends the head.
    pub const END_HEADERS: u8 = 0x4;
    /// The payload starts with the length of its padding, and ends with the padding.
    pub const PADDED: u8 = 0x8;
    /// The head follows a priority.
    pub const PRIORITY: u8 = 0x20;
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the payload in bytes.
    pub length: usize,
    pub kind: Kind,
    /// Flags ([`flag`]).
    pub flags: u8,
    /// The stream ID; 0 for the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Parses a frame header; `None` if there are too few bytes.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [high, middle, low, kind, flags, stream @ ..] = bytes.first_chunk::<HEADER_LENGTH>()?;
        Some(Self {
            length: u32::from_be_bytes([0, *high, *middle, *low]) as usize,
            kind: Kind::of(*kind),
            flags: *flags,
            stream: u32::from_be_bytes(*stream) & 0x7fff_ffff,
        })
    }

    /// Whether `flag` is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The wire format. The type must be a known one.
    pub fn bytes(&self) -> [u8; HEADER_LENGTH] {
        let [_, high, middle, low] = (self.length as u32).to_be_bytes();
        let [one, two, three, four] = self.stream.to_be_bytes();
        [high, middle, low, self.kind as u8, self.flags, one, two, three, four]
    }
}

/// Appends a frame to `out`.
pub fn push_frame(out: &mut Vec<u8>, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&FrameHeader { length: payload.len(), kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

/// Error codes of RST_STREAM and GOAWAY (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    NoError = 0,
    ProtocolError = 1,
    InternalError = 2,
    FlowControlError = 3,
    SettingsTimeout = 4,
    StreamClosed = 5,
    FrameSizeError = 6,
    RefusedStream = 7,
    Cancel = 8,
    CompressionError = 9,
    ConnectError = 10,
    EnhanceYourCalm = 11,
    InadequateSecurity = 12,
    Http11Required = 13,
}

impl ErrorCode {
    /// The wire format.
    pub fn bytes(self) -> [u8; 4] {
        (self as u32).to_be_bytes()
    }
}

/// Identifiers of settings (RFC 9113, section 6.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Setting {
    HeaderTableSize = 1,
    EnablePush = 2,
    MaxConcurrentStreams = 3,
    InitialWindowSize = 4,
    MaxFrameSize = 5,
    MaxHeaderListSize = 6,
    EnableConnectProtocol = 8,
}

impl Setting {
    /// Returns the setting with a number; `None` for unknown ones, which are ignored.
    pub fn of(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::HeaderTableSize,
            2 => Self::EnablePush,
            3 => Self::MaxConcurrentStreams,
            4 => Self::InitialWindowSize,
            5 => Self::MaxFrameSize,
            6 => Self::MaxHeaderListSize,
            8 => Self::EnableConnectProtocol,
            _ => return None,
        })
    }

    /// The wire format of the setting with a value.
    pub fn bytes(self, value: u32) -> [u8; 6] {
        let [high, low] = (self as u16).to_be_bytes();
        let [one, two, three, four] = value.to_be_bytes();
        [high, low, one, two, three, four]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        let mut out = Vec::new();
        push_frame(&mut out, Kind::WindowUpdate, 0, 3, &[0, 0, 1, 0]);
        assert_eq!(out, [0, 0, 4, 8, 0, 0, 0, 0, 3, 0, 0, 1, 0]);
        for number in 0..=9 {
            let kind = Kind::of(number);
            let header = FrameHeader { length: 0x01_02_03, kind, flags: 5, stream: 0x7fff_ffff };
            let mut bytes = header.bytes();
            assert_eq!((bytes[3], FrameHeader::parse(&bytes)), (number, Some(header)));
            // The reserved bit is ignored.
            bytes[5] |= 0x80;
            assert_eq!(FrameHeader::parse(&bytes), Some(header));
            assert_eq!(FrameHeader::parse(&bytes[..8]), None);
        }
        assert_eq!(Kind::of(10), Kind::Unknown);
        assert_eq!(Setting::InitialWindowSize.bytes(65_535), [0, 4, 0, 0, 255, 255]);
        assert!((0..20).filter_map(Setting::of).all(|setting| Setting::of(setting as u16) == Some(setting)));
    }
}
