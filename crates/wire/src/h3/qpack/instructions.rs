//! The instructions of a peer's encoder (RFC 9204, section 4.3). Owns an incomplete one; must never hold more than an
//! entry of the table can need.

use super::dynamic::Dynamic;
use super::static_table;
use crate::fields::field::{HeaderField, KnownName};
use crate::fields::huffman;
use crate::fields::integer::{self, IntegerError};
use crate::fields::strings::{self, Scratch};

/// Overhead of an entry beyond its text (RFC 9204, section 3.2.1).
const OVERHEAD: usize = 32;

/// The longest code of a byte in bits, and the longest padding.
const LONGEST_CODE: usize = 30;
const LONGEST_PADDING: usize = 7;

/// Reads instructions from input that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct InstructionReader {
    /// The received part of an instruction that was split.
    partial: Vec<u8>,
}

/// An instruction that cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// At least this number of bytes is missing.
    Missing(usize),
    Invalid,
}

impl InstructionReader {
    /// Applies the instructions that are complete. `None`: one of them is invalid.
    pub(super) fn read(&mut self, mut input: &[u8], dynamic: &mut Dynamic) -> Option<()> {
        strings::with_scratch(|scratch| {
            while !self.partial.is_empty() {
                let mut rest = &self.partial[..];
                match apply(&mut rest, dynamic, scratch) {
                    Ok(()) => self.partial = Vec::new(),
                    Err(Stop::Invalid) => return None,
                    Err(Stop::Missing(count)) => {
                        let (piece, rest) = input.split_at(count.min(input.len()));
                        self.partial.extend_from_slice(piece);
                        input = rest;
                        if piece.len() < count {
                            return Some(());
                        }
                    }
                }
            }
            while !input.is_empty() {
                let mut rest = input;
                match apply(&mut rest, dynamic, scratch) {
                    Ok(()) => input = rest,
                    Err(Stop::Invalid) => return None,
                    Err(Stop::Missing(_)) => {
                        self.partial.extend_from_slice(input);
                        return Some(());
                    }
                }
            }
            Some(())
        })
    }

    /// The number of bytes of an incomplete instruction.
    pub(super) fn held(&self) -> usize {
        self.partial.len()
    }
}

/// Applies the first instruction and advances `input`.
fn apply(input: &mut &[u8], dynamic: &mut Dynamic, scratch: &mut Scratch) -> Result<(), Stop> {
    let first = *input.first().ok_or(Stop::Missing(1))?;
    match first {
        0x80.. => {
            let index = integer(input, 6)?;
            let entry = if first & 0x40 != 0 {
                usize::try_from(index).ok().and_then(static_table::get)
            } else {
                dynamic.by_age(index)
            };
            let entry = entry.ok_or(Stop::Invalid)?;
            let known = entry.known;
            // Copied, since the insertion may evict it.
            scratch.name.clear();
            scratch.name.extend_from_slice(entry.name);
            let value = EncodedString::read(input, 7, scratch.name.len(), dynamic)?;
            insert(None, value, known, dynamic, scratch)
        }
        0x40..=0x7f => {
            let name = EncodedString::read(input, 5, 0, dynamic)?;
            let value = EncodedString::read(input, 7, name.least(), dynamic)?;
            insert(Some(name), value, KnownName::Unknown, dynamic, scratch)
        }
        0x20..=0x3f => {
            let capacity = integer(input, 5)?;
            dynamic.set_capacity(capacity).ok_or(Stop::Invalid)
        }
        _ => {
            let index = integer(input, 5)?;
            let entry = dynamic.by_age(index).ok_or(Stop::Invalid)?;
            scratch.name.clear();
            scratch.name.extend_from_slice(entry.name);
            scratch.value.clear();
            scratch.value.extend_from_slice(entry.value);
            let entry = HeaderField { name: &scratch.name, value: &scratch.value, ..entry };
            dynamic.insert(&entry).ok_or(Stop::Invalid)
        }
    }
}

/// Inserts an entry, with a name from the input or the one in `scratch`.
fn insert(
    name: Option<EncodedString<'_>>,
    value: EncodedString<'_>,
    known: KnownName,
    dynamic: &mut Dynamic,
    scratch: &mut Scratch,
) -> Result<(), Stop> {
    let most = dynamic.capacity();
    let Scratch { name: name_room, value: value_room } = scratch;
    let name = match name {
        Some(name) => name.decode(name_room, most).ok_or(Stop::Invalid)?,
        None => name_room,
    };
    let value = value.decode(value_room, most).ok_or(Stop::Invalid)?;
    dynamic.insert(&HeaderField { name, value, known, is_valid: false }).ok_or(Stop::Invalid)
}

fn integer(input: &mut &[u8], prefix: u32) -> Result<u64, Stop> {
    integer::read_wide(input, prefix).map_err(|error| match error {
        IntegerError::Truncated => Stop::Missing(1),
        IntegerError::TooLarge => Stop::Invalid,
    })
}

/// A string that is not decoded.
struct EncodedString<'i> {
    is_huffman: bool,
    text: &'i [u8],
}

impl<'i> EncodedString<'i> {
    /// Reads a string of an entry that has at least `other` bytes beside it, and advances `input`. Its length is checked
    /// before it is complete.
    fn read(input: &mut &'i [u8], prefix: u32, other: usize, dynamic: &Dynamic) -> Result<Self, Stop> {
        let is_huffman = *input.first().ok_or(Stop::Missing(1))? & (1 << prefix) != 0;
        let length = integer(input, prefix)?;
        let length = usize::try_from(length).map_err(|_| Stop::Invalid)?;
        let least = least(length, is_huffman).checked_add(other + OVERHEAD);
        if least.is_none_or(|least| least > dynamic.capacity()) {
            return Err(Stop::Invalid);
        }
        let missing = Stop::Missing(length.saturating_sub(input.len()));
        let (text, rest) = input.split_at_checked(length).ok_or(missing)?;
        *input = rest;
        Ok(Self { is_huffman, text })
    }

    /// The smallest length of the string after decoding.
    fn least(&self) -> usize {
        least(self.text.len(), self.is_huffman)
    }

    /// Decodes the string; `None` if it is invalid or longer than `most` bytes.
    fn decode<'f>(&self, room: &'f mut Vec<u8>, most: usize) -> Option<&'f [u8]>
    where
        'i: 'f,
    {
        if !self.is_huffman {
            return Some(self.text);
        }
        room.clear();
        huffman::decode(self.text, room, most)?;
        Some(room)
    }
}

/// Returns the smallest length after decoding of a string of `length` bytes.
fn least(length: usize, is_huffman: bool) -> usize {
    if is_huffman { length.saturating_mul(8).saturating_sub(LONGEST_PADDING) / LONGEST_CODE } else { length }
}
