//! A worker's log: gathers the lines of a turn and has them sent when it ends. Must never wait, nor fail towards those who
//! log.

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
use wire::syslog::relay::{self, Given};
use wire::syslog::{Header, Timestamp};

use super::sender::Sender;
use super::targets::{Relay, Targets};
use super::telemetry::RecordHead;
use crate::routes::{Destination, LogRoute, LogRoutes, Target};
use crate::telemetry::nanoseconds;

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
    zone: Zone,
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
    sender: Sender,
    /// What keys of lines are worked out in.
    arena: Bump,
    /// The address of the sender of a message that is passed on.
    source: Vec<u8>,
}

/// What a line says.
#[derive(Clone, Copy)]
enum Wording<'a> {
    /// What a format makes of the record.
    Format(&'a LogFormat),
    /// Why a connection failed.
    Reason(&'a str),
    /// A sentence.
    Text(&'a str),
}

/// A line before it is known who gets it.
#[derive(Default)]
struct Line<'a> {
    /// What it says; `None`: nothing, unless a profile does.
    wording: Option<Wording<'a>>,
    /// What it may tell; none for sentences.
    record: Option<&'a Record<'a>>,
    context: Option<&'a Context<'a>>,
    /// The profile that a rule has chosen.
    profile: Option<&'a LogProfile>,
    /// The span of the stream that it tells of.
    span: Option<SpanContext>,
}

/// How a line looks to one target.
struct Chosen<'a> {
    wording: Wording<'a>,
    structured_data: Option<&'a LogFormat>,
    tag: &'a str,
}

impl Chosen<'_> {
    /// What its text is made from, as addresses: where these are the same, the text is.
    fn key(&self) -> (*const u8, Option<*const u8>) {
        let wording = match self.wording {
            Wording::Format(format) => std::ptr::from_ref(format).cast(),
            Wording::Reason(text) | Wording::Text(text) => text.as_ptr(),
        };
        (wording, self.structured_data.map(|format| std::ptr::from_ref(format).cast()))
    }
}

impl Line<'_> {
    fn render(&self, chosen: &Chosen<'_>, number: u32, text: &mut Text) {
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

/// What a line shows beside its record.
#[derive(Clone, Copy, Default)]
pub struct Shown<'a> {
    /// The profile that a rule chose, by its index: it counts for all targets.
    pub profile: Option<usize>,
    /// The level that a rule chose.
    pub level: Option<LogLevel>,
    /// What its expressions see.
    pub context: Option<&'a Context<'a>>,
    /// The span of the stream, for log records.
    pub span: Option<SpanContext>,
}

impl Logger {
    /// For the current worker, which gets a task that sends at the end of each turn.
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

    /// Where the lines of a proxy go in the newest configuration, or those of the process. It locks: who serves a session asks that one
    /// for its own.
    pub(super) fn newest(&self, proxy: Option<usize>) -> Option<Arc<LogRoute>> {
        let routes = self.inner.targets.newest();
        proxy.map_or(Some(&routes.process), |index| routes.proxy(index)).cloned()
    }

    /// Whether a message to the log of that proxy, or of the process, goes anywhere.
    pub fn has_targets(&self, proxy: Option<usize>) -> bool {
        self.newest(proxy).is_some_and(|route| route.is_wanted())
    }

    /// A record that tells what is the same for all lines of a frontend: process, host, limit, how many lines there were,
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

    /// The name of this machine.
    pub fn hostname(&self) -> &str {
        &self.inner.targets.hostname
    }

    /// Seconds that local time is ahead of UTC at a point of the calendar.
    pub fn local_offset(&self, seconds: i64) -> i32 {
        self.inner.zone.offset(seconds)
    }

    /// Logs traffic of a frontend, as its options want it. The counter of lines is filled in here.
    pub fn traffic(&self, route: &LogRoute, verdict: Verdict, record: &Record<'_>, shown: Shown<'_>) {
        let lines = &route.lines;
        let by_rule = matches!(record.origin, Origin::Rule(_));
        let wording = match (verdict, &lines.error) {
            (Verdict::Normal, _) if lines.dontlog_normal && !by_rule => return,
            (Verdict::Invalid, Some(format)) => Some(Wording::Format(format)),
            // Only valid requests have connected anywhere.
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

    /// Logs a connection of a frontend that failed before anything was served: in `error-log-format`, else as
    /// configuration manual's section 8.2.5 has it, with `reason`.
    pub fn connection_error(&self, route: &LogRoute, record: &Record<'_>, context: Option<&Context<'_>>, reason: &str) {
        let lines = &route.lines;
        let level = if lines.separate_errors { LogLevel::Err } else { LogLevel::Info };
        let wording = lines.error.as_ref().map_or(Wording::Reason(reason), Wording::Format);
        let line = Line { wording: Some(wording), record: Some(record), context, ..Line::default() };
        self.inner.send(route, level, &line);
    }

    /// Sends a message to the targets of a proxy, or to those of the process, as the newest configuration has them.
    pub fn message(&self, proxy: Option<usize>, level: LogLevel, text: &str) {
        if let Some(route) = self.newest(proxy) {
            self.say(&route, level, text);
        }
    }

    /// Sends a message about a session to the targets of a proxy, as the session's configuration has them.
    pub fn message_of(&self, routes: &LogRoutes, proxy: usize, level: LogLevel, text: &str) {
        match routes.proxy(proxy) {
            Some(route) => self.say(route, level, text),
            // It came later.
            None => self.message(Some(proxy), level, text),
        }
    }

    /// Sends a message to targets.
    pub fn say(&self, route: &LogRoute, level: LogLevel, text: &str) {
        self.inner.send(route, level, &Line { wording: Some(Wording::Text(text)), ..Line::default() });
    }

    /// Passes a received message on, by a relay. `source`: where it came from; `None`: from this host.
    pub fn relay(&self, relay: usize, bytes: &[u8], source: Option<IpAddr>) {
        let inner = &self.inner;
        let Some(relay) = inner.targets.relays.get(relay) else { return };
        let message = if relay.unparsed { Message::opaque(bytes) } else { Message::parse(bytes) };
        let Some(message) = message else { return };
        inner.targets.count_received();
        inner.relay(relay, &message, source);
    }

    /// Sends what waits, before the end of the turn. False: the rest of a line still waits for room.
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
            if is_first && self.targets.tap.has_readers() {
                self.targets.tap.append(route.owner, &text.line);
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
        // Without a rendering no target wanted the line.
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
            // Writing to a vector does not fail.
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
            let given = Given { facility: target.facility, severity, strategy: relay.strategy, source };
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

    /// How a line looks to a target: its profile may say something else than the proxy. `None`: it does not get it.
    fn choose<'a>(route: &'a LogRoute, target: &Target, line: &Line<'a>) -> Option<Chosen<'a>> {
        let Some(record) = line.record else {
            return Some(Chosen { wording: line.wording?, structured_data: None, tag: &route.tag });
        };
        let usual = route.lines.structured_data.as_ref();
        let profile = line.profile.or_else(|| route.settings.profiles.get(target.profile?));
        let Some(profile) = profile else {
            return Some(Chosen { wording: line.wording?, structured_data: usual, tag: &route.tag });
        };
        let tag = profile.tag.as_deref().unwrap_or(&route.tag);
        match profile.on(record.origin.step()) {
            Some(step) if step.drop => None,
            Some(step) => {
                let wording = step.format.as_ref().map(Wording::Format).or(line.wording)?;
                Some(Chosen { wording, structured_data: step.structured_data.as_ref().or(usual), tag })
            }
            None => Some(Chosen { wording: line.wording?, structured_data: usual, tag }),
        }
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
