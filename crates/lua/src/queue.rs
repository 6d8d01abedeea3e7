//! Wakes functions that wait for an element of a queue (`Queue.pop_wait` of HAProxy's Lua manual). The elements are
//! stored in Lua. Must never wake under a state's lock.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use mlua::{Lua, Table, UserData, UserDataRef, Value};

use crate::value::Job;

/// The notification of a queue: rung for each pushed element.
#[derive(Clone, Default)]
struct QueueWaker(Arc<Mutex<Ring>>);

impl UserData for QueueWaker {}

#[derive(Default)]
struct Ring {
    /// Number of rings.
    count: u64,
    /// Wakers by the number of the wait. A wait that ends removes itself.
    waiting: Vec<(u64, Waker)>,
}

impl QueueWaker {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// Wakers of the bells that the current function has rung.
    static RUNG: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

/// A wait.
struct Wait {
    bell: QueueWaker,
    number: u64,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.bell.lock().waiting.retain(|(number, _)| *number != self.number);
    }
}

/// Creates the job of a wait: `(bell, count)`, until the bell was rung more than `count` times. `None`: another
/// function.
pub(crate) fn begin(name: &str, values: &[Value]) -> Option<Job> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if name != "queue.wait" {
        return None;
    }
    let bell = values.first()?.as_userdata()?.borrow::<QueueWaker>().ok()?.clone();
    let seen = values.get(1).and_then(Value::as_u64)?;
    let wait = Wait { bell, number: NEXT.fetch_add(1, Ordering::Relaxed) };
    Some(Box::pin(async move {
        std::future::poll_fn(|cx| {
            let mut ring = wait.bell.lock();
            if ring.count > seen {
                return Poll::Ready(());
            }
            match ring.waiting.iter_mut().find(|(number, _)| *number == wait.number) {
                Some((_, waker)) => waker.clone_from(cx.waker()),
                None => ring.waiting.push((wait.number, cx.waker().clone())),
            }
            Poll::Pending
        })
        .await;
        Vec::new()
    }))
}

/// Wakes the waits for bells rung by the last function on this thread.
pub(crate) fn wake() {
    let rung = RUNG.with_borrow_mut(std::mem::take);
    rung.iter().for_each(Waker::wake_by_ref);
}

/// Adds the functions for bells.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set("bell", lua.create_function(|lua, ()| lua.create_userdata(QueueWaker::default()))?)?;
    native.set("rung", lua.create_function(|_, bell: UserDataRef<QueueWaker>| Ok(bell.lock().count))?)?;
    native.set(
        "ring",
        lua.create_function(|_, bell: UserDataRef<QueueWaker>| {
            let mut ring = bell.lock();
            ring.count += 1;
            let wakers = ring.waiting.drain(..).map(|(_, waker)| waker);
            RUNG.with_borrow_mut(|rung| rung.extend(wakers));
            Ok(())
        })?,
    )
}
