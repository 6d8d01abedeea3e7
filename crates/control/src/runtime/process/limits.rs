//! `set maxconn frontend`, `set maxconn global` and `set rate-limit` (management manual, section 9.3). Must never close a
//! connection.

use std::num::IntErrorKind;

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Run};
use engine::worker::Worker;

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
    Command::new(
        "set rate-limit",
        "set rate-limit <setting> <value>",
        "change a rate limiting value",
        Run::Now(rate_limit),
    )
    .at(RuntimeLevel::Admin),
];

/// The settings of `set rate-limit`, as HAProxy lists them.
const RATE_LIMITS: &str = "'set rate-limit' only supports :
   - 'connections global' to set the per-process maximum connection rate
   - 'sessions global' to set the per-process maximum session rate
   - 'ssl-sessions global' to set the per-process maximum SSL session rate
   - 'http-compression global' to set the per-process maximum compression speed in kB/s
";

fn frontend(call: &mut Call<'_, Worker>) {
    if call.word(3).is_empty() {
        call.refuse("A frontend name is expected.");
        return;
    }
    let shared = &call.state.process;
    let Some(proxy) = super::frontends::find(call.generation, call.word(3)) else {
        call.refuse("No such frontend.");
        return;
    };
    match read_limit(call.word(4), "Integer value expected.") {
        Ok(most) => shared.live.proxies[proxy.index].frontend_gate().set_bound(most),
        Err(sentence) => call.refuse(sentence),
    }
}

/// Parses a limit. Negative and too large numbers are out of range; `otherwise` is the message for an invalid number.
fn read_limit(written: &str, otherwise: &'static str) -> Result<u32, &'static str> {
    const OUT_OF_RANGE: &str = "Value out of range.";
    match written.parse::<i64>() {
        Ok(number) => u32::try_from(number).map_err(|_| OUT_OF_RANGE),
        Err(error) if matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => {
            Err(OUT_OF_RANGE)
        }
        Err(_) => Err(otherwise),
    }
}

fn rate_limit(call: &mut Call<'_, Worker>) {
    let process = &call.state.process.live.process;
    let throttle = match (call.word(2), call.word(3)) {
        ("connections", "global") => process.connection_throttle(),
        ("sessions", "global") => process.session_throttle(),
        ("ssl-sessions", "global") => process.tls_session_throttle(),
        ("http-compression", "global") => {
            return match read_limit(call.word(4), "Expects an integer value.") {
                Ok(limit) => process.compression.set_rate(limit),
                Err(sentence) => call.refuse(sentence),
            };
        }
        _ => return call.refuse(RATE_LIMITS),
    };
    match read_limit(call.word(4), "Expects an integer value.") {
        Ok(limit) => throttle.set_limit(limit),
        Err(sentence) => call.refuse(sentence),
    }
}

fn global(call: &mut Call<'_, Worker>) {
    let shared = &call.state.process;
    match read_limit(call.word(3), "Expects an integer value.") {
        Ok(most) if most <= call.generation.program.global.maxconn => shared.live.process.gate().set_bound(most),
        Ok(_) => call.refuse("Value out of range."),
        Err(sentence) => call.refuse(sentence),
    }
}
