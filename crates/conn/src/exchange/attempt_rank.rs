//! The standing of an attempt by the beginning of its answer, to choose between two attempts. Must never consume a byte
//! of it.

use std::task::{Context, Poll};

use base::buffer::Buffer;

use crate::upstream::Upstream;

/// Length of the beginning of an answer up to its status, inclusive.
const STATUS_LINE: usize = 12;

/// The standing of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptRank {
    /// Its answer is not known yet.
    Awaited,
    /// An answer has begun.
    Good,
    /// An answer has begun that reports a failure of the server: used only if the other attempt has nothing better.
    Poor,
    /// There will be no answer.
    Gone,
}

impl AttemptRank {
    /// The standing by the first bytes of an answer.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes.get(..STATUS_LINE) {
            None => Self::Awaited,
            Some(line) if line.starts_with(b"HTTP/1.") && (b'1'..=b'4').contains(&line[9]) => Self::Good,
            Some(_) => Self::Poor,
        }
    }

    fn of_status(status: u16) -> Self {
        if (100..500).contains(&status) { Self::Good } else { Self::Poor }
    }
}

/// Reads until the standing is known.
pub fn look(
    cx: &mut Context<'_>,
    upstream: &mut Upstream<'_>,
    input: &mut Buffer,
    mut note: impl FnMut(usize),
) -> Poll<AttemptRank> {
    let of_status = |status: Option<u16>| status.map_or(AttemptRank::Gone, AttemptRank::of_status);
    match upstream {
        Upstream::H2(request) => return request.poll_head(cx).map(|_| of_status(request.status())),
        Upstream::H3(request) => return request.poll_head(cx).map(|_| of_status(request.status())),
        _ => {}
    }
    loop {
        if input.capacity() == 0 {
            *input = rt::buffer();
        }
        match upstream.poll_read(cx, input) {
            Poll::Pending => {
                if input.is_empty() {
                    *input = Buffer::empty();
                }
                return Poll::Pending;
            }
            Poll::Ready(Ok(read)) if read > 0 => note(read),
            Poll::Ready(_) => return Poll::Ready(AttemptRank::Gone),
        }
        match AttemptRank::of(input.data()) {
            AttemptRank::Awaited => {}
            known => return Poll::Ready(known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_whether_an_answer_is_worth_having() {
        let rows: &[(&[u8], AttemptRank)] = &[
            (b"", AttemptRank::Awaited),
            (b"HTTP/1.1 20", AttemptRank::Awaited),
            (b"HTTP/1.1 200", AttemptRank::Good),
            (b"HTTP/1.1 103 Early", AttemptRank::Good),
            (b"HTTP/1.0 404 No", AttemptRank::Good),
            (b"HTTP/1.1 503 Busy", AttemptRank::Poor),
            (b"HTTP/1.1 500", AttemptRank::Poor),
            (b"SSH-2.0-OpenSSH", AttemptRank::Poor),
            (b"HTTP/2.0 200 OK", AttemptRank::Poor),
        ];
        for (bytes, expected) in rows {
            assert_eq!(AttemptRank::of(bytes), *expected, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
