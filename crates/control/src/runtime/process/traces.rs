//! `trace`, `show trace` (management manual, section 9.3). Must never report an event.

use config::spec::RuntimeLevel;
use live::trace::Reply;

use super::super::{Call, Command, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("show trace", "show trace [<module>]", "show live tracing state", Run::Now(show_trace)),
    Command::new(
        "trace",
        "trace [<module>|0] [cmd [args...]]",
        "manage live tracing (empty to list, 0 to stop all)",
        Run::Now(trace),
    )
    .at(RuntimeLevel::Operator),
];

fn show_trace(call: &mut Call<'_, Worker>) {
    if !call.word(2).is_empty() && !call.permits(RuntimeLevel::Operator) {
        return;
    }
    let sinks = call.state.process.log_targets.trace_sinks();
    let reply = call.state.process.live.traces.show(call.word(2), &sinks);
    answer(call, reply);
}

fn trace(call: &mut Call<'_, Worker>) {
    let sinks = call.state.process.log_targets.trace_sinks();
    let find = |name: &str| sinks.iter().find(|(known, ..)| known == name).map(|(_, sink, _)| *sink);
    let words: Vec<&str> = call.words.iter().skip(1).map(String::as_str).collect();
    let reply = call.state.process.live.traces.command(&words, &find, &sinks);
    answer(call, reply);
}

fn answer(call: &mut Call<'_, Worker>, reply: Reply) {
    match reply {
        Reply::Done => {}
        Reply::Text(text) => call.answer.push(text),
        Reply::Refused(text) => call.refuse(&text),
    }
}
