//! `option http-buffer-request`: a request waits until its body is here, or as much of it as a buffer holds. Must never
//! take a byte of the body away.

use std::task::{Context, Poll};

use base::moment::Moment;
use conn::flow;
use policy::program::Proxy;
use wire::h1::{ChunkDecoder, ChunkState};
use wire::http::{Fields, Framing, Version};

use crate::facts::{Cause, Outcome, Phase};
use crate::session::Session;
use crate::stream::http::Client;
use crate::stream::refuse::send_page;
use crate::worker::SharedFacts;

/// Why a body did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// How it is logged.
    pub outcome: Outcome,
    /// The status in the log.
    pub status: u16,
    /// The client gets that status' page.
    pub page: bool,
}

/// How far a body has come.
enum Progress {
    /// So many bytes are missing.
    Length(u64),
    Chunked {
        decoder: Box<ChunkDecoder>,
        trailers: Fields,
    },
    Complete,
}

/// Bytes of a body that have come, and how many are enough.
struct Came {
    bytes: u64,
    least: u64,
}

impl Came {
    fn is_enough(&self) -> bool {
        self.bytes >= self.least
    }
}

/// Waits for the body of the request in `facts`. `proxy` is who asks for that: its `timeout http-request` counts, from
/// the moment from which the head's counted.
///
/// # Errors
/// The body does not come, or is none.
pub async fn wait(session: &Session, client: &mut Client, facts: &SharedFacts, proxy: &Proxy) -> Result<(), Missing> {
    let deadline = {
        let known = facts.borrow();
        let begin = known.timings.first_byte.filter(|_| client.served > 0).unwrap_or(known.timings.start);
        proxy.timeouts.http_request.or(session.proxy().timeouts.client).map(|limit| begin + limit)
    };
    wait_until(session, client, facts, deadline, 0).await
}

/// The same until a moment; `least` bytes of it, where that is not 0, are enough.
///
/// # Errors
/// The body does not come, or is none.
pub async fn wait_until(
    session: &Session,
    client: &mut Client,
    facts: &SharedFacts,
    deadline: Option<Moment>,
    least: u64,
) -> Result<(), Missing> {
    let mut progress = match facts.borrow().request.framing {
        Framing::Length(length) => Progress::Length(length),
        Framing::Chunked => Progress::Chunked { decoder: Box::new(ChunkDecoder::new()), trailers: Fields::new() },
        Framing::None | Framing::UntilClose => return Ok(()),
    };
    // What came with the head is judged when the body's flow starts: breaking the coding there is no request at all.
    let least = if least == 0 { u64::MAX } else { least };
    let mut came = Came { bytes: 0, least };
    if progress.take(client.input.data(), &mut came).is_err() || progress.is_complete() || came.is_enough() {
        return Ok(());
    }
    make_room(client);
    if !invite(session, client, facts).await {
        return Err(Missing { outcome: Outcome::new(Cause::Client, Phase::Request), status: 400, page: false });
    }
    client.timer.arm(deadline);
    let result = std::future::poll_fn(|cx| poll(cx, client, facts, &mut progress, &mut came)).await;
    let mut facts = facts.borrow_mut();
    match result {
        Ok(()) | Err(Missing { outcome: Outcome { cause: Cause::Client, .. }, .. }) => {
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
    progress: &mut Progress,
    came: &mut Came,
) -> Poll<Result<(), Missing>> {
    let missing =
        |cause, status, page| Poll::Ready(Err(Missing { outcome: Outcome::new(cause, Phase::Request), status, page }));
    loop {
        if client.input.room() == 0 {
            return Poll::Ready(Ok(()));
        }
        let before = client.input.len();
        match client.stream.poll_read(cx, &mut client.input) {
            Poll::Ready(Ok(read)) if read > 0 => {
                facts.borrow_mut().bytes_in += read as u64;
                if progress.take(&client.input.data()[before..], came).is_err() {
                    return missing(Cause::Proxy, 400, false);
                }
                if progress.is_complete() || came.is_enough() {
                    return Poll::Ready(Ok(()));
                }
            }
            Poll::Ready(_) => return missing(Cause::Client, 400, false),
            Poll::Pending if client.timer.poll_expired(cx).is_ready() => {
                return missing(Cause::ClientTimeout, 408, true);
            }
            Poll::Pending => return Poll::Pending,
        }
    }
}

/// Puts what has come of the body where the rest of it can be read behind, and framed later.
fn make_room(client: &mut Client) {
    let mut body = flow::body_buffer();
    if body.push(client.input.data()) {
        client.input = body;
    }
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
    send_page(session, client, b"HTTP/1.1 100 Continue\r\n\r\n", false).await
}

impl Progress {
    fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }

    /// Counts bytes that have come. They stay as they are: chunks are taken apart on a copy.
    fn take(&mut self, fresh: &[u8], came: &mut Came) -> Result<(), ()> {
        let ends = match self {
            Self::Complete => true,
            Self::Length(missing) => {
                came.bytes += (fresh.len() as u64).min(*missing);
                *missing = missing.saturating_sub(fresh.len() as u64);
                *missing == 0
            }
            Self::Chunked { decoder, trailers } => {
                let decoded = decoder.decode_in_place(&mut fresh.to_vec(), trailers).map_err(|_| ())?;
                came.bytes += decoded.payload as u64;
                decoded.state == ChunkState::End
            }
        };
        if ends {
            *self = Self::Complete;
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
            let mut progress = match framing {
                Framing::Length(length) => Progress::Length(*length),
                _ => Progress::Chunked { decoder: Box::new(ChunkDecoder::new()), trailers: Fields::new() },
            };
            for piece in *pieces {
                progress.take(piece.as_bytes(), &mut Came { bytes: 0, least: u64::MAX }).unwrap();
            }
            assert_eq!(progress.is_complete(), *complete, "{pieces:?}");
        }
    }
}
