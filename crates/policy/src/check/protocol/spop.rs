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

/// The greeting, for frames that fit into a buffer.
pub(super) fn hello(bufsize: usize) -> Vec<u8> {
    let mut frame = vec![HAPROXY_HELLO, 0, 0, 0, 1, 0, 0];
    name(&mut frame, b"supported-versions");
    frame.push(STRING);
    name(&mut frame, b"2.0");
    name(&mut frame, b"max-frame-size");
    frame.push(UINT32);
    number(&mut frame, bufsize.saturating_sub(4) as u64);
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
            number = number.checked_add(byte.checked_shl(shift)?)?;
            if byte < 128 {
                return Some(number);
            }
            shift = Some(shift + 7).filter(|shift| *shift < 60)?;
        }
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// A value whatever it is; strings are given back.
    fn value(&mut self) -> Option<&'a [u8]> {
        match self.byte()? & 15 {
            0 | 1 => Some(&[]),
            2..=5 => self.number().map(|_| &[][..]),
            6 => self.take(4),
            7 => self.take(16),
            8 | 9 => self.string(),
            _ => None,
        }
    }
}

/// What a greeting has to name.
const WANTED: [&str; 3] = ["version", "max-frame-size", "capabilities"];

/// The agent's greeting.
pub(super) fn judge(received: &[u8], complete: bool) -> Judgement {
    let broken = || Judgement::invalid("invalid frame received");
    let mut reader = Reader(received);
    let Some(length) = reader.take(4) else {
        return match (complete, received.is_empty()) {
            (false, _) => Judgement::Wait,
            (true, true) => Judgement::Nothing,
            (true, false) => broken(),
        };
    };
    let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    let Some(frame) = reader.0.get(..length) else {
        return if complete { broken() } else { Judgement::Wait };
    };
    let mut frame = Reader(frame);
    let begins = |frame: &mut Reader<'_>| {
        let kind = frame.byte()?;
        frame.take(4)?;
        (frame.number()? == 0 && frame.number()? == 0).then_some(kind)
    };
    if !matches!(begins(&mut frame), Some(AGENT_HELLO | DISCONNECT)) {
        return broken();
    }
    let mut found = [false; 3];
    while !frame.0.is_empty() {
        let Some(name) = frame.string() else { return broken() };
        if frame.value().is_none() {
            return broken();
        }
        if let Some(at) = WANTED.iter().position(|wanted| wanted.as_bytes() == name) {
            found[at] = true;
        }
    }
    match found.iter().position(|found| !found) {
        None => Judgement::passed("SPOA server is ok"),
        Some(missing) => Judgement::invalid(format!("{} value not found", WANTED[missing])),
    }
}
