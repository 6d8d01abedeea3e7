//! Reports traced events. Must never cost more than a check of a flag while the event's source is inactive.

use expression::sample::Sink;
use live::trace::{Event, Level, Subject, TraceSink};

use super::{Live, Targets, Worker};
use policy::program::Program;

/// Starts the traces of a configuration that has been validated.
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

/// Restarts the traces if those of the next configuration differ; all runtime settings are reset.
pub(crate) fn begin_anew(former: &Program, next: &Program, live: &Live, targets: &Targets) {
    if former.traces != next.traces {
        live.traces.reset();
        begin(next, live, targets);
    }
}

impl Worker {
    /// Reports an event if a trace includes it. `subject` and `text` are called only while its source is active.
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
