//! Buffers of a flow: with capacity for framing, and no larger than the bytes that wait in them. Must never interpret a
//! byte.

use base::buffer::Buffer;

use super::framing_space::{HEADROOM, TAILROOM};

/// Returns an empty buffer with the capacity that framing needs before and after the body. Code that reads a body
/// before it flows reads it into such a buffer.
pub fn body_buffer() -> Buffer {
    let mut buffer = rt::buffer();
    buffer.reserve_around(HEADROOM, TAILROOM);
    buffer
}

/// Returns such a buffer with `size` bytes of capacity for the body, allocated outside the pool.
pub fn large_body_buffer(size: usize) -> Buffer {
    let mut buffer = Buffer::with_capacity(HEADROOM + size + TAILROOM);
    buffer.reserve_around(HEADROOM, TAILROOM);
    buffer
}

/// Makes a buffer ready to be read into: with storage, with free space after its data if compacting can make some, and
/// of the usual size again after [`shrink`].
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

/// Moves the bytes of a pooled buffer that is at most a quarter full into a buffer of their size. Undone by [`expand`].
pub fn shrink(buffer: &mut Buffer) {
    let length = buffer.len();
    if buffer.capacity() >= rt::buffer_size() && length <= rt::buffer_size() / 4 {
        let mut small = if length > 0 { Buffer::with_capacity(length) } else { Buffer::empty() };
        let whole = small.push(buffer.data());
        debug_assert!(whole, "it was made for that");
        *buffer = small;
    }
}

/// Cuts `buffer` at `keep` bytes and returns the rest in a buffer of its own, which is empty if there is no rest.
pub(super) fn split_off(buffer: &mut Buffer, keep: usize) -> Buffer {
    if buffer.len() <= keep {
        return Buffer::empty();
    }
    let behind = &buffer.data()[keep..];
    // The rest is longer than a pooled buffer only if it was read into a large buffer before the body flowed.
    let mut rest = if behind.len() <= rt::buffer_size() { rt::buffer() } else { Buffer::with_capacity(behind.len()) };
    let whole = rest.push(behind);
    debug_assert!(whole, "there is room for all of it");
    buffer.truncate(keep);
    rest
}
