//! The memory of the process: a counting allocator, the budget that the limits leave, and a reserve for when they are
//! reached.
//!
//! It must never decide which tasks wait: that is the responsibility of [`crate::memory_queue`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use base::memory::{PROCESS, Supply};

use crate::sys;

/// Bytes that a thread allocates or frees before it adds them to the account.
const PORTION: usize = 64 * 1024;
/// The initial pending count of a thread: far more than a portion, so that its first allocation is added. That is when
/// the thread registers to add the rest at its end; later allocations need no check for it.
const UNKNOWN: isize = isize::MIN / 2;
/// Bounds in bytes of the reserve, which is a sixteenth of the budget.
const RESERVE: std::ops::RangeInclusive<usize> = 1 << 20..=8 << 20;
/// Bytes that a thread takes for its stack and the system's own data (the standard library's default is 2 MB).
const THREAD: usize = (2 << 20) + (256 << 10);

/// The system's allocator, with every byte counted in [`base::memory::PROCESS`]. If the kernel refuses memory, a
/// reserve is freed first: the process continues, and [`crate::memory_queue`] has time to make tasks wait.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    /// Bytes of this thread not yet added to the account.
    static PENDING: Cell<isize> = const { Cell::new(UNKNOWN) };
}

static RESERVED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static RESERVED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The budget that the limits leave, in bytes.
static PLANNED: AtomicUsize = AtomicUsize::new(usize::MAX);

#[inline]
fn count(bytes: isize) {
    let pending = PENDING.get() + bytes;
    if pending.unsigned_abs() < PORTION {
        PENDING.set(pending);
    } else {
        enter(pending);
    }
}

#[cold]
fn enter(pending: isize) {
    let is_first = pending < UNKNOWN / 2;
    PENDING.set(0);
    PROCESS.enter(if is_first { pending - UNKNOWN } else { pending });
    if is_first {
        sys::thread::at_end(enter_rest);
    }
}

/// Adds the pending bytes of the calling thread at its end: a process that starts a thread for each of very many jobs
/// (reloads) would otherwise drift ever further from its actual use.
extern "C" fn enter_rest(_: *mut std::ffi::c_void) {
    enter(PENDING.get());
}

/// Allocation sizes are at most `isize::MAX` (see [`Layout`]).
#[inline]
fn signed(size: usize) -> isize {
    size as isize
}

/// Retries after freeing the reserve. If another thread freed it first, that memory is available to this one, too.
#[cold]
fn retry(attempt: impl Fn() -> *mut u8) -> *mut u8 {
    const ATTEMPTS: usize = 3;
    enter(PENDING.get());
    PROCESS.refused(give_up_reserve());
    (0..ATTEMPTS).map(|_| attempt()).find(|block| !block.is_null()).unwrap_or(ptr::null_mut())
}

/// Frees the reserve; returns its size in bytes.
fn give_up_reserve() -> usize {
    let Some(start) = NonNull::new(RESERVED.swap(ptr::null_mut(), Ordering::AcqRel)) else { return 0 };
    let length = RESERVED_BYTES.load(Ordering::Acquire);
    // SAFETY: `set_aside` returned it with that length, and the swap made this thread its only owner.
    let freed = unsafe { sys::memory::unmap(start, length) };
    if freed.is_ok() { length } else { 0 }
}

// Never inlined: the code for every allocation would be in the instruction cache once per call site.
// SAFETY: every block is the system allocator's, which keeps the trait's promises; counting neither allocates nor
// unwinds.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the trait's promises are passed on to the system's allocator.
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let attempt = || unsafe { System.alloc(layout) };
        let mut block = attempt();
        if block.is_null() {
            block = retry(attempt);
        }
        count(if block.is_null() { 0 } else { signed(layout.size()) });
        block
    }

    // SAFETY: the trait's promises are passed on to the system's allocator.
    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let attempt = || unsafe { System.alloc_zeroed(layout) };
        let mut block = attempt();
        if block.is_null() {
            block = retry(attempt);
        }
        count(if block.is_null() { 0 } else { signed(layout.size()) });
        block
    }

    // SAFETY: the trait's promises are passed on to the system's allocator.
    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) };
        count(-signed(layout.size()));
    }

    // SAFETY: the trait's promises are passed on to the system's allocator.
    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise; if it fails, the old block is unchanged.
        let attempt = || unsafe { System.realloc(block, layout, size) };
        let mut new = attempt();
        if new.is_null() {
            new = retry(attempt);
        }
        count(if new.is_null() { 0 } else { signed(size) - signed(layout.size()) });
        new
    }
}

/// Computes what the limits of the process (`RLIMIT_DATA`, which `-m` sets, and `RLIMIT_AS`) leave for allocations,
/// with `threads` threads still to start, and sets the reserve aside. For a program whose allocator is [`Counting`],
/// before it changes its root directory.
pub fn keep_to_limits(threads: usize) {
    enter(PENDING.get());
    let used = PROCESS.used();
    let (size, data) = mapped().unwrap_or((used, used));
    // Memory that the process has mapped but not allocated counts against the limit as well.
    let left = |limit: Option<usize>, mapped: usize| {
        let others = mapped.saturating_sub(used) + threads.saturating_mul(THREAD);
        limit.map_or(usize::MAX, |limit| limit.saturating_sub(others))
    };
    let budget = left(sys::memory::limit(libc::RLIMIT_DATA), data).min(left(sys::memory::limit(libc::RLIMIT_AS), size));
    let reserve = (budget / 16).clamp(*RESERVE.start(), *RESERVE.end());
    let budget = if budget == usize::MAX { budget } else { budget.saturating_sub(reserve).max(1) };
    RESERVED_BYTES.store(reserve, Ordering::Release);
    PLANNED.store(budget, Ordering::Release);
    PROCESS.begin(budget);
    restore_reserve();
}

/// Returns the bytes of the address space in use, and the part of them that is data (proc(5), `statm`).
fn mapped() -> Option<(usize, usize)> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split_ascii_whitespace().map(|word| word.parse::<usize>().ok());
    let size = pages.next()??;
    let data = pages.nth(4)??;
    Some((size * sys::memory::page(), data * sys::memory::page()))
}

/// Whether the reserve exists; recreates it if memory is available again.
pub(crate) fn restore_reserve() -> bool {
    if !RESERVED.load(Ordering::Acquire).is_null() || RESERVED_BYTES.load(Ordering::Acquire) == 0 {
        return true;
    }
    if PROCESS.supply() != Supply::Ample {
        return false;
    }
    let length = RESERVED_BYTES.load(Ordering::Acquire);
    let Some(start) = sys::memory::set_aside(length) else { return false };
    let placed = RESERVED.compare_exchange(ptr::null_mut(), start.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
    if placed.is_err() {
        // SAFETY: another thread was first; this one's has just been allocated, and nothing refers to it.
        let _ = unsafe { sys::memory::unmap(start, length) };
    }
    true
}

/// Raises the budget towards what the limits leave, after the kernel had refused memory below that.
pub(crate) fn widen_budget() {
    let (planned, budget) = (PLANNED.load(Ordering::Acquire), PROCESS.budget());
    if budget < planned && PROCESS.supply() == Supply::Ample {
        PROCESS.set_budget(planned.min(budget.saturating_add(budget / 16)));
    }
}
