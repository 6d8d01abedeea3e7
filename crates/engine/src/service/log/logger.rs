//! A worker's log: gathers the lines of a turn and has them sent when it ends. Must never wait, nor fail towards those who
//! log.

use config::spec::LogLevel;
use policy::log_format::{Record, connection_error};
use policy::program::LogMoment;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use wire::syslog::{Header, Timestamp};

use super::ring;
use super::sender::Sender;
use super::targets::{Route, Target, Targets};

/// How long the rest of a line waits for room before it is tried again.
const RETRY: Duration = Duration::from_millis(10);

/// One worker's log. Made on its worker, after the process has become what it will be: lines tell its number.
#[derive(Debug)]
pub struct Logger {
    inner: Rc<Inner>,
}

#[derive(Debug)]
struct Inner {
    targets: Arc<Targets>,
    pid: u32,
    state: RefCell<State>,
    /// Lines were taken since the last flush.
    dirty: Cell<bool>,
    /// The task that flushes.
    flusher: RefCell<Option<Waker>>,
}

/// What became of a stream, as far as its line is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Neither error nor timeout, retry or redispatch, nor an answer of 500 or more.
    Normal,
    /// One of these.
    Failed,
    /// It brought no valid request.
    Invalid,
}

/// A line, rendered.
#[derive(Debug, Default)]
struct Text {
    line: Vec<u8>,
    /// For headers of RFC 5424.
    structured_data: Vec<u8>,
}

impl Text {
    fn clear(&mut self) {
        self.line.clear();
        self.structured_data.clear();
    }
}

#[derive(Debug)]
struct State {
    text: Text,
    now: Timestamp,
    zone: Zone,
    sender: Sender,
}

impl Logger {
    /// For the current worker, which gets a task that sends at the end of each turn.
    pub fn new(targets: Arc<Targets>) -> Self {
        let sender = Sender::new(targets.places.len());
        let state = State { text: Text::default(), now: Timestamp::default(), zone: Zone::default(), sender };
        let inner = Rc::new(Inner {
            targets,
            pid: std::process::id(),
            state: RefCell::new(state),
            dirty: Cell::new(false),
            flusher: RefCell::default(),
        });
        rt::spawn(rt::Class::Normal, rt::NO_TAG, flush_turns(Rc::downgrade(&inner)));
        forward_rings(&inner.targets);
        Self { inner }
    }

    /// Whether the lines of that proxy go anywhere.
    pub fn is_wanted(&self, proxy: usize) -> bool {
        self.inner.targets.proxies.get(proxy).is_some_and(|route| !route.targets.is_empty())
    }

    /// When lines of that proxy are written.
    pub fn moment(&self, proxy: usize) -> LogMoment {
        self.inner.targets.proxies.get(proxy).map_or(LogMoment::End, |route| route.moment)
    }

    /// Whether lines of that proxy tell the address that the client connected to.
    pub fn tells_destination(&self, proxy: usize) -> bool {
        self.inner.targets.proxies.get(proxy).is_some_and(|route| !route.targets.is_empty() && route.tells_destination)
    }

    /// Whether lines of that proxy tell the address that the connection to the server comes from.
    pub fn tells_backend_source(&self, proxy: usize) -> bool {
        let route = self.inner.targets.proxies.get(proxy);
        route.is_some_and(|route| !route.targets.is_empty() && route.tells_backend_source)
    }

    /// Logs traffic of a frontend, as its options want it. Process, host, time zone, counter and limit of the record
    /// are filled in here.
    pub fn traffic(&self, proxy: usize, verdict: Verdict, record: &Record<'_>) {
        let Some(route) = self.inner.targets.proxies.get(proxy) else { return };
        let lines = &route.lines;
        let format = match (verdict, &lines.error) {
            (Verdict::Normal, _) if lines.dontlog_normal => return,
            (Verdict::Invalid, Some(format)) => format,
            // Only valid requests have connected anywhere.
            (Verdict::Invalid, None) if lines.format.is_default() => return,
            _ => &lines.format,
        };
        let failed = verdict != Verdict::Normal && lines.separate_errors;
        let level = if failed { LogLevel::Err } else { LogLevel::Info };
        self.inner.send(route, level, |inner, zone, text| {
            let filled = Record {
                pid: inner.pid,
                hostname: &inner.targets.hostname,
                local_offset: zone.offset(record.accept_date.seconds),
                log_counter: route.count_line(),
                request_limit: inner.targets.request_limit,
                partial: lines.as_soon_as_possible,
                ..*record
            };
            format.render(&filled, &mut text.line);
            if let Some(format) = &lines.structured_data {
                format.render(&filled, &mut text.structured_data);
            }
        });
    }

    /// Logs a connection of a frontend that failed before anything was served: in `error-log-format`, else as
    /// configuration manual's section 8.2.5 has it, with `reason`.
    pub fn connection_error(&self, proxy: usize, record: &Record<'_>, reason: &str) {
        let Some(route) = self.inner.targets.proxies.get(proxy) else { return };
        let lines = &route.lines;
        let level = if lines.separate_errors { LogLevel::Err } else { LogLevel::Info };
        self.inner.send(route, level, |inner, zone, text| {
            let filled = Record {
                pid: inner.pid,
                hostname: &inner.targets.hostname,
                local_offset: zone.offset(record.accept_date.seconds),
                log_counter: route.count_line(),
                request_limit: inner.targets.request_limit,
                ..*record
            };
            match &lines.error {
                Some(format) => format.render(&filled, &mut text.line),
                None => connection_error(&filled, reason, &mut text.line),
            }
        });
    }

    /// Sends a message to the targets of a proxy, or to those of the process.
    pub fn message(&self, proxy: Option<usize>, level: LogLevel, text: &str) {
        let targets = &self.inner.targets;
        let Some(route) = proxy.map_or(Some(&targets.process), |index| targets.proxies.get(index)) else { return };
        self.inner.send(route, level, |_, _, out| out.line.extend_from_slice(text.as_bytes()));
    }

    /// Says that a proxy has stopped, and how many connections it has had on either side.
    pub fn proxy_stopped(&self, proxy: usize, name: &str, frontend: u64, backend: u64) {
        let text = format!("Proxy {name} stopped (cumulated conns: FE: {frontend}, BE: {backend}).");
        self.message(Some(proxy), LogLevel::Warning, &text);
    }

    /// Sends what waits, before the end of the turn. False: the rest of a line still waits for room.
    pub fn flush(&self) -> bool {
        self.inner.flush()
    }
}

impl Inner {
    fn send(&self, route: &Route, level: LogLevel, render: impl FnOnce(&Self, &mut Zone, &mut Text)) {
        let Ok(mut state) = self.state.try_borrow_mut() else { return };
        let State { text, now, zone, sender } = &mut *state;
        let mut render = Some(render);
        for target in &route.targets {
            let Some(severity) = target.severity(level) else { continue };
            if let Some(render) = render.take() {
                let wall = rt::wall();
                now.set(wall.seconds, wall.nanos, zone.offset(wall.seconds));
                text.clear();
                render(self, zone, text);
            }
            let header = self.header(route, target, severity, &text.structured_data);
            sender.push(&self.targets, target.place, target.length, |out| {
                target.format.write(&header, now, out);
                out.extend_from_slice(&text.line);
            });
        }
        drop(state);
        // Without a rendering nobody wanted the line.
        if render.is_none() && !self.dirty.replace(true) {
            self.wake();
        }
    }

    fn header<'a>(&'a self, route: &'a Route, target: &Target, severity: u8, structured_data: &'a [u8]) -> Header<'a> {
        let hostname = self.targets.named_host.as_deref();
        Header { facility: target.facility, severity, hostname, tag: &route.tag, pid: self.pid, structured_data }
    }

    fn wake(&self) {
        if let Some(waker) = self.flusher.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// False: the rest of a line still waits for room.
    fn flush(&self) -> bool {
        self.dirty.set(false);
        self.state.try_borrow_mut().is_ok_and(|mut state| state.sender.flush(&self.targets))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.flush();
        // The task ends when it finds the logger gone.
        self.wake();
    }
}

/// Starts this worker's share of the tasks that send what is in rings.
fn forward_rings(targets: &Arc<Targets>) {
    let (worker, workers) = (usize::from(rt::worker()), rt::workers());
    for (ring, content) in targets.rings.iter().enumerate().filter(|(ring, _)| ring % workers.max(1) == worker) {
        for server in 0..content.servers() {
            rt::spawn(rt::Class::Normal, rt::NO_TAG, ring::forward(Arc::clone(targets), ring, server));
        }
    }
}

/// Sends what each turn has left, for as long as the logger lives.
async fn flush_turns(logger: Weak<Inner>) {
    let mut retry = rt::Timer::new();
    poll_fn(|cx| {
        let Some(inner) = logger.upgrade() else { return Poll::Ready(()) };
        let is_new = inner.flusher.borrow().as_ref().is_none_or(|known| !known.will_wake(cx.waker()));
        if is_new {
            *inner.flusher.borrow_mut() = Some(cx.waker().clone());
        }
        let expired = retry.poll_expired(cx).is_ready();
        if inner.dirty.get() || expired {
            let done = inner.flush();
            retry.arm((!done).then(|| rt::now() + RETRY));
            if !done && retry.poll_expired(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    })
    .await;
}

/// Remembers the time zone's offset for the quarters of an hour that were asked for lately; zones change it at the start
/// of one.
#[derive(Debug, Default)]
struct Zone {
    known: [Option<(i64, i32)>; 4],
}

impl Zone {
    fn offset(&mut self, seconds: i64) -> i32 {
        let quarter = seconds.div_euclid(900);
        let known = &mut self.known[quarter.rem_euclid(4) as usize];
        match known {
            Some((same, offset)) if *same == quarter => *offset,
            _ => {
                let offset = rt::local_offset(seconds);
                *known = Some((quarter, offset));
                offset
            }
        }
    }
}
