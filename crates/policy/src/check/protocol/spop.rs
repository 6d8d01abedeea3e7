//! The stream processing offload protocol: a greeting that says it is a health check, and the agent's own (SPOE.txt,
//! section 3.2). Must never speak of a stream.

use super::Judgement;

/// Types of frames.
const HAPROXY_HELLO: u8 = 1;
const AGENT_HELLO: u8 = 101;
const DISCONNECT: u8 = 102;
/// Types of values.
const STRING: u8 = 8;
const UINT32: u8 = 3;
const TRUE: u8 = 0x11;

/// The largest frame that fits into a buffer of this size behind its length, in bytes.
pub(super) fn largest(bufsize: usize) -> u64 {
    bufsize.saturating_sub(LENGTH) as u64
}

/// The greeting. `largest`: how large frames may be, in bytes.
pub(super) fn hello(largest: u64) -> Vec<u8> {
    let mut frame = vec![HAPROXY_HELLO, 0, 0, 0, 1, 0, 0];
    name(&mut frame, b"supported-versions");
    frame.push(STRING);
    name(&mut frame, b"2.0");
    name(&mut frame, b"max-frame-size");
    frame.push(UINT32);
    number(&mut frame, largest);
    name(&mut frame, b"capabilities");
    frame.extend_from_slice(&[STRING, 0]);
    name(&mut frame, b"healthcheck");
    frame.push(TRUE);
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let mut message = length.to_be_bytes().to_vec();
    message.extend_from_slice(&frame);
    message
}

fn name(frame: &mut Vec<u8>, name: &[u8]) {
    number(frame, name.len() as u64);
    frame.extend_from_slice(name);
}

/// Numbers below 240 are one byte; others continue with seven bits a byte.
fn number(frame: &mut Vec<u8>, mut number: u64) {
    if number < 240 {
        return frame.push(number as u8);
    }
    frame.push(number as u8 | 240);
    number = (number - 240) >> 4;
    while number >= 128 {
        frame.push(number as u8 | 128);
        number = (number - 128) >> 7;
    }
    frame.push(number as u8);
}

/// Reads what a frame is made of; `None`: it ends in the middle.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn number(&mut self) -> Option<u64> {
        let first = u64::from(self.byte()?);
        if first < 240 {
            return Some(first);
        }
        let (mut number, mut shift) = (first, 4);
        loop {
            let byte = u64::from(self.byte()?);
            number = number.checked_add(byte.checked_mul(1 << shift)?)?;
            if byte < 128 {
                return Some(number);
            }
            shift = Some(shift + 7).filter(|shift| *shift <= 60)?;
        }
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    fn value(&mut self) -> Option<Value<'a>> {
        Some(match self.byte()? & 15 {
            0 | 1 => Value::Other,
            2..=5 => Value::Number(self.number()?),
            6 => self.take(4).map(|_| Value::Other)?,
            7 => self.take(16).map(|_| Value::Other)?,
            STRING => Value::String(self.string()?),
            9 => self.string().map(|_| Value::Other)?,
            _ => return None,
        })
    }

    /// What every frame begins with; `Some(())`: it is a greeting or a farewell, whole, and of no stream.
    fn prelude(&mut self) -> Option<()> {
        let kind = self.byte()?;
        let whole = self.take(4)? == FIN;
        (matches!(kind, AGENT_HELLO | DISCONNECT) && whole && self.number()? == 0 && self.number()? == 0).then_some(())
    }
}

/// A typed value, as far as greetings have to be understood.
enum Value<'a> {
    String(&'a [u8]),
    /// Of any of the four types of numbers.
    Number(u64),
    Other,
}

/// The flags of a frame that is not a fragment.
const FIN: [u8; 4] = [0, 0, 0, 1];
/// Bytes of the length in front of a frame.
const LENGTH: usize = 4;
/// Bytes of the shortest beginning of a frame: type, flags, and one byte each for both numbers.
const PRELUDE: usize = 7;
/// An agent has to take frames of that many bytes, at least.
const SMALLEST: u64 = 256;
/// What a greeting has to name.
const WANTED: [&str; 3] = ["version", "max-frame-size", "capabilities"];

/// The errors of section 3.5 that a greeting can have, as HAProxy says them.
const INVALID: &str = "invalid frame received";
const UNSUPPORTED: &str = "unsupported version";
const BAD_SIZE: &str = "max-frame-size too big or too small";

/// The agent's greeting. `largest`: the size of frames that it was told, in bytes. All that came is taken for the frame,
/// whatever its length says, once there is as much as that.
pub(super) fn judge(received: &[u8], complete: bool, largest: u64) -> Judgement {
    if received.is_empty() && complete {
        return Judgement::Nothing;
    }
    let missing = || if complete { Judgement::invalid(INVALID) } else { Judgement::Wait };
    let mut reader = Reader(received);
    let Some(length) = reader.take(LENGTH).filter(|_| received.len() >= LENGTH + PRELUDE) else { return missing() };
    let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    let arrived = reader.0.len();
    if reader.prelude().is_none() {
        return Judgement::invalid(INVALID);
    }
    if arrived < length {
        return missing();
    }
    match items(reader, largest) {
        Ok([true, true, true]) => Judgement::passed("SPOA server is ok"),
        Ok(found) => {
            let missing = found.iter().position(|found| !found).unwrap_or_default();
            Judgement::invalid(format!("{} value not found", WANTED[missing]))
        }
        Err(error) => Judgement::invalid(error),
    }
}

/// Which of the items it has to name are there; the first error ends it.
fn items(mut frame: Reader<'_>, largest: u64) -> Result<[bool; 3], &'static str> {
    let mut found = [false; 3];
    while !frame.0.is_empty() {
        let name = frame.string().filter(|name| !name.is_empty()).ok_or(INVALID)?;
        let value = frame.value().ok_or(INVALID)?;
        let Some(at) = WANTED.iter().position(|wanted| wanted.as_bytes() == name) else { continue };
        match (at, value) {
            (0, Value::String(text)) => match version(text) {
                Some((2, 0)) => {}
                Some(_) => return Err(UNSUPPORTED),
                None => return Err(INVALID),
            },
            (1, Value::Number(size)) if (SMALLEST..=largest).contains(&size) => {}
            (1, Value::Number(_)) => return Err(BAD_SIZE),
            (2, Value::String(_)) => {}
            _ => return Err(INVALID),
        }
        found[at] = true;
    }
    Ok(found)
}

/// `Major.Minor` with blanks around it; the minor number has its place within a thousand.
fn version(text: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (major, minor) = text.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r')).split_once('.')?;
    let number = |digits: &str| {
        let all = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        // What does not fit is an unknown version.
        all.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let version = (number(major)?, number(minor)?);
    (version != (0, 0) && version.1 < 1000).then_some(version)
}
