//! `show dev`, `show libs`: information on the machine and the process for developers (management manual, section 9.3).
//! Must never inspect either: the values were collected at the start.

use std::fmt::Write as _;

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("show dev", "show dev", "show debug info for developers", Run::Now(show_dev)),
    Command::new("show libs", "show libs", "show loaded object files and libraries", Run::Now(show_libs))
        .at(RuntimeLevel::Operator),
];

fn show_dev(call: &mut Call<'_, Worker>) {
    let host = &call.state.process.host;
    let node = call.conversation.anonymous.name(&host.node);
    let _ = write!(call.answer, "{} version {}\nFeatures:\n ", host.product, host.version);
    for (name, present) in config::FEATURES {
        let _ = write!(call.answer, " {}{name}", if *present { '+' } else { '-' });
    }
    call.answer.push("\nPlatform info:\n");
    for (name, value) in &host.platform.machine {
        let _ = writeln!(call.answer, "  {name}: {value}");
    }
    let _ = write!(call.answer, "  node name: {node}\nProcess info:\n  pid: {}\n", host.pid);
    for (name, value) in &host.platform.process {
        let _ = writeln!(call.answer, "  {name}: {value}");
    }
}

fn show_libs(call: &mut Call<'_, Worker>) {
    call.answer.push(&call.state.process.host.platform.libraries);
}
