//! Parses an agent's hello and disconnect (SPOE.txt, sections 3.2.5 and 3.2.9). Must never accept a hello with
//! parameters that this side does not support.

use super::value::{Data, Malformed, take_string};
use super::{SMALLEST_FRAME, Status};

/// The negotiated parameters of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentHello {
    /// Maximum length of a frame from now on, in bytes.
    pub max_frame_size: u32,
    /// Acknowledgements may arrive in another order than their frames.
    pub pipelining: bool,
}

/// The contents of a disconnect: why an agent closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentDisconnect<'a> {
    pub status: Status,
    /// The agent's message.
    pub message: &'a [u8],
}

/// Parses the payload of an `AGENT-HELLO`. `most`: the maximum length of a frame that was advertised to the agent, in
/// bytes.
///
/// # Errors
/// The status of the first error.
pub fn agent_hello(mut payload: &[u8], most: u32) -> Result<AgentHello, Status> {
    let (mut has_version, mut max_frame_size, mut pipelining) = (false, None, None);
    while !payload.is_empty() {
        let (name, value) = item(&mut payload)?;
        match (name, value) {
            (b"version", Data::Str(text)) => match version(text) {
                Some((2, 0)) => has_version = true,
                Some(_) => return Err(Status::BAD_VERSION),
                None => return Err(Status::INVALID),
            },
            (b"max-frame-size", value) => {
                let size = value.integer().ok_or(Status::INVALID)?;
                let size = u32::try_from(size).ok().filter(|size| (SMALLEST_FRAME..=most).contains(size));
                max_frame_size = Some(size.ok_or(Status::BAD_FRAME_SIZE)?);
            }
            (b"capabilities", Data::Str(list)) => {
                pipelining = Some(list.split(|byte| *byte == b',').any(|name| name.trim_ascii() == b"pipelining"));
            }
            (b"version" | b"capabilities", _) => return Err(Status::INVALID),
            _ => {}
        }
    }
    if !has_version {
        return Err(Status::NO_VERSION);
    }
    let max_frame_size = max_frame_size.ok_or(Status::NO_FRAME_SIZE)?;
    Ok(AgentHello { max_frame_size, pipelining: pipelining.ok_or(Status::NO_CAPABILITIES)? })
}

/// Parses the payload of an `AGENT-DISCONNECT`.
///
/// # Errors
/// The payload is malformed, or one of its two items is missing.
pub fn agent_disconnect(mut payload: &[u8]) -> Result<AgentDisconnect<'_>, Status> {
    let (mut status, mut message) = (None, None);
    while !payload.is_empty() {
        match item(&mut payload)? {
            (b"status-code", value) => {
                let code = value.unsigned().and_then(|code| u32::try_from(code).ok()).ok_or(Status::INVALID)?;
                status = Some(Status(code));
            }
            (b"message", Data::Str(text)) => message = Some(text),
            _ => {}
        }
    }
    let status = status.ok_or(Status::INVALID)?;
    Ok(AgentDisconnect { status, message: message.ok_or(Status::INVALID)? })
}

fn item<'a>(payload: &mut &'a [u8]) -> Result<(&'a [u8], Data<'a>), Status> {
    let invalid = |Malformed| Status::INVALID;
    let name = take_string(payload).map_err(invalid)?;
    if name.is_empty() {
        return Err(Status::INVALID);
    }
    Ok((name, Data::take(payload).map_err(invalid)?))
}

/// Parses `Major.Minor`, with optional blanks around it. The minor version must be below 1000.
fn version(text: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (major, minor) = text.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r')).split_once('.')?;
    let number = |digits: &str| {
        let all = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        // A number that does not fit is an unknown version.
        all.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let version = (number(major)?, number(minor)?);
    (version != (0, 0) && version.1 < 1000).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::super::value::encode_string;
    use super::*;

    fn payload(items: &[(&str, Data<'_>)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, value) in items {
            encode_string(&mut out, name.as_bytes());
            value.encode(&mut out);
        }
        out
    }

    #[test]
    fn greetings_are_judged_a_row() {
        let (version, size, list) =
            (("version", Data::Str(b" 2.0 ")), ("max-frame-size", Data::Uint32(1000)), "capabilities");
        let plain = (list, Data::Str(b""));
        let fine = |pipelining| Ok(AgentHello { max_frame_size: 1000, pipelining });
        let rows = [
            (vec![version, size, plain], fine(false)),
            (vec![version, ("max-frame-size", Data::Int64(1000)), (list, Data::Str(b"a, pipelining"))], fine(true)),
            (vec![version, size, ("more", Data::Null), plain], fine(false)),
            (vec![size, plain], Err(Status::NO_VERSION)),
            (vec![version, plain], Err(Status::NO_FRAME_SIZE)),
            (vec![version, size], Err(Status::NO_CAPABILITIES)),
            (vec![("version", Data::Str(b"1.0")), size, plain], Err(Status::BAD_VERSION)),
            (vec![("version", Data::Str(b"2")), size, plain], Err(Status::INVALID)),
            (vec![("version", Data::Int32(2)), size, plain], Err(Status::INVALID)),
            (vec![version, ("max-frame-size", Data::Uint32(255)), plain], Err(Status::BAD_FRAME_SIZE)),
            (vec![version, ("max-frame-size", Data::Uint32(1001)), plain], Err(Status::BAD_FRAME_SIZE)),
            (vec![version, ("max-frame-size", Data::Uint64((1 << 32) + 1000)), plain], Err(Status::BAD_FRAME_SIZE)),
            (vec![version, ("max-frame-size", Data::Str(b"")), plain], Err(Status::INVALID)),
            (vec![version, size, (list, Data::Null)], Err(Status::INVALID)),
            (vec![("", Data::Null)], Err(Status::INVALID)),
        ];
        for (items, expected) in rows {
            assert_eq!(agent_hello(&payload(&items), 1000), expected, "{items:?}");
        }
        assert_eq!(agent_hello(b"\x07vers", 1000), Err(Status::INVALID));
    }

    #[test]
    fn farewells_have_a_status_and_a_message() {
        let (status, message) = (("status-code", Data::Uint32(7)), ("message", Data::Str(b"bye")));
        let expected = AgentDisconnect { status: Status(7), message: b"bye" };
        assert_eq!(agent_disconnect(&payload(&[status, message])), Ok(expected));
        for items in [&[status][..], &[message], &[("status-code", Data::Null), message]] {
            assert_eq!(agent_disconnect(&payload(items)), Err(Status::INVALID), "{items:?}");
        }
    }
}
