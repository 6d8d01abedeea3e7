//! Domain names in their wire format. Must never hold more than 255 bytes.

use std::fmt;

/// Maximum length of a name in bytes, including the length bytes and the final zero.
const LONGEST: usize = 255;
/// Maximum length of a label in bytes.
const LONGEST_LABEL: usize = 63;

/// A domain name: length-prefixed labels in lower case, since names are compared without case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Box<[u8]>);

/// Bytes that are not a valid name or message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Whether a byte is permitted in the name of a host or a service.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

impl Name {
    /// Parses a name in dotted notation, with or without a trailing dot. `None` if it cannot be queried.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let mut bytes = Vec::with_capacity(text.len() + 2);
        for label in text.split('.') {
            if label.is_empty() || label.len() > LONGEST_LABEL || !label.bytes().all(is_plain) {
                return None;
            }
            bytes.push(label.len() as u8);
            bytes.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        bytes.push(0);
        (bytes.len() <= LONGEST).then(|| Self(bytes.into()))
    }

    /// Parses the name at offset `at`; returns it and the offset after it. Each compression pointer has to point
    /// further backwards than the one before, so that none can be followed twice.
    ///
    /// # Errors
    /// There is no valid name at the offset.
    pub(super) fn read(message: &[u8], at: usize) -> Result<(Self, usize), Malformed> {
        let mut bytes = Vec::with_capacity(64);
        // The start of the labels being read, and the offset after the name once a pointer was followed.
        let (mut at, mut begin, mut behind) = (at, at, None);
        loop {
            let length = *message.get(at).ok_or(Malformed)?;
            match length & 0xc0 {
                0x00 if length == 0 => {
                    bytes.push(0);
                    let name = Self(bytes.into());
                    return if name.0.len() <= LONGEST { Ok((name, behind.unwrap_or(at + 1))) } else { Err(Malformed) };
                }
                0x00 => {
                    let end = at + 1 + usize::from(length);
                    let label = message.get(at + 1..end).ok_or(Malformed)?;
                    if bytes.len() + label.len() + 2 > LONGEST {
                        return Err(Malformed);
                    }
                    bytes.push(length);
                    bytes.extend(label.iter().map(u8::to_ascii_lowercase));
                    at = end;
                }
                0xc0 => {
                    let low = *message.get(at + 1).ok_or(Malformed)?;
                    let target = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                    if target >= begin {
                        return Err(Malformed);
                    }
                    behind.get_or_insert(at + 2);
                    (at, begin) = (target, target);
                }
                _ => return Err(Malformed),
            }
        }
    }

    /// The wire format.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name in dotted notation; `None` if it contains a byte that is not permitted in the name of a host or a
    /// service, since names from the network are written to logs and tables.
    pub fn text(&self) -> Option<String> {
        let mut text = String::with_capacity(self.0.len());
        let mut rest = &self.0[..];
        while let [length, tail @ ..] = rest
            && *length > 0
        {
            let (label, next) = tail.split_at_checked(usize::from(*length))?;
            if !label.iter().copied().all(is_plain) {
                return None;
            }
            if !text.is_empty() {
                text.push('.');
            }
            text.extend(label.iter().map(|byte| char::from(*byte)));
            rest = next;
        }
        (!text.is_empty()).then_some(text)
    }

    /// Whether the name is that of a service: it begins with an underscore.
    pub fn is_service(&self) -> bool {
        self.0.get(1) == Some(&b'_')
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text().as_deref().unwrap_or("-"))
    }
}
