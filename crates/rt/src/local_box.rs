//! Owned values of one thread, like `Box`, in memory from the worker's free lists.
//!
//! A value must never leave its thread.

use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

use crate::recycle::{allocate, release};

/// A box for values that are made and dropped for each request.
pub struct LocalBox<T> {
    content: NonNull<T>,
    owns: PhantomData<T>,
}

/// Frees the memory of a value, even if the value's own `drop` panics.
struct Release<T>(NonNull<T>);

impl<T> Drop for Release<T> {
    fn drop(&mut self) {
        release(self.0.cast(), Layout::new::<T>());
    }
}

impl<T> LocalBox<T> {
    /// Boxes a value.
    #[inline]
    pub fn new(value: T) -> LocalBox<T> {
        let content = allocate(Layout::new::<T>()).cast::<T>();
        // SAFETY: the block is fresh, and large and aligned enough for the value.
        unsafe { content.write(value) };
        LocalBox { content, owns: PhantomData }
    }

    /// Returns the value, and frees its memory.
    #[inline]
    pub fn into_inner(self) -> T {
        let content = Release(ManuallyDrop::new(self).content);
        // SAFETY: the box owned the value, and does not drop it any longer; the memory is freed after the read.
        unsafe { content.0.read() }
    }
}

impl<T> Deref for LocalBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the box owns its content, which is alive as long as the box.
        unsafe { self.content.as_ref() }
    }
}

impl<T> DerefMut for LocalBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the box is borrowed mutably, so that there is no other reference.
        unsafe { self.content.as_mut() }
    }
}

impl<T> Drop for LocalBox<T> {
    #[inline]
    fn drop(&mut self) {
        let _release = Release(self.content);
        // SAFETY: the box owns the content, which is not used after this.
        unsafe { ptr::drop_in_place(self.content.as_ptr()) };
    }
}

impl<T: fmt::Debug> fmt::Debug for LocalBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_value_goes_with_its_box_unless_it_is_taken_out() {
        let witness = Rc::new(());
        let mut boxed = LocalBox::new((7, Rc::clone(&witness)));
        boxed.0 += 1;
        assert_eq!((boxed.0, Rc::strong_count(&witness)), (8, 2));
        let taken = boxed.into_inner();
        assert_eq!((taken.0, Rc::strong_count(&witness)), (8, 2));
        drop(LocalBox::new(taken));
        assert_eq!(Rc::strong_count(&witness), 1);
    }
}
