//! Inspecting a thread of this process from another one: its ID, its processor time, and its stack.
//!
//! Nothing here may interpret a thread's position.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::check;

/// Returns the calling thread's ID.
pub(crate) fn number() -> i32 {
    // SAFETY: no pointers are passed; the call cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Yields the processor to other threads that wait for it.
pub(crate) fn give_way() {
    // SAFETY: no arguments; it cannot fail.
    unsafe { libc::sched_yield() };
}

/// Unshares the descriptor table, and keeps only the standard streams. The kernel looks up descriptors at lower cost if
/// the table is not shared: one worker with a watchdog serves as cheaply as one alone.
pub(crate) fn leave_descriptors() {
    const FIRST: libc::c_ulong = 3;
    const LAST: libc::c_ulong = libc::c_uint::MAX as libc::c_ulong;
    // SAFETY: no pointers are passed. The table that is emptied is this thread's own copy, and nothing that it does
    // afterwards uses a descriptor that it did not open itself. A kernel without the call changes nothing.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST, LAST, libc::CLOSE_RANGE_UNSHARE as libc::c_ulong) };
}

/// Returns the processor time used by a thread of this process.
pub(crate) fn processor_time(thread: i32) -> io::Result<Duration> {
    // The ID of a thread's clock is the complement of the thread ID, shifted, with the kind of clock and the thread
    // flag in the low bits.
    const SCHEDULED_TIME_OF_THREAD: libc::clockid_t = 6;
    let clock = (!thread << 3) | SCHEDULED_TIME_OF_THREAD;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the result.
    check(unsafe { libc::clock_gettime(clock, &mut time) })?;
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// No key was created yet.
const NO_KEY: u64 = u64::MAX;

/// The key used by [`at_end`].
static KEY_OF_END: AtomicU64 = AtomicU64::new(NO_KEY);

/// Runs `call` at the end of the calling thread, after the destructors of its thread-local values
/// (pthread_setspecific(3)): the same function for all threads. Allocates nothing through the program's allocator,
/// which calls it. If the system has no key left, nothing is called.
pub(crate) fn at_end(call: extern "C" fn(*mut libc::c_void)) {
    let mut key = KEY_OF_END.load(Ordering::Acquire);
    if key == NO_KEY {
        let mut made = 0;
        // SAFETY: `made` is valid for the result, and the function lives as long as the program.
        if unsafe { libc::pthread_key_create(&mut made, Some(call)) } != 0 {
            return;
        }
        key = u64::from(made);
        let placed = KEY_OF_END.compare_exchange(NO_KEY, key, Ordering::AcqRel, Ordering::Acquire);
        if let Err(first) = placed {
            // SAFETY: another thread was first; nothing has used this key.
            unsafe { libc::pthread_key_delete(made) };
            key = first;
        }
    }
    // The function is called for any value but null.
    let value: *const AtomicU64 = &KEY_OF_END;
    // SAFETY: the key exists for as long as the program, and the function does not use the value.
    unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, value.cast()) };
}

/// Maximum number of return addresses in a sample.
pub(crate) const MOST_FRAMES: usize = 48;

/// No worker runs on the thread, or none of its tasks.
pub(crate) const NO_TASK: u64 = u64::MAX;

/// Returns the task that runs on the calling thread, and its tag. A signal handler calls it.
pub(crate) type RunningTask = fn() -> Option<(u64, u64)>;

static RUNNING_TASK: OnceLock<RunningTask> = OnceLock::new();

/// The results of the handler. One thread at a time is sampled.
static TASK: AtomicU64 = AtomicU64::new(NO_TASK);
static TAG: AtomicU64 = AtomicU64::new(0);
static FRAMES: [AtomicUsize; MOST_FRAMES] = [const { AtomicUsize::new(0) }; MOST_FRAMES];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicBool = AtomicBool::new(false);

/// The signal that requests a sample from a thread. It is not sent otherwise, and ignored by default.
const SIGNAL: libc::c_int = libc::SIGURG;

/// Runs on the sampled thread. Only writes atomics, and allocates nothing: the return addresses are found with tables
/// that the program was linked with.
extern "C" fn look(_: libc::c_int) {
    let (task, tag) = RUNNING_TASK.get().and_then(|running| running()).unwrap_or((NO_TASK, 0));
    TASK.store(task, Ordering::Relaxed);
    TAG.store(tag, Ordering::Relaxed);
    let mut frames = [0_usize; MOST_FRAMES];
    let count = return_addresses(&mut frames);
    for (place, frame) in FRAMES.iter().zip(frames) {
        place.store(frame, Ordering::Relaxed);
    }
    COUNT.store(count, Ordering::Relaxed);
    DONE.store(true, Ordering::Release);
}

#[cfg(target_env = "gnu")]
fn return_addresses(frames: &mut [usize; MOST_FRAMES]) -> usize {
    // SAFETY: the array is valid for the requested number of pointers; a pointer and a `usize` have one layout.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr().cast(), MOST_FRAMES as libc::c_int) };
    usize::try_from(count).unwrap_or(0)
}

#[cfg(not(target_env = "gnu"))]
fn return_addresses(_: &mut [usize; MOST_FRAMES]) -> usize {
    0
}

/// Prepares threads for sampling. `running_task` must be safe to call in a signal handler.
pub(crate) fn prepare_to_look(running_task: RunningTask) -> io::Result<()> {
    let _ = RUNNING_TASK.set(running_task);
    // The first call may load a library, which no handler may do.
    let _ = return_addresses(&mut [0; MOST_FRAMES]);
    super::signal::set_handler(SIGNAL, look)
}

/// A sample of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The running task; [`NO_TASK`] if none.
    pub(crate) task: u64,
    pub(crate) tag: u64,
    /// Return addresses, innermost first.
    pub(crate) frames: [usize; MOST_FRAMES],
    /// Number of return addresses.
    pub(crate) count: usize,
}

/// Samples a thread of this process; `None` if it does not respond.
pub(crate) fn look_at(thread: i32) -> Option<Sample> {
    const PATIENCE: u32 = 50;
    DONE.store(false, Ordering::Relaxed);
    let process = std::process::id() as libc::c_long;
    // SAFETY: no pointers are passed; the signal has a handler.
    check(unsafe { libc::syscall(libc::SYS_tgkill, process, thread as libc::c_long, SIGNAL) } as libc::c_int).ok()?;
    for _ in 0..PATIENCE {
        if DONE.load(Ordering::Acquire) {
            let mut frames = [0; MOST_FRAMES];
            frames.iter_mut().zip(&FRAMES).for_each(|(frame, place)| *frame = place.load(Ordering::Relaxed));
            let count = COUNT.load(Ordering::Relaxed).min(MOST_FRAMES);
            return Some(Sample {
                task: TASK.load(Ordering::Relaxed),
                tag: TAG.load(Ordering::Relaxed),
                frames,
                count,
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Returns the program's load address: return addresses are only meaningful to tools relative to it.
pub(crate) fn base_address() -> usize {
    /// # Safety
    /// `info` must be valid, and `place` valid for a `usize`.
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, place: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the caller passes a valid description, and the place that `base_address` gave it.
        unsafe { *place.cast::<usize>() = (*info).dlpi_addr as usize };
        1
    }
    let mut base = 0_usize;
    // SAFETY: `first` has the required signature, and `base` outlives the call, the only one that writes it.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut base).cast()) };
    base
}

/// Prefetches a cache line, on processors that support it. Any address is permitted.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program could see, and does not fail on any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch(address.cast(), std::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
