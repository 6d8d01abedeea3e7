//! The `backing-file` of a ring: a copy of its lines as text, in which the oldest are overwritten. Must never be read: external
//! changes of the file have no effect.

use rt::MappedFile;
use std::io;
use std::path::Path;

/// Size of the first line of the file, which contains the position of the newest text.
const HEADER: usize = 128;

/// Backing file of a ring.
#[derive(Debug)]
pub struct Mirror {
    file: MappedFile,
    /// Total bytes of text written so far.
    written: u64,
}

impl Mirror {
    /// Creates the file with its full size.
    ///
    /// # Errors
    /// From the system; `InvalidInput` if the size leaves no space for text.
    pub fn create(path: &Path, size: usize) -> io::Result<Self> {
        if size <= HEADER {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut mirror = Self { file: MappedFile::create(path, size)?, written: 0 };
        mirror.note_end();
        Ok(mirror)
    }

    fn room(&self) -> usize {
        self.file.size() - HEADER
    }

    /// Returns the offset at which the next text is written.
    fn at(&self) -> usize {
        (self.written % self.room() as u64) as usize
    }

    /// Appends a line. Of a line longer than the file, the end is kept.
    pub fn append(&mut self, line: &[u8]) {
        for part in [line, b"\n"] {
            let room = self.room();
            let skipped = part.len().saturating_sub(room);
            self.written += skipped as u64;
            let mut left = &part[skipped..];
            while !left.is_empty() {
                let at = self.at();
                let count = self.file.write(HEADER + at, &left[..left.len().min(room - at)]);
                if count == 0 {
                    break;
                }
                self.written += count as u64;
                left = &left[count..];
            }
        }
        self.note_end();
    }

    fn note_end(&mut self) {
        let (at, written) = (HEADER + self.at(), self.written);
        let text = format!("# Lines of a ring, newest before byte {at}, oldest behind it; {written} bytes so far");
        let mut header = [b' '; HEADER];
        header[HEADER - 1] = b'\n';
        let shown = text.len().min(HEADER - 1);
        header[..shown].copy_from_slice(&text.as_bytes()[..shown]);
        self.file.write(0, &header);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_text_is_overwritten() {
        let path = std::env::temp_dir().join(format!("weir-mirror-{}", std::process::id()));
        let shown = |mirror: &Mirror| {
            let bytes = std::fs::read(&path).unwrap();
            let text: String =
                bytes[HEADER..].iter().map(|byte| if *byte == 0 { '.' } else { char::from(*byte) }).collect();
            (text, String::from_utf8_lossy(&bytes[..HEADER]).trim().to_owned(), mirror.written)
        };
        let head = |at: usize, all: u64| {
            format!("# Lines of a ring, newest before byte {at}, oldest behind it; {all} bytes so far")
        };
        let mut mirror = Mirror::create(&path, HEADER + 10).unwrap();
        assert_eq!(shown(&mirror), ("..........".to_owned(), head(128, 0), 0));
        mirror.append(b"abcd");
        assert_eq!(shown(&mirror), ("abcd\n.....".to_owned(), head(133, 5), 5));
        mirror.append(b"efghijk");
        assert_eq!(shown(&mirror), ("jk\nd\nefghi".to_owned(), head(131, 13), 13));
        mirror.append(b"0123456789ABCDE");
        assert_eq!(shown(&mirror).1, head(HEADER + 9, 29));
        assert!(Mirror::create(&path, HEADER).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
