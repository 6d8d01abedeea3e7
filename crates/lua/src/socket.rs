//! Sockets of scripts. A socket belongs to the worker that connected it; scripts hold its number. Must never hold a
//! state's lock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::io::IoSlice;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use base::buffer::Buffer;
use conn::client::{Destination, open};
use conn::transport::Transport;
use mlua::{UserData, Value};
use rt::net::Address;

use crate::address::{self, Target};
use crate::stream_handle::text;
use crate::value::{Job, Plain};

/// Maximum number of bytes that are buffered, and that one call returns.
const LONGEST: usize = 16 << 20;
/// Maximum number of bytes per read.
const PIECE: usize = 16_384;
/// Default timeout of connecting, as in HAProxy.
const USUAL_TIMEOUT: Duration = Duration::from_secs(5);

/// A script's handle of a socket. Dropping it closes the connection.
pub(crate) struct Handle {
    number: u64,
    /// The worker that connects it; [`NOWHERE`]: not connected yet.
    home: AtomicUsize,
}

/// No worker.
const NOWHERE: usize = usize::MAX;

impl Handle {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), home: AtomicUsize::new(NOWHERE) }
    }
}

impl UserData for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let (number, home) = (self.number, self.home.load(Ordering::Relaxed));
        if home == NOWHERE || crate::here().is_none() {
            return;
        }
        let close = move || drop(take(number));
        // A connection is closed on its own worker.
        match rt::WorkerId::try_from(home) {
            Ok(home) if home != rt::worker() => rt::post(home, Box::new(close)),
            _ => close(),
        }
    }
}

thread_local! {
    static SOCKETS: RefCell<HashMap<u64, Connected>> = RefCell::default();
}

/// A connection.
struct Connected {
    transport: Transport,
    /// Unread input.
    input: Vec<u8>,
    /// The end of the input was reached.
    ended: bool,
}

/// The amount that a script receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Line,
    All,
    Bytes(usize),
}

fn number(value: Option<&Value>) -> Option<u64> {
    let handle = value?.as_userdata()?.borrow::<Handle>().ok()?;
    handle.home.store(usize::from(rt::worker()), Ordering::Relaxed);
    Some(handle.number)
}

fn take(number: u64) -> Option<Connected> {
    SOCKETS.with_borrow_mut(|sockets| sockets.remove(&number))
}

fn put(number: u64, connected: Connected) {
    SOCKETS.with_borrow_mut(|sockets| sockets.insert(number, connected));
}

/// Creates the job for a call; `None`: another function. The first value is the socket, the second its timeout in
/// milliseconds.
pub(crate) fn begin(name: &str, values: &[Value]) -> Option<Job> {
    let name = name.strip_prefix("socket.")?;
    let socket = number(values.first())?;
    let period = values.get(1).and_then(Value::as_i64).and_then(|period| u64::try_from(period).ok());
    let period = period.map(Duration::from_millis);
    let rest = values.get(2..).unwrap_or_default();
    Some(match name {
        "connect" | "connect_ssl" => connect(socket, period, rest, name == "connect_ssl"),
        "send" => {
            let data = rest.first().and_then(Value::as_string).map(|data| data.as_bytes().to_vec());
            Box::pin(send(socket, period, data.unwrap_or_default()))
        }
        "receive" => {
            let pattern = match rest.first() {
                Some(Value::Integer(count)) => Pattern::Bytes(usize::try_from(*count).unwrap_or(0).min(LONGEST)),
                Some(Value::String(text)) if *text == "*a" => Pattern::All,
                _ => Pattern::Line,
            };
            let prefix = rest.get(1).and_then(Value::as_string).map(|prefix| prefix.as_bytes().to_vec());
            Box::pin(receive(socket, period, pattern, prefix.unwrap_or_default()))
        }
        "close" => {
            let closed = take(socket);
            Box::pin(async move {
                drop(closed);
                Vec::new()
            })
        }
        "peer" | "name" => {
            let found = SOCKETS.with_borrow(|sockets| {
                let transport = &sockets.get(&socket)?.transport;
                if name == "peer" { transport.peer_address().ok() } else { transport.local_address().ok() }
            });
            let shown = match found {
                Some(Address::Inet(address)) => Plain::Text(address.to_string().into_bytes()),
                Some(_) => Plain::from("unix"),
                None => Plain::Nil,
            };
            Box::pin(std::future::ready(vec![shown]))
        }
        _ => return None,
    })
}

fn connect(socket: u64, period: Option<Duration>, rest: &[Value], secure: bool) -> Job {
    let given = rest.get(1).and_then(Value::as_i64);
    let port = given.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    let written = text(rest.first());
    let target = address::parse(&written, port);
    Box::pin(async move {
        if given.is_some() && port.is_none() {
            return vec![Plain::Nil, Plain::from("Can't connect")];
        }
        let target = match target {
            Ok(target) => target,
            Err(why) => return vec![Plain::Nil, Plain::Nil, Plain::Text(why.into_bytes())],
        };
        match open_target(&target, period, secure).await {
            Some(transport) => {
                put(socket, Connected { transport, input: Vec::new(), ended: false });
                vec![Plain::Int(1)]
            }
            None => vec![Plain::Nil, Plain::from("Can't connect")],
        }
    })
}

async fn open_target(target: &Target, period: Option<Duration>, secure: bool) -> Option<Transport> {
    let worker = crate::here()?;
    let address = address::find(&worker, target).await?;
    let client = worker.generation().program.http_client.clone();
    let host = match target {
        Target::Named(host, _) => host.clone(),
        Target::Known(_) => address.inet().map(|address| address.ip().to_string()).unwrap_or_default(),
    };
    let tls = if secure { Some((client.script_tls?, host)) } else { None };
    let by = rt::now() + period.unwrap_or(USUAL_TIMEOUT);
    open(&Destination { address, tls }, &mut rt::Timer::new(), by).await.ok()
}

/// Sends all data. Returns the number of bytes, or -1 if the connection is closed.
async fn send(socket: u64, period: Option<Duration>, data: Vec<u8>) -> Vec<Plain> {
    let Some(mut connected) = take(socket) else { return vec![Plain::Int(-1)] };
    let mut timer = rt::Timer::new();
    timer.arm(period.map(|period| rt::now() + period));
    let mut sent = 0;
    while sent < data.len() {
        let wrote = poll_fn(|cx| {
            let rest = [IoSlice::new(&data[sent..])];
            match connected.transport.poll_write_slices(cx, &rest, false) {
                Poll::Ready(done) => Poll::Ready(done.ok()),
                Poll::Pending => timer.poll_expired(cx).map(|()| None),
            }
        })
        .await;
        match wrote {
            Some(count) => sent += count,
            // A peer that has not read everything in time gets nothing more: the connection is closed.
            None => return vec![Plain::Int(-1)],
        }
    }
    put(socket, connected);
    vec![Plain::Int(i64::try_from(sent).unwrap_or(i64::MAX))]
}

/// Returns the part of the input that a pattern selects, without the line end; `None`: incomplete.
fn cut(connected: &mut Connected, pattern: Pattern) -> Option<Vec<u8>> {
    let input = &mut connected.input;
    let over = connected.ended || input.len() >= LONGEST;
    let end = match pattern {
        Pattern::Bytes(count) if input.len() >= count => count,
        Pattern::Line => match input.iter().position(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if over => input.len(),
            None => return None,
        },
        _ if over => input.len(),
        _ => return None,
    };
    Some(part(input, end, pattern))
}

/// Removes the first bytes from the input; the line end of a line is dropped.
fn part(input: &mut Vec<u8>, end: usize, pattern: Pattern) -> Vec<u8> {
    let rest = input.split_off(end);
    let mut taken = std::mem::replace(input, rest);
    if pattern == Pattern::Line {
        taken.retain(|byte| !matches!(byte, b'\r' | b'\n'));
    }
    taken
}

/// Receives data as a pattern requires. `prefix` is data that the script already has: it counts towards a number of
/// bytes, and precedes the returned data. After a timeout the error is followed by the partial data.
async fn receive(socket: u64, period: Option<Duration>, pattern: Pattern, prefix: Vec<u8>) -> Vec<Plain> {
    let closed = || vec![Plain::Nil, Plain::from("connection closed.")];
    let Some(mut connected) = take(socket) else { return closed() };
    let pattern = match pattern {
        Pattern::Bytes(count) => Pattern::Bytes(count.saturating_sub(prefix.len())),
        other => other,
    };
    let with_prefix = |part: Vec<u8>| Plain::Text([prefix.as_slice(), &part].concat());
    let mut timer = rt::Timer::new();
    let mut buffer = Buffer::with_capacity(PIECE);
    loop {
        let before = connected.input.len();
        if let Some(found) = cut(&mut connected, pattern) {
            let nothing = before == connected.input.len() && prefix.is_empty() && pattern != Pattern::Bytes(0);
            put(socket, connected);
            return if nothing { closed() } else { vec![with_prefix(found)] };
        }
        timer.arm(period.map(|period| rt::now() + period));
        let read = poll_fn(|cx| match connected.transport.poll_read(cx, &mut buffer) {
            Poll::Ready(done) => Poll::Ready(Some(done.unwrap_or(0))),
            Poll::Pending => timer.poll_expired(cx).map(|()| None),
        })
        .await;
        match read {
            None => {
                let end = connected.input.len();
                let came = part(&mut connected.input, end, pattern);
                put(socket, connected);
                return vec![Plain::Nil, Plain::from("timeout"), with_prefix(came)];
            }
            Some(0) => connected.ended = true,
            Some(_) => {
                connected.input.extend_from_slice(buffer.data());
                buffer.clear();
            }
        }
    }
}
