//! A future that is cancelled when a condition holds. Stores the future in place, so that the awaiting future needs no
//! space for it twice; must never move it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Polls `future` while `condition` is false. `None`: the condition became true first; the code that makes it true
/// wakes the task.
pub fn unless<C: FnMut() -> bool, F: Future>(condition: C, future: F) -> Unless<C, F> {
    Unless { condition, future }
}

/// See [`unless`].
#[must_use = "futures do nothing unless they are polled"]
#[derive(Debug)]
pub struct Unless<C, F> {
    condition: C,
    future: F,
}

impl<C: FnMut() -> bool, F: Future> Future for Unless<C, F> {
    type Output = Option<F::Output>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        // SAFETY: the condition is not pinned; the future is pinned wherever this is: nothing moves it out, there is no
        // `drop` of its own, and it is `Unpin` only where the future is.
        let (condition, future) = unsafe {
            let this = self.get_unchecked_mut();
            (&mut this.condition, Pin::new_unchecked(&mut this.future))
        };
        if condition() { Poll::Ready(None) } else { future.poll(context).map(Some) }
    }
}
