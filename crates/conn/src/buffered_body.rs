//! The bytes received after a message's head. Owns how payload is found in them; must never take a byte away.

use wire::h1::{ChunkDecoder, ChunkError, ChunkState};
use wire::http::{Fields, Framing};

/// Bytes received after a head and not consumed yet.
#[derive(Debug, Clone, Copy)]
pub struct BufferedBody<'a> {
    /// The bytes as received.
    pub data: &'a [u8],
    /// Whether they come from a connection of HTTP/1, so that the head determines how the body is delimited and coded
    /// in them. Otherwise they are payload.
    pub coded: bool,
}

impl BufferedBody<'_> {
    /// No bytes.
    pub const NONE: Self = Self { data: &[], coded: false };

    /// How the body is delimited in these bytes, given the framing in its head.
    pub fn framing_of(&self, said: Framing) -> Framing {
        match said {
            Framing::Chunked if !self.coded => Framing::UntilClose,
            other => other,
        }
    }

    /// Returns the number of bytes that the body takes, and its payload, if all of the body with that framing was
    /// received. `ended`: the input has ended, which completes a body that is not coded.
    ///
    /// # Errors
    /// The chunked coding is invalid.
    pub fn whole(&self, said: Framing, ended: bool) -> Result<Option<(usize, Vec<u8>)>, ChunkError> {
        let data = self.data;
        Ok(match self.framing_of(said) {
            Framing::None => None,
            Framing::UntilClose => ended.then(|| (data.len(), data.to_vec())),
            Framing::Length(length) => {
                let length = usize::try_from(length).ok().filter(|length| *length <= data.len());
                length.map(|length| (length, data[..length].to_vec()))
            }
            Framing::Chunked => {
                let mut payload = data.to_vec();
                let decoded = ChunkDecoder::new().decode_in_place(&mut payload, &mut Fields::new())?;
                payload.truncate(decoded.payload);
                (decoded.state == ChunkState::End).then_some((decoded.consumed, payload))
            }
        })
    }
}

/// Returns the payload in the bytes after a head of HTTP/1 with that framing. Chunks are decoded in the copy that
/// `copy` makes. Bytes that break the coding have no payload; they are refused when the body flows.
pub fn payload<'a>(framing: Framing, data: &'a [u8], copy: impl FnOnce(&'a [u8]) -> &'a mut [u8]) -> &'a [u8] {
    match framing {
        Framing::None => &[],
        Framing::UntilClose => data,
        Framing::Length(length) => &data[..data.len().min(usize::try_from(length).unwrap_or(usize::MAX))],
        Framing::Chunked if data.is_empty() => data,
        Framing::Chunked => {
            let copy = copy(data);
            let decoded = ChunkDecoder::new().decode_in_place(copy, &mut Fields::new());
            &copy[..decoded.map_or(0, |decoded| decoded.payload)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_what_the_framing_says() {
        let rows: &[(Framing, &str, &str)] = &[
            (Framing::None, "GET /", ""),
            (Framing::Length(3), "abcGET", "abc"),
            (Framing::Length(9), "abc", "abc"),
            (Framing::Chunked, "2\r\nab\r\n1\r\nc\r\n0\r\n\r\nGET", "abc"),
            (Framing::Chunked, "2\r\nab\r\n1\r\nc\r\n0\r\nx: 1\r\n\r\nGET", "abc"),
            (Framing::Chunked, "4\r\nab", "ab"),
            (Framing::Chunked, "4\r\nabcd\r", "abcd"),
            (Framing::Chunked, "4;x=y\r\nabcd\r\n5", "abcd"),
            (Framing::Chunked, "", ""),
            (Framing::Chunked, "x", ""),
            (Framing::UntilClose, "abc", "abc"),
        ];
        for (framing, data, expected) in rows {
            let found = payload(*framing, data.as_bytes(), |data| Box::leak(data.into()));
            assert_eq!(found, expected.as_bytes(), "{framing:?} {data:?}");
        }
    }

    /// Whatever part of a chunked body was received, its payload is a prefix of the whole body's payload.
    #[test]
    fn every_part_of_a_chunked_body_has_the_beginning_of_its_payload() {
        let body = b"3\r\nabc\r\n00a;ext=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1\r\n";
        let mut before = 0;
        for end in 0..=body.len() {
            let found = payload(Framing::Chunked, &body[..end], |data| Box::leak(data.into()));
            assert!(b"abc0123456789".starts_with(found) && found.len() >= before, "{end}: {found:?}");
            before = found.len();
        }
        assert_eq!(before, 13);
    }
}
