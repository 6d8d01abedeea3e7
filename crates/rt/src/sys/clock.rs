//! The kernel's clocks and its random numbers.
//!
//! Only a driver may call this: once per iteration, and when time within one is measured.

use std::time::Duration;

use base::{Moment, WallTime};

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the result. These clocks always exist, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time
}

/// Reads the monotonic clock.
pub(crate) fn monotonic() -> Moment {
    let time = read(libc::CLOCK_MONOTONIC);
    Moment::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns the processor time used by the calling thread. A system call, unlike the other clocks.
pub(crate) fn of_thread() -> Duration {
    let time = read(libc::CLOCK_THREAD_CPUTIME_ID);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Reads the calendar clock.
pub(crate) fn wall() -> WallTime {
    let time = read(libc::CLOCK_REALTIME);
    WallTime { seconds: time.tv_sec, nanos: time.tv_nsec as u32 }
}

/// Returns a seed from the kernel, or from the clock if the kernel has none yet.
pub(crate) fn seed() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is valid for the length that is given.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    if got == 8 { u64::from_ne_bytes(bytes) } else { monotonic().as_nanos() }
}
