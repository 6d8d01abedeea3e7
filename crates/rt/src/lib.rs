//! Weir's per-core runtime: executor, epoll driver, simulated driver, sockets, timers, signals and process helpers.
//!
//! It must never know a protocol above TCP, UDP and UNIX sockets. All `unsafe` code of the workspace is in this crate,
//! each block with a comment that states why it is sound.
//!
//! One OS thread is one worker. Everything in this crate acts on the *current* worker, a thread-local; the simulator
//! swaps it, so that several workers run in one thread.
//!
//! One iteration ("turn") of a worker's event loop: wait for events (not at all if a task is runnable), record all of
//! them, empty the mailbox, expire timers, run the tasks that were queued when the iteration began.
#![allow(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks)]

mod address;
mod alarm;
mod calls;
mod class;
pub mod clock;
pub mod confine;
mod current;
mod driver;
mod epoll;
mod executor;
mod file_lock;
mod folder;
mod guardian;
mod helpers;
mod idleness;
mod load_guard;
mod local_box;
mod local_rc;
mod local_time;
mod loop_counts;
mod mailbox;
mod mapped;
pub mod memory;
mod memory_queue;
mod memory_waits;
pub mod net;
mod output;
pub mod process;
mod profile;
pub mod program;
mod random;
mod recycle;
pub mod rights;
mod shared_memory;
pub mod signal;
pub mod sim;
mod slice;
mod source;
mod sys;
mod task;
mod task_id;
mod timer;
mod unless;
pub mod watchdog;
mod worker;
mod yield_policy;

pub use alarm::Alarm;
pub use calls::SocketCalls;
pub use class::in_class;
pub use executor::{Config, Main, MainFuture, run};
pub use file_lock::{has_lock, lock_bytes, unlock_bytes};
pub use folder::{FileOwner, Folder};
pub use helpers::Helpers;
pub use load_guard::LoadGuard;
pub use local_box::LocalBox;
pub use local_rc::LocalRc;
pub use local_time::{local_offset, zone_name};
pub use mailbox::Handle;
pub use mapped::MappedFile;
pub use memory_queue::{Stage, poll_memory, set_scarcity_hook};
pub use memory_waits::{memory_is_critical, memory_is_scarce};
pub use output::{ATOMIC, Output};
pub use profile::{FunctionCost, Profile};
pub use recycle::{Recycled, boxed, boxed_dyn, boxed_with};
pub use shared_memory::open_shared_memory;
pub use signal::{SignalStream, signals};
pub use sys::signal::Signal;
pub use task::{Class, TaskCost};
pub use task_id::NO_TAG;
pub use timer::{Sleep, Timer, YieldNow, sleep, sleep_until, yield_now};
pub use unless::{Unless, unless};
pub use watchdog::Watchdog;
pub use worker::{
    Activity, PoolUse, activity, buffer, buffer_size, buffers_in_use, bulk_buffer, calls, contain, ends_at, handle,
    has_used_slice, idle_percent, is_on_worker, is_spinning, keep_piece, large_buffer, large_buffer_size, load,
    load_of, local, measure, measure_tasks, now, piece_buffer, pools, post, processor_time, random, read_clock,
    set_local, set_panic_hook, slice_is_over, spawn, spawn_with, stop, stop_spinning, stopping, task_cost,
    task_profile, tasks, usage_of, waiting_tasks, wall, worker, workers,
};

/// A worker's number within its runtime, from 0.
pub type WorkerId = u16;
