//! The header of every message (RFC 4271, section 4.1): its fields, and how it is written. Must never check one that was received.

/// Length of a header in octets.
pub const HEADER: usize = 19;
/// Maximum length of a message in octets.
pub const LONGEST: usize = 4_096;

/// Length of the marker in octets; all of its bits are set.
pub(super) const MARKER: usize = 16;

/// The type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Open = 1,
    Update = 2,
    Notification = 3,
    Keepalive = 4,
    RouteRefresh = 5,
}

impl Kind {
    pub(super) fn of(octet: u8) -> Option<Self> {
        [Self::Open, Self::Update, Self::Notification, Self::Keepalive, Self::RouteRefresh]
            .into_iter()
            .find(|kind| *kind as u8 == octet)
    }

    /// Whether a message of this type may have that length in octets.
    pub(super) fn permits(self, length: usize) -> bool {
        match self {
            Self::Open => length >= 29,
            Self::Update => length >= 23,
            Self::Notification => length >= 21,
            Self::Keepalive => length == HEADER,
            Self::RouteRefresh => length == 23,
        }
    }
}

/// Adds a message to `out`, whose body `write` adds. The body is at most 4,077 octets long.
pub(super) fn encode(out: &mut Vec<u8>, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0xff; MARKER]);
    out.extend([0, 0, kind as u8]);
    write(out);
    debug_assert!(out.len() - start <= LONGEST);
    let length = u16::try_from(out.len() - start).unwrap_or(u16::MAX).to_be_bytes();
    out[start + MARKER..start + MARKER + 2].copy_from_slice(&length);
}

/// Adds a KEEPALIVE message to `out`.
pub fn keepalive(out: &mut Vec<u8>) {
    encode(out, Kind::Keepalive, |_| {});
}
