//! The demonstration's servers: a small HTTP/1 service that reports which origin answered and the request it received.
//! Must never be used for anything but the demonstration: it is not lenient, does not cache and has no configuration.

use super::outages::Outages;
use base::buffer::Buffer;
use rt::Class;
use rt::net::{Listener, ListeningSocket, OwnedSocket, Stream};
use std::fmt::Write;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;
use wire::h1::{ChunkDecoder, ChunkState, HeadLimits, Parse, Scan, parse_request};
use wire::http::{Fields, Framing, Head};

/// Maximum number of body bytes that `/echo` returns.
const ECHO_LIMIT: usize = 1 << 20;

/// Bytes that `/large` sends by default.
const LARGE: u64 = 100 << 20;

/// Response time of `/slow`.
const SLOW: Duration = Duration::from_secs(1);

/// The contents of `/large`.
static PATTERN: [u8; 65536] = [b'w'; 65536];

/// Serves a socket until the process ends.
pub async fn serve(name: &'static str, outages: Outages, socket: Arc<ListeningSocket>) {
    let Ok(mut listener) = Listener::new(socket) else { return };
    loop {
        match listener.accept().await {
            Ok((client, _)) => rt::spawn(Class::Normal, 0, async move {
                // Errors of a client need no report: the frontend logs them.
                let _ = converse(name, outages, client).await;
            }),
            Err(_) => rt::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Serves a connection.
async fn converse(name: &str, outages: Outages, client: OwnedSocket) -> io::Result<()> {
    let mut peer = Peer { stream: Stream::adopt(client), input: rt::buffer() };
    let mut head = Head::new();
    while peer.read_head(&mut head).await? {
        if head.expect_continue && head.framing.has_body() {
            peer.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let path = String::from_utf8_lossy(head.target()).into_owned();
        if path.starts_with("/tunnel") && head.upgrade {
            return peer.tunnel(&head).await;
        }
        let body = peer.read_body(head.framing).await?;
        if outages.is_failing(rt::now()) {
            peer.whole(name, &head, 503, format!("{name} fails\n").as_bytes()).await?;
        } else {
            peer.answer(name, &path, &head, &body).await?;
        }
        if head.connection.close {
            break;
        }
    }
    Ok(())
}

/// A connection and its unparsed input.
struct Peer {
    stream: Stream,
    input: Buffer,
}

impl Peer {
    /// Reads available bytes; false at the end of the stream.
    async fn read(&mut self) -> io::Result<bool> {
        if self.input.room() == 0 {
            self.input.compact();
        }
        if self.input.room() == 0 {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        Ok(poll_fn(|cx| self.stream.poll_read(cx, &mut self.input)).await? > 0)
    }

    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.stream.poll_write_slices(cx, &[IoSlice::new(bytes)], false)).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Reads a request's head; false if the client closed between two requests.
    async fn read_head(&mut self, head: &mut Head) -> io::Result<bool> {
        head.clear();
        let mut scan = Scan::default();
        loop {
            if !self.input.is_empty() {
                match parse_request(self.input.data(), &HeadLimits::default(), &mut scan, head) {
                    Ok(Parse::Complete { consumed }) => {
                        self.input.consume(consumed);
                        return Ok(true);
                    }
                    Ok(Parse::Partial) => {}
                    Err(_) => {
                        self.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                            .await?;
                        return Ok(false);
                    }
                }
            }
            if !self.read().await? {
                return Ok(false);
            }
        }
    }

    /// Reads an entire body and returns its first [`ECHO_LIMIT`] bytes.
    async fn read_body(&mut self, framing: Framing) -> io::Result<Vec<u8>> {
        let mut kept = Vec::new();
        match framing {
            Framing::Length(length) => self.read_length(length, &mut kept).await?,
            Framing::Chunked => self.read_chunks(&mut kept).await?,
            Framing::None | Framing::UntilClose => {}
        }
        Ok(kept)
    }

    async fn read_length(&mut self, length: u64, kept: &mut Vec<u8>) -> io::Result<()> {
        let mut rest = length;
        while rest > 0 {
            if self.input.is_empty() && !self.read().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let count = self.input.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            keep(kept, &self.input.data()[..count]);
            self.input.consume(count);
            rest -= count as u64;
        }
        Ok(())
    }

    async fn read_chunks(&mut self, kept: &mut Vec<u8>) -> io::Result<()> {
        let mut decoder = ChunkDecoder::new();
        let mut trailers = Fields::new();
        loop {
            let decoded = decoder
                .decode_in_place(self.input.data_mut(), &mut trailers)
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            keep(kept, &self.input.data()[..decoded.payload]);
            self.input.consume(decoded.consumed);
            if decoded.state == ChunkState::End {
                return Ok(());
            }
            if !self.read().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn answer(&mut self, name: &str, path: &str, head: &Head, body: &[u8]) -> io::Result<()> {
        if let Some(rest) = path.strip_prefix("/large") {
            let length = rest.strip_prefix('/').and_then(|length| length.parse().ok()).unwrap_or(LARGE);
            return self.large(name, head, length).await;
        }
        if let Some(status) = path.strip_prefix("/status/").and_then(|status| status.parse().ok()) {
            let text = format!("{name} answers {status}\n");
            return self.whole(name, head, status, text.as_bytes()).await;
        }
        if path.starts_with("/slow") {
            rt::sleep(SLOW).await;
        }
        if path.starts_with("/echo") {
            return self.whole(name, head, 200, body).await;
        }
        self.whole(name, head, 200, about(name, head).as_bytes()).await
    }

    async fn whole(&mut self, name: &str, head: &Head, status: u16, body: &[u8]) -> io::Result<()> {
        let status = if (200..600).contains(&status) { status } else { 400 };
        let mut answer = answer_head(name, status, body.len() as u64).into_bytes();
        if head.method() != b"HEAD" && !matches!(status, 204 | 304) {
            answer.extend_from_slice(body);
        }
        self.write(&answer).await
    }

    async fn large(&mut self, name: &str, head: &Head, length: u64) -> io::Result<()> {
        self.write(answer_head(name, 200, length).as_bytes()).await?;
        let mut rest = if head.method() == b"HEAD" { 0 } else { length };
        while rest > 0 {
            let count = PATTERN.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            self.write(&PATTERN[..count]).await?;
            rest -= count as u64;
        }
        Ok(())
    }

    /// Switches protocols and echoes every byte until the client closes.
    async fn tunnel(&mut self, head: &Head) -> io::Result<()> {
        let protocol = head.first(b"upgrade").map(String::from_utf8_lossy).unwrap_or_default();
        let answer = format!("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\r\n");
        self.write(answer.as_bytes()).await?;
        loop {
            let bytes = self.input.data().to_vec();
            self.input.clear();
            self.write(&bytes).await?;
            if !self.read().await? {
                return self.stream.shutdown_write();
            }
        }
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = ECHO_LIMIT.saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

fn answer_head(name: &str, status: u16, length: u64) -> String {
    let length = match status {
        204 | 304 => String::new(),
        _ => format!("content-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\n"),
    };
    format!("HTTP/1.1 {status} {}\r\nx-origin: {name}\r\n{length}\r\n", reason(status))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Demonstrated",
    }
}

/// Describes the request as received from the proxy.
fn about(name: &str, head: &Head) -> String {
    let mut text = format!(
        "Hello, this is {name}.\n\nThe request as it arrived here:\n\n    {} {}\n",
        String::from_utf8_lossy(head.method()),
        String::from_utf8_lossy(head.target()),
    );
    for (field, value) in head.fields() {
        let _ = writeln!(text, "    {}: {}", String::from_utf8_lossy(field), String::from_utf8_lossy(value));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_body_announces_none() {
        assert!(answer_head("o", 200, 5).ends_with("content-length: 5\r\n\r\n"));
        for status in [204, 304] {
            assert!(!answer_head("o", status, 0).contains("content-length"), "{status}");
        }
    }

    #[test]
    fn what_is_kept_of_a_body_is_bounded() {
        let mut kept = vec![0; ECHO_LIMIT - 2];
        keep(&mut kept, b"abcd");
        assert_eq!((kept.len(), &kept[ECHO_LIMIT - 2..]), (ECHO_LIMIT, b"ab".as_slice()));
    }

    #[test]
    fn the_page_shows_what_arrived() {
        let mut head = Head::new();
        head.set_method(b"GET");
        head.set_target(b"/x?y");
        head.append(b"x-forwarded-for", b"127.0.0.1");
        let page = about("origin2", &head);
        assert!(page.contains("this is origin2.") && page.contains("    GET /x?y\n    x-forwarded-for: 127.0.0.1\n"));
    }
}
