//! HTTP of agents (`agent-check http`, Weir's own): the request, and the line in the body of the response. Must never
//! connect or wait.

use std::net::{IpAddr, SocketAddr};
use wire::h1::{self, ChunkDecoder, ChunkState, HeadLimits, Parse, RequestContext, Scan};
use wire::http::{Fields, Framing, Head};

use super::messages;

/// Maximum bytes of a response up to the end of the body's first line.
pub(super) const LONGEST: usize = 16_384;

/// Maximum bytes of the body's first line.
const LONGEST_LINE: usize = 4_096;

/// Returns the request for a target. `host` is the name of the server, if its line has one.
pub(super) fn request(uri: &str, host: Option<&str>, destination: SocketAddr) -> Vec<u8> {
    let host = match (host, destination.ip()) {
        (Some(name), _) => name.to_owned(),
        (None, IpAddr::V4(ip)) => ip.to_string(),
        (None, IpAddr::V6(ip)) => format!("[{ip}]"),
    };
    let port = Some(destination.port()).filter(|port| *port != 80).map(|port| format!(":{port}")).unwrap_or_default();
    format!("GET {uri} HTTP/1.1\r\nhost: {host}{port}\r\nconnection: close\r\n\r\n").into_bytes()
}

/// Returns the first line of the body in `input`, the response so far; `None`: more of it is needed. `ended`: there is no
/// more.
///
/// # Errors
/// Why the response is none of an agent.
pub(super) fn line(input: &[u8], ended: bool) -> Result<Option<Vec<u8>>, String> {
    let Some((head, body)) = head(input)? else {
        let why = if input.is_empty() { "Agent sent an empty response" } else { "Agent sent an incomplete response" };
        return if ended { Err(why.to_owned()) } else { Ok(None) };
    };
    if head.status() != 200 {
        let reason = messages::printable(head.reason());
        return Err(format!("Agent answered with status {} {reason}", head.status()).trim_end().to_owned());
    }
    let (body, complete) = payload(head.framing, body)?;
    let end = body.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    match end.unwrap_or(body.len()) {
        length if length > LONGEST_LINE => Err("Agent sent a line that is too long".to_owned()),
        0 if end.is_some() || complete || ended => Err("Agent sent a body without a line".to_owned()),
        length if end.is_some() || complete || ended && head.framing == Framing::UntilClose => {
            Ok(Some(body[..length].to_vec()))
        }
        _ if ended => Err("Agent sent an incomplete response".to_owned()),
        _ => Ok(None),
    }
}

/// Parses the final head. Returns it with the bytes after it; `None`: it is not complete.
fn head(input: &[u8]) -> Result<Option<(Head, &[u8])>, String> {
    let limits = HeadLimits { max_head: LONGEST, ..HeadLimits::default() };
    let mut rest = input;
    loop {
        let (mut scan, mut head) = (Scan::default(), Head::default());
        match h1::parse_response(rest, &limits, &RequestContext::default(), &mut scan, &mut head) {
            Ok(Parse::Complete { consumed }) => {
                rest = rest.get(consumed..).unwrap_or_default();
                if head.status() == 101 || !(100..200).contains(&head.status()) {
                    return Ok(Some((head, rest)));
                }
            }
            Ok(Parse::Partial) => return Ok(None),
            Err(_) => return Err("Agent sent no valid HTTP response".to_owned()),
        }
    }
}

/// Returns the payload in the bytes after a head, and whether that is all of it.
fn payload(framing: Framing, bytes: &[u8]) -> Result<(Vec<u8>, bool), String> {
    match framing {
        Framing::None => Ok((Vec::new(), true)),
        Framing::UntilClose => Ok((bytes.to_vec(), false)),
        Framing::Length(length) => {
            let here = bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX));
            Ok((bytes[..here].to_vec(), here as u64 == length))
        }
        Framing::Chunked => {
            let (mut payload, mut trailers) = (bytes.to_vec(), Fields::new());
            let decoded = ChunkDecoder::new().decode_in_place(&mut payload, &mut trailers);
            let decoded = decoded.map_err(|_| "Agent sent an invalid chunk".to_owned())?;
            payload.truncate(decoded.payload);
            Ok((payload, decoded.state == ChunkState::End))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_the_server() {
        let rows = [
            (None, "192.0.2.1:80", "192.0.2.1"),
            (None, "192.0.2.1:8080", "192.0.2.1:8080"),
            (None, "[2001:db8::1]:80", "[2001:db8::1]"),
            (None, "[2001:db8::1]:81", "[2001:db8::1]:81"),
            (Some("a.example"), "192.0.2.1:81", "a.example:81"),
        ];
        for (name, destination, host) in rows {
            let request = request("/load?x=1", name, destination.parse().unwrap());
            let expected = format!("GET /load?x=1 HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            assert_eq!(String::from_utf8(request).unwrap(), expected);
        }
    }

    #[test]
    fn the_first_line_of_a_body_is_the_answer() {
        let long = "x".repeat(5_000);
        let endless = format!("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{long}");
        let rows: &[(&str, Result<&str, &str>)] = &[
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nup", Ok("up")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nup 50%\nmore\n", Ok("up 50%")),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nu\r\n3\r\np\r\n\r\n0\r\n\r\n", Ok("up")),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndown", Ok("down")),
            ("HTTP/1.0 200 OK\r\n\r\ndrain", Ok("drain")),
            ("HTTP/1.1 503 Not now\r\nContent-Length: 2\r\n\r\nup", Err("Agent answered with status 503 Not now")),
            ("HTTP/1.1 204 No Content\r\n\r\n", Err("Agent answered with status 204 No Content")),
            ("HTTP/1.1 302\r\nLocation: /x\r\n\r\n", Err("Agent answered with status 302 Found")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Err("Agent sent a body without a line")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\nup", Err("Agent sent a body without a line")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nup", Err("Agent sent an incomplete response")),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno", Err("Agent sent an invalid chunk")),
            ("HTTP/1.1 200 OK\r\nContent-Le", Err("Agent sent an incomplete response")),
            ("", Err("Agent sent an empty response")),
            ("up\n", Err("Agent sent no valid HTTP response")),
            (&endless, Err("Agent sent a line that is too long")),
        ];
        for (input, expected) in rows {
            let found = line(input.as_bytes(), true);
            let expected = expected.map(|text| Some(text.as_bytes().to_vec())).map_err(str::to_owned);
            assert_eq!(found, expected, "{input:?}");
            // No part of it has another result before the rest arrives.
            for length in 0..input.len() {
                let part = line(&input.as_bytes()[..length], false);
                assert!(part == Ok(None) || part == expected, "{part:?} of {length} in {input:?}");
            }
        }
    }
}
