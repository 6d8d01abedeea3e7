//! Schedules which stream of a connection may add to its output: streams wait in the queue, and are woken in order.
//! Must never write a frame.

use wire::http::priority::Priority;

use super::state::State;
use super::stream_half::Half;
use super::stream_table::Halves;
use super::traffic::Traffic;

impl State {
    /// Removes a stream from the queue, which never holds more streams than there are.
    pub(super) fn unqueue(&mut self, stream: u32, half: &mut Half) {
        if std::mem::take(&mut half.queued) {
            self.traffic().queued.retain(|queued| *queued != stream);
        }
    }

    /// Queues a stream until there is free space.
    pub(super) fn enqueue(&mut self, stream: u32) {
        self.traffic().queued.push_back(stream);
    }

    /// Sets the priority of a request, which may not have begun yet.
    pub(super) fn prioritize(&mut self, stream: u32, priority: Priority) {
        match self.find(stream) {
            Some(cell) => {
                cell.half().priority = priority;
                self.queue.note(priority);
            }
            None if stream > self.newest => self.queue.announce(stream, priority),
            None => {}
        }
    }

    /// Whether a stream waits for a more urgent one. Borrows the halves of all streams that wait.
    #[inline]
    pub(super) fn is_preceded(&self, stream: u32) -> bool {
        self.queue.is_ranked() && self.waits_for_another(stream)
    }

    fn waits_for_another(&self, stream: u32) -> bool {
        let Some(Traffic { halves, queued, .. }) = self.traffic.get() else { return false };
        self.queue.precedes(queued, stream, priority_in(halves, stream), |other| priority_in(halves, other))
    }

    /// Wakes the streams that wait for free space for which there may be some. Returns whether others still wait
    /// although there is free space, so that the connection has to be polled again.
    #[inline]
    pub(super) fn serve_queue(&mut self) -> bool {
        self.has_queued() && self.serve_waiting()
    }

    fn serve_waiting(&mut self) -> bool {
        let mut turns = self.room() / wire::h2::MAX_FRAME_SIZE + usize::from(self.has_room() && self.window > 0);
        while turns > 0 {
            let Some(Traffic { halves, queued, .. }) = self.traffic.get_mut() else { return false };
            let Some(stream) = self.queue.pop(queued, |stream| priority_in(halves, stream)) else { return false };
            let is_ranked = self.queue.is_ranked();
            if let Some(cell) = halves.get(stream) {
                let mut half = cell.half();
                half.queued = false;
                half.wake();
                // Others get the space that it leaves.
                turns = if is_ranked && !half.priority.incremental { 0 } else { turns - 1 };
            }
        }
        self.has_queued() && self.room() > 0
    }
}

fn priority_in(halves: &Halves, stream: u32) -> Priority {
    halves.get(stream).map_or_else(Priority::default, |cell| cell.half().priority)
}
