//! Decodes an agent's frames from arbitrarily fragmented bytes, and the actions of an `ACK` (SPOE.txt, sections 3.2 and
//! 3.4). Must never wait for more bytes than a frame may have.

use super::value::{Data, Malformed, take_byte, take_integer, take_string};
use super::{FIN, LENGTH, SHORTEST_START, Status};

/// A complete frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// One of [`super::kind`].
    pub kind: u8,
    /// Flags, such as [`FIN`].
    pub flags: u32,
    /// The stream ID.
    pub stream: u64,
    /// The frame ID within the stream.
    pub id: u64,
    /// The payload, of a format that depends on `kind`.
    pub payload: &'a [u8],
}

/// Parses the frame at the start of `bytes`; returns it and the number of bytes consumed, or `None` if it is
/// incomplete. `most` is the maximum length of a frame after its length field, in bytes.
///
/// # Errors
/// The frame is too large, fragmented, or invalid.
pub fn next_frame(bytes: &[u8], most: u32) -> Result<Option<(Frame<'_>, usize)>, Status> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length);
    if length > most {
        return Err(Status::TOO_BIG);
    }
    let length = length as usize;
    if length < SHORTEST_START {
        return Err(Status::INVALID);
    }
    let Some(mut frame) = rest.get(..length) else { return Ok(None) };
    let found = start(&mut frame).map_err(|Malformed| Status::INVALID)?;
    if found.flags & FIN == 0 {
        return Err(Status::FRAGMENT);
    }
    Ok(Some((Frame { payload: frame, ..found }, LENGTH + length)))
}

fn start<'a>(frame: &mut &'a [u8]) -> Result<Frame<'a>, Malformed> {
    let kind = take_byte(frame)?;
    let (flags, rest) = frame.split_first_chunk::<4>().ok_or(Malformed)?;
    *frame = rest;
    let flags = u32::from_be_bytes(*flags);
    let (stream, id) = (take_integer(frame)?, take_integer(frame)?);
    Ok(Frame { kind, flags, stream, id, payload: &[] })
}

/// The scope of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Process,
    Session,
    Transaction,
    Request,
    Response,
}

impl Scope {
    fn from_byte(byte: u8) -> Result<Self, Malformed> {
        [Self::Process, Self::Session, Self::Transaction, Self::Request, Self::Response]
            .get(usize::from(byte))
            .copied()
            .ok_or(Malformed)
    }
}

/// An action of an `ACK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'a> {
    /// `set-var`: scope, name and value.
    Set(Scope, &'a [u8], Data<'a>),
    /// `unset-var`: scope and name.
    Unset(Scope, &'a [u8]),
}

/// Iterates over the actions of an `ACK`, in order. Ends after an error.
#[derive(Debug, Clone)]
pub struct Actions<'a>(&'a [u8]);

impl<'a> Actions<'a> {
    /// Creates the iterator for a payload.
    pub fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    fn take(&mut self) -> Result<Action<'a>, Malformed> {
        const SET: u8 = 1;
        const UNSET: u8 = 2;
        let (kind, arguments) = (take_byte(&mut self.0)?, take_byte(&mut self.0)?);
        match (kind, arguments) {
            (SET, 3) => {
                let scope = Scope::from_byte(take_byte(&mut self.0)?)?;
                let name = take_string(&mut self.0)?;
                Ok(Action::Set(scope, name, Data::take(&mut self.0)?))
            }
            (UNSET, 2) => {
                let scope = Scope::from_byte(take_byte(&mut self.0)?)?;
                Ok(Action::Unset(scope, take_string(&mut self.0)?))
            }
            _ => Err(Malformed),
        }
    }
}

impl<'a> Iterator for Actions<'a> {
    type Item = Result<Action<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let action = self.take();
        if action.is_err() {
            self.0 = &[];
        }
        Some(action)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::ACK;
    use super::*;

    #[test]
    fn frames_are_read_whole() {
        let bytes = [0, 0, 0, 9, ACK, 0, 0, 0, 1, 5, 2, 1, 2, 77];
        for shorter in 0..13 {
            assert_eq!(next_frame(&bytes[..shorter], 256), Ok(None), "{shorter}");
        }
        let frame = Frame { kind: ACK, flags: FIN, stream: 5, id: 2, payload: &[1, 2] };
        assert_eq!(next_frame(&bytes, 256), Ok(Some((frame, 13))));
    }

    #[test]
    fn what_is_no_frame_has_a_status() {
        let rows: &[(&[u8], Status)] = &[
            (&[0, 0, 1, 1], Status::TOO_BIG),
            (&[0xff, 0xff, 0xff, 0xff], Status::TOO_BIG),
            (&[0, 0, 0, 0], Status::INVALID),
            (&[0, 0, 0, 6, ACK, 0, 0, 0, 1, 0], Status::INVALID),
            (&[0, 0, 0, 7, ACK, 0, 0, 0, 0, 0, 0], Status::FRAGMENT),
            (&[0, 0, 0, 7, ACK, 0, 0, 0, 1, 0xff, 0xff], Status::INVALID),
        ];
        for (bytes, status) in rows {
            assert_eq!(next_frame(bytes, 256), Err(*status), "{bytes:?}");
        }
    }

    #[test]
    fn actions_are_read_in_order() {
        let bytes = b"\x01\x03\x02\x01a\x04\x07\x02\x02\x00\x01b\x01\x03\x04\x01c\x00";
        let found: Result<Vec<_>, _> = Actions::new(bytes).collect();
        let expected = vec![
            Action::Set(Scope::Transaction, b"a", Data::Int64(7)),
            Action::Unset(Scope::Process, b"b"),
            Action::Set(Scope::Response, b"c", Data::Null),
        ];
        assert_eq!(found, Ok(expected));
        assert_eq!(Actions::new(b"").next(), None);
        let wrong: &[&[u8]] =
            &[b"\x01", b"\x03\x02\x00\x01a", b"\x01\x02\x00\x01a\x00", b"\x02\x03\x00\x01a", b"\x01\x03\x05\x01a\x00"];
        for bytes in wrong {
            let mut actions = Actions::new(bytes);
            assert_eq!((actions.next(), actions.next()), (Some(Err(Malformed)), None), "{bytes:?}");
        }
    }
}
