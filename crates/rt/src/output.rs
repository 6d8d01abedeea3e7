//! Writing whole lines to a descriptor that other processes share: standard output and error, or an inherited pipe,
//! terminal, socket or file.
//!
//! It must never wait, and never change the flags of a description that other processes hold: a shell breaks if its
//! terminal becomes non-blocking.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys;

/// Number of bytes that the kernel writes to a pipe as a whole or not at all (POSIX `PIPE_BUF`, Linux's value).
pub const ATOMIC: usize = 4096;

/// A shared descriptor, written to by several threads.
#[derive(Debug)]
pub struct Output {
    way: WriteMode,
    /// The rest of a partial write. Nothing else is written before it, so that lines stay whole.
    tail: Mutex<Vec<u8>>,
}

/// How to write without waiting.
#[derive(Debug)]
enum WriteMode {
    /// A description of our own, opened non-blocking: pipes and terminals.
    Own(File),
    /// Each call is non-blocking (`MSG_DONTWAIT`): sockets.
    Socket(File),
    /// Writes never block for long: regular files and devices.
    Direct(File),
    /// A pipe or terminal that could not be opened again: polled for free space before each write.
    Asked(File),
}

impl Output {
    /// Prepares to write to an open descriptor, which is not changed or closed.
    ///
    /// # Errors
    /// From the kernel, among others if the descriptor is not open.
    pub fn open(descriptor: RawFd) -> io::Result<Output> {
        let file = File::from(duplicate(descriptor)?);
        let kind = file.metadata()?.file_type();
        let way = if kind.is_socket() {
            WriteMode::Socket(file)
        } else if kind.is_fifo() || file.is_terminal() {
            let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
            let again = format!("/proc/self/fd/{}", file.as_raw_fd());
            match OpenOptions::new().write(true).custom_flags(flags).open(again) {
                Ok(own) => WriteMode::Own(own),
                Err(_) => WriteMode::Asked(file),
            }
        } else {
            WriteMode::Direct(file)
        };
        Ok(Output { way, tail: Mutex::default() })
    }

    /// Whether several lines may be combined in one write. Not for sockets, which may preserve message boundaries.
    pub fn takes_batches(&self) -> bool {
        !matches!(self.way, WriteMode::Socket(_))
    }

    /// Writes one or more whole lines. Up to [`ATOMIC`] bytes do not interleave with other writes to the same pipe.
    ///
    /// # Errors
    /// `WouldBlock` if there is no free space now: nothing was written. Otherwise from the kernel.
    pub fn write(&self, lines: &[u8]) -> io::Result<()> {
        let mut tail = self.lock();
        if !self.push(&mut tail)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let written = self.way.write(lines)?;
        if written == 0 && !lines.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        tail.extend_from_slice(&lines[written..]);
        Ok(())
    }

    /// Writes the rest of a partially written line. Returns whether nothing is left.
    ///
    /// # Errors
    /// From the kernel; the rest is then discarded.
    pub fn finish(&self) -> io::Result<bool> {
        self.push(&mut self.lock())
    }

    fn push(&self, tail: &mut Vec<u8>) -> io::Result<bool> {
        if tail.is_empty() {
            return Ok(true);
        }
        match self.way.write(tail) {
            Ok(written) => {
                tail.drain(..written);
                Ok(tail.is_empty())
            }
            Err(error) => {
                tail.clear();
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteMode {
    /// Returns the number of bytes written; 0 if there is no free space.
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = match self {
            WriteMode::Socket(file) => {
                let slices = [io::IoSlice::new(bytes)];
                return Ok(sys::socket::send_datagram(file.as_raw_fd(), &slices, None)?.unwrap_or(0));
            }
            // A pipe that has any free space accepts this much, so that the write does not block.
            WriteMode::Asked(file) if !has_room(file)? => return Ok(0),
            WriteMode::Asked(file) => {
                let mut file = file;
                return file.write(&bytes[..bytes.len().min(ATOMIC)]);
            }
            WriteMode::Own(file) | WriteMode::Direct(file) => file,
        };
        loop {
            match file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

/// Duplicates a descriptor, with close-on-exec.
fn duplicate(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed; a descriptor that is not open makes the call fail.
    let fresh = sys::check(unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fresh) })
}

/// Whether a write would not block.
fn has_room(file: &File) -> io::Result<bool> {
    let mut asked = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: the pointer is valid for the one element that is announced.
    let ready = sys::attempt(|| unsafe { libc::poll(&mut asked, 1, 0) } as libc::ssize_t)?;
    Ok(ready == Some(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Read};
    use std::os::unix::net::{UnixDatagram, UnixStream};

    fn flags(of: &impl AsRawFd) -> i32 {
        // SAFETY: no pointers are passed.
        unsafe { libc::fcntl(of.as_raw_fd(), libc::F_GETFL) }
    }

    fn drain(reader: &mut PipeReader, count: usize) -> Vec<u8> {
        let mut got = vec![0; count];
        reader.read_exact(&mut got).unwrap();
        got
    }

    #[test]
    fn a_full_pipe_refuses_lines_and_keeps_its_flags() {
        let (mut reader, writer) = io::pipe().unwrap();
        let before = flags(&writer);
        let output = Output::open(writer.as_raw_fd()).unwrap();
        assert!(output.takes_batches());
        let line = [b'x'; 1000];
        let mut accepted = 0;
        let refused = loop {
            match output.write(&line) {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(accepted >= 16, "{accepted}");
        assert_eq!(flags(&writer), before);
        assert_eq!(before & libc::O_NONBLOCK, 0);
        drain(&mut reader, accepted * line.len());
        output.write(b"end\n").unwrap();
        assert_eq!(drain(&mut reader, 4), b"end\n");
    }

    #[test]
    fn a_long_line_is_finished_before_another_one_begins() {
        let (mut reader, writer) = io::pipe().unwrap();
        let output = Output::open(writer.as_raw_fd()).unwrap();
        let long = vec![b'l'; 100_000];
        output.write(&long).unwrap();
        assert!(!output.finish().unwrap());
        assert_eq!(output.write(b"short").unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(drain(&mut reader, 60_000), long[..60_000]);
        assert!(output.finish().unwrap());
        output.write(b"short").unwrap();
        assert_eq!(drain(&mut reader, 40_005), [&long[60_000..], b"short"].concat());
    }

    #[test]
    fn a_pipe_that_cannot_be_opened_again_is_asked_for_room() {
        let (mut reader, writer) = io::pipe().unwrap();
        let file = File::from(OwnedFd::from(writer));
        let output = Output { way: WriteMode::Asked(file), tail: Mutex::default() };
        while output.write(&[b'x'; ATOMIC]).is_ok() {}
        let full = drain(&mut reader, ATOMIC);
        assert_eq!(full, [b'x'; ATOMIC]);
        output.write(b"again").unwrap();
    }

    #[test]
    fn stream_sockets_files_and_devices() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        Output::open(ours.as_raw_fd()).unwrap().write(b"a line\n").unwrap();
        let mut got = [0; 7];
        theirs.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"a line\n");

        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let before = flags(&ours);
        let output = Output::open(ours.as_raw_fd()).unwrap();
        assert!(!output.takes_batches());
        while output.write(b"a datagram").is_ok() {}
        assert_eq!(flags(&ours), before);
        assert_eq!(theirs.recv(&mut got).unwrap(), 7);

        let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
        Output::open(null.as_raw_fd()).unwrap().write(b"nobody").unwrap();
    }

    #[test]
    fn regular_files_are_written_where_others_stopped() {
        let path = std::env::temp_dir().join(format!("weir-output-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        let output = Output::open(file.as_raw_fd()).unwrap();
        file.write_all(b"first\n").unwrap();
        output.write(b"second\n").unwrap();
        file.write_all(b"third\n").unwrap();
        let text = std::fs::read_to_string(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.unwrap(), "first\nsecond\nthird\n");
    }

    #[test]
    fn closed_descriptors_and_readers_that_left_are_errors() {
        assert!(Output::open(-1).is_err());
        assert!(Output::open(1_000_000).is_err());
        let (reader, writer) = io::pipe().unwrap();
        let output = Output::open(writer.as_raw_fd()).unwrap();
        drop(reader);
        assert_eq!(output.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
