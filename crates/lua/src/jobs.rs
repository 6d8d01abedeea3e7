//! What a function may wait for beside its stream: time, and the network. Must never hold a state's lock.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mlua::Value;

use crate::machine::Machine;
use crate::value::Plain;

/// What a function waits for outside of Lua, and what its pause returns then.
pub(crate) type Job = Pin<Box<dyn Future<Output = Vec<Plain>>>>;

/// Begins what a function asks for; `None`: nothing is asked for by that name.
pub(crate) fn begin(_machine: &Arc<Machine>, name: &str, values: &[Value]) -> Option<Job> {
    match name {
        "sleep" => {
            let period = milliseconds(values.first());
            Some(Box::pin(async move {
                rt::sleep(period).await;
                Vec::new()
            }))
        }
        _ => None,
    }
}

/// A time that a function has given.
pub(crate) fn milliseconds(value: Option<&Value>) -> Duration {
    let number = value.and_then(Value::as_i64).or_else(|| value.and_then(Value::as_f64).map(|number| number as i64));
    Duration::from_millis(u64::try_from(number.unwrap_or(0)).unwrap_or(0))
}
