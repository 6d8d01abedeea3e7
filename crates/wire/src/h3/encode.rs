//! Encodes heads and trailers as HEADERS frames (RFC 9114, section 7.2.2). Must never select or change a field.

use super::frame::FrameType;
use super::qpack::Writer;
use super::varint;
use crate::fields::write;
use crate::h1::{Edits, Output, Overflow};
use crate::http::{Fields, Head};

/// Maximum number of bytes of a field section beyond the text of its head: the prefix, the status, a length, and integer
/// prefixes.
const MARGIN: usize = 96;

/// Maximum number of bytes that the lengths of a field's name and value take beyond those of a short field.
const PER_FIELD: usize = 8;

/// Encodes the head of a response as a HEADERS frame. Of the edits, the framing and the last field apply.
///
/// # Errors
/// The head does not fit.
pub fn encode_response(head: &Head, edits: &Edits<'_>, out: &mut impl Output) -> Result<(), Overflow> {
    encode(0, &head.fields, edits.last, out, |writer| response(head, edits, writer))
}

/// Encodes the head of a request as a HEADERS frame. If its target contains scheme and authority, these become
/// pseudo-headers apart from the path; else Host becomes `:authority`, with the scheme `https` (RFC 9114, section 4.3.1).
///
/// # Errors
/// The head does not fit.
pub fn encode_request(head: &Head, edits: &Edits<'_>, out: &mut impl Output) -> Result<(), Overflow> {
    encode(head.target().len(), &head.fields, edits.last, out, |writer| request(head, edits, writer))
}

/// Encodes the trailers as a HEADERS frame.
///
/// # Errors
/// The trailers do not fit.
pub fn encode_trailers(trailers: &Fields, out: &mut Vec<u8>) -> Result<(), Overflow> {
    encode(0, trailers, None, out, |writer| write::trailers(trailers, writer))
}

/// Compiled once, in this crate, together with the writer.
fn request(head: &Head, edits: &Edits<'_>, writer: &mut Writer<'_>) -> Option<()> {
    write::request(head, edits, writer)
}

/// As [`request`].
fn response(head: &Head, edits: &Edits<'_>, writer: &mut Writer<'_>) -> Option<()> {
    write::response(head, edits, writer)
}

/// Encodes a section with the fields that `fill` writes, `last`, and at most `more` other bytes.
fn encode(
    more: usize,
    fields: &Fields,
    last: Option<(&[u8], &[u8])>,
    out: &mut impl Output,
    fill: impl FnOnce(&mut Writer<'_>) -> Option<()>,
) -> Result<(), Overflow> {
    if fields.overflowed() {
        return Err(Overflow);
    }
    let last = last.map_or(0, |(name, value)| name.len() + value.len());
    let most = fields.used() + last + more + PER_FIELD * fields.len() + MARGIN;
    // The length of the section is known only after it: its integer has the size that the longest one needs.
    let size = varint::length(most as u64).max(2);
    let before = 1 + size;
    let written = out.write(before + most, |room| {
        let mut writer = Writer::new(room.get_mut(before..)?)?;
        fill(&mut writer)?;
        let length = writer.length();
        // Free space may be larger than `most`.
        if length >= 1 << (8 * size - 2) {
            return None;
        }
        *room.first_mut()? = FrameType::Headers.number() as u8;
        varint::write_in(size, length as u64, room.get_mut(1..)?)?;
        Some(before + length)
    });
    if written { Ok(()) } else { Err(Overflow) }
}
