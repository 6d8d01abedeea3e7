//! How a request ends its whole connection. Must never end one.

/// How a request ends its whole connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    /// With a GOAWAY to the client (`reject`).
    Close,
    /// Without notice to the client; or by a reset with that time to live (`silent-drop`).
    Forget(Option<u8>),
}
