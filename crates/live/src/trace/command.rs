//! The command `trace`, in the configuration and in the runtime API (management manual, section 9.3): its changes, and
//! the lists that it prints. Must never report an event.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use super::source::{SourceRow, TABLE};
use super::{Action, Criterion, FOLLOWS_NONE, Settings, State, TraceSink, Traces};

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Done,
    /// The requested list, or a message.
    Text(String),
    /// The command was rejected.
    Refused(String),
}

const LEVELS: [(&str, &str); 6] = [
    ("error", "report errors"),
    ("user", "also information useful to the end user"),
    ("proto", "also protocol-level updates"),
    ("state", "also report internal state changes"),
    ("data", "also report data transfers"),
    ("developer", "also report information useful only to the developer"),
];

const VERBOSITIES: [(&str, &str); 6] = [
    ("quiet", "only report basic information with no decoding"),
    ("clean", "only user-friendly stuff, generally suitable for level \"user\""),
    ("minimal", "the same"),
    ("simple", "the same"),
    ("advanced", "the same"),
    ("complete", "the same"),
];

/// Criteria, by number.
pub(super) const CRITERIA: [(Criterion, &str, &str); 9] = [
    (Criterion::Nothing, "nothing", "do not lock on anything"),
    (Criterion::Backend, "backend", "lock on the backend that started the trace"),
    (Criterion::Connection, "connection", "lock on the connection that started the trace"),
    (Criterion::Frontend, "frontend", "lock on the frontend that started the trace"),
    (Criterion::Listener, "listener", "lock on the listener that started the trace"),
    (Criterion::Server, "server", "lock on the server that started the trace"),
    (Criterion::Session, "session", "lock on the session that started the trace"),
    (Criterion::Thread, "thread", "lock on the thread that started the trace"),
    (Criterion::Stream, "stream", "lock on the stream that started the trace"),
];

/// The names of HAProxy's sources for their own criteria, and the corresponding criteria of Weir.
const OWN_CRITERIA: [(&[&str], &str, Criterion); 11] = [
    (&["h1"], "h1s", Criterion::Stream),
    (&["h2"], "h2s", Criterion::Stream),
    (&["h3", "qcm"], "qcs", Criterion::Stream),
    (&["quic"], "qconn", Criterion::Session),
    (&["fcgi"], "fstrm", Criterion::Stream),
    (&["spop"], "spop_strm", Criterion::Stream),
    (&["haterm"], "haterm", Criterion::Stream),
    (&["check"], "check", Criterion::Server),
    (&["applet", "peers"], "applet", Criterion::Session),
    (&["peers"], "peer", Criterion::Session),
    (&["peers"], "peers", Criterion::Session),
];

/// Criteria in the order of the list.
const LISTED: [usize; 9] = [1, 2, 3, 4, 0, 5, 6, 7, 8];

const MENU: &str = "Supported commands:
  event     : list/enable/disable source-specific event reporting
  level     : list/set trace reporting level
  lock      : automatic lock on thread/connection/stream/...
  follow    : passively follow another source's locked pointer (e.g. session)
  pause     : pause and automatically restart after a specific event
  sink      : list/set event sinks
  start     : start immediately or after a specific event
  stop      : stop immediately or after a specific event
  verbosity : list/set trace output verbosity
";

/// The sources that a command applies to.
#[derive(Clone, Copy)]
enum Scope {
    All,
    One(usize),
}

/// The available sinks, each with its description.
pub type Sinks<'a> = &'a [(String, TraceSink, String)];

impl Traces {
    /// Runs the words after `trace`. `find` returns a sink by name; `sinks` is the list of them.
    pub fn command(&self, words: &[&str], find: &dyn Fn(&str) -> Option<TraceSink>, sinks: Sinks<'_>) -> Reply {
        let scope = match words.first().copied() {
            None | Some("") => return Reply::Text(self.menu()),
            Some("0") => {
                for settings in &self.sources {
                    settings.state.store(State::Stopped as u8, Relaxed);
                    settings.locked.store(0, Relaxed);
                }
                self.refresh();
                return Reply::Text("All traces now stopped\n".to_owned());
            }
            Some("all") => Scope::All,
            Some(name) => match source(name) {
                Some(number) => Scope::One(number),
                None => return Reply::Refused(format!("No such trace source '{name}'")),
            },
        };
        let mut rest = &words[1..];
        if rest.is_empty() {
            return Reply::Text(MENU.to_owned());
        }
        while let [keyword, after @ ..] = rest {
            let argument = after.first().copied().unwrap_or_default();
            match self.apply(scope, keyword, argument, find, sinks) {
                Reply::Done => {}
                other => return other,
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.refresh();
        Reply::Done
    }

    fn menu(&self) -> String {
        let mut text = "Supported trace sources and states (.=stopped, w=waiting, R=running) :\n \
                        [.] 0          : not a source, will immediately stop all traces\n \
                        [.] all        : all sources below, only for 'sink', 'level' and 'follow'\n"
            .to_owned();
        self.list_sources(&mut text);
        text
    }

    fn list_sources(&self, text: &mut String) {
        for (settings, row) in self.sources.iter().zip(&TABLE) {
            let _ = writeln!(text, " [{}] {:<10} : {}", sign(settings), row.name, row.doc);
        }
    }

    /// `show trace`: all sources, or one with its events.
    pub fn show(&self, name: &str, sinks: Sinks<'_>) -> Reply {
        let named = |settings: &Settings| {
            let number = settings.sink.load(Relaxed);
            let found = sinks.iter().find(|(_, sink, _)| sink.to_number() == number);
            found.map_or("none", |(name, ..)| name.as_str())
        };
        if name.is_empty() {
            let mut text = "Supported trace sources and states (.=stopped, w=waiting, R=running) :\n".to_owned();
            for (settings, row) in self.sources.iter().zip(&TABLE) {
                let _ = writeln!(
                    text,
                    " [{}] {:<10} -> {} [drp 0]  [{}]",
                    sign(settings),
                    row.name,
                    named(settings),
                    row.doc
                );
            }
            return Reply::Text(text);
        }
        let Some(number) = source(name) else { return Reply::Refused("No such trace source".to_owned()) };
        let (settings, row) = (&self.sources[number], &TABLE[number]);
        let mut text = format!(
            "Trace status for {name}:\n  - sink: {} [0 dropped]\n  - event name   :     report    start    stop    pause\n",
            named(settings)
        );
        for event in row.events {
            let mark = |action| if settings.has(action, 1 << event.bit) { '+' } else { '-' };
            let _ = writeln!(
                text,
                "    {:<12} :        {}        {}        {}       {}",
                event.name,
                mark(Action::Report),
                mark(Action::Start),
                mark(Action::Stop),
                mark(Action::Pause)
            );
        }
        Reply::Text(text)
    }

    fn apply(
        &self,
        scope: Scope,
        keyword: &str,
        argument: &str,
        find: &dyn Fn(&str) -> Option<TraceSink>,
        sinks: Sinks<'_>,
    ) -> Reply {
        let number = match scope {
            Scope::One(number) => Some(number),
            Scope::All if matches!(keyword, "event" | "lock" | "pause" | "start" | "stop" | "verbosity") => {
                return Reply::Refused(format!("'{keyword}' not applicable to meta-source 'all'"));
            }
            Scope::All => None,
        };
        // Lists are those of one source; for `all`, those of the first.
        let shown = number.unwrap_or(0);
        let (settings, row) = (&self.sources[shown], &TABLE[shown]);
        let each = |set: &dyn Fn(&Settings)| match number {
            Some(_) => set(settings),
            None => self.sources.iter().for_each(set),
        };
        match keyword {
            "sink" => match argument {
                "" => return Reply::Text(list_sinks(row, settings, sinks)),
                "none" => each(&|one| one.sink.store(0, Relaxed)),
                name => match find(name) {
                    Some(sink) => each(&|one| one.sink.store(sink.to_number(), Relaxed)),
                    None => return Reply::Refused(format!("No such trace sink '{name}'")),
                },
            },
            "level" => match position(&LEVELS, argument) {
                Some(level) => each(&|one| one.level.store(level, Relaxed)),
                None => return list("trace level", "levels", argument, row, &LEVELS, settings.level.load(Relaxed)),
            },
            "verbosity" => match position(&VERBOSITIES, argument) {
                Some(level) => each(&|one| one.verbosity.store(level, Relaxed)),
                // HAProxy uses this name for the only level of some sources.
                None if argument == "default" => each(&|one| one.verbosity.store(1, Relaxed)),
                None => {
                    let current = settings.verbosity.load(Relaxed);
                    return list("verbosity level", "verbosities", argument, row, &VERBOSITIES, current);
                }
            },
            "lock" => return lock(row, settings, argument),
            "follow" => match argument {
                "none" => each(&|one| one.follow.store(FOLLOWS_NONE, Relaxed)),
                "" => return Reply::Text(self.list_leaders(settings)),
                name => match source(name) {
                    Some(leader) => each(&|one| one.follow.store(leader as u8, Relaxed)),
                    None => return Reply::Refused(format!("No such trace source '{name}'")),
                },
            },
            "event" => return set_events(row, settings, Action::Report, argument),
            "start" => return set_events(row, settings, Action::Start, argument),
            "stop" => return set_events(row, settings, Action::Stop, argument),
            "pause" => return set_events(row, settings, Action::Pause, argument),
            other => return Reply::Refused(format!("Unknown trace keyword '{other}'")),
        }
        Reply::Done
    }

    fn list_leaders(&self, settings: &Settings) -> String {
        let followed = TABLE.get(usize::from(settings.follow.load(Relaxed)));
        let mut text = followed.map_or_else(
            || "Not currently following any other source.\n".to_owned(),
            |row| format!("Currently following source '{}'.\n", row.name),
        );
        text.push_str("Please specify another source to follow, among the following ones:\n [.] none       : follow no other source\n");
        self.list_sources(&mut text);
        text
    }
}

fn source(name: &str) -> Option<usize> {
    // HAProxy has a second name for this source.
    let name = if name == "qmux" { "qcm" } else { name };
    TABLE.iter().position(|row| row.name == name)
}

fn sign(settings: &Settings) -> char {
    match settings.state() {
        State::Stopped => '.',
        State::Waiting => 'w',
        State::Running => 'R',
    }
}

fn position(table: &[(&str, &str)], name: &str) -> Option<u8> {
    table.iter().position(|(known, _)| *known == name).map(|at| at as u8)
}

/// Formats a list of names, the current one with a star; rejects an unknown name.
fn list(what: &str, many: &str, wrong: &str, row: &SourceRow, table: &[(&str, &str)], current: u8) -> Reply {
    let traces = if many == "levels" { "trace levels" } else { "trace verbosities" };
    let mut text = format!("Supported {traces} for source {}:\n", row.name);
    for (at, (name, doc)) in table.iter().enumerate() {
        let star = if at == usize::from(current) { '*' } else { ' ' };
        let _ = writeln!(text, "  {star} {name:<10} : {doc}");
    }
    if wrong.is_empty() { Reply::Text(text) } else { Reply::Refused(format!("No such {what} '{wrong}'. {text}")) }
}

fn list_sinks(row: &SourceRow, settings: &Settings, sinks: Sinks<'_>) -> String {
    let number = settings.sink.load(Relaxed);
    let mut text = format!("Supported sinks for source {} (*=current):\n", row.name);
    let star = |is_current: bool| if is_current { '*' } else { ' ' };
    let _ = writeln!(text, "  {} none       : no sink", star(number == 0));
    for (name, sink, doc) in sinks {
        let _ = writeln!(text, "  {} {name:<10} : {doc}", star(sink.to_number() == number));
    }
    text
}

fn lock(row: &SourceRow, settings: &Settings, argument: &str) -> Reply {
    if argument.is_empty() {
        let mut text = format!("Supported lock-on criteria for source {}:\n", row.name);
        for at in LISTED {
            let (_, name, doc) = CRITERIA[at];
            let star = if at == usize::from(settings.lock.load(Relaxed)) { '*' } else { ' ' };
            let _ = writeln!(text, "  {star} {name:<10} : {doc}");
        }
        return Reply::Text(text);
    }
    let own = OWN_CRITERIA.iter().find(|(_, name, _)| *name == argument).filter(|(of, ..)| of.contains(&row.name));
    let at = match own {
        Some((.., meant)) => CRITERIA.iter().position(|(one, ..)| one == meant),
        None => CRITERIA.iter().position(|(_, name, _)| *name == argument),
    };
    match at {
        Some(at) => {
            settings.lock.store(at as u8, Relaxed);
            settings.locked.store(0, Relaxed);
            Reply::Done
        }
        None => Reply::Refused(format!("Unsupported lock-on criterion '{argument}'")),
    }
}

/// Adds an event to a set, or removes it; `now` is an action instead.
fn set_events(row: &SourceRow, settings: &Settings, action: Action, argument: &str) -> Reply {
    let set = &settings.sets[action as usize];
    let (name, add) = match argument.strip_prefix(['-', '!']) {
        Some(name) => (name, false),
        None => (argument.strip_prefix('+').unwrap_or(argument), true),
    };
    let wait = || {
        // A trace with start events waits for them.
        let state = settings.state();
        if action == Action::Start && set.load(Relaxed) != 0 && state == State::Stopped {
            settings.state.store(State::Waiting as u8, Relaxed);
        } else if action == Action::Start && set.load(Relaxed) == 0 && state == State::Waiting {
            settings.state.store(State::Stopped as u8, Relaxed);
        }
    };
    match name {
        "" => return Reply::Text(list_events(row, settings, action)),
        "now" if action != Action::Report => {
            let state = match action {
                Action::Start => State::Running,
                Action::Pause => State::Waiting,
                Action::Stop | Action::Report => State::Stopped,
            };
            settings.state.store(state as u8, Relaxed);
            settings.locked.store(0, Relaxed);
        }
        "none" => set.store(0, Relaxed),
        "any" => set.store(if add { u64::MAX } else { 0 }, Relaxed),
        name => match row.events.iter().find(|event| event.name == name) {
            Some(event) if add => drop(set.fetch_or(1 << event.bit, Relaxed)),
            Some(event) => drop(set.fetch_and(!(1 << event.bit), Relaxed)),
            None => return Reply::Refused(format!("No such trace event '{name}'")),
        },
    }
    if name != "now" {
        wait();
    }
    Reply::Done
}

fn list_events(row: &SourceRow, settings: &Settings, action: Action) -> String {
    let mut text = format!("Supported events for source {} (+=enabled, -=disabled):\n", row.name);
    if action != Action::Report {
        text.push_str("  - now          : don't wait for events, immediately change the state\n");
    }
    text.push_str("  - none         : disable all event types\n  - any          : enable all event types\n");
    for event in row.events {
        let mark = if settings.has(action, 1 << event.bit) { '+' } else { '-' };
        let _ = writeln!(text, "  {mark} {:<12} : {}", event.name, event.doc);
    }
    text
}
