//! Errors of a flow. Must never name the peer at fault: that depends on the direction.

use std::io;

use wire::h1;

/// Why a flow failed.
#[derive(Debug)]
pub enum FlowError {
    /// The source failed.
    Read(io::Error),
    /// The source ended before the body did.
    Truncated,
    /// The sink failed.
    Write(io::Error),
    /// The chunked coding of the source is invalid.
    Malformed(h1::ChunkError),
    /// The body's filter refused it ([`super::FilterOutput::Refused`]).
    Refused,
}

impl FlowError {
    /// Whether the source has sent an invalid body: broken chunks, or frames that HTTP/2 does not allow on its stream
    /// ([`io::ErrorKind::InvalidData`]).
    pub fn is_malformed(&self) -> bool {
        match self {
            Self::Malformed(_) => true,
            Self::Read(error) => error.kind() == io::ErrorKind::InvalidData,
            Self::Truncated | Self::Write(_) | Self::Refused => false,
        }
    }
}
