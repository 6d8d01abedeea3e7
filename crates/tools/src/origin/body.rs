//! The body of a response while it is sent: returns the next bytes after any partial write. Must never hold
//! content: that is stored in the patterns, and only the framing is stored here.

use base::Buffer;
use wire::h1::{LAST_CHUNK, chunk_header};

use super::answer::Framing;
use super::pattern::{BYTES_A_CHUNK, Content, LARGEST_CHUNK, Patterns};

/// A body in progress.
#[derive(Debug, Clone)]
pub struct Body {
    content: Content,
    framing: Framing,
    /// Framing bytes before the content: the end of the previous chunk, a chunk header, the last chunk.
    edge: [u8; 24],
    edge_start: u8,
    edge_end: u8,
    /// Remaining content of the current chunk, or of the whole body without chunks.
    run: u64,
    /// Content after the current chunk.
    rest: u64,
    /// Sent content.
    position: u64,
}

impl Body {
    /// Creates a body of which nothing was sent.
    pub fn new(framing: Framing, content: Content) -> Self {
        let mut body =
            Self { content, framing, edge: [0; 24], edge_start: 0, edge_end: 0, run: 0, rest: 0, position: 0 };
        match framing {
            Framing::None => {}
            Framing::Plain(size) => body.run = size,
            Framing::LargeChunks(size) => {
                body.rest = size;
                body.open_chunk();
            }
            Framing::ByteChunks(size) => {
                body.run = size.saturating_mul(BYTES_A_CHUNK);
                if size == 0 {
                    body.put(LAST_CHUNK);
                }
            }
        }
        body
    }

    /// Whether the whole body was sent.
    pub fn is_done(&self) -> bool {
        self.edge_start == self.edge_end && self.run == 0
    }

    /// Returns the next bytes to send: framing, then content.
    pub fn next<'a>(&'a self, patterns: &'a Patterns) -> (&'a [u8], &'a [u8]) {
        let edge = &self.edge[usize::from(self.edge_start)..usize::from(self.edge_end)];
        if self.run == 0 {
            return (edge, &[]);
        }
        let content = patterns.from(self.content, self.position);
        let most = usize::try_from(self.run).unwrap_or(usize::MAX).min(content.len());
        (edge, &content[..most])
    }

    /// Records that this number of bytes returned by [`Body::next`] was sent.
    pub fn advance(&mut self, count: usize) {
        let of_edge = count.min(usize::from(self.edge_end - self.edge_start));
        self.edge_start += of_edge as u8;
        let of_content = (count - of_edge) as u64;
        if of_content == 0 {
            return;
        }
        self.position = self.position.wrapping_add(of_content);
        self.run = self.run.saturating_sub(of_content);
        if self.run > 0 {
            return;
        }
        match self.framing {
            Framing::LargeChunks(_) => self.open_chunk(),
            Framing::ByteChunks(_) => self.put(LAST_CHUNK),
            Framing::None | Framing::Plain(_) => {}
        }
    }

    /// Appends the whole body, if it takes at most about `most` bytes; returns whether it did.
    pub fn copy_into(&mut self, patterns: &Patterns, most: usize, room: &mut Buffer) -> bool {
        let total = self.run.saturating_add(self.rest).saturating_add(64);
        if total > most.min(room.room()) as u64 {
            return false;
        }
        while !self.is_done() {
            let (edge, content) = self.next(patterns);
            let count = edge.len() + content.len();
            if !(room.push(edge) && room.push(content)) {
                return false;
            }
            self.advance(count);
        }
        true
    }

    /// Ends the chunk that was sent, if any, and starts the next one, or the last chunk.
    fn open_chunk(&mut self) {
        (self.edge_start, self.edge_end) = (0, 0);
        if self.position > 0 {
            self.put(b"\r\n");
        }
        if self.rest == 0 {
            return self.put(LAST_CHUNK);
        }
        self.run = self.rest.min(LARGEST_CHUNK);
        self.rest -= self.run;
        self.put(chunk_header(self.run, &mut [0; 18]));
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = usize::from(self.edge_end) + bytes.len();
        if let Some(place) = self.edge.get_mut(usize::from(self.edge_end)..end) {
            place.copy_from_slice(bytes);
            self.edge_end = end as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes sent when the client accepts `piece` bytes at a time.
    fn sent(framing: Framing, content: Content, piece: usize) -> Vec<u8> {
        let patterns = Patterns::new();
        let mut body = Body::new(framing, content);
        let mut sent = Vec::new();
        while !body.is_done() {
            let (edge, content) = body.next(&patterns);
            let mut bytes = [edge, content].concat();
            bytes.truncate(piece);
            assert!(!bytes.is_empty(), "there is always something to send");
            body.advance(bytes.len());
            sent.extend(bytes);
        }
        sent
    }

    fn lines(length: usize) -> Vec<u8> {
        let line = b".123456789.123456789.123456789.123456789.12345678\n";
        line.iter().copied().cycle().take(length).collect()
    }

    #[test]
    fn a_plain_body_is_the_pattern_however_it_is_taken() {
        for size in [0, 1, 49, 50, 51, 1000, 300_000, 1_000_000] {
            for piece in [7, 4096, usize::MAX] {
                if size / piece > 50_000 {
                    continue;
                }
                let body = sent(Framing::Plain(size as u64), Content::Lines, piece);
                assert!(body == lines(size), "{size} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn large_chunks_hold_the_pattern() {
        assert_eq!(sent(Framing::LargeChunks(0), Content::Lines, 1), b"0\r\n\r\n");
        assert_eq!(sent(Framing::LargeChunks(11), Content::Lines, 1), b"B\r\n.123456789.\r\n0\r\n\r\n");
        let whole = sent(Framing::LargeChunks(150_000), Content::Lines, usize::MAX);
        assert_eq!(whole, sent(Framing::LargeChunks(150_000), Content::Lines, 3));
        let pattern = lines(150_000);
        let expected = [
            b"10000\r\n",
            &pattern[..65536],
            b"\r\n10000\r\n",
            &pattern[65536..131_072],
            b"\r\n49F0\r\n",
            &pattern[131_072..],
            b"\r\n0\r\n\r\n",
        ];
        assert!(whole == expected.concat());
    }

    #[test]
    fn chunks_of_one_byte_are_as_many_as_the_body_has_bytes() {
        assert_eq!(sent(Framing::ByteChunks(0), Content::ByteChunks, 1), b"0\r\n\r\n");
        for piece in [1, 5, usize::MAX] {
            let body = sent(Framing::ByteChunks(3), Content::ByteChunks, piece);
            assert_eq!(body, b"1\r\n1\r\n1\r\n1\r\n1\r\n1\r\n0\r\n\r\n", "in pieces of {piece}");
        }
    }

    #[test]
    fn a_small_body_is_copied_whole_and_a_large_one_not_at_all() {
        let patterns = Patterns::new();
        let mut room = Buffer::with_capacity(16 * 1024);
        let mut body = Body::new(Framing::LargeChunks(1000), Content::Lines);
        assert!(body.copy_into(&patterns, 4096, &mut room));
        assert!(body.is_done());
        assert_eq!(room.data(), sent(Framing::LargeChunks(1000), Content::Lines, usize::MAX));
        let mut body = Body::new(Framing::Plain(1 << 40), Content::Lines);
        let before = room.len();
        assert!(!body.copy_into(&patterns, 4096, &mut room));
        assert_eq!((body.run, room.len()), (1 << 40, before));
    }
}
