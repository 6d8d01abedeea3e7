//! Alerts and post-handshake messages (RFC 8446, sections 4.6 and 6): reassembles fragmented messages. Must never keep
//! more of a message than the largest that a peer has a reason to send.

use crate::failure::Failure;
use crate::record::{Content, RecordError};

pub const HELLO_REQUEST: u8 = 0;
pub const CLIENT_HELLO: u8 = 1;
pub const NEW_SESSION_TICKET: u8 = 4;
pub const KEY_UPDATE: u8 = 24;
pub const UPDATE_NOT_REQUESTED: [u8; 5] = [KEY_UPDATE, 0, 0, 1, 0];
pub const CLOSE_NOTIFY: [u8; 2] = [1, 0];
pub const NO_RENEGOTIATION: [u8; 2] = [1, 100];
pub const UNEXPECTED_MESSAGE: u8 = 10;
pub const DECODE_ERROR: u8 = 50;
pub const INTERNAL_ERROR: u8 = 80;
pub const UNRECOGNIZED_NAME: u8 = 112;
/// RFC 7301, section 3.2.
pub const NO_APPLICATION_PROTOCOL: u8 = 120;

/// Maximum number of bytes of incomplete messages: a ticket with a large session in it.
const MOST: usize = 32 * 1024;

/// The meaning of a record that carries no data.
pub enum Event {
    /// The peer has closed its direction.
    CloseNotify,
    /// A fatal alert of the peer.
    Alert(u8),
    /// A warning without effect.
    Warning,
    /// Messages were appended, complete or not.
    Messages,
}

/// Incomplete messages.
#[derive(Default)]
pub struct Assembly {
    bytes: Vec<u8>,
    /// Maximum number of key updates per second from the peer; 0: unlimited.
    most_updates: u16,
    /// Number of updates in the last second that had one, and the low bits of that second.
    updates: u16,
    second: u16,
}

/// Processes a record that carries no data, or one in the middle of a message.
///
/// # Errors
/// The record is not permitted.
pub fn read(content: Content, plain: &[u8], assembly: &mut Assembly) -> Result<Event, Failure> {
    match content {
        // A message that has begun must be completed before anything else.
        Content::Data | Content::Alert | Content::ChangeCipherSpec if !assembly.is_empty() => {
            Err(RecordError::Unexpected.into())
        }
        Content::Data | Content::ChangeCipherSpec => Err(RecordError::Unexpected.into()),
        Content::Alert => match plain {
            [_, 0] => Ok(Event::CloseNotify),
            // user_canceled is followed by a close_notify.
            [1, 90 | 100] => Ok(Event::Warning),
            [_, number] => Ok(Event::Alert(*number)),
            _ => Err(Failure::Message),
        },
        Content::Handshake if plain.is_empty() => Err(RecordError::Unexpected.into()),
        Content::Handshake => {
            if assembly.bytes.len() + plain.len() > MOST {
                return Err(Failure::Message);
            }
            assembly.bytes.extend_from_slice(plain);
            Ok(Event::Messages)
        }
    }
}

impl Assembly {
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Creates an empty assembly, with a limit of key updates per second.
    pub fn new(most_updates: u16) -> Self {
        Self { most_updates, ..Self::default() }
    }

    /// Counts a key update in that second. False: too many.
    pub fn may_update(&mut self, second: u64) -> bool {
        let second = second as u16;
        if std::mem::replace(&mut self.second, second) != second {
            self.updates = 0;
        }
        self.updates = self.updates.saturating_add(1);
        self.most_updates == 0 || self.updates <= self.most_updates
    }

    /// Takes the first message, if it is complete: its type and its body.
    ///
    /// # Errors
    /// It is larger than any legitimate message.
    pub fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, Failure> {
        let Some(&[kind, a, b, c]) = self.bytes.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > MOST {
            return Err(Failure::Message);
        }
        let Some(body) = self.bytes.get(4..4 + length) else { return Ok(None) };
        let body = body.to_vec();
        self.bytes.drain(..4 + length);
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
        Ok(Some((kind, body)))
    }
}

/// Returns the alert for a failure. `None`: the peer has ended the connection.
pub fn alert_of(failure: &Failure) -> Option<u8> {
    Some(match failure {
        Failure::Record(RecordError::Unexpected) => UNEXPECTED_MESSAGE,
        Failure::Record(RecordError::BadMac) => 20,
        Failure::Record(RecordError::Overflow) => 22,
        Failure::Record(RecordError::Version) => 70,
        Failure::Message | Failure::NotTls | Failure::Http | Failure::TooLarge => DECODE_ERROR,
        Failure::UnknownName => UNRECOGNIZED_NAME,
        Failure::OtherProtocol => NO_APPLICATION_PROTOCOL,
        Failure::Handshake(_) | Failure::Keys => INTERNAL_ERROR,
        Failure::Alert(_) => return None,
    })
}

/// Returns a record with a fatal alert, for use before keys are established.
pub fn plain_alert(number: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, number]
}
