//! `show info` (management manual, section 9.3). Must never gather a value itself.

use std::fmt::Write as _;

use super::super::{Call, Command, Pending, Run};
use crate::field::{Form, Value, describe, json, typed};
use crate::statistics::process::{ProcessInfo, ROWS, look};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show info",
    "show info [desc|json|typed|float]*",
    "report information about the running process",
    Run::Gradual(show_info),
)];

fn show_info<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let here = engine::on_every_worker(&call.state.process, look).await;
        print(call, &here);
        Ok(())
    })
}

fn print(call: &mut Call<'_, Worker>, here: &[(u64, u64)]) {
    let has = |wanted: &str| call.words.iter().skip(2).any(|word| word == wanted);
    let (desc, fractions) = (has("desc"), has("float"));
    let form = match (has("json"), has("typed")) {
        (true, _) => Form::Json,
        (_, true) => Form::Typed,
        _ => Form::Plain,
    };
    let info = ProcessInfo::gather(call.state, &call.generation.program, here, fractions);
    let rows = ROWS.iter().enumerate().map(|(at, row)| (at, row, (row.value)(&info)));
    let mut first = true;
    for (at, row, value) in rows.filter(|(_, _, value)| *value != Value::None) {
        let field = &row.field_of(&value);
        match form {
            Form::Plain => {
                let _ = write!(call.answer, "{}: {value}", field.name);
                describe(call.answer, field, desc);
            }
            Form::Typed => typed(call.answer, "", at, field, &value, desc),
            Form::Json => {
                call.answer.push(if first { "[{" } else { ",{" });
                json(call.answer, at, field, &value);
                call.answer.push("}");
            }
        }
        first = false;
    }
    if form == Form::Json {
        call.answer.push("]\n");
    }
}

/// Returns the same names and values for a script on this worker; tasks and buffers are those of this worker only.
pub fn information() -> Vec<(String, String)> {
    let Some(worker) = rt::local::<Worker>() else { return Vec::new() };
    let here = [look(&worker)];
    let generation = worker.generation();
    let info = ProcessInfo::gather(&worker, &generation.program, &here, false);
    let rows = ROWS.iter().map(|row| (row.field.name, (row.value)(&info)));
    rows.filter(|(_, value)| *value != Value::None).map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}
