//! Parser of one response as its bytes are received: the end of its head, framing and connection options, the end of
//! the body. Must never store or interpret a body's bytes.

use wire::h1::{ChunkDecoder, ChunkState, HeadLimits, Parse, RequestContext, Scan, parse_response};
use wire::http::{Fields, Framing, Head};

/// Maximum size of a head, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;
/// Maximum number of lines of a head.
const MOST_LINES: usize = 1000;
/// Maximum number of interim responses before a final one.
const MOST_INTERIM: u32 = 100;
/// Number of bytes searched for a chunk header at once: payload among them is moved, so it is small.
const CHUNK_LINE: usize = 32;

/// State for parsing that all connections of a worker share.
pub(super) struct Scratch {
    head: Head,
    trailers: Fields,
    limits: HeadLimits,
    /// The last complete head of each target.
    known: Vec<ParsedHead>,
}

/// A parsed head and its result. Servers repeat themselves: an identical one is not parsed again.
#[derive(Default)]
struct ParsedHead {
    bytes: Vec<u8>,
    verdict: Verdict,
}

/// Result of a head.
#[derive(Debug, Clone, Copy, Default)]
struct Verdict {
    status: u16,
    framing: Framing,
    keeps_alive: bool,
}

/// An incomplete head.
#[derive(Default)]
struct Partial {
    bytes: Vec<u8>,
    scan: Scan,
    head: Head,
}

/// State of one response.
pub(super) struct Answer {
    target: usize,
    head_only: bool,
    state: State,
    verdict: Verdict,
    interim: u32,
    partial: Option<Box<Partial>>,
}

enum State {
    Head,
    /// Number of missing bytes of the body.
    Length(u64),
    Chunked(ChunkDecoder),
    UntilClose,
    End,
}

/// Next operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextRead {
    /// Read more bytes.
    Read,
    /// At least this number of bytes are body and can be dropped without reading them.
    Drop(u64),
    /// The response is complete.
    End,
}

/// The peer violates HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoHttp;

impl Scratch {
    pub(super) fn new(targets: usize) -> Self {
        let limits = HeadLimits { max_head: LARGEST_HEAD, max_fields: MOST_LINES, ..HeadLimits::default() };
        let known = (0..targets).map(|_| ParsedHead::default()).collect();
        Self { head: Head::new(), trailers: Fields::new(), limits, known }
    }
}

impl Answer {
    /// Creates the state before the first request.
    pub(super) fn new() -> Self {
        let verdict = Verdict::default();
        Self { target: 0, head_only: false, state: State::End, verdict, interim: 0, partial: None }
    }

    /// Expects the response to another request.
    pub(super) fn begin(&mut self, target: usize, head_only: bool) {
        (self.target, self.head_only, self.interim, self.state) = (target, head_only, 0, State::Head);
        self.partial = None;
    }

    /// Returns the status code, once the head is complete.
    pub(super) fn status(&self) -> u16 {
        self.verdict.status
    }

    /// Whether the connection can be used for another request after a complete response.
    pub(super) fn keeps_alive(&self) -> bool {
        self.verdict.keeps_alive
    }

    /// Processes received bytes. Bytes after the response's end are an error, since nothing was requested.
    pub(super) fn feed(&mut self, bytes: &mut [u8], scratch: &mut Scratch) -> Result<NextRead, NoHttp> {
        let mut used = 0;
        loop {
            let rest = &mut bytes[used..];
            match &mut self.state {
                State::End => return if rest.is_empty() { Ok(NextRead::End) } else { Err(NoHttp) },
                State::Head if rest.is_empty() => return Ok(NextRead::Read),
                State::Head => used += self.feed_head(rest, scratch)?,
                State::Length(0) => self.state = State::End,
                State::Length(left) => {
                    let count = (*left).min(rest.len() as u64);
                    *left -= count;
                    used += count as usize;
                    if *left > 0 {
                        return Ok(NextRead::Drop(*left));
                    }
                }
                State::Chunked(decoder) => {
                    used += decoder.skip(rest.len() as u64) as usize;
                    let rest = &mut bytes[used..];
                    if rest.is_empty() {
                        let left = decoder.remaining_in_chunk();
                        return Ok(if left > 0 { NextRead::Drop(left) } else { NextRead::Read });
                    }
                    let line = rest.len().min(CHUNK_LINE);
                    let decoded = decoder.decode_in_place(&mut rest[..line], &mut scratch.trailers);
                    let decoded = decoded.map_err(|_| NoHttp)?;
                    used += decoded.consumed;
                    if decoded.state == ChunkState::End {
                        self.state = State::End;
                    }
                }
                State::UntilClose => return Ok(NextRead::Drop(u64::MAX)),
            }
        }
    }

    /// Records bytes of the body that were dropped as permitted by [`NextRead::Drop`].
    pub(super) fn dropped(&mut self, count: u64) -> NextRead {
        match &mut self.state {
            State::Length(left) => {
                *left = left.saturating_sub(count);
                if *left > 0 {
                    return NextRead::Drop(*left);
                }
                self.state = State::End;
                NextRead::End
            }
            State::Chunked(decoder) => {
                decoder.skip(count);
                let left = decoder.remaining_in_chunk();
                if left > 0 { NextRead::Drop(left) } else { NextRead::Read }
            }
            State::UntilClose => NextRead::Drop(u64::MAX),
            State::Head | State::End => NextRead::Read,
        }
    }

    /// Records that the peer has closed. Returns whether that completes the response.
    pub(super) fn closed(&mut self) -> bool {
        matches!(self.state, State::UntilClose | State::End)
    }

    /// Processes bytes of the head; returns how many of `bytes` belong to it.
    fn feed_head(&mut self, bytes: &[u8], scratch: &mut Scratch) -> Result<usize, NoHttp> {
        if self.partial.is_none()
            && let Some(known) = scratch.known.get(self.target)
            && !known.bytes.is_empty()
            && bytes.starts_with(&known.bytes)
        {
            self.verdict = known.verdict;
            let used = known.bytes.len();
            self.state = self.body();
            return Ok(used);
        }
        self.parse_head(bytes, scratch)
    }

    fn parse_head(&mut self, bytes: &[u8], scratch: &mut Scratch) -> Result<usize, NoHttp> {
        let context = RequestContext { head: self.head_only, connect: false };
        let Some(partial) = &mut self.partial else {
            scratch.head.clear();
            let parsed = parse_response(bytes, &scratch.limits, &context, &mut Scan::default(), &mut scratch.head);
            return match parsed.map_err(|_| NoHttp)? {
                Parse::Complete { consumed } => {
                    self.verdict = Verdict::of(&scratch.head);
                    self.conclude_head(&bytes[..consumed], scratch)?;
                    Ok(consumed)
                }
                Parse::Partial => {
                    let mut partial = Box::<Partial>::default();
                    partial.bytes.extend_from_slice(bytes);
                    self.partial = Some(partial);
                    Ok(bytes.len())
                }
            };
        };
        let before = partial.bytes.len();
        partial.bytes.extend_from_slice(bytes);
        let parsed = parse_response(&partial.bytes, &scratch.limits, &context, &mut partial.scan, &mut partial.head);
        let Parse::Complete { consumed } = parsed.map_err(|_| NoHttp)? else { return Ok(bytes.len()) };
        self.verdict = Verdict::of(&partial.head);
        let head = self.partial.take().map(|partial| partial.bytes).unwrap_or_default();
        self.conclude_head(&head[..consumed], scratch)?;
        // Earlier bytes did not complete it, so its end is in the new ones.
        Ok(consumed.saturating_sub(before))
    }

    fn conclude_head(&mut self, head: &[u8], scratch: &mut Scratch) -> Result<(), NoHttp> {
        match self.verdict.status {
            // No upgrade was requested.
            101 => return Err(NoHttp),
            100..200 => {
                self.interim += 1;
                return if self.interim > MOST_INTERIM { Err(NoHttp) } else { Ok(()) };
            }
            _ => {}
        }
        if let Some(known) = scratch.known.get_mut(self.target) {
            known.bytes.clear();
            known.bytes.extend_from_slice(head);
            known.verdict = self.verdict;
        }
        self.state = self.body();
        Ok(())
    }

    fn body(&self) -> State {
        match self.verdict.framing {
            Framing::None => State::End,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(ChunkDecoder::new()),
            Framing::UntilClose => State::UntilClose,
        }
    }
}

impl Verdict {
    fn of(head: &Head) -> Self {
        let until_close = head.framing == Framing::UntilClose;
        Self { status: head.status(), framing: head.framing, keeps_alive: head.keeps_alive() && !until_close }
    }
}

#[cfg(test)]
mod tests;
