//! Threads for work that would block a worker. They start with the first job; the number of queued jobs is bounded.
//!
//! A job must never access what belongs to a worker.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

use crate::mailbox::Job;
use crate::{current, sys};

/// The threads and the queue of their jobs.
pub struct Helpers {
    queue: Arc<Queue>,
    threads: usize,
    most: usize,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    started: usize,
    idle: usize,
    over: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        // A signal handler that runs on this thread could not reach the descriptors that it writes to.
        sys::signal::leave_to_other_threads();
        loop {
            let mut state = self.lock();
            let job = loop {
                if let Some(job) = state.jobs.pop_front() {
                    break job;
                }
                if state.over {
                    return;
                }
                state.idle += 1;
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            };
            drop(state);
            // The job wakes its waiter by dropping its filler.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }
}

/// The slot for the result of a job.
struct AnswerSlot<T> {
    answer: Option<T>,
    over: bool,
    waker: Option<Waker>,
}

/// The writing end of an [`AnswerSlot`]; dropped without an answer if the job panicked.
struct Filler<T>(Arc<Mutex<AnswerSlot<T>>>);

impl<T> Drop for Filler<T> {
    fn drop(&mut self) {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.over = true;
        let waker = place.waker.take();
        drop(place);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Helpers {
    /// Creates a pool of up to `threads` threads and a queue of up to `most` jobs.
    pub fn new(threads: usize, most: usize) -> Self {
        Self { queue: Arc::default(), threads: threads.max(1), most }
    }

    /// Runs a job on a helper thread and waits for its result; `None` if the queue is full, or if the job panicked. In
    /// a simulation it runs immediately on this thread.
    pub async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let place = Arc::new(Mutex::new(AnswerSlot { answer: None, over: false, waker: None }));
        let filler = Filler(Arc::clone(&place));
        let work: Job = Box::new(move || {
            let answer = job();
            filler.0.lock().unwrap_or_else(PoisonError::into_inner).answer = Some(answer);
        });
        if current::try_with(|worker| worker.remote.descriptors.is_none()) == Some(true) {
            work();
        } else if !self.submit(work) {
            return None;
        }
        std::future::poll_fn(|cx| {
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            if place.over {
                return Poll::Ready(place.answer.take());
            }
            place.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Queues a job. False: the queue is full, or there is no thread.
    fn submit(&self, job: Job) -> bool {
        let mut state = self.queue.lock();
        if state.jobs.len() >= self.most {
            return false;
        }
        if state.idle == 0 && state.started < self.threads {
            let queue = Arc::clone(&self.queue);
            let name = format!("helper {}", state.started);
            let started = thread::Builder::new().name(name).spawn(move || queue.serve()).is_ok();
            state.started += usize::from(started);
        }
        if state.started == 0 {
            return false;
        }
        state.jobs.push_back(job);
        drop(state);
        self.queue.more.notify_one();
        true
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.over = true;
        state.jobs.clear();
        drop(state);
        self.queue.more.notify_all();
    }
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helpers").field("threads", &self.threads).field("most", &self.most).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Wake};

    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => thread::park(),
            }
        }
    }

    #[test]
    fn answers_come_from_another_thread() {
        let helpers = Helpers::new(2, 4);
        let here = thread::current().id();
        for _ in 0..10 {
            assert_eq!(block_on(helpers.run(move || thread::current().id() != here)), Some(true));
        }
    }

    #[test]
    fn a_job_that_panics_has_no_answer_and_the_next_one_runs() {
        let helpers = Helpers::new(1, 4);
        assert_eq!(block_on(helpers.run(|| panic!("on purpose"))), None::<()>);
        assert_eq!(block_on(helpers.run(|| 7)), Some(7));
    }

    #[test]
    fn no_more_than_the_bound_wait() {
        let helpers = Helpers::new(1, 1);
        let (go, wait) = mpsc::channel::<()>();
        let (begun, beginning) = mpsc::channel::<()>();
        let mut first = pin!(helpers.run(move || {
            let _ = begun.send(());
            wait.recv().is_ok()
        }));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        beginning.recv().unwrap();
        let mut second = pin!(helpers.run(|| 2));
        assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(block_on(helpers.run(|| 3)), None);
        go.send(()).unwrap();
        assert_eq!((block_on(first), block_on(second)), (Some(true), Some(2)));
    }
}
