//! The states of a session (RFC 4271, section 8.2.2). Must never change one.

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The next connection attempt is not due.
    Idle,
    /// A connection is being established.
    Connect,
    /// The OPEN message of the router is awaited.
    OpenSent,
    /// The first KEEPALIVE message of the router is awaited.
    OpenConfirm,
    Established,
}

impl State {
    /// Returns the name in RFC 4271.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Connect => "Connect",
            Self::OpenSent => "OpenSent",
            Self::OpenConfirm => "OpenConfirm",
            Self::Established => "Established",
        }
    }
}
