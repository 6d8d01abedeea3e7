//! The stream processing offload protocol: a hello marked as a health check, and the agent's hello (SPOE.txt,
//! section 3.2). Must never send a stream.

use super::Judgement;
use wire::spop::{self, FIN, Hello, LENGTH, Status, kind};

/// Returns the largest frame that fits into a buffer of `bufsize` after its length, in bytes.
pub(super) fn largest(bufsize: usize) -> u64 {
    bufsize.saturating_sub(LENGTH) as u64
}

/// Returns the hello. `largest` is the maximum frame size in bytes.
pub(super) fn hello(largest: u64) -> Vec<u8> {
    let max_frame_size = u32::try_from(largest).unwrap_or(u32::MAX);
    Hello { max_frame_size, pipelining: false, healthcheck: true, engine_id: None }.encode()
}

/// A parser of frames; methods return `None` if the frame is truncated.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// Parses the start of a frame; `Some(())` if it is an unfragmented hello or disconnect, with stream ID 0.
    fn prelude(&mut self) -> Option<()> {
        let kind = self.byte()?;
        let whole = self.take(4)? == FIN.to_be_bytes();
        let of_no_stream = self.take(2)? == [0, 0];
        (matches!(kind, kind::AGENT_HELLO | kind::AGENT_DISCONNECT) && whole && of_no_stream).then_some(())
    }
}

/// Length in bytes of the shortest start of a frame.
const PRELUDE: usize = spop::SHORTEST_START;

/// Evaluates the agent's hello. `largest` is the advertised maximum frame size in bytes. When at least the announced
/// length was received, all received bytes are the frame.
pub(super) fn judge(received: &[u8], complete: bool, largest: u64) -> Judgement {
    if received.is_empty() && complete {
        return Judgement::Nothing;
    }
    let missing = || if complete { Judgement::invalid(Status::INVALID.text()) } else { Judgement::Wait };
    let mut reader = Reader(received);
    let Some(length) = reader.take(LENGTH).filter(|_| received.len() >= LENGTH + PRELUDE) else { return missing() };
    let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    let arrived = reader.0.len();
    if reader.prelude().is_none() {
        return Judgement::invalid(Status::INVALID.text());
    }
    if arrived < length {
        return missing();
    }
    match spop::agent_hello(reader.0, u32::try_from(largest).unwrap_or(u32::MAX)) {
        Ok(_) => Judgement::passed("SPOA server is ok"),
        Err(status) => Judgement::invalid(status.text()),
    }
}
