//! One query, sent to all name servers of a section at once: the pending answers, and the one that is used. Must never send
//! anything.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use base::moment::Moment;
use policy::resolve::Failure;
use wire::dns::{AnswerRecords, Fault, Kind, Name};

/// A query and its answers.
#[derive(Debug)]
pub(super) struct Round {
    pub name: Name,
    pub kind: Kind,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of name servers that have not answered.
    owing: usize,
    /// The first valid answer, and the index of its name server.
    good: Option<(AnswerRecords, usize)>,
    /// The last failure.
    last: Option<Failure>,
    waker: Option<Waker>,
}

impl Round {
    /// Creates a round without pending queries.
    pub(super) fn new(name: Name, kind: Kind) -> Self {
        Self { name, kind, state: RefCell::default() }
    }

    /// Counts a query as sent to one more name server.
    pub(super) fn owe(&self) {
        self.state.borrow_mut().owing += 1;
    }

    /// Whether the round has a valid answer or no pending queries.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state.borrow();
        state.good.is_some() || state.owing == 0
    }

    /// Records an answer.
    pub(super) fn answer(&self, nameserver: usize, answer: Result<AnswerRecords, Fault>) {
        match answer {
            Ok(found) => {
                let mut state = self.state.borrow_mut();
                state.owing = state.owing.saturating_sub(1);
                state.good.get_or_insert((found, nameserver));
            }
            Err(fault) => self.fail(Failure::of(fault)),
        }
        self.wake();
    }

    /// Records that a name server failed.
    pub(super) fn fail(&self, failure: Failure) {
        {
            let mut state = self.state.borrow_mut();
            state.owing = state.owing.saturating_sub(1);
            state.last = Some(failure);
        }
        self.wake();
    }

    fn wake(&self) {
        if self.is_over()
            && let Some(waker) = self.state.borrow_mut().waker.take()
        {
            waker.wake();
        }
    }

    /// Waits for the first valid answer, until `deadline` at most.
    pub(super) async fn outcome(&self, deadline: Moment) -> Result<(AnswerRecords, usize), Failure> {
        let mut timer = rt::Timer::new();
        timer.arm(Some(deadline));
        poll_fn(|cx| {
            let mut state = self.state.borrow_mut();
            if let Some(good) = state.good.take() {
                return Poll::Ready(Ok(good));
            }
            if state.owing == 0 {
                return Poll::Ready(Err(state.last.unwrap_or(Failure::Timeout)));
            }
            state.waker = Some(cx.waker().clone());
            timer.poll_expired(cx).map(|()| Err(Failure::Timeout))
        })
        .await
    }
}
