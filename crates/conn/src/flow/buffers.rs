//! Buffers around a flow: with room for framing, and no larger than what waits in them. Must never interpret a byte.

use base::buffer::Buffer;

use super::{HEADROOM, TAILROOM};

/// An empty buffer with the room that framing needs around what is read into it: whoever reads a body before it flows
/// reads into this.
pub fn body_buffer() -> Buffer {
    let mut buffer = rt::buffer();
    buffer.reserve_around(HEADROOM, TAILROOM);
    buffer
}

/// The same for a body that is to have `size` bytes of room; its memory comes from no pool.
pub fn large_body_buffer(size: usize) -> Buffer {
    let mut buffer = Buffer::with_capacity(HEADROOM + size + TAILROOM);
    buffer.reserve_around(HEADROOM, TAILROOM);
    buffer
}

/// Gets a buffer that can be read into: with storage, with room behind its data where compacting can make some, and of the
/// usual size again after [`shrink`].
pub fn expand(buffer: &mut Buffer) {
    if buffer.capacity() < rt::buffer_size() {
        let mut whole = rt::buffer();
        if whole.push(buffer.data()) {
            *buffer = whole;
        }
    } else if buffer.room() == 0 {
        buffer.compact();
    }
}

/// What lies in a pooled buffer that it fills to a quarter at most gets a buffer of its size; [`expand`] takes it back.
pub fn shrink(buffer: &mut Buffer) {
    let length = buffer.len();
    if buffer.capacity() >= rt::buffer_size() && length <= rt::buffer_size() / 4 {
        let mut small = if length > 0 { Buffer::with_capacity(length) } else { Buffer::empty() };
        let whole = small.push(buffer.data());
        debug_assert!(whole, "it was made for that");
        *buffer = small;
    }
}

/// Cuts `buffer` at `keep` and returns a buffer with what was behind; nothing there means an empty one.
pub(super) fn split_off(buffer: &mut Buffer, keep: usize) -> Buffer {
    if buffer.len() <= keep {
        return Buffer::empty();
    }
    let behind = &buffer.data()[keep..];
    // More than a buffer follows the body only where that was read into a large buffer before it flowed.
    let mut rest = if behind.len() <= rt::buffer_size() { rt::buffer() } else { Buffer::with_capacity(behind.len()) };
    let whole = rest.push(behind);
    debug_assert!(whole, "there is room for all of it");
    buffer.truncate(keep);
    rest
}
