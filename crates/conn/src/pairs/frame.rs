//! Frames of the protocol for tests. Must never keep one.

/// Bytes before what a frame carries.
pub(super) const HEADER: usize = 4;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A head; of a request, payload follows.
    Head,
    /// The head of a request that ends with it.
    HeadAlone,
    /// Payload.
    Data,
    /// The end of a message.
    End,
    /// The end of a stream before that of its message.
    Reset,
    /// So many bytes more of payload may be sent, in the place of the length.
    Credit,
}

impl Kind {
    /// The byte that stands for it.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Head => b'H',
            Self::HeadAlone => b'h',
            Self::Data => b'D',
            Self::End => b'E',
            Self::Reset => b'R',
            Self::Credit => b'C',
        }
    }

    /// The kind that a byte stands for.
    pub fn of(byte: u8) -> Option<Self> {
        [Self::Head, Self::HeadAlone, Self::Data, Self::End, Self::Reset, Self::Credit]
            .into_iter()
            .find(|kind| kind.byte() == byte)
    }
}

/// The beginning of a frame with so many bytes.
pub(super) fn header(kind: Kind, stream: u8, length: usize) -> [u8; HEADER] {
    let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    [kind.byte(), stream, high, low]
}

pub(super) fn push(out: &mut Vec<u8>, kind: Kind, stream: u8, bytes: &[u8]) {
    out.extend_from_slice(&header(kind, stream, bytes.len()));
    out.extend_from_slice(bytes);
}

/// A whole frame, for clients in tests. [`Kind::Credit`] carries its number of bytes in the length alone.
pub fn frame(kind: Kind, stream: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, kind, stream, bytes.as_ref());
    out
}

/// A frame that was received: its kind, its stream, its length.
pub(super) fn parse(bytes: &[u8]) -> Option<Result<(Kind, u8, usize), ()>> {
    let [kind, stream, high, low, ..] = *bytes else { return None };
    Some(Kind::of(kind).map(|kind| (kind, stream, usize::from(u16::from_be_bytes([high, low])))).ok_or(()))
}
