//! The last events of servers, certificates and configurations, for the dashboard. Bounded: [`MOST_ENTRIES`], and
//! [`LONGEST_TEXT`] for each text. Must never decide what is an event, and never read a clock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::WallTime;
use base::text::beginning;

/// Maximum number of entries; the oldest ones are dropped.
pub const MOST_ENTRIES: usize = 1000;
/// Maximum length of a text in bytes. Names are not shortened.
pub const LONGEST_TEXT: usize = 256;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineKind {
    Start,
    Reload,
    Stop,
    ServerUp,
    ServerDown,
    ServerStopping,
    ServerMaintenance,
    /// The end of a maintenance or of a drain.
    ServerReady,
    ServerDrain,
    ServerWeight,
    ServerAdded,
    ServerRemoved,
    ServerEjected,
    /// The end of an ejection.
    ServerRestored,
    /// A backend has no server left.
    BackendDown,
    /// It has one again.
    BackendUp,
    /// A certificate, a CA file or a CRL file was exchanged.
    Certificate,
}

impl TimelineKind {
    /// Every kind with its name.
    pub const ALL: [(Self, &'static str); 17] = [
        (Self::Start, "start"),
        (Self::Reload, "reload"),
        (Self::Stop, "stop"),
        (Self::ServerUp, "server_up"),
        (Self::ServerDown, "server_down"),
        (Self::ServerStopping, "server_stopping"),
        (Self::ServerMaintenance, "server_maint"),
        (Self::ServerReady, "server_ready"),
        (Self::ServerDrain, "server_drain"),
        (Self::ServerWeight, "server_weight"),
        (Self::ServerAdded, "server_added"),
        (Self::ServerRemoved, "server_removed"),
        (Self::ServerEjected, "server_ejected"),
        (Self::ServerRestored, "server_restored"),
        (Self::BackendDown, "backend_down"),
        (Self::BackendUp, "backend_up"),
        (Self::Certificate, "certificate"),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// The cause of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// A health check.
    Check,
    Agent,
    /// Requests: `observe`, `eject-outliers`.
    Traffic,
    /// The runtime API.
    Cli,
    Dashboard,
    /// The statistics page.
    Page,
    Script,
    /// The server that a server tracks.
    Leader,
    Resolver,
    /// The state that an earlier process has left.
    StateFile,
    Acme,
    Process,
}

impl Author {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Agent => "agent",
            Self::Traffic => "traffic",
            Self::Cli => "cli",
            Self::Dashboard => "dashboard",
            Self::Page => "page",
            Self::Script => "script",
            Self::Leader => "leader",
            Self::Resolver => "resolver",
            Self::StateFile => "state-file",
            Self::Acme => "acme",
            Self::Process => "process",
        }
    }
}

/// An event. Empty texts: there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEvent {
    pub kind: TimelineKind,
    pub who: Author,
    /// Name of the proxy; empty: the event is of the process.
    pub proxy: Box<str>,
    pub server: Box<str>,
    /// Name of the certificate or of its file.
    pub name: Box<str>,
    /// The status of a check with its code, or the name of the tracked server.
    pub reason: String,
    /// The text of a check.
    pub detail: String,
    /// A sentence for humans.
    pub text: String,
}

impl TimelineEvent {
    /// Creates an event of the process.
    pub fn of_process(kind: TimelineKind, who: Author, text: impl Into<String>) -> Self {
        let (proxy, server, name) = Default::default();
        let (reason, detail) = Default::default();
        Self { kind, who, proxy, server, name, reason, detail, text: text.into() }
    }

    /// Creates an event of a server.
    pub fn of_server(kind: TimelineKind, who: Author, proxy: &str, server: &str, text: impl Into<String>) -> Self {
        Self { proxy: proxy.into(), server: server.into(), ..Self::of_process(kind, who, text) }
    }
}

/// An entry.
#[derive(Debug, PartialEq, Eq)]
pub struct TimelineEntry {
    /// Its number, from 1.
    pub id: u64,
    pub time: WallTime,
    pub event: TimelineEvent,
}

/// The entries that were recorded; none unless it is on.
#[derive(Debug, Default)]
pub struct Timeline {
    is_on: AtomicBool,
    state: Mutex<TimelineState>,
}

#[derive(Debug, Default)]
struct TimelineState {
    last: u64,
    entries: VecDeque<Arc<TimelineEntry>>,
}

impl Timeline {
    fn lock(&self) -> MutexGuard<'_, TimelineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns it on or off. Returns whether it was on. Turned off, it drops its entries.
    pub fn turn(&self, on: bool) -> bool {
        if !on {
            self.lock().entries = VecDeque::new();
        }
        self.is_on.swap(on, Ordering::Relaxed)
    }

    /// Whether events are recorded.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Records an event, if it is on.
    pub fn record(&self, time: WallTime, mut event: TimelineEvent) {
        if !self.is_on() {
            return;
        }
        for text in [&mut event.reason, &mut event.detail, &mut event.text] {
            text.truncate(beginning(text, LONGEST_TEXT).len());
            text.shrink_to_fit();
        }
        let mut state = self.lock();
        state.last += 1;
        let id = state.last;
        if state.entries.len() == MOST_ENTRIES {
            state.entries.pop_front();
        }
        state.entries.push_back(Arc::new(TimelineEntry { id, time, event }));
    }

    /// Returns the number of the newest entry; 0: there was none.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// Returns the entries after number `since`, oldest first.
    pub fn since(&self, since: u64) -> Vec<Arc<TimelineEntry>> {
        let state = self.lock();
        let at = state.entries.partition_point(|entry| entry.id <= since);
        state.entries.range(at..).map(Arc::clone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_entries_are_kept_with_bounded_texts() {
        let timeline = Timeline::default();
        let event = |text: String| TimelineEvent::of_server(TimelineKind::ServerUp, Author::Check, "b", "s", text);
        timeline.record(WallTime::default(), event("early".to_owned()));
        assert_eq!((timeline.last(), timeline.turn(true), timeline.turn(true)), (0, false, true));
        for number in 0..MOST_ENTRIES + 7 {
            timeline.record(WallTime { seconds: number as i64, nanos: 0 }, event("ü".repeat(number)));
        }
        let all = timeline.since(0);
        assert_eq!((all.len(), all[0].id, all[0].time.seconds), (MOST_ENTRIES, 8, 7));
        assert_eq!((timeline.last(), all[MOST_ENTRIES - 1].id), (1007, 1007));
        assert_eq!((all[0].event.text.len(), all[MOST_ENTRIES - 1].event.text.len()), (14, LONGEST_TEXT));
        let rest: Vec<u64> = timeline.since(1005).iter().map(|entry| entry.id).collect();
        assert_eq!((rest, timeline.since(1007).len(), timeline.since(u64::MAX).len()), (vec![1006, 1007], 0, 0));
        timeline.turn(false);
        assert_eq!((timeline.since(0).len(), timeline.last()), (0, 1007));
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = TimelineKind::ALL.iter().map(|(kind, _)| kind.name()).collect();
        assert_eq!(names.len(), TimelineKind::ALL.len());
    }
}
