//! Number of connections, its limit, and the tasks that wait for a free slot. Must never access a connection.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The connection slots of a process.
#[derive(Debug)]
pub struct Capacity {
    most: usize,
    taken: AtomicUsize,
    /// There is a waiter: a released slot must wake it.
    awaited: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

/// One connection's slot, released on drop.
#[derive(Debug)]
pub struct CapacitySlot(Arc<Capacity>);

impl Capacity {
    /// Creates slots for that number of connections, at least one.
    pub fn new(most: usize) -> Arc<Self> {
        let (taken, awaited, waiting) = Default::default();
        Arc::new(Self { most: most.max(1), taken, awaited, waiting })
    }

    /// Takes a slot, if one is free.
    pub fn take(self: &Arc<Self>) -> Option<CapacitySlot> {
        let one_more = |taken: usize| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).ok()?;
        Some(CapacitySlot(Arc::clone(self)))
    }

    /// Ready with a slot as soon as one is free.
    pub fn poll_take(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<CapacitySlot> {
        self.poll(context, || self.take())
    }

    /// Ready when no slot is taken.
    pub fn poll_empty(&self, context: &mut Context<'_>) -> Poll<()> {
        self.poll(context, || (self.taken.load(Ordering::SeqCst) == 0).then_some(()))
    }

    fn poll<T>(&self, context: &mut Context<'_>, attempt: impl Fn() -> Option<T>) -> Poll<T> {
        if let Some(done) = attempt() {
            return Poll::Ready(done);
        }
        let mut waiting = self.waiting();
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        self.awaited.store(true, Ordering::SeqCst);
        drop(waiting);
        // A slot released before the mark was set did not wake this task.
        attempt().map_or(Poll::Pending, Poll::Ready)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn wake(&self) {
        self.awaited.store(false, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *self.waiting());
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for CapacitySlot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        if self.0.awaited.load(Ordering::SeqCst) {
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_who_waits_is_woken() {
        let capacity = Capacity::new(2);
        let mut context = Context::from_waker(Waker::noop());
        assert!(capacity.poll_empty(&mut context).is_ready());
        let (first, second) = (capacity.take(), capacity.take());
        assert!(first.is_some() && second.is_some());
        assert!(capacity.take().is_none());
        assert!(capacity.poll_take(&mut context).is_pending());
        assert!(capacity.awaited.load(Ordering::SeqCst));
        drop(first);
        assert!(capacity.waiting().is_empty(), "woken");
        assert!(capacity.poll_empty(&mut context).is_pending());
        let third = capacity.poll_take(&mut context);
        assert!(third.is_ready());
        drop((second, third));
        assert!(capacity.poll_empty(&mut context).is_ready());
    }
}
