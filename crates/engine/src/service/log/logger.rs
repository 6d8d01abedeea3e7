//! A worker's log: buffers the lines of an event-loop iteration and sends them at its end. Must never wait, nor report errors to
//! the callers that log.

use base::moment::WallTime;
use bumpalo::Bump;
use config::spec::LogLevel;
use expression::log_format::{LogFormat, connection_error};
use expression::record::{Origin, Record};
use expression::sample::Context;
use policy::program::LogProfile;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::Write as _;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use wire::otlp::SpanContext;
use wire::syslog::message::Message;
use wire::syslog::relay::{self, RelayValues};
use wire::syslog::{Header, Timestamp};

use super::sender::Sender;
use super::targets::{Relay, Targets};
use super::telemetry::RecordHead;
use crate::routes::{Destination, LogRoute, LogRoutes, Target};
use crate::telemetry::nanoseconds;

/// Delay before the rest of a partially written line is retried.
const RETRY: Duration = Duration::from_millis(10);

/// One worker's log. Create it on its worker, after the process has daemonized: lines contain its PID.
#[derive(Debug)]
pub struct Logger {
    inner: Rc<Inner>,
}

#[derive(Debug)]
struct Inner {
    targets: Arc<Targets>,
    pid: u32,
    zone: Zone,
    state: RefCell<State>,
    /// Lines were added since the last flush.
    dirty: Cell<bool>,
    /// The task that flushes.
    flusher: RefCell<Option<Waker>>,
}

/// Outcome of a stream, as far as its log line depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No error, timeout, retry or redispatch, and a status below 500.
    Normal,
    /// One of these occurred.
    Failed,
    /// There was no valid request.
    Invalid,
}

/// A rendered line.
#[derive(Debug, Default)]
struct Text {
    line: Vec<u8>,
    /// Structured data of RFC 5424.
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
    sender: Sender,
    /// Memory for evaluating the keys of lines.
    arena: Bump,
    /// Sender address of a relayed message.
    source: Vec<u8>,
}

/// Source of a line's text.
#[derive(Clone, Copy)]
enum Wording<'a> {
    /// A format that is rendered with the record.
    Format(&'a LogFormat),
    /// The reason of a failed connection.
    Reason(&'a str),
    /// A fixed text.
    Text(&'a str),
}

/// A line, independent of its targets.
#[derive(Default)]
struct Line<'a> {
    /// Source of its text; `None`: only a profile can define one.
    wording: Option<Wording<'a>>,
    /// Values for formats; `None` for fixed texts.
    record: Option<&'a Record<'a>>,
    context: Option<&'a Context<'a>>,
    /// The profile that a rule has chosen.
    profile: Option<&'a LogProfile>,
    /// The span of its stream.
    span: Option<SpanContext>,
}

/// Text, structured data and tag of a line for one target.
struct TargetText<'a> {
    wording: Wording<'a>,
    structured_data: Option<&'a LogFormat>,
    tag: &'a str,
}

impl TargetText<'_> {
    /// Returns the addresses of the text's sources: equal keys mean equal text.
    fn key(&self) -> (*const u8, Option<*const u8>) {
        let wording = match self.wording {
            Wording::Format(format) => std::ptr::from_ref(format).cast(),
            Wording::Reason(text) | Wording::Text(text) => text.as_ptr(),
        };
        (wording, self.structured_data.map(|format| std::ptr::from_ref(format).cast()))
    }
}

impl Line<'_> {
    fn render(&self, chosen: &TargetText<'_>, number: u32, text: &mut Text) {
        let record = Record { log_counter: number, ..self.record.copied().unwrap_or_default() };
        match chosen.wording {
            Wording::Format(format) => format.render_with(&record, self.context, &mut text.line),
            Wording::Reason(reason) => connection_error(&record, reason, &mut text.line),
            Wording::Text(sentence) => text.line.extend_from_slice(sentence.as_bytes()),
        }
        if let Some(format) = chosen.structured_data {
            format.render_with(&record, self.context, &mut text.structured_data);
        }
    }
}

/// Settings of a line apart from its record.
#[derive(Clone, Copy, Default)]
pub struct LineSettings<'a> {
    /// Index of the profile that a rule chose, for all targets.
    pub profile: Option<usize>,
    /// Level that a rule chose.
    pub level: Option<LogLevel>,
    /// Evaluation context for expressions.
    pub context: Option<&'a Context<'a>>,
    /// Span of the stream, for log records.
    pub span: Option<SpanContext>,
}

impl Logger {
    /// Creates the log of the current worker, and starts its task that sends at the end of each iteration.
    pub fn new(targets: Arc<Targets>) -> Self {
        let sender = Sender::new();
        let state =
            State { text: Text::default(), now: Timestamp::default(), sender, arena: Bump::new(), source: Vec::new() };
        let inner = Rc::new(Inner {
            targets,
            pid: std::process::id(),
            zone: Zone::default(),
            state: RefCell::new(state),
            dirty: Cell::new(false),
            flusher: RefCell::default(),
        });
        rt::spawn(rt::Class::Normal, rt::NO_TAG, flush_turns(Rc::downgrade(&inner)));
        inner.targets.sinks.forward(rt::worker().into());
        Self { inner }
    }

    /// Returns the targets of a proxy, or of the process, in the newest configuration. It takes a lock: sessions use the targets
    /// of their own configuration.
    pub(super) fn newest(&self, proxy: Option<usize>) -> Option<Arc<LogRoute>> {
        let routes = self.inner.targets.newest();
        proxy.map_or(Some(&routes.process), |index| routes.proxy(index)).cloned()
    }

    /// Whether the proxy, or the process, has any log target.
    pub fn has_targets(&self, proxy: Option<usize>) -> bool {
        self.newest(proxy).is_some_and(|route| route.is_wanted())
    }

    /// Returns a record with the values that are common to all lines of a frontend: PID, host name, request limit, line counter,
    /// and the time zone at that date.
    pub fn record<'r>(&'r self, route: &'r LogRoute, accept_date: WallTime) -> Record<'r> {
        Record {
            log_counter: route.count(),
            pid: self.inner.pid,
            hostname: &self.inner.targets.hostname,
            accept_date,
            local_offset: self.local_offset(accept_date.seconds),
            request_limit: route.settings.request_limit,
            ..Record::default()
        }
    }

    /// Returns the name of this machine.
    pub fn hostname(&self) -> &str {
        &self.inner.targets.hostname
    }

    /// Returns the offset of local time from UTC at a time, in seconds.
    pub fn local_offset(&self, seconds: i64) -> i32 {
        self.inner.zone.offset(seconds)
    }

    /// Logs traffic of a frontend, according to its options. The line counter is set here.
    pub fn traffic(&self, route: &LogRoute, verdict: Verdict, record: &Record<'_>, shown: LineSettings<'_>) {
        let lines = &route.lines;
        let by_rule = matches!(record.origin, Origin::Rule(_));
        let wording = match (verdict, &lines.error) {
            (Verdict::Normal, _) if lines.dontlog_normal && !by_rule => return,
            (Verdict::Invalid, Some(format)) => Some(Wording::Format(format)),
            // Without a valid request, there is no default format.
            (Verdict::Invalid, None) if lines.format.is_default() => None,
            _ => Some(Wording::Format(&lines.format)),
        };
        let failed = verdict != Verdict::Normal && lines.separate_errors;
        let level = shown.level.unwrap_or(if failed { LogLevel::Err } else { LogLevel::Info });
        let record = Record { partial: lines.as_soon_as_possible, ..*record };
        let profile = shown.profile.and_then(|index| route.settings.profiles.get(index));
        let line = Line { wording, record: Some(&record), context: shown.context, profile, span: shown.span };
        self.inner.send(route, level, &line);
    }

    /// Logs a connection that failed before anything was served: in `error-log-format`, else as in the configuration manual's
    /// section 8.2.5, with `reason`.
    pub fn connection_error(&self, route: &LogRoute, record: &Record<'_>, context: Option<&Context<'_>>, reason: &str) {
        let lines = &route.lines;
        let level = if lines.separate_errors { LogLevel::Err } else { LogLevel::Info };
        let wording = lines.error.as_ref().map_or(Wording::Reason(reason), Wording::Format);
        let line = Line { wording: Some(wording), record: Some(record), context, ..Line::default() };
        self.inner.send(route, level, &line);
    }

    /// Sends a message to the targets of a proxy, or to those of the process, in the newest configuration.
    pub fn message(&self, proxy: Option<usize>, level: LogLevel, text: &str) {
        if let Some(route) = self.newest(proxy) {
            self.say(&route, level, text);
        }
    }

    /// Sends a message about a session to the targets of a proxy in the session's configuration.
    pub fn message_of(&self, routes: &LogRoutes, proxy: usize, level: LogLevel, text: &str) {
        match routes.proxy(proxy) {
            Some(route) => self.say(route, level, text),
            // The proxy was added after that configuration.
            None => self.message(Some(proxy), level, text),
        }
    }

    /// Sends a message to targets.
    pub fn say(&self, route: &LogRoute, level: LogLevel, text: &str) {
        self.inner.send(route, level, &Line { wording: Some(Wording::Text(text)), ..Line::default() });
    }

    /// Forwards a message received by a relay. `source`: the sender's host; `None`: this host.
    pub fn relay(&self, relay: usize, bytes: &[u8], source: Option<IpAddr>) {
        let inner = &self.inner;
        let Some(relay) = inner.targets.relays.get(relay) else { return };
        let message = if relay.unparsed { Message::opaque(bytes) } else { Message::parse(bytes) };
        let Some(message) = message else { return };
        inner.targets.count_received();
        inner.relay(relay, &message, source);
    }

    /// Sends buffered lines before the end of the iteration. Returns false if the rest of a line could not be written yet.
    pub fn flush(&self) -> bool {
        self.inner.flush()
    }
}

impl Inner {
    fn send(&self, route: &LogRoute, level: LogLevel, line: &Line<'_>) {
        let Ok(mut state) = self.state.try_borrow_mut() else { return };
        let State { text, now, sender, arena, .. } = &mut *state;
        let mut rendered = None;
        let mut count = None;
        for target in &route.targets {
            let Some(chosen) = Self::choose(route, target, line) else { continue };
            let Some(severity) = target.severity(level) else { continue };
            if rendered.is_none() {
                let wall = rt::wall();
                now.set(wall.seconds, wall.nanos, self.zone.offset(wall.seconds));
            }
            let is_first = rendered.is_none();
            // Most targets get the same text.
            if rendered.replace(chosen.key()) != Some(chosen.key()) {
                let number = *count.get_or_insert_with(|| line.record.map_or(0, |_| route.count_line()));
                text.clear();
                line.render(&chosen, number, text);
            }
            if is_first && self.targets.tap.is_used() {
                self.targets.tap.take(route.owner, line.record, &text.line);
            }
            let chosen_sink;
            let sink = match &target.destination {
                Destination::Sink(sink) => sink,
                Destination::Backend(backend) => {
                    chosen_sink = self.targets.choose(*backend, &text.line, arena);
                    let Some(sink) = &chosen_sink else {
                        self.targets.count_dropped(1);
                        continue;
                    };
                    sink
                }
            };
            let header = Header {
                facility: target.facility,
                severity,
                hostname: route.settings.named_host.as_deref(),
                tag: chosen.tag,
                pid: self.pid,
                structured_data: &text.structured_data,
            };
            if sink.takes_records() {
                let head = RecordHead {
                    time: nanoseconds(rt::wall()),
                    severity,
                    facility: target.facility,
                    tag: chosen.tag.as_bytes(),
                    structured_data: &text.structured_data,
                    span: line.span,
                };
                let body = &text.line[..text.line.len().min(target.length)];
                sender.push(&self.targets, sink, target.length, |out| head.write(body, out));
                continue;
            }
            sender.push(&self.targets, sink, target.length, |out| {
                target.format.write(&header, now, out);
                out.extend_from_slice(&text.line);
            });
        }
        drop(state);
        // Without a rendered text, no target accepted the line.
        if rendered.is_some() && !self.dirty.replace(true) {
            self.wake();
        }
    }

    fn relay(&self, relay: &Relay, message: &Message<'_>, source: Option<IpAddr>) {
        let Ok(mut state) = self.state.try_borrow_mut() else { return };
        let State { now, sender, arena, source: name, .. } = &mut *state;
        let wall = rt::wall();
        now.set(wall.seconds, wall.nanos, self.zone.offset(wall.seconds));
        name.clear();
        if let Some(source) = source {
            // Writing to a vector cannot fail.
            let _ = write!(name, "{source}");
        }
        let level = LogLevel::NAMES.get(usize::from(message.severity())).map_or(LogLevel::Debug, |row| row.1);
        for (target, format) in &relay.targets {
            let Some(severity) = target.severity(level) else { continue };
            let chosen;
            let sink = match &target.destination {
                Destination::Sink(sink) => sink,
                Destination::Backend(backend) => {
                    chosen = self.targets.choose(*backend, message.text, arena);
                    let Some(sink) = &chosen else {
                        self.targets.count_dropped(1);
                        continue;
                    };
                    sink
                }
            };
            let source = source.map(|_| name.as_slice());
            let given = RelayValues { facility: target.facility, severity, strategy: relay.strategy, source };
            if sink.takes_records() {
                let head = RecordHead {
                    time: nanoseconds(wall),
                    severity,
                    facility: target.facility,
                    tag: message.tag.unwrap_or_default(),
                    structured_data: message.structured_data.unwrap_or_default(),
                    span: None,
                };
                let body = &message.text[..message.text.len().min(target.length)];
                sender.push(&self.targets, sink, target.length, |out| head.write(body, out));
                continue;
            }
            let write = |out: &mut Vec<u8>| relay::write(*format, message, &given, now, out);
            sender.push(&self.targets, sink, target.length, write);
        }
        drop(state);
        if !self.dirty.replace(true) {
            self.wake();
        }
    }

    /// Determines text and tag of a line for a target, from its profile or the proxy. `None`: the target does not get it.
    fn choose<'a>(route: &'a LogRoute, target: &Target, line: &Line<'a>) -> Option<TargetText<'a>> {
        let Some(record) = line.record else {
            return Some(TargetText { wording: line.wording?, structured_data: None, tag: &route.tag });
        };
        let usual = route.lines.structured_data.as_ref();
        let profile = line.profile.or_else(|| route.settings.profiles.get(target.profile?));
        let Some(profile) = profile else {
            return Some(TargetText { wording: line.wording?, structured_data: usual, tag: &route.tag });
        };
        let tag = profile.tag.as_deref().unwrap_or(&route.tag);
        match profile.on(record.origin.step()) {
            Some(step) if step.drop => None,
            Some(step) => {
                let wording = step.format.as_ref().map(Wording::Format).or(line.wording)?;
                Some(TargetText { wording, structured_data: step.structured_data.as_ref().or(usual), tag })
            }
            None => Some(TargetText { wording: line.wording?, structured_data: usual, tag }),
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.flusher.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Sends buffered lines. Returns false if the rest of a line could not be written yet.
    fn flush(&self) -> bool {
        self.dirty.set(false);
        self.state.try_borrow_mut().is_ok_and(|mut state| state.sender.flush(&self.targets))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.flush();
        // The task ends because the logger no longer exists.
        self.wake();
    }
}

/// Flushes at the end of each iteration, while the logger exists.
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

/// Caches the time zone's offset for recent quarters of an hour; offsets change only at their starts.
#[derive(Debug, Default)]
struct Zone {
    known: [Cell<Option<(i64, i32)>>; 4],
}

impl Zone {
    fn offset(&self, seconds: i64) -> i32 {
        let quarter = seconds.div_euclid(900);
        let known = &self.known[quarter.rem_euclid(4) as usize];
        match known.get() {
            Some((same, offset)) if same == quarter => offset,
            _ => {
                let offset = rt::local_offset(seconds);
                known.set(Some((quarter, offset)));
                offset
            }
        }
    }
}
