//! String literals (RFC 7541, section 5.2; RFC 9204, section 4.1.2), and the buffers for those that are Huffman-coded.

use std::cell::RefCell;

use super::{huffman, integer};

/// Buffers for decoded Huffman strings. The decoders of a thread share them, because none needs them between two sections, and
/// nothing that gets a field decodes another section.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch { name: Vec::new(), value: Vec::new() }) };
}

/// Calls a function with the buffers of the thread.
#[inline]
pub(crate) fn with_scratch<R>(call: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(call)
}

/// A string of a field section.
pub(crate) enum Text<'a> {
    /// A slice of the section.
    Plain(&'a [u8]),
    /// It was decoded into a buffer.
    Decoded,
}

/// Reads a string, into `decoded` if it is Huffman-coded. The first byte has `prefix` bits for its length, and before
/// these the bit for the coding. `None`: the string is malformed, or longer than twice `longest`; up to that length the
/// head is reported as too large instead.
#[inline]
pub(crate) fn read<'a>(section: &mut &'a [u8], prefix: u32, decoded: &mut Vec<u8>, longest: usize) -> Option<Text<'a>> {
    let is_huffman = section.first()? & (1 << prefix) != 0;
    let length = integer::read(section, prefix)?;
    let (text, rest) = section.split_at_checked(length)?;
    *section = rest;
    if is_huffman {
        decoded.clear();
        huffman::decode(text, decoded, 2 * longest)?;
        return Some(Text::Decoded);
    }
    (text.len() <= 2 * longest).then_some(Text::Plain(text))
}
