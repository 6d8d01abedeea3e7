//! The decoders of content codings, for complete bodies: DEFLATE in its formats (RFC 1950 to 1952), Brotli (RFC 7932) and
//! Zstandard (RFC 8878). Owns the limits of decoding: the size of the result, the number of codings of a body, the members of a
//! stream. Must never know a message, and never return a partial result.

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::{Decompress, FlushDecompress, Status};
use zstd_safe::DCtx;
use zstd_safe::zstd_sys::ZSTD_ErrorCode;

/// Maximum number of codings of one body.
const MOST_CODINGS: usize = 3;

/// Maximum number of members of a gzip stream: each costs a new decoder.
const MOST_MEMBERS: usize = 100;

/// Minimum growth of a result, in bytes.
const PIECE: usize = 16 * 1024;

/// The codings that can be decoded, as a value of Accept-Encoding (RFC 9110, section 12.5.3).
pub const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// A content coding (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentCoding {
    /// `gzip`, `x-gzip`.
    Gzip,
    /// `deflate`: the zlib format, or raw DEFLATE, which some senders use for it.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

/// Reason of a failed decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// An unknown coding, or too many codings.
    Unsupported,
    /// Invalid input: corrupt, truncated, with a wrong checksum, or with trailing data.
    Malformed,
    /// The result would exceed the limit.
    TooLarge,
}

/// Parses Content-Encoding fields: the codings of a message, in the order in which they were applied.
///
/// # Errors
/// [`DecodeError::Unsupported`].
pub fn codings<'v>(values: impl Iterator<Item = &'v [u8]>) -> Result<Vec<ContentCoding>, DecodeError> {
    let mut found = Vec::new();
    let names = values.flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    for name in names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity")) {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        let coding = match () {
            () if is(b"gzip") || is(b"x-gzip") => ContentCoding::Gzip,
            () if is(b"deflate") => ContentCoding::Deflate,
            () if is(b"br") => ContentCoding::Brotli,
            () if is(b"zstd") => ContentCoding::Zstd,
            () => return Err(DecodeError::Unsupported),
        };
        if found.len() == MOST_CODINGS {
            return Err(DecodeError::Unsupported);
        }
        found.push(coding);
    }
    Ok(found)
}

/// Decodes a body; `codings` are in the order in which they were applied. No result is larger than `limit` bytes, intermediate
/// ones included; memory is bounded by that and by the largest decoder (16 MB of address space, Brotli's window), and time by the
/// lengths of `body` and of the results.
///
/// # Errors
/// See [`DecodeError`].
pub fn decode(codings: &[ContentCoding], body: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
    let mut result = None;
    for coding in codings.iter().rev() {
        let input = result.as_deref().unwrap_or(body);
        if input.is_empty() {
            // No coding has an empty encoding.
            return Err(DecodeError::Malformed);
        }
        result = Some(match coding {
            ContentCoding::Gzip => gunzip(input, limit)?,
            ContentCoding::Deflate => {
                let mut out = Vec::new();
                let state = Decompress::new_with_window_bits(has_zlib_header(input), 15);
                let taken = inflate(state, input, limit, &mut out)?;
                if taken < input.len() {
                    return Err(DecodeError::Malformed);
                }
                out
            }
            ContentCoding::Brotli => unbrotli(input, limit)?,
            ContentCoding::Zstd => unzstd(input, limit)?,
        });
    }
    Ok(result.unwrap_or_else(|| body.to_vec()))
}

/// Whether data begin with a zlib header (RFC 1950, section 2.2).
fn has_zlib_header(input: &[u8]) -> bool {
    matches!(input, [first, second, ..]
        if first & 0x0f == 8 && first >> 4 <= 7 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31))
}

/// Decodes all members of a gzip stream (RFC 1952, section 2.2).
fn gunzip(mut input: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    for _ in 0..MOST_MEMBERS {
        let taken = inflate(Decompress::new_gzip(15), input, limit, &mut out)?;
        input = &input[taken..];
        if input.is_empty() {
            return Ok(out);
        }
    }
    Err(DecodeError::Malformed)
}

/// Grows the result's capacity, up to one byte more than `limit`, so that a result of exactly `limit` bytes differs from a larger
/// one.
fn grow(out: &mut Vec<u8>, limit: usize) {
    let more = (limit + 1).saturating_sub(out.len()).min(out.len().max(PIECE)).max(1);
    out.reserve_exact(more);
}

/// Decodes one DEFLATE stream and returns the number of input bytes consumed.
fn inflate(mut state: Decompress, input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<usize, DecodeError> {
    let mut taken = 0;
    loop {
        grow(out, limit);
        let before = (state.total_in(), out.len());
        let status =
            state.decompress_vec(&input[taken..], out, FlushDecompress::None).map_err(|_| DecodeError::Malformed)?;
        let read = usize::try_from(state.total_in() - before.0).map_err(|_| DecodeError::Malformed)?;
        taken += read;
        if out.len() > limit {
            return Err(DecodeError::TooLarge);
        }
        if status == Status::StreamEnd {
            return Ok(taken);
        }
        // No progress with space left: the input is truncated.
        if read == 0 && out.len() == before.1 {
            return Err(DecodeError::Malformed);
        }
    }
}

fn unbrotli(input: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
    let memory = StandardAlloc::default;
    // Strict: no window above the RFC's maximum of 16 MB.
    let mut state = Box::new(BrotliState::new_strict(memory(), memory(), memory()));
    let (mut left, mut taken, mut total) = (input.len(), 0, 0);
    let (mut out, mut made) = (Vec::new(), 0);
    loop {
        grow(&mut out, limit);
        out.resize(out.capacity(), 0);
        let mut room = out.len() - made;
        let result = BrotliDecompressStream(
            &mut left, &mut taken, input, &mut room, &mut made, &mut out, &mut total, &mut state,
        );
        if made > limit {
            return Err(DecodeError::TooLarge);
        }
        match result {
            BrotliResult::ResultSuccess if left == 0 => {
                out.truncate(made);
                return Ok(out);
            }
            BrotliResult::NeedsMoreOutput => {}
            _ => return Err(DecodeError::Malformed),
        }
    }
}

/// Decodes in one call and into the result itself, so that no window is allocated, regardless of the size that a frame declares.
fn unzstd(input: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::with_capacity(limit.max(1));
    let mut state = DCtx::try_create().ok_or(DecodeError::TooLarge)?;
    match state.decompress(&mut out, input) {
        Ok(length) if length <= limit => Ok(out),
        Err(code) if code.wrapping_neg() != ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize => {
            Err(DecodeError::Malformed)
        }
        _ => Err(DecodeError::TooLarge),
    }
}

#[cfg(test)]
mod tests;
