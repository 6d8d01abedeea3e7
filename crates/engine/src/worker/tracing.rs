//! The reporting of traced events. Must never cost more than a look at a flag while the event's source is off.

use expression::sample::Sink;
use live::trace::{Event, Level, Subject, TraceSink};

use super::{Live, Targets, Worker};
use policy::program::Program;

/// Begins the traces of the configuration, which has been checked.
pub(crate) fn begin(program: &Program, live: &Live, targets: &Targets) {
    if program.traces.is_empty() {
        return;
    }
    let sinks = targets.trace_sinks();
    let find = |name: &str| sinks.iter().find(|(known, ..)| known == name).map(|(_, sink, _)| *sink);
    for line in &program.traces {
        let words: Vec<&str> = line.iter().map(|word| &**word).collect();
        live.traces.command(&words, &find, &sinks);
    }
}

/// Begins those of a configuration that follows another one, if they are others: all that was set before is forgotten.
pub(crate) fn begin_anew((former, next): (&Program, &Program), live: &Live, targets: &Targets) {
    if former.traces != next.traces {
        live.traces.reset();
        begin(next, live, targets);
    }
}

impl Worker {
    /// An event happens: it is reported where a trace wants it. `subject` and `text` are asked for only while its source is active.
    #[inline]
    pub fn trace(
        &self,
        event: &Event,
        level: Level,
        subject: impl FnOnce() -> Subject,
        text: impl FnOnce() -> (String, String),
    ) {
        if self.process.live.traces.is_active(event.source) {
            self.report(event, level, subject(), text);
        }
    }

    #[cold]
    #[inline(never)]
    fn report(&self, event: &Event, level: Level, subject: Subject, text: impl FnOnce() -> (String, String)) {
        let subject = Subject { thread: self.id as u64 + 1, ..subject };
        let Some((sink, details)) = self.process.live.traces.note(event, level, &subject) else { return };
        let sink = match sink {
            TraceSink::None => return,
            TraceSink::Descriptor(number) => Sink::Descriptor(i32::from(number)),
            TraceSink::Ring(ring) => Sink::Ring(ring as usize),
        };
        let (what, more) = text();
        let source = live::trace::TABLE[event.source as usize].name;
        let mut line = format!("[{:02}|{source}|{}|{}] {what}", self.id, level as u8, event.name);
        if details && !more.is_empty() {
            line.push_str(" : ");
            line.push_str(&more);
        }
        self.process.log_targets.tell(sink, &config::text::to_bytes(&line));
    }
}
