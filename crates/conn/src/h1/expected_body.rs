//! Progress of a body that is waited for while it stays in its buffer. Owns the number of missing bytes; must never
//! take a byte away.

use wire::h1::{ChunkDecoder, ChunkError, ChunkState};
use wire::http::{Fields, Framing};

use crate::progress::TimeoutProgress;

/// The missing part of a body.
enum Progress {
    /// The number of missing bytes.
    Length(u64),
    Chunked {
        decoder: Box<ChunkDecoder>,
        trailers: Fields,
    },
    /// The body ends with the connection.
    UntilClose,
    Complete,
}

/// A body that is waited for.
pub struct ExpectedBody {
    progress: Progress,
    /// The number of bytes received.
    bytes: u64,
    /// The number of bytes that suffices.
    least: u64,
}

impl ExpectedBody {
    /// Creates the progress of a body with that framing of which nothing was received. `least` bytes suffice, unless it
    /// is 0.
    pub fn new(framing: Framing, least: u64) -> Self {
        let progress = match framing {
            Framing::Length(length) => Progress::Length(length),
            Framing::Chunked => Progress::Chunked { decoder: Box::new(ChunkDecoder::new()), trailers: Fields::new() },
            Framing::UntilClose => Progress::UntilClose,
            Framing::None => Progress::Complete,
        };
        Self { progress, bytes: 0, least: if least == 0 { u64::MAX } else { least } }
    }

    /// Whether enough of it was received.
    pub fn is_over(&self) -> bool {
        self.bytes >= self.least || matches!(self.progress, Progress::Complete)
    }

    /// Counts received bytes. They are not changed: chunks are decoded in a copy. Payload and the end are progress.
    ///
    /// # Errors
    /// The bytes break the chunked coding.
    pub fn take(&mut self, fresh: &[u8]) -> Result<Option<TimeoutProgress>, ChunkError> {
        let before = self.bytes;
        let ends = match &mut self.progress {
            Progress::Complete => true,
            Progress::UntilClose => {
                self.bytes += fresh.len() as u64;
                false
            }
            Progress::Length(missing) => {
                self.bytes += (fresh.len() as u64).min(*missing);
                *missing = missing.saturating_sub(fresh.len() as u64);
                *missing == 0
            }
            Progress::Chunked { decoder, trailers } => {
                let decoded = decoder.decode_in_place(&mut fresh.to_vec(), trailers)?;
                self.bytes += decoded.payload as u64;
                decoded.state == ChunkState::End
            }
        };
        if ends {
            self.progress = Progress::Complete;
        }
        Ok(TimeoutProgress::when(ends || self.bytes > before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_complete_when_their_last_byte_is_here() {
        let rows: &[(Framing, &[&str], bool)] = &[
            (Framing::Length(5), &["ab", "cd"], false),
            (Framing::Length(5), &["ab", "cde"], true),
            (Framing::Length(5), &["abcdefgh"], true),
            (Framing::Chunked, &["5\r\nabc"], false),
            (Framing::Chunked, &["5\r", "\nabc", "de\r\n0\r\n"], false),
            (Framing::Chunked, &["5\r", "\nabc", "de\r\n0\r\nx: 1\r\n\r\nGET"], true),
        ];
        for (framing, pieces, complete) in rows {
            let mut coming = ExpectedBody::new(*framing, 0);
            for piece in *pieces {
                coming.take(piece.as_bytes()).unwrap();
            }
            assert_eq!(coming.is_over(), *complete, "{pieces:?}");
        }
    }
}
