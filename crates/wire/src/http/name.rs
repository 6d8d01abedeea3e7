//! Field names that the proxy itself acts on, so that no later step searches for them.

/// A well-known field name. `Other` names are only text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Name {
    #[default]
    Other,
    Host,
    ContentLength,
    TransferEncoding,
    Connection,
    Expect,
    Upgrade,
    KeepAlive,
    ProxyConnection,
    Te,
    Trailer,
}

impl Name {
    /// Recognises a lower-case name, by its length first.
    #[inline]
    pub fn from_lower(name: &[u8]) -> Name {
        match name.len() {
            2 if name == b"te" => Name::Te,
            4 if name == b"host" => Name::Host,
            6 if name == b"expect" => Name::Expect,
            7 if name == b"upgrade" => Name::Upgrade,
            7 if name == b"trailer" => Name::Trailer,
            10 if name == b"connection" => Name::Connection,
            10 if name == b"keep-alive" => Name::KeepAlive,
            14 if name == b"content-length" => Name::ContentLength,
            16 if name == b"proxy-connection" => Name::ProxyConnection,
            17 if name == b"transfer-encoding" => Name::TransferEncoding,
            _ => Name::Other,
        }
    }
}

/// A set of names that may be in a message. A name in it may have been removed since; one that is not in it is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Names(u16);

impl Names {
    #[inline]
    pub(crate) fn add(&mut self, name: Name) {
        self.0 |= 1 << (name as u8);
    }

    #[inline]
    pub(crate) fn has(self, name: Name) -> bool {
        self.0 & (1 << (name as u8)) != 0
    }

    /// Whether it has a name other than those two, `Other` aside.
    #[inline]
    pub(crate) fn has_beside(self, one: Name, two: Name) -> bool {
        self.0 & !(1 | (1 << (one as u8)) | (1 << (two as u8))) != 0
    }
}
