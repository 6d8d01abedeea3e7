//! One connection of a peer, with its received and not yet expected bytes. It must never wait beyond its deadline.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use regex_lite::Regex;
use socket2::Socket;

use crate::data::{find, show};
use crate::failure::{Failure, Result};
use crate::kernel::Kernel;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The other side closed its direction.
    Eof,
    /// The other side reset it.
    Reset,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Socket,
    unread: Vec<u8>,
    end: Option<End>,
    chunk: Chunk,
}

/// The reading position inside a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    /// Before a chunk size, or outside of a chunked body.
    Size,
    /// Inside a chunk, with the number of remaining payload bytes.
    Payload(usize),
    /// Before the line end after the payload.
    LineEnd,
}

/// The maximum length of a wait before the deadline and the case's failure are checked again.
const SLICE: Duration = Duration::from_millis(50);

/// A deadline that also expires when another peer has failed.
pub(crate) struct WaitLimit<'a> {
    /// The deadline.
    pub(crate) until: Instant,
    /// Whether the case has failed elsewhere.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

impl WaitLimit<'_> {
    /// Fails if the deadline has expired.
    pub(crate) fn check(&self, what: &str) -> Result<()> {
        if (self.cancelled)() {
            return Err(Failure::new("given up, since another peer failed"));
        }
        if Instant::now() >= self.until {
            return Err(Failure::new(format!("too long: {what}")));
        }
        Ok(())
    }
}

impl Link {
    /// Takes over a connected socket.
    pub(crate) fn new(socket: Socket) -> Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(SLICE))?;
        socket.set_write_timeout(Some(SLICE))?;
        Ok(Self { socket, unread: Vec::new(), end: None, chunk: Chunk::Size })
    }

    /// Sends all bytes.
    pub(crate) fn send(&mut self, bytes: &[u8], patience: &WaitLimit<'_>) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.socket.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if is_pause(&error) => patience.check("the other side does not read")?,
                Err(error) => return Err(Failure::new(format!("sending: {error}"))),
            }
        }
        Ok(())
    }

    /// Reads once; false if nothing arrived within a slice.
    fn fill(&mut self) -> Result<bool> {
        if self.end.is_some() {
            return Ok(true);
        }
        let mut chunk = [0; 65536];
        match self.socket.read(&mut chunk) {
            Ok(0) => self.end = Some(End::Eof),
            Ok(read) => self.unread.extend_from_slice(&chunk[..read]),
            Err(error) if is_pause(&error) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.end = Some(End::Reset),
            Err(error) => return Err(Failure::new(format!("reading: {error}"))),
        }
        Ok(true)
    }

    /// Expects exactly these bytes next.
    pub(crate) fn expect(&mut self, bytes: &[u8], patience: &WaitLimit<'_>) -> Result<()> {
        loop {
            let common = self.unread.len().min(bytes.len());
            let differs = self.unread[..common] != bytes[..common];
            if !differs && common == bytes.len() {
                self.unread.drain(..common);
                return Ok(());
            }
            let complaint = |link: &Self, why: &str| {
                let (got, want) = (show(&link.unread), show(bytes));
                Failure::new(format!("{why}\n      want {want}\n      got  {got}{}", link.ending()))
            };
            if differs {
                return Err(complaint(self, "other bytes came"));
            }
            if self.end.is_some() {
                return Err(complaint(self, "it ended early"));
            }
            if !self.fill()? {
                patience.check("bytes").map_err(|failure| complaint(self, &failure.0))?;
            }
        }
    }

    /// Expects a chunked body to continue with these bytes, split into any chunks.
    pub(crate) fn expect_chunks(&mut self, bytes: &[u8], patience: &WaitLimit<'_>) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.chunk {
                Chunk::Payload(left) => {
                    let now = left.min(rest.len());
                    self.expect(&rest[..now], patience)?;
                    rest = &rest[now..];
                    self.chunk = if left == now { Chunk::LineEnd } else { Chunk::Payload(left - now) };
                }
                Chunk::LineEnd => self.expect_line_end(patience)?,
                Chunk::Size => {
                    let line = self.line(patience)?;
                    let size = usize::from_str_radix(&line, 16).ok().filter(|size| *size > 0);
                    let size = size.ok_or_else(|| Failure::new(format!("want a chunk, got {line:?}")))?;
                    self.chunk = Chunk::Payload(size);
                }
            }
        }
        Ok(())
    }

    /// Expects a chunked body to end with these trailers.
    pub(crate) fn expect_last_chunk(&mut self, trailers: &[u8], patience: &WaitLimit<'_>) -> Result<()> {
        if self.chunk == Chunk::LineEnd {
            self.expect_line_end(patience)?;
        }
        self.expect(&[b"0\r\n", trailers, b"\r\n"].concat(), patience)
    }

    fn expect_line_end(&mut self, patience: &WaitLimit<'_>) -> Result<()> {
        self.chunk = Chunk::Size;
        self.expect(b"\r\n", patience)
    }

    /// Returns the next line, without its end.
    fn line(&mut self, patience: &WaitLimit<'_>) -> Result<String> {
        loop {
            if let Some(length) = find(&self.unread, b"\r\n") {
                let line = self.unread.drain(..length + 2).take(length).map(char::from).collect();
                return Ok(line);
            }
            if self.end.is_some() {
                return Err(Failure::new(format!("want a line, got {}{}", show(&self.unread), self.ending())));
            }
            if !self.fill()? {
                patience.check("a line")?;
            }
        }
    }

    /// Expects bytes that match, and takes the matching part.
    pub(crate) fn expect_match(&mut self, regex: &Regex, patience: &WaitLimit<'_>) -> Result<()> {
        loop {
            let text: String = self.unread.iter().map(|byte| char::from(*byte)).collect();
            if let Some(found) = regex.find(&text) {
                let taken = text[..found.end()].chars().count();
                self.unread.drain(..taken);
                return Ok(());
            }
            let got = show(&self.unread);
            if self.end.is_some() {
                return Err(Failure::new(format!("no match before the end: {got}{}", self.ending())));
            }
            if !self.fill()? {
                patience.check("bytes").map_err(|failure| Failure::new(format!("{failure}; got {got}")))?;
            }
        }
    }

    /// Discards this number of bytes.
    pub(crate) fn receive(&mut self, count: usize, patience: &WaitLimit<'_>) -> Result<()> {
        while self.unread.len() < count {
            if self.end.is_some() {
                return Err(Failure::new(format!("ended after {} of {count} bytes", self.unread.len())));
            }
            if !self.fill()? {
                patience
                    .check("bytes")
                    .map_err(|failure| Failure::new(format!("{failure}; got {}", self.unread.len())))?;
            }
        }
        self.unread.drain(..count);
        Ok(())
    }

    /// Returns everything until the end.
    pub(crate) fn receive_rest(&mut self, patience: &WaitLimit<'_>) -> Result<(Vec<u8>, End)> {
        loop {
            if let Some(end) = self.end {
                return Ok((std::mem::take(&mut self.unread), end));
            }
            if !self.fill()? {
                patience
                    .check("the end")
                    .map_err(|failure| Failure::new(format!("{failure}; got {}", show(&self.unread))))?;
            }
        }
    }

    /// Expects the end, of this kind if given, and nothing before it.
    pub(crate) fn expect_end(&mut self, kind: Option<End>, patience: &WaitLimit<'_>) -> Result<()> {
        let (rest, end) = self.receive_rest(patience)?;
        if !rest.is_empty() {
            return Err(Failure::new(format!("bytes before the end: {}", show(&rest))));
        }
        match kind {
            Some(kind) if kind != end => Err(Failure::new(format!("ended by {end:?}, not by {kind:?}"))),
            _ => Ok(()),
        }
    }

    /// Expects that nothing is available now: no byte, no end.
    pub(crate) fn expect_nothing(&mut self) -> Result<()> {
        self.socket.set_nonblocking(true)?;
        let filled = self.fill();
        self.socket.set_nonblocking(false)?;
        filled?;
        if self.unread.is_empty() && self.end.is_none() {
            return Ok(());
        }
        Err(Failure::new(format!("expected nothing yet, got {}{}", show(&self.unread), self.ending())))
    }

    /// Returns received bytes that no step has expected.
    pub(crate) fn leftover(&mut self) -> Result<Vec<u8>> {
        self.socket.set_nonblocking(true)?;
        let filled = self.fill();
        self.socket.set_nonblocking(false)?;
        filled?;
        Ok(std::mem::take(&mut self.unread))
    }

    /// Closes the sending direction.
    pub(crate) fn shutdown(&mut self) -> Result<()> {
        Ok(self.socket.shutdown(Shutdown::Write)?)
    }

    /// Resets the connection.
    pub(crate) fn reset(self) -> Result<()> {
        Ok(self.socket.set_linger(Some(Duration::ZERO))?)
    }

    /// Waits until the subject has accepted the connection and read all that was sent.
    pub(crate) fn settle(&self, patience: &WaitLimit<'_>) -> Result<()> {
        self.ask_kernel(patience, "the subject does not read", Kernel::has_read_all)
    }

    /// Waits until the subject has accepted the connection.
    pub(crate) fn await_accept(&self, patience: &WaitLimit<'_>) -> Result<()> {
        self.ask_kernel(patience, "the subject does not accept", Kernel::has_accepted)
    }

    fn ask_kernel(
        &self,
        patience: &WaitLimit<'_>,
        what: &str,
        ask: impl Fn(&mut Kernel, SocketAddr, SocketAddr) -> Result<bool>,
    ) -> Result<()> {
        let near = self.socket.local_addr()?.as_socket();
        let far = self.socket.peer_addr()?.as_socket();
        let (Some(near), Some(far)) = (near, far) else { return Err(Failure::new("this works over TCP only")) };
        let mut kernel = Kernel::open()?;
        while !ask(&mut kernel, near, far)? {
            patience.check(what)?;
            // There is no event for this: poll.
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn ending(&self) -> String {
        self.end.map_or(String::new(), |end| format!(", then {end:?}"))
    }
}

fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
