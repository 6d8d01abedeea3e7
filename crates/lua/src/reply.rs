//! Formats a script's reply as text. Must never send it.

use mlua::{Table, Value};

/// Returns the status and the text of a reply.
///
/// # Errors
/// The reason why it is invalid.
pub(crate) fn write(reply: &Table) -> Result<(u16, Vec<u8>), String> {
    let status = reply.get::<Option<i64>>("status").ok().flatten().unwrap_or(200);
    let status = u16::try_from(status).ok().filter(|status| (200..600).contains(status)).ok_or("invalid status")?;
    let bytes = |value: Value| value.as_string().map(|text| text.as_bytes().to_vec());
    let reason = reply.get::<Value>("reason").ok().and_then(bytes);
    let reason = reason.unwrap_or_else(|| wire::http::reason(status).as_bytes().to_vec());
    let body = reply.get::<Value>("body").ok().and_then(bytes).unwrap_or_default();
    let mut text = format!("HTTP/1.1 {status} ").into_bytes();
    text.extend(checked(&reason)?);
    text.extend(b"\r\n");
    if let Ok(Value::Table(headers)) = reply.get::<Value>("headers") {
        for pair in headers.pairs::<mlua::LuaString, Value>() {
            let (name, values) = pair.map_err(|_| "invalid headers")?;
            let name = name.as_bytes().to_ascii_lowercase();
            // These are derived from the body.
            if name == b"content-length" || name == b"transfer-encoding" {
                continue;
            }
            match values {
                Value::Table(values) => {
                    for value in values.sequence_values::<mlua::LuaString>() {
                        let value = value.map_err(|_| "invalid headers")?;
                        field(&mut text, &name, &value.as_bytes())?;
                    }
                }
                Value::String(value) => field(&mut text, &name, &value.as_bytes())?,
                _ => return Err("invalid headers".to_owned()),
            }
        }
    }
    text.extend(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    text.extend(body);
    Ok((status, text))
}

fn checked(text: &[u8]) -> Result<&[u8], String> {
    let breaks = text.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
    if breaks { Err("a field would begin another line".to_owned()) } else { Ok(text) }
}

/// Whether a name is a valid field name (RFC 9110, section 5.1).
pub(crate) fn is_name(name: &[u8]) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(token)
}

fn field(text: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), String> {
    if !is_name(name) {
        return Err("invalid name of a header".to_owned());
    }
    text.extend(name);
    text.extend(b": ");
    text.extend(checked(value)?);
    text.extend(b"\r\n");
    Ok(())
}
