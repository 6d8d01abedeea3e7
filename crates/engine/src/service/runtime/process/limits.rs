//! `set maxconn frontend` and `set maxconn global` (management manual, section 9.3). Must never send anybody away.

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Run};
use crate::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "set maxconn frontend",
        "set maxconn frontend <frontend> <value>",
        "change a frontend's maxconn setting",
        Run::Now(frontend),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "set maxconn global",
        "set maxconn global <value>",
        "change the per-process maxconn setting",
        Run::Now(global),
    )
    .at(RuntimeLevel::Admin),
];

fn frontend(call: &mut Call<'_, Worker>) {
    if call.word(3).is_empty() {
        call.refuse("A frontend name is expected.");
        return;
    }
    let shared = &call.state.shared;
    let mut proxies = shared.program.proxies.iter().filter(|proxy| proxy.frontend.is_some());
    let Some(proxy) = proxies.find(|proxy| *proxy.name == *call.word(3)) else {
        call.refuse("No such frontend.");
        return;
    };
    match call.word(4).parse::<u32>() {
        Ok(most) => shared.live.proxies[proxy.index].frontend_gate().set_bound(most),
        Err(_) => call.refuse("Integer value expected."),
    }
}

fn global(call: &mut Call<'_, Worker>) {
    let shared = &call.state.shared;
    match call.word(3).parse::<u32>() {
        Ok(most) if most <= shared.program.global.maxconn => shared.live.process.gate().set_bound(most),
        Ok(_) => call.refuse("Value out of range."),
        Err(_) => call.refuse("Expects an integer value."),
    }
}
