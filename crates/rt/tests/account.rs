//! The memory account is correct after very many threads have ended. A program of its own with one test, because the
//! account is per process.

use std::thread;

use base::memory::PROCESS;
use weir_rt::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that one thread allocates and another one frees: less than the portion in which a thread adds to the account.
const PIECE: usize = 10_000;
const THREADS: usize = 1_000;
/// Bytes that threads still running have not added to the account yet.
const PENDING: usize = 4 * 64 * 1024;

#[test]
fn threads_that_end_enter_what_they_have_pending() {
    let before = PROCESS.used();
    for _ in 0..THREADS {
        let piece = vec![1_u8; PIECE];
        thread::spawn(move || drop(piece)).join().expect("no panic");
    }
    let freed = PROCESS.used();
    assert!(freed.abs_diff(before) < PENDING, "{before}, then {freed}");
    let made: Vec<Vec<u8>> =
        (0..THREADS).map(|_| thread::spawn(|| vec![1_u8; PIECE]).join().expect("no panic")).collect();
    let (held, all) = (PROCESS.used(), PIECE * THREADS);
    assert!(held.abs_diff(freed + all) < PENDING + THREADS * 100, "{freed}, then {held} instead of {all} more");
    drop(made);
}
