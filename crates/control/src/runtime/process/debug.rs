//! `debug dev …`: what helps to find faults of an installation (management manual, section 9.3). Must never be able to end
//! the process.

use config::spec::{LogLevel, RuntimeLevel};

use super::super::{Call, Command, Mode, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] =
    &[Command::new("debug dev log", "debug dev log [msg] ...", "send this msg to global logs", Run::Now(log))
        .at(RuntimeLevel::Admin)
        .in_mode(Mode::Expert)];

/// Sends the words to the logs of the process.
fn log(call: &mut Call<'_, Worker>) {
    let text = call.words.get(3..).unwrap_or_default().join(" ");
    call.state.logger.message(None, LogLevel::Info, &text);
    // The reader of the answer may count on the line, even if the process is killed then.
    call.state.logger.flush();
}
