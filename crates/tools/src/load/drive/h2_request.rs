//! A request as HTTP/2 frames, converted once from its HTTP/1 text. Must never change the request.

use wire::h1::{Edits, HeadLimits, Parse, Scan, parse_request};
use wire::h2::{encode_request, flag};
use wire::http::{Framing, Head, Name};

use crate::load::plan::Target;

/// Maximum number of lines of a head.
const MOST_LINES: usize = 1000;

/// A request as frames.
pub(super) struct FramedRequest {
    /// HEADERS frames, with stream number 0.
    pub(super) head: Box<[u8]>,
    /// Payload, possibly empty.
    pub(super) body: Box<[u8]>,
}

impl FramedRequest {
    /// Converts a request.
    ///
    /// # Errors
    /// HTTP/2 has no equivalent of the request.
    pub(super) fn new(target: &Target) -> Result<Self, String> {
        let (head, body) = split(target, "HTTP/2")?;
        let mut frames = Vec::new();
        let edits = Edits { framing: head.framing, ..Edits::default() };
        let encoded = encode_request(0, &head, &edits, &mut frames);
        encoded.map_err(|_| format!("{}: its head is too large", target.url))?;
        let body: Box<[u8]> = body.into();
        if let Some(flags) = frames.get_mut(4).filter(|_| body.is_empty()) {
            *flags |= flag::END_STREAM;
        }
        Ok(Self { head: frames.into(), body })
    }
}

/// Splits a request into its head, whose target becomes absolute, and its body. `protocol` names the protocol of frames.
///
/// # Errors
/// The protocol has no equivalent of the request.
pub(super) fn split<'a>(target: &'a Target, protocol: &str) -> Result<(Head, &'a [u8]), String> {
    let mut head = Head::new();
    let limits = HeadLimits { max_head: target.request.len(), max_fields: MOST_LINES, ..HeadLimits::default() };
    let parsed = parse_request(&target.request, &limits, &mut Scan::default(), &mut head);
    let Ok(Parse::Complete { consumed }) = parsed else {
        return Err(format!("{}: its head cannot be sent by {protocol}", target.url));
    };
    if head.framing == Framing::Chunked {
        return Err(format!("{}: {protocol} has no transfer-encoding", target.url));
    }
    let scheme = if target.secure.is_some() { "https://" } else { "http://" };
    let host = head.fields.known(Name::Host).unwrap_or_default();
    let whole = [scheme.as_bytes(), host, head.target()].concat();
    if head.target().starts_with(b"/") && !host.is_empty() {
        head.set_target(&whole);
    }
    Ok((head, target.request.get(consumed..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use wire::h2::{Decoder, HEADER_LENGTH};

    fn framed(request: &str, secure: bool) -> Result<String, String> {
        let target = Target {
            url: "http://a/".to_owned(),
            address: "127.0.0.1:80".parse().unwrap(),
            secure: secure.then(|| "a".to_owned()),
            weight: 1,
            request: request.as_bytes().to_vec(),
            last_request: Vec::new(),
            head_only: false,
        };
        let framed = FramedRequest::new(&target)?;
        let mut text = format!("{}", framed.head[4]);
        Decoder::new(0)
            .decode(&framed.head[HEADER_LENGTH..], 1000, |name, value| {
                text += &format!("|{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            })
            .unwrap();
        Ok(text + "|" + std::str::from_utf8(&framed.body).unwrap())
    }

    #[test]
    fn a_request_is_the_same_in_frames() {
        assert_eq!(
            framed("GET /x?y HTTP/1.1\r\nHost: a:81\r\nA: b\r\n\r\n", false).unwrap(),
            "5|:method: GET|:scheme: http|:authority: a:81|:path: /x?y|a: b|"
        );
        assert_eq!(
            framed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", true).unwrap(),
            "4|:method: POST|:scheme: https|:authority: a|:path: /|content-length: 2|hi"
        );
        let chunked = framed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true);
        assert_eq!(chunked, Err("http://a/: HTTP/2 has no transfer-encoding".to_owned()));
    }
}
