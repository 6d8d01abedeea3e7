//! Shared values of one thread, like `Rc`, in memory from the worker's free lists.
//!
//! A value must never leave its thread, nor be mutated except through cells.

use std::alloc::Layout;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};

use crate::recycle::{allocate, release};

/// A reference-counted value, dropped with its last reference. There are no weak references.
pub struct LocalRc<T> {
    content: NonNull<Content<T>>,
    owns: PhantomData<Content<T>>,
}

struct Content<T> {
    holders: Cell<usize>,
    value: T,
}

impl<T> LocalRc<T> {
    /// Shares the value that `make` returns, which is written in place: large values are not copied.
    #[inline]
    pub fn new(make: impl FnOnce() -> T) -> LocalRc<T> {
        let block = allocate(Layout::new::<Content<T>>()).cast::<Content<T>>();
        // SAFETY: the block is fresh, and large and aligned enough for the content. A panic in `make` would only leak
        // it.
        unsafe { block.write(Content { holders: Cell::new(1), value: make() }) };
        LocalRc { content: block, owns: PhantomData }
    }

    #[inline]
    fn content(&self) -> &Content<T> {
        // SAFETY: the content is alive while there is a holder, and there is no `&mut` to it before the last holder is
        // dropped.
        unsafe { self.content.as_ref() }
    }
}

impl<T> Clone for LocalRc<T> {
    #[inline]
    fn clone(&self) -> LocalRc<T> {
        let holders = &self.content().holders;
        assert!(holders.get() < usize::MAX, "a value has fewer than 2^64 holders");
        holders.set(holders.get() + 1);
        LocalRc { content: self.content, owns: PhantomData }
    }
}

impl<T> Deref for LocalRc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.content().value
    }
}

impl<T> Drop for LocalRc<T> {
    #[inline]
    fn drop(&mut self) {
        /// Frees the memory even if the value's own `drop` panics.
        struct Release(NonNull<u8>, Layout);
        impl Drop for Release {
            fn drop(&mut self) {
                release(self.0, self.1);
            }
        }
        let left = self.content().holders.get() - 1;
        self.content().holders.set(left);
        if left == 0 {
            let _release = Release(self.content.cast(), Layout::new::<Content<T>>());
            // SAFETY: this was the last holder: the content is no longer reachable.
            unsafe { ptr::drop_in_place(self.content.as_ptr()) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for LocalRc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_value_goes_with_its_last_holder() {
        let witness = Rc::new(());
        let one = LocalRc::new(|| (7, Rc::clone(&witness)));
        let other = one.clone();
        assert_eq!((one.0, Rc::strong_count(&witness)), (7, 2));
        drop(one);
        assert_eq!((other.0, Rc::strong_count(&witness)), (7, 2));
        drop(other);
        assert_eq!(Rc::strong_count(&witness), 1);
    }
}
