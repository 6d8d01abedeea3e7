//! What goes wrong with a flow. Must never say who is to blame: that depends on which direction it is.

use std::io;

use wire::h1;

/// What went wrong on the way.
#[derive(Debug)]
pub enum FlowError {
    /// The source failed.
    Read(io::Error),
    /// The source ended before the body did.
    Truncated,
    /// The sink failed.
    Write(io::Error),
    /// The source's chunks are not chunks.
    Malformed(h1::ChunkError),
    /// What stands in the way of the body refuses it ([`super::Passed::Refused`]).
    Refused,
}

impl FlowError {
    /// Whether the source has sent what is no body: chunks that are none, or what HTTP/2 does not allow on its stream
    /// ([`io::ErrorKind::InvalidData`]).
    pub fn is_malformed(&self) -> bool {
        match self {
            Self::Malformed(_) => true,
            Self::Read(error) => error.kind() == io::ErrorKind::InvalidData,
            Self::Truncated | Self::Write(_) | Self::Refused => false,
        }
    }
}
