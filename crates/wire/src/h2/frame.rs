//! Frames (RFC 9113, section 4): their headers, kinds, flags, settings and error codes. Must never keep one.

/// Bytes before what a frame carries.
pub const HEADER_LENGTH: usize = 9;

/// Bytes that a frame carries at most, unless a setting allows more (RFC 9113, section 4.2).
pub const MAX_FRAME_SIZE: usize = 16_384;

/// What a frame is. Others are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data,
    /// The beginning of a head, or trailers.
    Headers,
    /// A priority of the former scheme, which is ignored.
    Priority,
    /// The end of a stream before that of its messages.
    RstStream,
    /// Settings, or their acknowledgement.
    Settings,
    /// A promised request.
    PushPromise,
    /// A question whether the peer is there, or the answer.
    Ping,
    /// No stream begins any more.
    GoAway,
    /// More payload may be sent.
    WindowUpdate,
    /// More of a head.
    Continuation,
    /// Any other.
    Unknown,
    /// Another priority of a request (RFC 9218, section 7.1).
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

    /// The kind that a number stands for.
    pub fn of(number: u8) -> Self {
        match number {
            0x10 => Self::PriorityUpdate,
            number => Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unknown),
        }
    }
}

/// Flags of frames.
pub mod flag {
    /// The sender's message ends with the frame.
    pub const END_STREAM: u8 = 0x1;
    /// Settings or a ping are acknowledged.
    pub const ACK: u8 = 0x1;
    /// The head ends with the frame.
    pub const END_HEADERS: u8 = 0x4;
    /// A length of padding comes first, the padding last.
    pub const PADDED: u8 = 0x8;
    /// A priority comes before the head.
    pub const PRIORITY: u8 = 0x20;
}

/// What comes before each frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes that follow.
    pub length: usize,
    /// What it is.
    pub kind: Kind,
    /// Its flags ([`flag`]).
    pub flags: u8,
    /// The number of its stream; 0 is the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Reads one; `None`: there are too few bytes.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [high, middle, low, kind, flags, stream @ ..] = bytes.first_chunk::<HEADER_LENGTH>()?;
        Some(Self {
            length: u32::from_be_bytes([0, *high, *middle, *low]) as usize,
            kind: Kind::of(*kind),
            flags: *flags,
            stream: u32::from_be_bytes(*stream) & 0x7fff_ffff,
        })
    }

    /// Whether it has that flag.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Its bytes. Its kind is a known one.
    pub fn bytes(&self) -> [u8; HEADER_LENGTH] {
        let [_, high, middle, low] = (self.length as u32).to_be_bytes();
        let [one, two, three, four] = self.stream.to_be_bytes();
        [high, middle, low, self.kind as u8, self.flags, one, two, three, four]
    }
}

/// Writes a frame behind `out`.
pub fn push_frame(out: &mut Vec<u8>, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&FrameHeader { length: payload.len(), kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

/// Why a stream or a connection ends (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
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
    /// As it stands in a frame.
    pub fn bytes(self) -> [u8; 4] {
        (self as u32).to_be_bytes()
    }
}

/// What settings are about (RFC 9113, section 6.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
#[allow(missing_docs)]
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
    /// The setting with a number; `None`: an unknown one, which is ignored.
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

    /// The six bytes that give it a value.
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
            // The reserved bit says nothing.
            bytes[5] |= 0x80;
            assert_eq!(FrameHeader::parse(&bytes), Some(header));
            assert_eq!(FrameHeader::parse(&bytes[..8]), None);
        }
        assert_eq!(Kind::of(10), Kind::Unknown);
        assert_eq!(Setting::InitialWindowSize.bytes(65_535), [0, 4, 0, 0, 255, 255]);
        assert!((0..20).filter_map(Setting::of).all(|setting| Setting::of(setting as u16) == Some(setting)));
    }
}
