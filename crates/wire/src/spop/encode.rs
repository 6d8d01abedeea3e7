//! Encodes frames for an agent: hello, messages, disconnect (SPOE.txt, sections 3.2.4, 3.2.6 and 3.2.8). Must never
//! write a frame that is longer than the other side accepts.

use super::value::{Data, encode_string};
use super::{FIN, LENGTH, Status, kind};
use crate::peers::encode_integer;

/// A `HAPROXY-HELLO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Maximum length of a frame in bytes.
    pub max_frame_size: u32,
    /// Acknowledgements may arrive in another order than their frames.
    pub pipelining: bool,
    /// The connection is a health check.
    pub healthcheck: bool,
    /// ID of the engine.
    pub engine_id: Option<&'a str>,
}

impl Hello<'_> {
    /// Encodes the frame, including its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        begin(&mut out, kind::HAPROXY_HELLO, 0, 0);
        item(&mut out, "supported-versions", Data::Str(b"2.0"));
        item(&mut out, "max-frame-size", Data::Uint32(self.max_frame_size));
        item(&mut out, "capabilities", Data::Str(if self.pipelining { b"pipelining" } else { b"" }));
        if self.healthcheck {
            item(&mut out, "healthcheck", Data::Bool(true));
        }
        if let Some(id) = self.engine_id {
            item(&mut out, "engine-id", Data::Str(id.as_bytes()));
        }
        finish(&mut out);
        out
    }
}

/// Encodes a `HAPROXY-DISCONNECT`, including its length.
pub fn disconnect(status: Status) -> Vec<u8> {
    let mut out = Vec::new();
    begin(&mut out, kind::HAPROXY_DISCONNECT, 0, 0);
    item(&mut out, "status-code", Data::Uint32(status.0));
    item(&mut out, "message", Data::Str(status.text().as_bytes()));
    finish(&mut out);
    out
}

/// The payload of a `NOTIFY`: messages, each with its arguments. It is framed when the connection is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notify {
    payload: Vec<u8>,
    /// Offset of the last message's number of arguments.
    count_at: usize,
}

impl Notify {
    /// Starts a message. A message has at most 255 arguments.
    pub fn message(&mut self, name: &[u8]) {
        encode_string(&mut self.payload, name);
        self.count_at = self.payload.len();
        self.payload.push(0);
    }

    /// Appends an argument to the last message. Returns false if the message has the maximum number of arguments.
    pub fn argument(&mut self, name: &[u8], value: Data<'_>) -> bool {
        let Some(count) = self.payload.get_mut(self.count_at) else { return false };
        let Some(more) = count.checked_add(1) else { return false };
        *count = more;
        encode_string(&mut self.payload, name);
        value.encode(&mut self.payload);
        true
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    /// Appends the frame, including its length. Returns false if it is larger than `most` bytes; nothing is appended
    /// then.
    #[must_use]
    pub fn encode(&self, stream: u64, frame: u64, most: u32, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH]);
        out.push(kind::NOTIFY);
        out.extend_from_slice(&FIN.to_be_bytes());
        encode_integer(out, stream);
        encode_integer(out, frame);
        out.extend_from_slice(&self.payload);
        match u32::try_from(out.len() - start - LENGTH) {
            Ok(length) if length <= most => {
                out[start..start + LENGTH].copy_from_slice(&length.to_be_bytes());
                true
            }
            _ => {
                out.truncate(start);
                false
            }
        }
    }
}

fn begin(out: &mut Vec<u8>, kind: u8, stream: u64, frame: u64) {
    out.extend_from_slice(&[0; LENGTH]);
    out.push(kind);
    out.extend_from_slice(&FIN.to_be_bytes());
    encode_integer(out, stream);
    encode_integer(out, frame);
}

fn item(out: &mut Vec<u8>, name: &str, value: Data<'_>) {
    encode_string(out, name.as_bytes());
    value.encode(out);
}

/// Fills in the length of a short frame.
fn finish(out: &mut [u8]) {
    let length = (out.len() - LENGTH) as u32;
    out[..LENGTH].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_say_what_the_proxy_can() {
        let hello = Hello { max_frame_size: 16_380, pipelining: true, healthcheck: false, engine_id: Some("e") };
        let expected = [
            &[0, 0, 0, 88, 1, 0, 0, 0, 1, 0, 0, 18][..],
            b"supported-versions\x08\x032.0\x0emax-frame-size\x03\xfc\xf0\x06",
            b"\x0ccapabilities\x08\x0apipelining\x09engine-id\x08\x01e",
        ]
        .concat();
        assert_eq!(hello.encode(), expected);
        let check = Hello { max_frame_size: 256, pipelining: false, healthcheck: true, engine_id: None };
        assert!(check.encode().ends_with(b"\x0ccapabilities\x08\x00\x0bhealthcheck\x11"));
    }

    #[test]
    fn a_farewell_says_why() {
        let expected =
            [&[0, 0, 0, 40, 2, 0, 0, 0, 1, 0, 0][..], b"\x0bstatus-code\x03\x01\x07message\x08\x09I/O error"];
        assert_eq!(disconnect(Status::IO), expected.concat());
    }

    #[test]
    fn messages_have_their_arguments() {
        let mut notify = Notify::default();
        assert!(notify.is_empty() && !notify.argument(b"a", Data::Null));
        notify.message(b"m");
        assert!(notify.argument(b"a", Data::Int64(1)) && notify.argument(b"", Data::Null));
        notify.message(b"n");
        let mut out = b"x".to_vec();
        assert!(notify.encode(5, 1, 256, &mut out));
        let payload = b"\x01m\x02\x01a\x04\x01\x00\x00\x01n\x00";
        assert_eq!(out, [b"x", &[0, 0, 0, 19, 3, 0, 0, 0, 1, 5, 1][..], payload].concat());
        let mut small = b"x".to_vec();
        assert!(!notify.encode(5, 1, 18, &mut small));
        assert_eq!(small, b"x");
    }

    #[test]
    fn a_message_has_255_arguments_at_most() {
        let mut notify = Notify::default();
        notify.message(b"m");
        assert!((0..255).all(|_| notify.argument(b"a", Data::Null)));
        assert!(!notify.argument(b"a", Data::Null));
    }
}
