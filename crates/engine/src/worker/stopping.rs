//! Wakes tasks when the process stops, pauses or has drained. Must never decide that it does.

use super::Worker;

impl Worker {
    pub(super) fn tell_if_drained(&self) {
        if self.process.is_stopping() && self.process.is_drained() {
            rt::post(0, Box::new(|| crate::on_worker(|worker| worker.wake_drained())));
        }
    }

    /// Registers the calling task to be woken when the process is asked to stop, to pause or to resume.
    pub async fn watch_stop(&self) {
        std::future::poll_fn(|cx| {
            self.wakers.watchers.borrow_mut().push(cx.waker().clone());
            std::task::Poll::Ready(())
        })
        .await;
    }

    /// Wakes the tasks that watch for a stop or a pause.
    pub fn wake_watchers(&self) {
        for watcher in self.wakers.watchers.borrow().iter() {
            watcher.wake_by_ref();
        }
    }

    /// Wakes the tasks that watch for a stop, and every session, so that idle ones end.
    pub fn wake_sessions(&self) {
        self.wake_watchers();
        if self.process.is_stopping() {
            self.links.release();
        }
        for (_, task) in self.tasks.borrow().iter() {
            task.wake();
        }
    }

    /// Ready once accepting has ended and no worker has a session. For worker 0.
    pub fn poll_drained(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        *self.wakers.drained.borrow_mut() = Some(cx.waker().clone());
        if self.process.is_drained() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }

    fn wake_drained(&self) {
        if let Some(waker) = self.wakers.drained.borrow_mut().take() {
            waker.wake();
        }
    }
}
