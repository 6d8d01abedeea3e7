//! Sends the lines of a ring to one of its servers (RFC 6587): connects when there is something to send, sends again
//! from the first line that did not go out whole when a connection fails. Must never hold the ring's lock over a wait.

use super::Ring;
use super::store::Cursor;
use crate::outgoing::security;
use crate::service::log::Targets;
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
use std::task::{Context, Poll};
use std::time::Duration;

/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);

/// One server of a ring.
struct Forwarder {
    targets: Arc<Targets>,
    ring: usize,
    server: usize,
    /// Lines that are being sent.
    output: Buffer,
    /// For each line in `output` the bytes that are still to be sent, and the place behind it in the ring.
    pending: VecDeque<(usize, Cursor)>,
    /// Behind the last line that went out whole.
    sent: Cursor,
    /// Behind the last line in `output`.
    read: Cursor,
}

/// Serves one server of a ring for as long as the process lives.
pub async fn forward(targets: Arc<Targets>, ring: usize, server: usize) {
    let mut forwarder = Forwarder {
        targets,
        ring,
        server,
        output: Buffer::empty(),
        pending: VecDeque::new(),
        sent: Cursor::default(),
        read: Cursor::default(),
    };
    loop {
        poll_fn(|cx| forwarder.poll_lines(cx)).await;
        match forwarder.connect().await {
            Some(mut stream) => forwarder.send(&mut stream).await,
            None => rt::sleep(PAUSE).await,
        }
    }
}

impl Forwarder {
    fn ring(&self) -> &Ring {
        &self.targets.rings[self.ring]
    }

    /// Ready when there are lines to read.
    fn poll_lines(&mut self, cx: &Context<'_>) -> Poll<()> {
        let mut shared = self.ring().lock();
        if shared.store.has_lines_behind(self.read) {
            return Poll::Ready(());
        }
        if let Some(reader) = shared.readers.get_mut(self.server) {
            reader.waiting = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    async fn connect(&self) -> Option<Transport> {
        let ring = self.ring();
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

    /// Sends until the connection fails, stalls or is closed by its server.
    async fn send(&mut self, stream: &mut Transport) {
        let mut timer = rt::Timer::new();
        poll_fn(|cx| {
            loop {
                if self.output.is_empty() && !self.fill() {
                    timer.arm(None);
                    if self.poll_lines(cx).is_ready() {
                        continue;
                    }
                    // A syslog server has nothing to say: whatever can be read is most likely its end.
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
                            timer.arm(Some(rt::now() + self.ring().server_timeout));
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

    /// Takes lines from the ring, as many as there is room for. False: there are none, and no buffer is held.
    fn fill(&mut self) -> bool {
        let Self { targets, ring, server, output, pending, read, .. } = self;
        let ring = &targets.rings[*ring];
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
        targets.count_dropped(usize::try_from(lost).unwrap_or(usize::MAX));
        !output.is_empty()
    }

    /// That many more bytes went out.
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
        let mut shared = self.ring().lock();
        if let Some(reader) = shared.readers.get_mut(self.server) {
            reader.sent = self.sent;
        }
    }
}

/// Appends a line as the protocol tells lines apart. False: there is no room for it behind others; alone it gets a buffer
/// of its size.
fn frame(protocol: LogProtocol, front: &[u8], back: &[u8], output: &mut Buffer) -> bool {
    let length = front.len() + back.len();
    let mut decimal = [0; 21];
    let mut rest = &mut decimal[..];
    let prefix: &[u8] = match protocol {
        LogProtocol::Legacy => b"",
        // A number of 64 bits and a space always fit.
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
