//! Output that a service has written ahead of its client. Must never write any itself.

use base::buffer::Buffer;
use conn::service::Failed;

/// Minimum number of bytes that justify a write.
const WRITE: usize = 16 * 1024;

/// Output bytes, of which the first `taken` were consumed.
#[derive(Debug, Default)]
pub struct Unsent {
    bytes: Vec<u8>,
    taken: usize,
}

impl Unsent {
    /// Appends bytes. Consumed bytes are removed first, so that the memory does not grow if some are left each time.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken >= WRITE {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the number of bytes left.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Whether the bytes left fill `out`, or justify a write.
    pub fn fills(&self, out: &Buffer) -> bool {
        self.len() >= out.room().min(WRITE)
    }

    /// Whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves up to the free space of `out` and returns the number of bytes. The memory is kept for later bytes.
    ///
    /// # Errors
    /// `out` accepts less than its free space.
    pub fn take(&mut self, out: &mut Buffer) -> Result<usize, Failed> {
        let waiting = &self.bytes[self.taken..];
        let count = waiting.len().min(out.room());
        if !out.push(&waiting[..count]) {
            return Err(Failed);
        }
        self.taken += count;
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_does_not_grow_with_what_was_taken() {
        let (mut unsent, mut out) = (Unsent::default(), Buffer::with_capacity(WRITE));
        for _ in 0..1_000 {
            while !unsent.fills(&out) {
                unsent.push(&[1; WRITE / 5]);
            }
            assert_eq!(unsent.take(&mut out), Ok(WRITE));
            out.clear();
        }
        assert!(unsent.bytes.capacity() < 8 * WRITE, "{}", unsent.bytes.capacity());
    }

    #[test]
    fn bytes_go_out_in_order_as_far_as_there_is_room() {
        let (mut unsent, mut out) = (Unsent::default(), Buffer::with_capacity(4));
        unsent.push(b"abc");
        unsent.push(b"defg");
        let mut gone = Vec::new();
        for (count, left) in [(4, 3), (3, 0), (0, 0)] {
            assert_eq!(unsent.take(&mut out).ok(), Some(count));
            assert_eq!((unsent.len(), unsent.is_empty()), (left, left == 0));
            gone.extend_from_slice(out.data());
            out.clear();
        }
        assert_eq!(gone, b"abcdefg");
    }
}
