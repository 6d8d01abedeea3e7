//! Memory of streams that have ended, kept by the thread for new ones: connections are short, and their streams come in
//! batches. Must never keep more than a bound, nor the contents of a stream.

use std::cell::RefCell;

use super::stream_half::Half;

/// The number of halves that a thread keeps.
const KEPT: usize = 1024;

/// The number of allocations for outputs and blocks that a thread keeps, and their maximum size.
const KEPT_BYTES: usize = 16;
const LARGEST: usize = 160 * 1024;

thread_local! {
    #[expect(clippy::vec_box, reason = "a half stays where it is when it is used again")]
    static SPARE: RefCell<Vec<Box<Half>>> = const { RefCell::new(Vec::new()) };
    static BYTES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Returns a half, perhaps that of a former stream.
pub(super) fn take() -> Box<Half> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Box::new(Half::new()))
}

/// Keeps a half, unless the limit is reached.
pub(super) fn keep(mut half: Box<Half>) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < KEPT {
            half.shrink();
            spare.push(half);
        }
    });
}

/// Returns an empty vector, perhaps with memory.
pub(super) fn bytes() -> Vec<u8> {
    BYTES.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Keeps a vector's memory, unless the limit is reached.
pub(super) fn keep_bytes(mut bytes: Vec<u8>) {
    if bytes.capacity() == 0 || bytes.capacity() > LARGEST {
        return;
    }
    BYTES.with_borrow_mut(|spare| {
        if spare.len() < KEPT_BYTES {
            bytes.clear();
            spare.push(bytes);
        }
    });
}
