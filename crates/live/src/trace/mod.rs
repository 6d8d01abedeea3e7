//! Traces: which sources report which events, and to which sink (management manual, section 9.3, "trace"). Must never
//! write a line itself: the caller asks whether an event is reported, and where.

mod command;
mod source;

pub use command::Reply;
pub use source::{Event, SOURCES, Source, SourceRow, TABLE, events};

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The level of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Error,
    User,
    Proto,
    State,
    Data,
    Developer,
}

/// The criterion on which a trace locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Criterion {
    Nothing,
    Backend,
    Connection,
    Frontend,
    Listener,
    Server,
    Session,
    Thread,
    Stream,
}

/// The destination of lines: none, a descriptor (1 and 2), or a ring by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceSink {
    None,
    Descriptor(u8),
    Ring(u32),
}

impl TraceSink {
    const fn to_number(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Descriptor(number) => number as u32,
            Self::Ring(ring) => 3 + ring,
        }
    }

    const fn of_number(number: u32) -> Self {
        match number {
            0 => Self::None,
            1 | 2 => Self::Descriptor(number as u8),
            ring => Self::Ring(ring - 3),
        }
    }
}

/// The objects of an event as non-zero numbers; 0: none of that kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject {
    pub thread: u64,
    pub session: u64,
    pub stream: u64,
    pub listener: u64,
    pub frontend: u64,
    pub backend: u64,
    pub server: u64,
}

impl Subject {
    fn value(&self, criterion: Criterion) -> u64 {
        match criterion {
            Criterion::Nothing => 0,
            Criterion::Backend => self.backend,
            // One connection of a client is one session.
            Criterion::Connection | Criterion::Session => self.session,
            Criterion::Frontend => self.frontend,
            Criterion::Listener => self.listener,
            Criterion::Server => self.server,
            Criterion::Thread => self.thread,
            Criterion::Stream => self.stream,
        }
    }
}

/// The state of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    Stopped,
    Waiting,
    Running,
}

/// The purpose of a set of events: its index in [`Settings::sets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Report,
    Start,
    Stop,
    Pause,
}

/// No source is followed.
const FOLLOWS_NONE: u8 = u8::MAX;

/// The settings of one source.
#[derive(Debug)]
struct Settings {
    state: AtomicU8,
    level: AtomicU8,
    verbosity: AtomicU8,
    sink: AtomicU32,
    lock: AtomicU8,
    follow: AtomicU8,
    sets: [AtomicU64; 4],
    /// The object that the trace is locked on; 0: none yet.
    locked: AtomicU64,
}

impl Default for Settings {
    fn default() -> Self {
        let set = |bits| AtomicU64::new(bits);
        Self {
            state: AtomicU8::new(State::Stopped as u8),
            level: AtomicU8::new(Level::User as u8),
            verbosity: AtomicU8::new(1),
            sink: AtomicU32::new(0),
            lock: AtomicU8::new(Criterion::Nothing as u8),
            follow: AtomicU8::new(FOLLOWS_NONE),
            sets: [set(u64::MAX), set(0), set(0), set(0)],
            locked: AtomicU64::new(0),
        }
    }
}

impl Settings {
    fn state(&self) -> State {
        match self.state.load(Relaxed) {
            0 => State::Stopped,
            1 => State::Waiting,
            _ => State::Running,
        }
    }

    /// Restores the initial settings.
    fn reset(&self) {
        let first = Self::default();
        let bytes = [
            (&self.state, &first.state),
            (&self.level, &first.level),
            (&self.verbosity, &first.verbosity),
            (&self.lock, &first.lock),
            (&self.follow, &first.follow),
        ];
        bytes.into_iter().for_each(|(own, first)| own.store(first.load(Relaxed), Relaxed));
        self.sink.store(first.sink.load(Relaxed), Relaxed);
        self.sets.iter().zip(&first.sets).for_each(|(own, first)| own.store(first.load(Relaxed), Relaxed));
        self.locked.store(0, Relaxed);
    }

    fn has(&self, action: Action, bit: u64) -> bool {
        self.sets[action as usize].load(Relaxed) & bit != 0
    }

    fn criterion(&self) -> Criterion {
        command::CRITERIA[usize::from(self.lock.load(Relaxed))].0
    }
}

/// All sources. Settings are changed by one thread at a time in practice; a reader may see one change before another.
#[derive(Debug, Default)]
pub struct Traces {
    /// The active sources, as bits.
    active: AtomicU32,
    sources: [Settings; SOURCES],
}

impl Traces {
    /// Whether a source may report something: the only cost of an event while traces are off.
    #[inline]
    pub fn is_active(&self, source: Source) -> bool {
        self.active.load(Relaxed) & (1 << source as u8) != 0
    }

    /// Records an event. Returns where to report it, and whether with details; `None`: not reported.
    #[cold]
    pub fn note(&self, event: &Event, level: Level, subject: &Subject) -> Option<(TraceSink, bool)> {
        let (settings, bit) = (&self.sources[event.source as usize], 1 << event.bit);
        if settings.state() == State::Waiting && settings.has(Action::Start, bit) {
            settings.state.store(State::Running as u8, Relaxed);
        }
        let is_own = settings.state() == State::Running && Self::keeps_to(settings, subject);
        let is_shown = (is_own || self.is_followed(settings, subject))
            && level as u8 <= settings.level.load(Relaxed)
            && settings.has(Action::Report, bit);
        let next = match (is_own, settings.has(Action::Stop, bit), settings.has(Action::Pause, bit)) {
            (true, true, _) => Some(State::Stopped),
            (true, false, true) => Some(State::Waiting),
            _ => None,
        };
        if let Some(next) = next {
            settings.state.store(next as u8, Relaxed);
            settings.locked.store(0, Relaxed);
            self.refresh();
        }
        let sink = TraceSink::of_number(settings.sink.load(Relaxed));
        (is_shown && sink != TraceSink::None).then(|| (sink, settings.verbosity.load(Relaxed) > 0))
    }

    /// Whether a running trace includes an event: locks on the first one that has the locked kind of object.
    fn keeps_to(settings: &Settings, subject: &Subject) -> bool {
        let criterion = settings.criterion();
        if criterion == Criterion::Nothing {
            return true;
        }
        let value = subject.value(criterion);
        value != 0
            && match settings.locked.compare_exchange(0, value, Relaxed, Relaxed) {
                Ok(_) => true,
                Err(locked) => locked == value,
            }
    }

    /// Whether the source that this one follows is locked on an object of the event.
    fn is_followed(&self, settings: &Settings, subject: &Subject) -> bool {
        let Some(leader) = self.sources.get(usize::from(settings.follow.load(Relaxed))) else { return false };
        let (criterion, locked) = (leader.criterion(), leader.locked.load(Relaxed));
        leader.state() == State::Running && locked != 0 && subject.value(criterion) == locked
    }

    /// Stops all sources and restores their initial settings.
    pub fn reset(&self) {
        self.sources.iter().for_each(Settings::reset);
        self.refresh();
    }

    /// Recomputes which sources may report something.
    fn refresh(&self) {
        let is_active = |one: &Settings| one.state() != State::Stopped || one.follow.load(Relaxed) != FOLLOWS_NONE;
        let active = self.sources.iter().enumerate().filter(|(_, one)| is_active(one));
        self.active.store(active.fold(0, |set, (number, _)| set | 1 << number), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(traces: &Traces, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(traces.command(&words, &|_| Some(TraceSink::Ring(0)), &[]), Reply::Done, "{line}");
    }

    fn subject(session: u64) -> Subject {
        Subject { session, ..Subject::default() }
    }

    #[test]
    fn an_event_is_reported_while_its_source_runs() {
        let traces = Traces::default();
        let note = |event: &Event, level| traces.note(event, level, &subject(1)).is_some();
        assert!(!traces.is_active(Source::H1));
        run(&traces, "h1 sink buf0 start now");
        assert!(traces.is_active(Source::H1) && !traces.is_active(Source::Session));
        assert!(note(&events::H1_RX_HEADERS, Level::User) && !note(&events::H1_RX_HEADERS, Level::Proto));
        run(&traces, "h1 level data event -rx_headers");
        assert!(!note(&events::H1_RX_HEADERS, Level::User) && note(&events::H1_TX_HEADERS, Level::Data));
        run(&traces, "h1 event none event +rx_headers");
        assert!(note(&events::H1_RX_HEADERS, Level::User) && !note(&events::H1_TX_HEADERS, Level::Data));
        assert!(matches!(traces.command(&["0"], &|_| None, &[]), Reply::Text(_)));
        assert!(!traces.is_active(Source::H1) && !note(&events::H1_RX_HEADERS, Level::User));
        run(&traces, "h1 start now sink none");
    }

    #[test]
    fn a_source_has_criteria_of_its_own_and_all_of_it_is_forgotten() {
        let traces = Traces::default();
        run(&traces, "h1 sink buf0 lock h1s start now");
        let note = |stream| {
            let subject = Subject { stream, session: 9, ..Subject::default() };
            traces.note(&events::H1_RX_HEADERS, Level::User, &subject).is_some()
        };
        assert!(note(1) && !note(2) && note(1), "it keeps to a stream");
        let refused = Reply::Refused("Unsupported lock-on criterion 'h1s'".to_owned());
        assert_eq!(traces.command(&["session", "lock", "h1s"], &|_| None, &[]), refused);
        traces.reset();
        assert!(!traces.is_active(Source::H1) && !note(1));
        run(&traces, "h1 sink buf0 start now");
        assert!(note(1) && note(2), "it keeps to nothing any more");
    }

    #[test]
    fn events_start_pause_and_stop_a_trace_that_keeps_to_one_session() {
        let traces = Traces::default();
        run(&traces, "session sink buf0 lock session start sess_new pause sess_end stop sess_err");
        run(&traces, "h1 sink buf0 follow session");
        let note = |event: &Event, session| traces.note(event, Level::User, &subject(session)).is_some();
        assert!(!note(&events::H1_RX_HEADERS, 1), "nothing is locked yet");
        assert!(note(&events::SESSION_NEW, 1) && !note(&events::SESSION_NEW, 2));
        assert!(note(&events::H1_RX_HEADERS, 1) && !note(&events::H1_RX_HEADERS, 2));
        assert!(!note(&events::SESSION_END, 2) && note(&events::SESSION_END, 1));
        assert!(!note(&events::H1_RX_HEADERS, 1) && !note(&events::SESSION_END, 2), "it waits");
        assert!(note(&events::SESSION_NEW, 2) && note(&events::SESSION_ERR, 2));
        assert!(!note(&events::SESSION_NEW, 3) && !traces.is_active(Source::Session), "it was stopped");
        run(&traces, "h1 follow none");
        assert!(!traces.is_active(Source::H1));
    }
}
