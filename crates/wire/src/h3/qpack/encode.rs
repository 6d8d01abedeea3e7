//! Encodes field sections (RFC 9204, section 4.5) with references to the static table alone. Must never refer to a
//! dynamic table, so that a section is independent of its connection.

use super::static_table::{self, AUTHORITY, CONTENT_LENGTH, METHOD, Match, PATH, SCHEME, STATUS};
use crate::fields::write::{FieldWriter, status_digits};
use crate::fields::{huffman, integer};
use crate::http::Method;

/// An entry of the static table.
const INDEXED: u8 = 0xc0;

/// A value with the name of an entry of the static table. The bit `N` is set in each literal: the next hop must not add
/// it to a table, because a head does not record which of its fields had that bit (RFC 9204, section 7.1.3).
const NAMED: u8 = 0x70;

/// A name and a value, with the bit `N`.
const LITERAL: u8 = 0x30;

/// Encodes a field section into a slice.
pub(in super::super) struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Begins a section with its prefix: no entry of the dynamic table is required. `None` if there is not enough space.
    pub(in super::super) fn new(room: &'a mut [u8]) -> Option<Self> {
        room.get_mut(..2)?.fill(0);
        Some(Self { room, at: 2 })
    }

    /// The length of the section in bytes.
    pub(in super::super) fn length(&self) -> usize {
        self.at
    }

    #[inline]
    fn indexed(&mut self, index: usize) -> Option<()> {
        self.integer(index, 6, INDEXED)
    }

    /// Writes a field whose name is that of an entry of the static table.
    #[inline]
    fn named(&mut self, index: usize, value: &[u8]) -> Option<()> {
        self.integer(index, 4, NAMED)?;
        self.string(value, 7, 0)
    }

    /// Writes a string, Huffman-coded if that is shorter. The first byte has `prefix` bits for its length, before these
    /// the bit for the coding, and before that the bits of `kind`.
    #[inline]
    fn string(&mut self, text: &[u8], prefix: u32, kind: u8) -> Option<()> {
        let length = huffman::encoded_length(text);
        if length < text.len() {
            self.integer(length, prefix, kind | 1 << prefix)?;
            huffman::encode(text, self.take(length)?)
        } else {
            self.integer(text.len(), prefix, kind)?;
            self.take(text.len())?.copy_from_slice(text);
            Some(())
        }
    }

    /// Returns the next `length` bytes of the space.
    #[inline]
    fn take(&mut self, length: usize) -> Option<&mut [u8]> {
        let (place, _) = self.room.get_mut(self.at..)?.split_at_mut_checked(length)?;
        self.at += length;
        Some(place)
    }

    #[inline]
    fn integer(&mut self, value: usize, prefix: u32, kind: u8) -> Option<()> {
        let room = self.room.get_mut(self.at..)?;
        self.at += integer::write(value, prefix, kind, room)?;
        Some(())
    }
}

impl FieldWriter for Writer<'_> {
    const HOST_IS_AUTHORITY: bool = true;

    #[inline]
    fn method(&mut self, known: Method, text: &[u8]) -> Option<()> {
        match static_table::method(known) {
            Some(index) => self.indexed(index),
            None => self.named(METHOD, text),
        }
    }

    #[inline]
    fn scheme(&mut self, scheme: &[u8]) -> Option<()> {
        match static_table::scheme(scheme) {
            Some(index) => self.indexed(index),
            None => self.named(SCHEME, scheme),
        }
    }

    #[inline]
    fn authority(&mut self, authority: &[u8]) -> Option<()> {
        self.named(AUTHORITY, authority)
    }

    #[inline]
    fn path(&mut self, path: &[u8]) -> Option<()> {
        match path {
            b"/" => self.indexed(PATH),
            _ => self.named(PATH, path),
        }
    }

    #[inline]
    fn status(&mut self, status: u16) -> Option<()> {
        match static_table::status(status) {
            Some(index) => self.indexed(index),
            None => self.named(STATUS, &status_digits(status)),
        }
    }

    #[inline]
    fn content_length(&mut self, value: &[u8]) -> Option<()> {
        match value {
            b"0" => self.indexed(CONTENT_LENGTH),
            _ => self.named(CONTENT_LENGTH, value),
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match static_table::find(name, value) {
            Match::Field(index) => self.indexed(index),
            Match::Name(index) => self.named(index, value),
            Match::Nothing => {
                self.string(name, 3, LITERAL)?;
                self.string(value, 7, 0)
            }
        }
    }
}
