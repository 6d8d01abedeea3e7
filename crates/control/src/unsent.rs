//! Payload that a service has written ahead of what its client takes. Must never write any itself.

use base::buffer::Buffer;
use conn::service::Failed;

/// Bytes that are worth a write of their own.
const WRITE: usize = 16 * 1024;

/// Bytes that are written, of which the first ones are taken.
#[derive(Debug, Default)]
pub struct Unsent {
    bytes: Vec<u8>,
    taken: usize,
}

impl Unsent {
    /// Adds bytes behind the others. What was taken goes first, so that the memory does not grow while some are left each time.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken >= WRITE {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that are not taken.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Whether as many bytes wait as `out` has room for, or enough for a write.
    pub fn fills(&self, out: &Buffer) -> bool {
        self.len() >= out.room().min(WRITE)
    }

    /// Whether all bytes are taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves as many bytes to `out` as it has room for, and returns how many that are. The memory stays for those that are
    /// added later.
    ///
    /// # Errors
    /// `out` takes less than it has room for.
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
