//! Byte buffers from a per-worker pool: storage is zeroed once, when it is allocated, and then reused.
//!
//! It must never grow a buffer: a full buffer pauses its writer.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// A pool of equally large buffers that belongs to one worker. Clones are handles to the same pool.
#[derive(Clone)]
pub struct BufferPool {
    shared: Rc<Pool>,
}

struct Pool {
    size: usize,
    keep_at_most: usize,
    free: RefCell<Vec<Box<[u8]>>>,
    outstanding: Cell<usize>,
}

impl BufferPool {
    /// Creates a pool of buffers of `size` bytes that keeps at most `keep_at_most` unused ones.
    ///
    /// # Panics
    /// If `size` does not fit into 32 bits.
    pub fn new(size: usize, keep_at_most: usize) -> BufferPool {
        assert!(u32::try_from(size).is_ok(), "a buffer holds less than 4 GB");
        let free = RefCell::new(Vec::new());
        BufferPool { shared: Rc::new(Pool { size, keep_at_most, free, outstanding: Cell::new(0) }) }
    }

    /// Returns an empty buffer, recycled if the pool has one, otherwise allocated.
    #[inline]
    pub fn get(&self) -> Buffer {
        let kept = self.shared.free.borrow_mut().pop();
        let bytes = kept.unwrap_or_else(|| vec![0; self.shared.size].into_boxed_slice());
        self.shared.outstanding.set(self.shared.outstanding.get() + 1);
        let storage = Storage { bytes, pool: Some(Rc::clone(&self.shared)) };
        Buffer { storage: Some(ManuallyDrop::new(storage)), start: 0, end: 0, reserved: 0 }
    }

    /// Returns the size of each buffer in bytes.
    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// Returns the number of buffers in use. For tests that look for leaks.
    pub fn outstanding(&self) -> usize {
        self.shared.outstanding.get()
    }

    /// Keeps storage for another buffer, if it has the pool's size and the pool does not have enough. For the data of [`Piece`].
    pub fn adopt(&self, storage: Box<[u8]>) {
        let mut free = self.shared.free.borrow_mut();
        if storage.len() == self.shared.size && free.len() < self.shared.keep_at_most {
            free.push(storage);
        }
    }

    /// Frees the unused buffers.
    pub fn trim(&self) {
        let free = self.shared.free.take();
        drop(free);
    }

    /// Returns the number of unused buffers in the pool.
    pub fn kept(&self) -> usize {
        self.shared.free.borrow().len()
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, outstanding) = (self.size(), self.outstanding());
        f.debug_struct("BufferPool").field("size", &size).field("outstanding", &outstanding).finish()
    }
}

impl Pool {
    #[inline]
    fn put_back(&self, storage: Box<[u8]>) {
        self.outstanding.set(self.outstanding.get() - 1);
        let mut free = self.free.borrow_mut();
        if free.len() < self.keep_at_most {
            free.push(storage);
        }
    }
}

/// Owned storage of fixed size whose bytes `start..end` are data. Dropping it returns the storage to its pool.
///
/// ```text
/// 0      start        end        capacity
/// | gone |    data    |   spare  |
/// ```
#[derive(Default)]
pub struct Buffer {
    /// `None`: an empty buffer without storage, which is cheap to drop.
    storage: Option<ManuallyDrop<Storage>>,
    start: u32,
    end: u32,
    /// Number of bytes at the storage's end that readers must leave free; see [`Buffer::reserve_around`].
    reserved: u32,
}

struct Storage {
    bytes: Box<[u8]>,
    pool: Option<Rc<Pool>>,
}

impl Buffer {
    /// Creates a buffer without storage: capacity 0, no allocation.
    #[inline]
    pub fn empty() -> Buffer {
        Buffer::default()
    }

    /// Creates a buffer without a pool. For tests and for buffers that live as long as the process.
    ///
    /// # Panics
    /// If `size` does not fit into 32 bits.
    pub fn with_capacity(size: usize) -> Buffer {
        assert!(u32::try_from(size).is_ok(), "a buffer holds less than 4 GB");
        let storage = Storage { bytes: vec![0; size].into_boxed_slice(), pool: None };
        Buffer { storage: Some(ManuallyDrop::new(storage)), start: 0, end: 0, reserved: 0 }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.storage.as_ref().map_or(&[], |storage| &storage.bytes)
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.storage.as_mut().map_or(&mut [], |storage| &mut storage.bytes)
    }

    /// Returns the size of the storage in bytes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes().len()
    }

    /// Returns the number of bytes of data.
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether there is no data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the number of bytes that fit after the data without moving it.
    #[inline]
    pub fn room(&self) -> usize {
        (self.bytes().len() - self.end as usize).saturating_sub(self.reserved as usize)
    }

    #[inline]
    pub fn data(&self) -> &[u8] {
        &self.bytes()[self.start as usize..self.end as usize]
    }

    /// Returns the data, for changes in place.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.start as usize, self.end as usize);
        &mut self.bytes_mut()[start..end]
    }

    /// Returns the free bytes after the data, to be written and then added with [`Buffer::advance`]. Their content is
    /// left over from an earlier use of the storage.
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        let limit = self.end as usize + self.room();
        let end = self.end as usize;
        &mut self.bytes_mut()[end..limit]
    }

    /// Adds the first `count` bytes of the free space to the data.
    ///
    /// # Panics
    /// If `count` is more than [`Buffer::room`].
    #[inline]
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.room(), "advance past the end of a buffer");
        self.end += count as u32;
    }

    /// Discards the first `count` bytes of data. An emptied buffer starts again at its front.
    ///
    /// # Panics
    /// If `count` is more than [`Buffer::len`].
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "consume more than a buffer holds");
        self.start += count as u32;
        if self.start == self.end {
            self.clear();
        }
    }

    /// Discards all data.
    #[inline]
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        self.reserved = 0;
    }

    /// Discards all data and leaves `front` bytes free before the next data, for [`Buffer::push_front`], and `back`
    /// bytes after it: [`Buffer::room`] and [`Buffer::spare_mut`] exclude these, [`Buffer::push`] uses them. Both are
    /// clipped to the storage.
    #[inline]
    pub fn reserve_around(&mut self, front: usize, back: usize) {
        let front = front.min(self.bytes().len()) as u32;
        self.start = front;
        self.end = front;
        self.reserved = back.min(self.bytes().len() - front as usize) as u32;
    }

    /// Leaves `back` bytes free after the data that is read next, like [`Buffer::reserve_around`]; the data stays.
    #[inline]
    pub fn reserve_behind(&mut self, back: usize) {
        self.reserved = back.min(self.bytes().len() - self.end as usize) as u32;
    }

    /// Inserts `bytes` before the data; `false`, and nothing written, if there is not enough space in front of it.
    #[inline]
    #[must_use = "false means that nothing was written"]
    pub fn push_front(&mut self, bytes: &[u8]) -> bool {
        let Some(start) = (self.start as usize).checked_sub(bytes.len()) else { return false };
        let end = self.start as usize;
        self.bytes_mut()[start..end].copy_from_slice(bytes);
        self.start = start as u32;
        true
    }

    /// Takes the data with its storage out of the pool. `home` gets the storage when the piece is dropped.
    pub fn into_piece(mut self, home: fn(Box<[u8]>)) -> Piece {
        let (start, end) = (self.start, self.end);
        let storage = self.storage.take().map_or_else(Box::default, |storage| {
            let mut storage = ManuallyDrop::into_inner(storage);
            if let Some(pool) = storage.pool.take() {
                pool.outstanding.set(pool.outstanding.get() - 1);
            }
            std::mem::take(&mut storage.bytes)
        });
        Piece { storage, start, end, home }
    }

    /// Keeps the first `length` bytes of data; no effect if there are fewer.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        if length < self.len() {
            self.end = self.start + length as u32;
        }
    }

    /// Moves the data to the front of the storage, so that all free space is after it.
    pub fn compact(&mut self) {
        if self.start > 0 {
            let data = self.start as usize..self.end as usize;
            self.bytes_mut().copy_within(data, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Appends `bytes`; `false`, and nothing written, if they do not fit after the data.
    #[inline]
    #[must_use = "false means that nothing was written"]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let end = self.end as usize;
        match self.bytes_mut()[end..].get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.end += bytes.len() as u32;
                true
            }
            None => false,
        }
    }
}

/// The data of a buffer that has left its pool, so that a library may keep it and drop it on any thread.
pub struct Piece {
    storage: Box<[u8]>,
    start: u32,
    end: u32,
    /// Takes the storage of a piece that is dropped.
    home: fn(Box<[u8]>),
}

impl AsRef<[u8]> for Piece {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.storage[self.start as usize..self.end as usize]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        (self.home)(std::mem::take(&mut self.storage));
    }
}

/// Most buffers that are dropped are empty: their drop is only an inlined check of `storage`.
impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if let Some(storage) = self.storage.take() {
            give_back(ManuallyDrop::into_inner(storage));
        }
    }
}

#[inline(never)]
fn give_back(storage: Storage) {
    drop(storage);
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.put_back(std::mem::take(&mut self.bytes));
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len()).field("capacity", &self.capacity()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_comes_back_and_is_used_again() {
        let pool = BufferPool::new(16, 1);
        let (mut first, second) = (pool.get(), pool.get());
        assert_eq!(pool.outstanding(), 2);
        assert!(first.push(b"secret"));
        drop(first);
        drop(second);
        assert_eq!((pool.outstanding(), pool.kept()), (0, 1));
        let again = pool.get();
        assert!(again.is_empty());
        assert_eq!((again.room(), pool.kept()), (16, 0));
    }

    #[test]
    fn a_piece_leaves_the_pool_and_its_storage_may_come_back() {
        thread_local! {
            static HOME: BufferPool = BufferPool::new(8, 1);
        }
        fn home(storage: Box<[u8]>) {
            HOME.with(|pool| pool.adopt(storage));
        }
        let state = || HOME.with(|pool| (pool.outstanding(), pool.kept()));
        let piece = |size| {
            let mut buffer = if size == 8 { HOME.with(BufferPool::get) } else { Buffer::with_capacity(size) };
            assert!(buffer.push(b"abcdef"));
            buffer.consume(2);
            buffer.into_piece(home)
        };
        let (first, second, other) = (piece(8), piece(8), piece(9));
        assert_eq!((first.as_ref(), state()), (&b"cdef"[..], (0, 0)));
        // Another thread has a pool of its own.
        std::thread::spawn(move || drop(second)).join().unwrap();
        drop(other);
        assert_eq!(state(), (0, 0), "another thread's, and another size");
        drop(first);
        assert_eq!(state(), (0, 1));
        drop([piece(8), piece(8)]);
        assert_eq!(state(), (0, 1), "no more are kept than the pool's number");
        assert_eq!(Buffer::empty().into_piece(home).as_ref(), b"");
    }

    #[test]
    fn data_moves_only_when_told() {
        let mut buffer = Buffer::with_capacity(8);
        assert!(buffer.push(b"abcdef"));
        buffer.consume(4);
        assert_eq!((buffer.data(), buffer.room()), (&b"ef"[..], 2));
        assert!(!buffer.push(b"ghi"));
        assert_eq!(buffer.data(), b"ef");
        buffer.compact();
        assert_eq!((buffer.data(), buffer.room()), (&b"ef"[..], 6));
        assert!(buffer.push(b"ghi"));
        buffer.truncate(4);
        assert_eq!(buffer.data(), b"efgh");
        buffer.consume(4);
        assert_eq!(buffer.room(), 8, "an emptied buffer starts again at its front");
    }

    #[test]
    fn spare_bytes_become_data_by_advance() {
        let mut buffer = Buffer::with_capacity(4);
        buffer.spare_mut()[..2].copy_from_slice(b"hi");
        buffer.advance(2);
        assert_eq!(buffer.data(), b"hi");
        buffer.data_mut()[0] = b'H';
        assert_eq!(buffer.data(), b"Hi");
    }

    #[test]
    #[should_panic(expected = "advance past the end")]
    fn advancing_past_the_end_is_refused() {
        Buffer::with_capacity(4).advance(5);
    }

    #[test]
    #[should_panic(expected = "consume more")]
    fn consuming_more_than_there_is_is_refused() {
        Buffer::with_capacity(4).consume(1);
    }

    #[test]
    fn reserved_room_is_for_pushes_alone() {
        let mut buffer = Buffer::with_capacity(8);
        buffer.reserve_around(3, 2);
        assert_eq!((buffer.room(), buffer.spare_mut().len()), (3, 3));
        buffer.spare_mut().copy_from_slice(b"abc");
        buffer.advance(3);
        assert_eq!(buffer.room(), 0);
        assert!(buffer.push(b"\r\n"));
        assert!(!buffer.push(b"x"));
        assert!(buffer.push_front(b"3\r\n"));
        assert!(!buffer.push_front(b"x"));
        assert_eq!(buffer.data(), b"3\r\nabc\r\n");
        buffer.consume(8);
        assert_eq!(buffer.room(), 8, "an emptied buffer reserves nothing");
    }

    #[test]
    fn an_empty_buffer_has_no_storage() {
        let mut buffer = Buffer::empty();
        assert_eq!((buffer.capacity(), buffer.len(), buffer.room()), (0, 0, 0));
        assert!(buffer.push(b""));
        assert!(!buffer.push(b"x"));
    }
}
