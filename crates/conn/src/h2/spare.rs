//! Memory of streams that have ended, kept by the thread for those that begin: connections come and go, and their streams in
//! batches. Must never keep more than a bound, nor what a stream has said.

use std::cell::RefCell;

use super::half::Half;

/// Halves that a thread keeps.
const KEPT: usize = 1024;

/// Pieces of memory for outputs and blocks that a thread keeps, and how large they may be.
const KEPT_BYTES: usize = 16;
const LARGEST: usize = 160 * 1024;

thread_local! {
    #[expect(clippy::vec_box, reason = "a half stays where it is when it is used again")]
    static SPARE: RefCell<Vec<Box<Half>>> = const { RefCell::new(Vec::new()) };
    static BYTES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A half, perhaps that of a former stream.
pub(super) fn take() -> Box<Half> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Box::new(Half::new()))
}

/// Keeps a half, where there is room for it.
pub(super) fn keep(mut half: Box<Half>) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < KEPT {
            half.shrink();
            spare.push(half);
        }
    });
}

/// Memory without content.
pub(super) fn bytes() -> Vec<u8> {
    BYTES.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Keeps memory, where there is room for it.
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
