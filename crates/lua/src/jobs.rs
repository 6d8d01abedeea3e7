//! Blocking functions that do not involve the stream: time, and the network. Must never hold a state's lock.

use std::sync::Arc;
use std::time::Duration;

use mlua::Value;

use crate::machine::Machine;
use crate::value::Job;
use crate::{http_client, queue, socket};

/// Creates the job for a call; `None`: unknown function.
pub(crate) fn begin(_machine: &Arc<Machine>, name: &str, values: &[Value]) -> Option<Job> {
    match name {
        "sleep" => {
            let period = milliseconds(values.first());
            Some(Box::pin(async move {
                rt::sleep(period).await;
                Vec::new()
            }))
        }
        "wait" => {
            let period = values.first().filter(|value| !value.is_nil()).map(|value| milliseconds(Some(value)));
            // Events do not end the wait earlier.
            let period = period.unwrap_or(USUAL_WAIT);
            Some(Box::pin(async move {
                rt::sleep(period).await;
                Vec::new()
            }))
        }
        _ => socket::begin(name, values)
            .or_else(|| http_client::begin(name, values))
            .or_else(|| queue::begin(name, values)),
    }
}

/// Default duration of `core.wait`.
const USUAL_WAIT: Duration = Duration::from_millis(10);

/// Converts an argument in milliseconds.
pub(crate) fn milliseconds(value: Option<&Value>) -> Duration {
    let number = value.and_then(Value::as_i64).or_else(|| value.and_then(Value::as_f64).map(|number| number as i64));
    Duration::from_millis(u64::try_from(number.unwrap_or(0)).unwrap_or(0))
}
