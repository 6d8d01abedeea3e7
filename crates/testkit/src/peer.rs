//! One end of a connection that follows a script: sends, expects, and closes in every possible way.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::panic::Location;
use std::time::Duration;

use base::Buffer;
use rt::net::{Address, ConnectOptions, Stream};

use crate::chunks::{Chunked, decode_chunks};
use crate::time::{PATIENCE, sleep, within};

/// Options for opening a connection.
#[derive(Clone, Debug, Default)]
pub struct PeerOptions {
    /// Connects from this `IP:PORT`; port 0 is any.
    pub from: Option<String>,
}

/// One end of a connection. Dropping it closes it.
pub struct Peer {
    stream: Stream,
    /// Bytes read but not expected yet.
    unread: Vec<u8>,
    end: Option<End>,
}

/// How the other side closed its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Reset,
}

/// The line of a test that waits for something.
#[derive(Clone, Copy)]
pub(crate) struct Waiting(&'static Location<'static>);

impl Waiting {
    #[track_caller]
    pub(crate) fn here() -> Waiting {
        Waiting(Location::caller())
    }

    pub(crate) async fn within<T>(self, future: impl Future<Output = T>, what: impl FnOnce() -> String) -> T {
        match within(PATIENCE, future).await {
            Some(value) => value,
            None => self.fail(format_args!("waits in vain for {}", what())),
        }
    }

    pub(crate) fn fail(self, what: fmt::Arguments<'_>) -> ! {
        panic!("{}: {what}", self.0)
    }
}

/// Formats bytes for messages, truncating long ones.
pub(crate) fn show(bytes: &[u8]) -> String {
    const MOST: usize = 400;
    let shown = bytes[..bytes.len().min(MOST)].escape_ascii();
    let more = if bytes.len() > MOST { format!(" … {} bytes", bytes.len()) } else { String::new() };
    format!("\"{shown}\"{more}")
}

impl Peer {
    /// Connects to `IP:PORT`.
    #[track_caller]
    pub fn connect(to: &str) -> impl Future<Output = Peer> + use<> {
        Peer::connect_with(to, PeerOptions::default())
    }

    /// Connects to `IP:PORT`, with options.
    #[track_caller]
    pub fn connect_with(to: &str, options: PeerOptions) -> impl Future<Output = Peer> + use<> {
        let (waiting, to) = (Waiting::here(), to.to_owned());
        async move {
            let opened = waiting.within(Peer::try_connect(&to, options), || format!("{to} to accept")).await;
            opened.unwrap_or_else(|error| waiting.fail(format_args!("{to}: {error}")))
        }
    }

    /// Connects to `IP:PORT`; errors are returned.
    ///
    /// # Errors
    /// Those of the connection.
    ///
    /// # Panics
    /// If a text is not an address.
    pub async fn try_connect(to: &str, options: PeerOptions) -> io::Result<Peer> {
        let address = |text: &str| Address::Inet(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")));
        let source = options.from.as_deref().map(address);
        let stream = Stream::connect(&address(to), &ConnectOptions { source, ..ConnectOptions::default() })?.await?;
        Ok(Peer::over(stream))
    }

    /// Returns the connection, for use by another implementation. Bytes read but not expected are lost.
    pub fn into_stream(self) -> Stream {
        self.stream
    }

    /// Creates a peer on an open stream.
    pub fn over(stream: Stream) -> Peer {
        Peer { stream, unread: Vec::new(), end: None }
    }

    /// Sends all bytes.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> impl Future<Output = ()> {
        let waiting = Waiting::here();
        async move {
            let bytes = bytes.as_ref();
            let sent = waiting.within(self.write(bytes), || format!("room to send {}", show(bytes))).await;
            sent.unwrap_or_else(|error| waiting.fail(format_args!("send {}: {error}", show(bytes))));
        }
    }

    /// Sends as much as the other side accepts; errors are permitted.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        matches!(within(PATIENCE, self.write(bytes.as_ref())).await, Some(Ok(())))
    }

    /// Sends bytes in pieces of `piece` bytes, with pauses of `millis` milliseconds between them.
    #[track_caller]
    pub fn send_slowly(&mut self, bytes: impl AsRef<[u8]>, piece: usize, millis: u64) -> impl Future<Output = ()> {
        let waiting = Waiting::here();
        async move {
            for (number, piece) in bytes.as_ref().chunks(piece.max(1)).enumerate() {
                if number > 0 {
                    sleep(millis).await;
                }
                let sent = waiting.within(self.write(piece), || format!("room to send {}", show(piece))).await;
                sent.unwrap_or_else(|error| waiting.fail(format_args!("send {}: {error}", show(piece))));
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let slices = [IoSlice::new(&bytes[sent..])];
            sent += poll_fn(|context| self.stream.poll_write_slices(context, &slices, false)).await?;
        }
        Ok(())
    }

    /// Reads once, at most `most` bytes. False: the other side has closed its direction.
    async fn read(&mut self, most: usize) -> bool {
        if self.end.is_some() {
            return false;
        }
        let mut buffer = Buffer::with_capacity(most);
        match poll_fn(|context| self.stream.poll_read(context, &mut buffer)).await {
            Ok(0) => self.end = Some(End::Closed),
            Ok(_) => self.unread.extend_from_slice(buffer.data()),
            Err(_) => self.end = Some(End::Reset),
        }
        self.end.is_none()
    }

    /// Reads until there are `count` bytes. False: the other side closed before.
    async fn gather(&mut self, count: usize) -> bool {
        while self.unread.len() < count {
            if !self.read(16 * 1024).await {
                return false;
            }
        }
        true
    }

    /// Expects exactly these bytes next.
    #[track_caller]
    pub fn expect(&mut self, bytes: impl AsRef<[u8]>) -> impl Future<Output = ()> {
        let waiting = Waiting::here();
        async move {
            let bytes = bytes.as_ref();
            let mut known = 0;
            loop {
                let together = self.unread.len().min(bytes.len());
                if self.unread[known..together] != bytes[known..together] {
                    let (expected, got) = (show(bytes), show(&self.unread));
                    waiting.fail(format_args!("\nexpected {expected}\ngot      {got}"));
                }
                known = together;
                if known == bytes.len() {
                    self.unread.drain(..known);
                    return;
                }
                match within(PATIENCE, self.gather(known + 1)).await {
                    Some(true) => {}
                    Some(false) => {
                        let (end, got) = (self.end, show(&self.unread));
                        waiting.fail(format_args!("\nexpected {}\ngot      {got}, then {end:?}", show(bytes)));
                    }
                    None => {
                        let got = show(&self.unread);
                        waiting.fail(format_args!("\nwaits for {}\ngot       {got}, then nothing", show(bytes)));
                    }
                }
            }
        }
    }

    /// Returns the next `count` bytes.
    #[track_caller]
    pub fn receive(&mut self, count: usize) -> impl Future<Output = Vec<u8>> {
        self.receive_slowly(count, 16 * 1024, 0)
    }

    /// Returns the next `count` bytes, read in pieces of at most `piece` with a pause of `millis` milliseconds after
    /// each.
    #[track_caller]
    pub fn receive_slowly(&mut self, count: usize, piece: usize, millis: u64) -> impl Future<Output = Vec<u8>> {
        let waiting = Waiting::here();
        async move {
            while self.unread.len() < count {
                let most = piece.min(count - self.unread.len());
                let got = self.unread.len();
                if !waiting.within(self.read(most), || format!("{count} bytes, got {got}")).await {
                    waiting.fail(format_args!("{:?} after {got} of {count} bytes: {}", self.end, show(&self.unread)));
                }
                if millis > 0 {
                    sleep(millis).await;
                }
            }
            self.unread.drain(..count).collect()
        }
    }

    /// Returns everything up to and including these bytes.
    #[track_caller]
    pub fn receive_until(&mut self, mark: &str) -> impl Future<Output = Vec<u8>> {
        let waiting = Waiting::here();
        async move {
            match waiting.within(self.find(mark), || format!("{mark:?}")).await {
                Some(found) => found,
                None => waiting.fail(format_args!("{:?} before {mark:?}: {}", self.end, show(&self.unread))),
            }
        }
    }

    /// Returns the next message head with its empty line; `None` if the other side closes before.
    #[track_caller]
    pub fn receive_head(&mut self) -> impl Future<Output = Option<String>> {
        let waiting = Waiting::here();
        async move {
            let head = waiting.within(self.find("\r\n\r\n"), || "a head".to_owned()).await;
            head.map(|head| String::from_utf8_lossy(&head).into_owned())
        }
    }

    async fn find(&mut self, mark: &str) -> Option<Vec<u8>> {
        let mut from = 0;
        loop {
            let found = self.unread[from..].windows(mark.len()).position(|window| window == mark.as_bytes());
            if let Some(at) = found {
                return Some(self.unread.drain(..from + at + mark.len()).collect());
            }
            from = self.unread.len().saturating_sub(mark.len() - 1);
            if !self.read(16 * 1024).await {
                return None;
            }
        }
    }

    /// Returns the next chunked body, read in pieces of at most `piece` with a pause of `millis` milliseconds after
    /// each.
    #[track_caller]
    pub fn receive_chunked(&mut self, piece: usize, millis: u64) -> impl Future<Output = Chunked> {
        let waiting = Waiting::here();
        async move {
            let mut decoded = Chunked::default();
            while !decode_chunks(&mut self.unread, &mut decoded) {
                let got = decoded.body.len();
                if !waiting.within(self.read(piece), || format!("the last chunk, got {got} bytes")).await {
                    waiting.fail(format_args!("{:?} after {got} bytes in chunks", self.end));
                }
                if millis > 0 {
                    sleep(millis).await;
                }
            }
            decoded
        }
    }

    /// Returns everything until the other side closes in order, read like [`Peer::receive_slowly`].
    #[track_caller]
    pub fn receive_rest_slowly(&mut self, piece: usize, millis: u64) -> impl Future<Output = Vec<u8>> {
        let waiting = Waiting::here();
        async move {
            while waiting.within(self.read(piece), || "the end".to_owned()).await {
                if millis > 0 {
                    sleep(millis).await;
                }
            }
            if self.end != Some(End::Closed) {
                waiting.fail(format_args!("{:?} after {}", self.end, show(&self.unread)));
            }
            std::mem::take(&mut self.unread)
        }
    }

    /// Returns everything until the other side closes in order.
    #[track_caller]
    pub fn receive_rest(&mut self) -> impl Future<Output = Vec<u8>> {
        self.receive_rest_slowly(16 * 1024, 0)
    }

    /// Expects no more bytes and an orderly close.
    #[track_caller]
    pub fn expect_eof(&mut self) -> impl Future<Output = ()> {
        self.ends(Waiting::here(), "the end", |end| end == End::Closed)
    }

    /// Expects no more bytes and a reset.
    #[track_caller]
    pub fn expect_reset(&mut self) -> impl Future<Output = ()> {
        self.ends(Waiting::here(), "a reset", |end| end == End::Reset)
    }

    /// Expects no more bytes and a close or reset.
    #[track_caller]
    pub fn expect_end(&mut self) -> impl Future<Output = ()> {
        self.ends(Waiting::here(), "an end", |_| true)
    }

    async fn ends(&mut self, waiting: Waiting, what: &str, right: impl Fn(End) -> bool) {
        waiting.within(self.gather(1), || what.to_owned()).await;
        if !self.unread.is_empty() {
            waiting.fail(format_args!("expected {what}, got {}", show(&self.unread)));
        }
        if !self.end.is_some_and(right) {
            waiting.fail(format_args!("expected {what}, got {:?}", self.end));
        }
    }

    /// Expects nothing for that number of milliseconds, not even a close.
    #[track_caller]
    pub fn expect_silence(&mut self, millis: u64) -> impl Future<Output = ()> {
        let waiting = Waiting::here();
        async move {
            let anything = within(Duration::from_millis(millis), self.gather(1)).await.is_some();
            if anything || !self.unread.is_empty() {
                waiting.fail(format_args!("expected silence, got {} {:?}", show(&self.unread), self.end));
            }
        }
    }

    /// Returns the next message head, if it arrives completely.
    pub async fn try_receive_head(&mut self) -> Option<String> {
        let head = within(PATIENCE, self.find("\r\n\r\n")).await??;
        Some(String::from_utf8_lossy(&head).into_owned())
    }

    /// Discards the next `count` bytes, as far as they arrive. Returns whether all did.
    pub async fn try_receive(&mut self, count: usize) -> bool {
        self.try_receive_up_to(count).await.1
    }

    /// Returns the next `count` bytes, or those that arrive, and whether they are complete.
    pub async fn try_receive_up_to(&mut self, count: usize) -> (Vec<u8>, bool) {
        let whole = within(PATIENCE, self.gather(count)).await == Some(true);
        let there = count.min(self.unread.len());
        (self.unread.drain(..there).collect(), whole)
    }

    /// Returns the next available bytes; empty at the end.
    pub async fn receive_some(&mut self) -> Vec<u8> {
        if self.unread.is_empty() {
            self.read(16 * 1024).await;
        }
        std::mem::take(&mut self.unread)
    }

    /// Whether the other side has closed in order, as far as it was read.
    pub fn has_closed_in_order(&self) -> bool {
        self.end == Some(End::Closed)
    }

    /// Returns the next chunked body, or its complete chunks that arrive, and whether it is complete.
    pub async fn try_receive_chunked(&mut self) -> (Vec<u8>, bool) {
        let mut decoded = Chunked::default();
        loop {
            if decode_chunks(&mut self.unread, &mut decoded) {
                return (decoded.body, true);
            }
            if within(PATIENCE, self.read(16 * 1024)).await != Some(true) {
                return (decoded.body, false);
            }
        }
    }

    /// Echoes received bytes until the end.
    pub async fn echo(&mut self) {
        loop {
            let bytes = std::mem::take(&mut self.unread);
            if !self.try_send(bytes).await || within(PATIENCE, self.read(16 * 1024)).await != Some(true) {
                return;
            }
        }
    }

    /// Closes the sending direction, if the connection has not failed.
    pub fn try_half_close(&mut self) {
        let _ = self.stream.shutdown_write();
    }

    /// Closes the sending direction.
    ///
    /// # Panics
    /// If the connection has failed already.
    #[track_caller]
    pub fn half_close(&mut self) {
        self.stream.shutdown_write().unwrap_or_else(|error| panic!("shutdown: {error}"));
    }

    /// Closes both directions.
    pub fn close(self) {}

    /// Resets the connection.
    ///
    /// # Panics
    /// If the system refuses.
    #[track_caller]
    pub fn reset(mut self) {
        self.stream.set_linger_zero().unwrap_or_else(|error| panic!("linger: {error}"));
    }

    /// Returns the other end's address.
    ///
    /// # Panics
    /// If the connection has failed.
    #[track_caller]
    pub fn remote_address(&self) -> Address {
        self.stream.peer_address().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the local address.
    ///
    /// # Panics
    /// If the connection has failed.
    #[track_caller]
    pub fn local_address(&self) -> Address {
        self.stream.local_address().unwrap_or_else(|error| panic!("{error}"))
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("unread", &show(&self.unread)).field("end", &self.end).finish()
    }
}
