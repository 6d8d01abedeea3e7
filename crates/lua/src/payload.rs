//! Payload in a filter of a script: received and forwarded bytes. Must never hold more than a buffer of received bytes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Lua, UserData, Value};

/// Maximum number of received bytes.
pub(crate) const ROOM: usize = 16_384;

/// The payload of a direction.
#[derive(Default)]
pub(crate) struct Payload {
    /// Received bytes, and bytes inserted by the script.
    pub(crate) data: Vec<u8>,
    /// Bytes to forward.
    pub(crate) out: Vec<u8>,
    /// No payload follows `data`.
    pub(crate) ended: bool,
    /// A function of the filter that may change the payload is running.
    pub(crate) is_open: bool,
    /// The filter processes the payload of this direction.
    pub(crate) is_wanted: bool,
    /// The body length that the head announces.
    pub(crate) announced: Option<u64>,
}

/// A script's reference to a payload.
#[derive(Clone, Default)]
pub(crate) struct Handle(Arc<Mutex<Payload>>);

impl UserData for Handle {}

impl Handle {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Payload> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the start and the length of a part. The error is HAProxy's message.
pub(crate) fn part(
    whole: usize,
    offset: Option<i64>,
    length: Option<i64>,
    clips: bool,
) -> Result<(usize, usize), &'static str> {
    let count = i64::try_from(whole).unwrap_or(i64::MAX);
    let offset = offset.unwrap_or(0);
    let start = if offset < 0 { (count + offset).max(0) } else { offset };
    if start > count {
        return Err("offset out of range.");
    }
    let left = count - start;
    let length = match length {
        None | Some(-1) => left,
        Some(..-1) => return Err("length out of range."),
        Some(length) if length > left && !clips => return Err("length out of range."),
        Some(length) => length.min(left),
    };
    Ok((usize::try_from(start).unwrap_or(0), usize::try_from(length).unwrap_or(0)))
}

/// A return value for a script.
enum ReturnValue {
    Nothing,
    Number(i64),
    Flag(bool),
    Text(Vec<u8>),
}

impl Payload {
    /// Replaces a part by a text; -1 if there is no space for it.
    fn put(&mut self, text: &[u8], start: usize, length: usize) -> ReturnValue {
        if self.data.len() - length + text.len() > ROOM {
            return ReturnValue::Number(-1);
        }
        self.data.splice(start..start + length, text.iter().copied());
        ReturnValue::Number(i64::try_from(text.len()).unwrap_or(i64::MAX))
    }

    /// Forwards at most `most` bytes.
    pub(crate) fn forward(&mut self, most: usize) -> usize {
        let count = most.min(self.data.len());
        self.out.extend(self.data.drain(..count));
        count
    }

    /// Executes a call: `(name, arguments...)`.
    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<ReturnValue, &'static str> {
        let number = |index: usize| arguments.get(index).and_then(Value::as_i64);
        let number_of = |count: usize| ReturnValue::Number(i64::try_from(count).unwrap_or(i64::MAX));
        let changes = !matches!(name, "input" | "output" | "full" | "eom" | "data" | "line" | "want");
        if changes && !self.is_open {
            return Err("the message cannot be changed here.");
        }
        let bytes = || arguments.first().and_then(Value::as_string).map(|text| text.as_bytes().to_vec());
        Ok(match name {
            "input" => number_of(self.data.len()),
            "output" => number_of(self.out.len()),
            "full" => ReturnValue::Flag(self.data.len() >= ROOM),
            "eom" => ReturnValue::Flag(self.ended),
            "want" => {
                self.is_wanted = arguments.first().and_then(Value::as_boolean).unwrap_or(false);
                ReturnValue::Nothing
            }
            "data" | "line" => {
                let (start, length) = part(self.data.len(), number(0), number(1), true)?;
                let found = &self.data[start..start + length];
                if found.is_empty() && self.data.is_empty() && self.ended {
                    return Ok(ReturnValue::Nothing);
                }
                let end = found.iter().position(|byte| *byte == b'\n').filter(|_| name == "line");
                ReturnValue::Text(found[..end.map_or(found.len(), |end| end + 1)].to_vec())
            }
            "insert" | "append" => {
                let offset = if name == "append" { i64::try_from(self.data.len()).ok() } else { number(1) };
                let (start, length) = part(self.data.len(), offset, Some(0), true)?;
                self.put(&bytes().unwrap_or_default(), start, length)
            }
            "set" => {
                let (start, length) = part(self.data.len(), number(1), number(2), false)?;
                self.put(&bytes().unwrap_or_default(), start, length)
            }
            "remove" => {
                let (start, length) = part(self.data.len(), number(0), number(1), false)?;
                self.data.drain(start..start + length);
                number_of(length)
            }
            "send" => {
                let text = bytes().unwrap_or_default();
                if self.out.len() + text.len() > 2 * ROOM {
                    return Ok(ReturnValue::Number(-1));
                }
                self.out.extend_from_slice(&text);
                number_of(text.len())
            }
            "forward" => {
                let most = number(0).and_then(|most| usize::try_from(most).ok()).unwrap_or(0);
                number_of(self.forward(most))
            }
            _ => ReturnValue::Nothing,
        })
    }
}

/// `(payload, name, arguments...)`: returns the result, and an error message.
pub(crate) fn call(lua: &Lua, arguments: mlua::MultiValue) -> mlua::Result<(Value, Option<&'static str>)> {
    let arguments: Vec<Value> = arguments.into_iter().collect();
    let Some(Value::UserData(handle)) = arguments.first() else {
        return Ok((Value::Nil, Some("there is no payload here.")));
    };
    let handle = handle.borrow::<Handle>()?.clone();
    let name = arguments.get(1).and_then(Value::as_string).map(|name| name.to_string_lossy()).unwrap_or_default();
    let answer = handle.lock().call(&name, arguments.get(2..).unwrap_or_default());
    Ok(match answer {
        Ok(ReturnValue::Nothing) => (Value::Nil, None),
        Ok(ReturnValue::Number(number)) => (Value::Integer(number), None),
        Ok(ReturnValue::Flag(flag)) => (Value::Boolean(flag), None),
        Ok(ReturnValue::Text(text)) => (Value::String(lua.create_string(&text)?), None),
        Err(why) => (Value::Nil, Some(why)),
    })
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_are_those_of_haproxy() {
        let rows = [
            ((5, None, None, true), Ok((0, 5))),
            ((5, Some(1), Some(2), true), Ok((1, 2))),
            ((5, Some(-2), None, true), Ok((3, 2))),
            ((5, Some(-9), None, true), Ok((0, 5))),
            ((5, Some(5), None, true), Ok((5, 0))),
            ((5, Some(6), None, true), Err("offset out of range.")),
            ((5, Some(0), Some(9), true), Ok((0, 5))),
            ((5, Some(0), Some(9), false), Err("length out of range.")),
            ((5, Some(0), Some(-1), false), Ok((0, 5))),
            ((5, Some(0), Some(-5), true), Err("length out of range.")),
        ];
        for ((whole, offset, length, clips), expected) in rows {
            assert_eq!(part(whole, offset, length, clips), expected, "{whole} {offset:?} {length:?} {clips}");
        }
    }
}
