//! `dump stats-file` (management manual, sections 9.3 and 9.5): the counters of objects with a `guid`, in the format
//! that a process loads at its start. Must never count anything.

use std::fmt::Write as _;

use policy::program::Proxy;

use super::super::super::{Call, Disconnected, Pending};
use crate::field::Value;
use crate::statistics::{B, Column, F, Kind, L, Object, S, kinds as kinds_of};
use engine::worker::Worker;

/// Returns the persistent columns of these kinds of objects.
fn columns(kinds: u8) -> impl Iterator<Item = &'static Column> {
    crate::statistics::columns().filter(move |column| column.field.tags.ends_with('P') && column.at.any() & kinds != 0)
}

pub(super) fn dump<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        section(call, "fe", F | L).await?;
        call.answer.push("\n");
        section(call, "be", B | S).await
    })
}

async fn section(call: &mut Call<'_, Worker>, name: &str, kinds: u8) -> Result<(), Disconnected> {
    let _ = write!(call.answer, "#{name} guid,");
    for column in columns(kinds) {
        call.answer.push(column.field.name);
        call.answer.push(",");
    }
    call.answer.push("\n");
    for proxy in &call.generation.program.proxies {
        for kind in kinds_of(proxy, kinds) {
            let Some(guid) = guid(proxy, kind) else { continue };
            call.answer.push(guid);
            call.answer.push(",");
            let object = Object::new(call.state, &call.generation.program, proxy, kind, false);
            for column in columns(kinds) {
                let _ = write!(call.answer, "{},", number(&column.of(&object)));
            }
            call.answer.push("\n");
            call.answer.relieve().await?;
        }
    }
    Ok(())
}

fn guid<'a>(proxy: &'a Proxy, kind: Kind<'a>) -> Option<&'a str> {
    match kind {
        Kind::Frontend | Kind::Backend => proxy.guid.as_deref(),
        Kind::Listener(bind) => bind.listening.guid.as_deref(),
        Kind::Server(server) => server.guid.as_deref(),
    }
}

/// Returns a number; 0 for a missing or negative value.
fn number(value: &Value) -> u64 {
    match value {
        Value::U32(number) => u64::from(*number),
        Value::U64(number) => *number,
        Value::S32(number) => u64::try_from(*number).unwrap_or(0),
        Value::Float(number) => *number as u64,
        Value::None | Value::Text(_) => 0,
    }
}
