//! Memory of streams that have ended, kept by the thread for new ones: connections are short, and their streams come in
//! batches. Must never keep more than a bound, nor the contents of a stream.

use std::cell::RefCell;
use std::rc::Rc;

use super::cell::StreamCell;

/// The number of streams that a thread keeps.
const KEPT: usize = 1024;

/// The number of allocations for outputs and blocks that a thread keeps, and their maximum size.
const KEPT_BYTES: usize = 16;
const LARGEST: usize = 160 * 1024;

thread_local! {
    static SPARE: RefCell<Vec<Rc<StreamCell>>> = const { RefCell::new(Vec::new()) };
    static BYTES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Returns a stream, perhaps a former one, that has no other owner.
pub(super) fn take() -> Rc<StreamCell> {
    let kept = SPARE.with_borrow_mut(Vec::pop);
    // The task of a former stream may not have dropped it yet.
    kept.filter(|cell| Rc::strong_count(cell) == 1).unwrap_or_else(|| Rc::new(StreamCell::new()))
}

/// Keeps a stream whose memory was shrunk ([`super::stream_half::Half::shrink`]), unless the limit is reached.
pub(super) fn keep(cell: Rc<StreamCell>) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < KEPT {
            spare.push(cell);
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
