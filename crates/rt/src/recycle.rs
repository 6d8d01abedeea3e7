//! Boxes whose memory comes from the worker's free lists, so that a warm worker allocates nothing for a future.
//!
//! A box must never move its content, and never leave its thread.

use std::alloc::{self, Layout};
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll};

use crate::{current, sys};

/// Sizes are rounded up to multiples of this.
const STEP: usize = 16;
/// Larger blocks are not kept.
const LARGEST: usize = 32 * 1024;
const CLASSES: usize = LARGEST / STEP;
const ALIGN: usize = 16;
/// Maximum number of bytes that one worker keeps in its free lists.
const KEEP_AT_MOST: usize = 8 * 1024 * 1024;

/// A pinned box, like `Pin<Box<T>>`, whose memory is recycled by the worker that drops it.
pub struct Recycled<T: ?Sized> {
    content: NonNull<T>,
    owns: PhantomData<T>,
}

/// A future with a type name.
pub(crate) trait NamedFuture: Future {
    /// Returns the name of its type. A suspended future is borrowed as for a poll.
    fn name(self: Pin<&mut Self>) -> &'static str;
}

impl<F: Future> NamedFuture for F {
    fn name(self: Pin<&mut Self>) -> &'static str {
        std::any::type_name::<F>()
    }
}

/// Boxes a future in recycled memory. For futures that are rarely awaited: callers are laid out for the case without.
#[cold]
#[inline(never)]
pub fn boxed<F: Future>(future: F) -> Recycled<F> {
    Recycled::new(future)
}

/// Boxes the future that `make` returns, which is written in place: large ones are not copied.
#[inline]
pub fn boxed_with<A, F: Future>(arguments: A, make: impl FnOnce(A) -> F) -> Recycled<F> {
    let block = allocate(Layout::new::<F>()).cast::<F>();
    // SAFETY: the block is fresh, and large and aligned enough for an `F`. A panic in `make` would only leak it.
    unsafe { block.write(make(arguments)) };
    Recycled { content: block, owns: PhantomData }
}

/// Boxes a future in recycled memory and erases its type.
pub fn boxed_dyn<'a, T>(future: impl Future<Output = T> + 'a) -> Recycled<dyn Future<Output = T> + 'a> {
    Recycled::new(future).forget_type()
}

impl<F> Recycled<F> {
    /// Erases all of the type but the output.
    #[inline]
    pub fn forget_type<'a, T>(self) -> Recycled<dyn Future<Output = T> + 'a>
    where
        F: Future<Output = T> + 'a,
    {
        let boxed = mem::ManuallyDrop::new(self);
        Recycled { content: boxed.content, owns: PhantomData }
    }
}

impl<F: Future<Output = ()> + 'static> Recycled<F> {
    /// Erases the type to that of a task, which keeps its name.
    #[inline]
    pub(crate) fn into_task(self) -> Recycled<dyn NamedFuture<Output = ()>> {
        let boxed = mem::ManuallyDrop::new(self);
        Recycled { content: boxed.content, owns: PhantomData }
    }
}

impl Recycled<dyn NamedFuture<Output = ()>> {
    /// See [`NamedFuture::name`].
    pub(crate) fn name(&mut self) -> &'static str {
        self.pinned().name()
    }
}

impl<T> Recycled<T> {
    fn new(content: T) -> Recycled<T> {
        let block = allocate(Layout::new::<T>()).cast::<T>();
        // SAFETY: the block is fresh, and large and aligned enough for a `T`.
        unsafe { block.write(content) };
        Recycled { content: block, owns: PhantomData }
    }
}

impl<T: ?Sized> Recycled<T> {
    /// Returns the content, pinned in place.
    #[inline]
    fn pinned(&mut self) -> Pin<&mut T> {
        // SAFETY: the box owns its content, and never moves it or hands out a plain `&mut` to it before `drop`.
        unsafe { Pin::new_unchecked(self.content.as_mut()) }
    }

    /// Returns the content's size and alignment. A suspended future holds references into itself, which a plain `&T`
    /// would invalidate: it promises that nothing of the content changes.
    #[inline]
    fn layout(&self) -> Layout {
        // SAFETY: the content is alive as long as the box, and a cell of it has its layout. A reference to a cell
        // promises nothing about its content, and nothing is read.
        Layout::for_value(unsafe { &*(self.content.as_ptr() as *const UnsafeCell<T>) })
    }

    /// Prefetches the first cache lines of the content, and what follows it if it is shorter, for callers that access it soon.
    #[inline]
    pub(crate) fn prefetch(&self) {
        const LINE: usize = 64;
        const LINES: usize = 4;
        let start = self.content.cast::<u8>();
        for at in 0..LINES {
            sys::thread::prefetch(start.as_ptr().wrapping_add(at * LINE));
        }
    }
}

impl<F: Future + ?Sized> Future for Recycled<F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.pinned().poll(context)
    }
}

/// The box only points to its content, which does not move with it.
impl<T: ?Sized> Unpin for Recycled<T> {}

impl<T: ?Sized> Drop for Recycled<T> {
    fn drop(&mut self) {
        /// Frees the memory even if the content's own `drop` panics.
        struct Release(NonNull<u8>, Layout);
        impl Drop for Release {
            fn drop(&mut self) {
                release(self.0, self.1);
            }
        }
        let _release = Release(self.content.cast(), self.layout());
        // SAFETY: the box owns the content, which is not used after this.
        unsafe { ptr::drop_in_place(self.content.as_ptr()) };
    }
}

impl<T: ?Sized> fmt::Debug for Recycled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recycled").finish_non_exhaustive()
    }
}

/// Returns the free list for blocks of this layout, and the layout of its blocks; `None`: such blocks are not kept.
fn class_of(layout: Layout) -> Option<(usize, Layout)> {
    let size = layout.size().max(1).next_multiple_of(STEP);
    if size > LARGEST || layout.align() > ALIGN {
        return None;
    }
    Layout::from_size_align(size, ALIGN).ok().map(|block| (size / STEP - 1, block))
}

pub(crate) fn allocate(layout: Layout) -> NonNull<u8> {
    let Some((class, block)) = class_of(layout) else { return allocate_fresh(layout) };
    let kept = current::try_with(|worker| worker.bins.take(class)).flatten();
    kept.unwrap_or_else(|| allocate_fresh(block))
}

fn allocate_fresh(layout: Layout) -> NonNull<u8> {
    // SAFETY: the size is not zero: `class_of` rounds it up to a step at least, and layouts that it refuses are larger
    // than a step or are aligned to more than 16 bytes, where a size of zero is excluded below.
    let block = unsafe { alloc::alloc(at_least_one_byte(layout)) };
    NonNull::new(block).unwrap_or_else(|| alloc::handle_alloc_error(layout))
}

fn at_least_one_byte(layout: Layout) -> Layout {
    if layout.size() > 0 { layout } else { Layout::from_size_align(1, layout.align()).unwrap_or(layout) }
}

pub(crate) fn release(block: NonNull<u8>, layout: Layout) {
    let Some((class, layout)) = class_of(layout) else { return release_now(block, layout) };
    let kept = current::try_with(|worker| worker.bins.put(class, block)).unwrap_or(false);
    if !kept {
        release_now(block, layout);
    }
}

fn release_now(block: NonNull<u8>, layout: Layout) {
    // SAFETY: the block came from `allocate_fresh` with the same layout: a class has one layout for all its blocks.
    unsafe { alloc::dealloc(block.as_ptr(), at_least_one_byte(layout)) }
}

/// A worker's free lists, one for each multiple of 16 bytes. A free block contains the pointer to the next one.
pub(crate) struct Bins {
    heads: Box<[Cell<*mut u8>]>,
    kept: Cell<usize>,
}

impl Bins {
    pub(crate) fn new() -> Bins {
        Bins { heads: (0..CLASSES).map(|_| Cell::new(ptr::null_mut())).collect(), kept: Cell::new(0) }
    }

    #[inline]
    fn take(&self, class: usize) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.heads[class].get())?;
        // SAFETY: a block in a list belongs to the list alone, and `put` wrote the next pointer to its start.
        let next = unsafe { block.cast::<*mut u8>().read() };
        self.heads[class].set(next);
        self.kept.set(self.kept.get() - (class + 1) * STEP);
        Some(block)
    }

    /// Keeps a block; `false` if the lists are full, and the block remains the caller's.
    #[inline]
    fn put(&self, class: usize, block: NonNull<u8>) -> bool {
        let kept = self.kept.get() + (class + 1) * STEP;
        if kept > KEEP_AT_MOST {
            return false;
        }
        self.kept.set(kept);
        // SAFETY: the block has no other user, it has at least 16 bytes and is aligned to 16.
        unsafe { block.cast::<*mut u8>().write(self.heads[class].get()) };
        self.heads[class].set(block.as_ptr());
        true
    }
}

impl Bins {
    /// Frees all blocks.
    pub(crate) fn trim(&self) {
        for class in 0..CLASSES {
            while let Some(block) = self.take(class) {
                if let Ok(layout) = Layout::from_size_align((class + 1) * STEP, ALIGN) {
                    release_now(block, layout);
                }
            }
        }
    }
}

impl Drop for Bins {
    fn drop(&mut self) {
        self.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Waker;

    /// Increments through a reference when it is dropped.
    struct Writes<'a>(&'a mut u32);

    impl Drop for Writes<'_> {
        fn drop(&mut self) {
            *self.0 += 1;
        }
    }

    /// For Miri: no operation of a box on a suspended future may invalidate the references that it holds into itself.
    #[test]
    fn a_future_that_refers_to_itself_can_be_looked_at_and_dropped_anywhere() {
        for polls in 0..4 {
            let mut future = boxed_dyn(async {
                let mut number = 0;
                let writes = Writes(&mut number);
                for round in 0..3 {
                    *writes.0 += round;
                    let mut ready = false;
                    poll_fn(|_| if std::mem::replace(&mut ready, true) { Poll::Ready(()) } else { Poll::Pending })
                        .await;
                }
            });
            let mut context = Context::from_waker(Waker::noop());
            for poll in 0..polls {
                future.prefetch();
                assert_eq!(Pin::new(&mut future).poll(&mut context).is_ready(), poll == 3);
            }
        }
    }

    #[test]
    fn blocks_of_every_size_and_alignment_come_and_go() {
        #[repr(align(64))]
        struct Wide(#[allow(dead_code)] [u8; 100]);
        #[allow(clippy::large_futures)]
        async fn hold<T>(value: T) -> T {
            value
        }
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut boxed(hold(()))).poll(&mut context).is_ready());
        assert!(Pin::new(&mut boxed(hold([7_u8; LARGEST + 1]))).poll(&mut context).is_ready());
        assert!(Pin::new(&mut boxed(hold(Wide([1; 100])))).poll(&mut context).is_ready());
        let bins = Bins::new();
        let blocks = [1, 16, 17, LARGEST].map(|size| {
            let (class, layout) = class_of(Layout::from_size_align(size, 1).expect("a layout")).expect("it is kept");
            (class, allocate_fresh(layout))
        });
        for (class, block) in blocks {
            assert!(bins.put(class, block));
            assert_eq!(bins.take(class), Some(block));
            assert!(bins.put(class, block));
        }
    }
}
