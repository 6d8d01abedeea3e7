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

    /// The bit of this name in a set of names.
    #[inline]
    pub fn bit(self) -> u16 {
        1 << (self as u8)
    }
}
