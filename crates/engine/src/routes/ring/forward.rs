//! Sends the lines of a ring to one of its servers (RFC 6587): connects when there are lines; after a failure it resends from the
//! first line that was not sent completely. For a closed ring it sends the remaining lines, unless that fails, and ends. Must
//! never hold the ring's lock while waiting.

use super::Ring;
use super::store::Cursor;
use crate::outgoing::security;
use base::buffer::Buffer;
use config::spec::LogProtocol;
use conn::dial::dial;
use conn::transport::Transport;
use rt::net::{Address, ConnectOptions};
use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::io::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// Delay between two connection attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// State of sending to one server of a ring.
struct Forwarder {
    ring: Arc<Ring>,
    server: usize,
    /// Counter of lost lines.
    dropped: Arc<AtomicU64>,
    /// Framed lines that are being sent.
    output: Buffer,
    /// For each line in `output` the bytes left to send, and the cursor following it in the ring.
    pending: VecDeque<(usize, Cursor)>,
    /// Cursor following the last line that was sent completely.
    sent: Cursor,
    /// Cursor following the last line in `output`.
    read: Cursor,
}

/// Connections to a server of a closed ring; lines that the last one does not take are lost.
const LAST_ATTEMPTS: usize = 2;

/// Serves one server of a ring until the ring is closed. Lost lines are added to `dropped`.
pub async fn forward(ring: Arc<Ring>, server: usize, dropped: Arc<AtomicU64>) {
    let mut forwarder = Forwarder {
        ring,
        server,
        dropped,
        output: Buffer::empty(),
        pending: VecDeque::new(),
        sent: Cursor::default(),
        read: Cursor::default(),
    };
    let mut left = LAST_ATTEMPTS;
    while poll_fn(|cx| forwarder.poll_lines(cx)).await {
        let connected = forwarder.connect().await;
        if forwarder.ring.is_closed() {
            left = left.saturating_sub(1);
        }
        match connected {
            Some(mut stream) => forwarder.send(&mut stream).await,
            // After a failed connection to the server of a closed ring, its remaining lines are lost.
            None if left < LAST_ATTEMPTS => break,
            None => rt::sleep(PAUSE).await,
        }
        if left == 0 {
            break;
        }
    }
    forwarder.give_up();
}

impl Forwarder {
    /// Ready with true when there are lines to read, with false when the ring is closed and empty.
    fn poll_lines(&mut self, cx: &Context<'_>) -> Poll<bool> {
        let mut shared = self.ring.lock();
        if shared.store.has_lines_behind(self.read) {
            return Poll::Ready(true);
        }
        if shared.closed {
            return Poll::Ready(false);
        }
        if let Some(reader) = shared.readers.get_mut(self.server) {
            reader.waiting = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    async fn connect(&self) -> Option<Transport> {
        let ring = &*self.ring;
        let address = Address::Inet(ring.lock().readers.get(self.server)?.address);
        let options = ConnectOptions::default();
        let mut connecting = pin!(dial(&address, &options, security(ring.servers.get(self.server)?.tls.as_ref())));
        let mut timer = rt::Timer::new();
        timer.arm(Some(rt::now() + ring.connect_timeout));
        poll_fn(|cx| {
            if let Poll::Ready(connected) = connecting.as_mut().poll(cx) {
                return Poll::Ready(connected.ok());
            }
            timer.poll_expired(cx).map(|()| None)
        })
        .await
    }

    /// Sends until the connection fails, times out or is closed by its server.
    async fn send(&mut self, stream: &mut Transport) {
        let mut timer = rt::Timer::new();
        poll_fn(|cx| {
            loop {
                if self.output.is_empty() && !self.fill() {
                    timer.arm(None);
                    match self.poll_lines(cx) {
                        Poll::Ready(true) => continue,
                        Poll::Ready(false) => return Poll::Ready(()),
                        Poll::Pending => {}
                    }
                    // A syslog server sends nothing: being readable most likely means that it has closed.
                    return stream.poll_readable(cx);
                }
                match stream.poll_write(cx, &mut self.output, &mut Buffer::empty(), false) {
                    Poll::Ready(Ok(sent)) => {
                        self.note_sent(sent);
                        timer.arm(None);
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {
                        if timer.deadline().is_none() {
                            timer.arm(Some(rt::now() + self.ring.server_timeout));
                        }
                        return timer.poll_expired(cx);
                    }
                }
            }
        })
        .await;
        self.output = Buffer::empty();
        self.pending.clear();
        self.read = self.sent;
    }

    /// Fills the output with lines from the ring, up to its capacity. Returns false if there are none; then no buffer is held.
    fn fill(&mut self) -> bool {
        let Self { ring, server, dropped, output, pending, read, .. } = self;
        let protocol = ring.servers.get(*server).map_or(LogProtocol::Legacy, |server| server.protocol);
        let shared = ring.lock();
        if !shared.store.has_lines_behind(*read) {
            *output = Buffer::empty();
            return false;
        }
        if output.capacity() == 0 {
            *output = rt::buffer();
        }
        output.clear();
        let (next, lost) = shared.store.read(*read, |front, back, behind| {
            let before = output.len();
            let taken = frame(protocol, front, back, output);
            if taken {
                pending.push_back((output.len() - before, behind));
            }
            taken
        });
        drop(shared);
        *read = next;
        dropped.fetch_add(lost, Ordering::Relaxed);
        !output.is_empty()
    }

    /// Counts the remaining lines as lost.
    fn give_up(&mut self) {
        let mut shared = self.ring.lock();
        let end = shared.store.end();
        self.dropped.fetch_add(end.lines_behind(self.sent), Ordering::Relaxed);
        if let Some(reader) = shared.readers.get_mut(self.server) {
            reader.sent = end;
        }
    }

    /// Records that `sent` more bytes were written.
    fn note_sent(&mut self, sent: usize) {
        let mut left = sent;
        while let Some((remaining, behind)) = self.pending.front_mut() {
            let part = left.min(*remaining);
            *remaining -= part;
            left -= part;
            if *remaining > 0 {
                break;
            }
            self.sent = *behind;
            self.pending.pop_front();
        }
        let mut shared = self.ring.lock();
        if let Some(reader) = shared.readers.get_mut(self.server) {
            reader.sent = self.sent;
        }
    }
}

/// Appends a line with the framing of the protocol. Returns false if there is no space after other lines; a line alone gets a
/// buffer of its size.
fn frame(protocol: LogProtocol, front: &[u8], back: &[u8], output: &mut Buffer) -> bool {
    let length = front.len() + back.len();
    let mut decimal = [0; 21];
    let mut rest = &mut decimal[..];
    let prefix: &[u8] = match protocol {
        LogProtocol::Legacy => b"",
        // A 64-bit number and a space always fit.
        LogProtocol::OctetCount => match write!(rest, "{length} ") {
            Ok(()) => {
                let unused = rest.len();
                &decimal[..decimal.len() - unused]
            }
            Err(_) => return false,
        },
    };
    let suffix: &[u8] = if protocol == LogProtocol::Legacy { b"\n" } else { b"" };
    let needed = prefix.len() + length + suffix.len();
    if output.is_empty() && output.capacity() < needed {
        *output = Buffer::with_capacity(needed);
    }
    output.room() >= needed && [prefix, front, back, suffix].iter().all(|part| output.push(part))
}
