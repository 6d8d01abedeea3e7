//! `option http-buffer-request` and `wait-for-body`: a message waits until its body is here, or as much of it as a buffer
//! holds. Must never take a byte of the body away.

use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use conn::flow;
use policy::program::Proxy;
use wire::h1::{ChunkDecoder, ChunkError, ChunkState};
use wire::http::{Fields, Framing, Version};

use crate::facts::{Cause, Outcome, Phase};
use crate::session::Session;
use crate::stream::http::Client;
use crate::stream::reply::{Failure, send_interim};
use crate::worker::SharedFacts;

/// How far a body has come.
enum Progress {
    /// So many bytes are missing.
    Length(u64),
    Chunked {
        decoder: Box<ChunkDecoder>,
        trailers: Fields,
    },
    /// It ends with the connection.
    UntilClose,
    Complete,
}

/// A body that is waited for.
pub struct Coming {
    progress: Progress,
    /// Bytes of it that have come.
    bytes: u64,
    /// So many are enough.
    least: u64,
}

/// Waits for the body of the request in `facts`. `proxy` is who asks for that: its `timeout http-request` counts, from
/// the moment from which the head's counted.
///
/// # Errors
/// The body does not come, or is none.
pub async fn wait(session: &Session, client: &mut Client, facts: &SharedFacts, proxy: &Proxy) -> Result<(), Failure> {
    let deadline = {
        let known = facts.borrow();
        let begin = known.timings.first_byte.filter(|_| client.served > 0).unwrap_or(known.timings.start);
        proxy.timeouts.http_request.or(session.proxy().timeouts.client).map(|limit| begin + limit)
    };
    wait_until(session, client, facts, deadline, (0, None)).await
}

/// The same until a moment; `least` bytes of it, where that is not 0, are enough. With `large` a body that fits into no
/// buffer gets one of that size.
///
/// # Errors
/// The body does not come, or is none.
pub async fn wait_until(
    session: &Session,
    client: &mut Client,
    facts: &SharedFacts,
    deadline: Option<Moment>,
    (least, mut large): (u64, Option<usize>),
) -> Result<(), Failure> {
    let framing = facts.borrow().request.framing;
    if framing == Framing::UntilClose {
        return Ok(());
    }
    let mut coming = Coming::new(framing, least);
    // What came with the head is judged when the body's flow starts: breaking the coding there is no request at all.
    if coming.take(client.input.data()).is_err() || coming.is_over() {
        return Ok(());
    }
    make_room(&mut client.input);
    if !invite(session, client, facts).await {
        return Err(Failure { outcome: Outcome::new(Cause::Client, Phase::Request), status: 400, page: false });
    }
    client.timer.arm(deadline);
    let result = std::future::poll_fn(|cx| poll(cx, client, facts, &mut coming, &mut large)).await;
    let mut facts = facts.borrow_mut();
    match result {
        Ok(()) | Err(Failure { outcome: Outcome { cause: Cause::Client, .. }, .. }) => {
            facts.timings.request = Some(rt::now());
        }
        Err(_) => facts.timings.request = None,
    }
    result
}

fn poll(
    cx: &mut Context<'_>,
    client: &mut Client,
    facts: &SharedFacts,
    coming: &mut Coming,
    large: &mut Option<usize>,
) -> Poll<Result<(), Failure>> {
    let missing =
        |cause, status, page| Poll::Ready(Err(Failure { outcome: Outcome::new(cause, Phase::Request), status, page }));
    loop {
        if client.input.capacity() < rt::buffer_size() {
            make_room(&mut client.input);
        }
        if client.input.room() == 0 && !grow(&mut client.input, large) {
            return Poll::Ready(Ok(()));
        }
        let before = client.input.len();
        match client.stream.poll_read(cx, &mut client.input) {
            Poll::Ready(Ok(read)) if read > 0 => {
                let facts = &mut *facts.borrow_mut();
                facts.bytes_in += read as u64;
                facts.early_body += read as u64;
                if coming.take(&client.input.data()[before..]).is_err() {
                    return missing(Cause::Proxy, 400, false);
                }
                if coming.is_over() {
                    return Poll::Ready(Ok(()));
                }
            }
            Poll::Ready(_) => return missing(Cause::Client, 400, false),
            Poll::Pending if client.timer.poll_expired(cx).is_ready() => {
                return missing(Cause::ClientTimeout, 408, true);
            }
            Poll::Pending => {
                // What has come of a short body waits in a buffer of its size.
                flow::shrink(&mut client.input);
                return Poll::Pending;
            }
        }
    }
}

/// Puts what has come of the body where the rest of it can be read behind, and framed later.
pub fn make_room(input: &mut Buffer) {
    let mut body = flow::body_buffer();
    if body.push(input.data()) {
        *input = body;
    }
}

/// Puts what has come of the body into a buffer of that size, once. False: there is none.
pub fn grow(input: &mut Buffer, large: &mut Option<usize>) -> bool {
    let Some(size) = large.take().filter(|size| *size > input.len() && !rt::memory_is_scarce()) else { return false };
    let mut body = flow::large_body_buffer(size);
    let fits = body.push(input.data());
    if fits {
        *input = body;
    }
    fits
}

/// A client that waits to be asked for its body is asked: whoever buffers cannot leave that to the server. False: it is
/// gone.
async fn invite(session: &Session, client: &mut Client, facts: &SharedFacts) -> bool {
    {
        let request = &mut facts.borrow_mut().request;
        if !request.expect_continue || request.version() != Version::Http11 || !client.input.is_empty() {
            return true;
        }
        request.remove_all(b"expect");
    }
    send_interim(session, client, b"HTTP/1.1 100 Continue\r\n\r\n").await
}

impl Coming {
    /// A body of that framing of which nothing is known to have come; `least` bytes, where that is not 0, are enough.
    pub fn new(framing: Framing, least: u64) -> Self {
        let progress = match framing {
            Framing::Length(length) => Progress::Length(length),
            Framing::Chunked => Progress::Chunked { decoder: Box::new(ChunkDecoder::new()), trailers: Fields::new() },
            Framing::UntilClose => Progress::UntilClose,
            Framing::None => Progress::Complete,
        };
        Self { progress, bytes: 0, least: if least == 0 { u64::MAX } else { least } }
    }

    /// Whether enough of it is here.
    pub fn is_over(&self) -> bool {
        self.bytes >= self.least || matches!(self.progress, Progress::Complete)
    }

    /// Counts bytes that have come. They stay as they are: chunks are taken apart on a copy.
    ///
    /// # Errors
    /// They break the coding.
    pub fn take(&mut self, fresh: &[u8]) -> Result<(), ChunkError> {
        let ends = match &mut self.progress {
            Progress::Complete => true,
            Progress::UntilClose => {
                self.bytes += fresh.len() as u64;
                false
            }
            Progress::Length(missing) => {
                self.bytes += (fresh.len() as u64).min(*missing);
                *missing = missing.saturating_sub(fresh.len() as u64);
                *missing == 0
            }
            Progress::Chunked { decoder, trailers } => {
                let decoded = decoder.decode_in_place(&mut fresh.to_vec(), trailers)?;
                self.bytes += decoded.payload as u64;
                decoded.state == ChunkState::End
            }
        };
        if ends {
            self.progress = Progress::Complete;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_complete_when_their_last_byte_is_here() {
        let rows: &[(Framing, &[&str], bool)] = &[
            (Framing::Length(5), &["ab", "cd"], false),
            (Framing::Length(5), &["ab", "cde"], true),
            (Framing::Length(5), &["abcdefgh"], true),
            (Framing::Chunked, &["5\r\nabc"], false),
            (Framing::Chunked, &["5\r", "\nabc", "de\r\n0\r\n"], false),
            (Framing::Chunked, &["5\r", "\nabc", "de\r\n0\r\nx: 1\r\n\r\nGET"], true),
        ];
        for (framing, pieces, complete) in rows {
            let mut coming = Coming::new(*framing, 0);
            for piece in *pieces {
                coming.take(piece.as_bytes()).unwrap();
            }
            assert_eq!(coming.is_over(), *complete, "{pieces:?}");
        }
    }
}
