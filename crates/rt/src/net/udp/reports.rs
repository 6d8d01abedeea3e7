//! The state of a socket's queue of errors. Must never read it.

/// Whether a socket has reports about datagrams that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reports {
    /// The kernel keeps none.
    Ignored,
    /// It keeps them; there is none, as far as is known.
    Requested,
    /// There may be some.
    Waiting,
}
