//! `show activity`, `show threads`, `show errors`: what support asks for (management manual, section 9.3). Must never
//! stop a worker to look at it.

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Run};
use crate::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show startup-logs",
    "show startup-logs",
    "report logs emitted during HAProxy startup",
    Run::Now(show_startup_logs),
)
.at(RuntimeLevel::User)];

fn show_startup_logs(call: &mut Call<'_, Worker>) {
    let text = &call.state.shared.host.startup_logs;
    call.answer.push(text);
    if !text.is_empty() && !text.ends_with('\n') {
        call.answer.push("\n");
    }
}
