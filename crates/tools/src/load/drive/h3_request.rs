//! A request as the bytes of an HTTP/3 stream, converted once from its HTTP/1 text. Must never change the request.

use quic::Bytes;
use wire::h1::Edits;
use wire::h3::{FrameType, encode_request, frame_header};

use super::h2_request::split;
use crate::load::plan::Target;

/// Converts a request: a HEADERS frame, and its payload in one DATA frame.
///
/// # Errors
/// HTTP/3 has no equivalent of the request.
pub(super) fn stream_bytes(target: &Target) -> Result<Bytes, String> {
    let (head, body) = split(target, "HTTP/3")?;
    let mut bytes = Vec::new();
    let edits = Edits { framing: head.framing, ..Edits::default() };
    encode_request(&head, &edits, &mut bytes).map_err(|_| format!("{}: its head is too large", target.url))?;
    if !body.is_empty() {
        bytes.extend_from_slice(frame_header(FrameType::Data, body.len() as u64).as_slice());
        bytes.extend_from_slice(body);
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use wire::h3::qpack::{Decoder, TableLimits};
    use wire::h3::{Capacity, MessagePart, MessageReader, Role};

    fn framed(request: &str) -> Result<String, String> {
        let target = Target {
            url: "https://a/".to_owned(),
            address: "127.0.0.1:443".parse().unwrap(),
            secure: Some("a".to_owned()),
            weight: 1,
            request: request.as_bytes().to_vec(),
            last_request: Vec::new(),
            head_only: false,
        };
        let bytes = stream_bytes(&target)?;
        let (mut input, mut text) = (&bytes[..], String::new());
        let mut reader = MessageReader::new(Role::Server, 1000);
        while let Some(part) = reader.next(&mut input).unwrap() {
            match part {
                MessagePart::Head(section) => {
                    let capacity = Capacity { bytes: 1000, fields: 10 };
                    Decoder::new(TableLimits::default())
                        .decode(0, section, capacity, |field| {
                            let [name, value] = [field.name, field.value].map(String::from_utf8_lossy);
                            text += &format!("|{name}: {value}");
                        })
                        .unwrap();
                }
                MessagePart::Data(data) => text += &format!("|{}", std::str::from_utf8(data).unwrap()),
                other => panic!("{other:?}"),
            }
        }
        reader.finish().unwrap();
        Ok(text)
    }

    #[test]
    fn a_request_is_the_same_in_frames() {
        assert_eq!(
            framed("GET /x?y HTTP/1.1\r\nHost: a:81\r\nA: b\r\nConnection: close\r\n\r\n").unwrap(),
            "|:method: GET|:scheme: https|:authority: a:81|:path: /x?y|a: b"
        );
        assert_eq!(
            framed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").unwrap(),
            "|:method: POST|:scheme: https|:authority: a|:path: /|content-length: 2|hi"
        );
        let chunked = framed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
        assert_eq!(chunked, Err("https://a/: HTTP/3 has no transfer-encoding".to_owned()));
    }
}
