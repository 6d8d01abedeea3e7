//! Early data of a connection (RFC 8446, section 2.3): whether the handshake after it is complete. Must never hold the
//! data.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The handshake is in progress.
const PENDING: u8 = 0;
/// The handshake is complete.
const OVER: u8 = 1;
/// The connection ended before the handshake was complete.
const FAILED: u8 = 2;

/// The state of the handshake of a connection with early data: shared by the transport, which sets it, and by tasks
/// that wait for it.
#[derive(Debug, Default)]
pub struct EarlyData {
    state: AtomicU8,
    waiting: Mutex<Vec<Waker>>,
}

impl EarlyData {
    /// Creates the state of a complete handshake.
    pub fn over() -> Self {
        Self { state: AtomicU8::new(OVER), ..Self::default() }
    }

    /// Whether the handshake is in progress: until it is complete, the data may be a replay.
    pub fn is_pending(&self) -> bool {
        self.state.load(Ordering::Acquire) == PENDING
    }

    /// Records that the handshake is complete, or that the connection ended before. Only the first call has an effect.
    pub fn conclude(&self, is_whole: bool) {
        let state = if is_whole { OVER } else { FAILED };
        if self.state.compare_exchange(PENDING, state, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Ready when the handshake is complete; false: the connection ended before.
    pub fn poll_over(&self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.is_pending() {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
            drop(waiting);
            // It may have completed between the two checks.
            if self.is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.state.load(Ordering::Acquire) == OVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_conclusion_counts() {
        let mut cx = Context::from_waker(Waker::noop());
        for (first, second) in [(true, false), (false, true)] {
            let early = EarlyData::default();
            assert_eq!((early.is_pending(), early.poll_over(&mut cx)), (true, Poll::Pending));
            early.conclude(first);
            early.conclude(second);
            assert_eq!((early.is_pending(), early.poll_over(&mut cx)), (false, Poll::Ready(first)));
        }
        assert_eq!(EarlyData::over().poll_over(&mut cx), Poll::Ready(true));
    }
}
