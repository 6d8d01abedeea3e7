//! Alerts and messages behind the handshake (RFC 8446, sections 4.6 and 6): puts together what comes in pieces. Must never
//! keep more of a message than the largest that a peer has a reason to send.

use crate::failure::Failure;
use crate::record::{Content, Refused};

pub const HELLO_REQUEST: u8 = 0;
pub const CLIENT_HELLO: u8 = 1;
pub const NEW_SESSION_TICKET: u8 = 4;
pub const KEY_UPDATE: u8 = 24;
pub const UPDATE_NOT_REQUESTED: [u8; 5] = [KEY_UPDATE, 0, 0, 1, 0];
pub const CLOSE_NOTIFY: [u8; 2] = [1, 0];
pub const NO_RENEGOTIATION: [u8; 2] = [1, 100];
pub const DECODE_ERROR: u8 = 50;
pub const UNRECOGNIZED_NAME: u8 = 112;
/// RFC 7301, section 3.2.
pub const NO_APPLICATION_PROTOCOL: u8 = 120;

/// Bytes of messages that have not come whole: a ticket with a large session in it.
const MOST: usize = 32 * 1024;

/// What a record that carries no data means.
pub enum Event {
    /// The peer sends nothing more.
    CloseNotify,
    /// The peer has given up.
    Alert(u8),
    /// A warning that changes nothing.
    Warning,
    /// Messages have come, whole or not.
    Messages,
}

/// Messages that have not come whole.
#[derive(Default)]
pub struct Assembly {
    bytes: Vec<u8>,
    /// Key updates a second that the peer may ask for; 0: any number.
    most_updates: u16,
    /// Those of the last second that had one, and the end of its number.
    updates: u16,
    second: u16,
}

/// Reads a record that carries no data, or one in the middle of a message.
///
/// # Errors
/// It is not allowed.
pub fn read(content: Content, plain: &[u8], assembly: &mut Assembly) -> Result<Event, Failure> {
    match content {
        // A message that has begun goes on before anything else.
        Content::Data | Content::Alert | Content::ChangeCipherSpec if !assembly.is_empty() => {
            Err(Refused::Unexpected.into())
        }
        Content::Data | Content::ChangeCipherSpec => Err(Refused::Unexpected.into()),
        Content::Alert => match plain {
            [_, 0] => Ok(Event::CloseNotify),
            // user_canceled is followed by a close_notify.
            [1, 90 | 100] => Ok(Event::Warning),
            [_, number] => Ok(Event::Alert(*number)),
            _ => Err(Failure::Message),
        },
        Content::Handshake if plain.is_empty() => Err(Refused::Unexpected.into()),
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

    /// None have come from a peer that may update its keys so often a second.
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

    /// Takes the first message, where it has come whole: its type and its body.
    ///
    /// # Errors
    /// It is larger than any that there is a reason for.
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

/// The alert that tells a peer of a failure. `None`: it is gone.
pub fn alert_of(failure: &Failure) -> Option<u8> {
    Some(match failure {
        Failure::Record(Refused::Unexpected) => 10,
        Failure::Record(Refused::BadMac) => 20,
        Failure::Record(Refused::Overflow) => 22,
        Failure::Record(Refused::Version) => 70,
        Failure::Message | Failure::NotTls | Failure::Http => DECODE_ERROR,
        Failure::UnknownName => UNRECOGNIZED_NAME,
        Failure::OtherProtocol => NO_APPLICATION_PROTOCOL,
        Failure::Handshake(_) | Failure::Keys => 80,
        Failure::Alert(_) => return None,
    })
}

/// A record with a fatal alert, before there are keys.
pub fn plain_alert(number: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, number]
}
