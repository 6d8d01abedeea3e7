//! `show cli sockets` (management manual, section 9.3). Must never open one.

use super::super::{Call, Command, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] =
    &[Command::new("show cli sockets", "show cli sockets", "dump list of cli sockets", Run::Now(show_cli_sockets))];

fn show_cli_sockets(call: &mut Call<'_, Worker>) {
    call.answer.push("# socket lvl processes\n");
    for socket in &call.generation.program.runtime.sockets {
        let address = super::address(&socket.bind.address);
        call.answer.push(format!("{address} {} all\n", socket.level.name()));
    }
}
