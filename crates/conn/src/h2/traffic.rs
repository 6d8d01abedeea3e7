//! The part of a connection's state that only traffic needs: streams, bytes that wait to be written, counters not taken yet.
//! Lent by the thread, so that an idle connection holds none of it; must never hold anything that outlives the last stream.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::counts::Counts;
use super::output::Output;
use super::stream_table::Halves;

/// The number of unused ones that a thread keeps, and their maximum capacity in streams.
const KEPT: usize = 64;
const LONGEST: usize = 1024;

/// State of a connection that carries streams or has bytes to write.
#[derive(Default)]
pub(super) struct Traffic {
    /// Streams being served.
    pub(super) halves: Halves,
    /// The number of them that were released by their tasks.
    pub(super) drained: usize,
    /// Streams that wait for free space in the output or for the connection's window ([`super::queue::Queue`]).
    pub(super) queued: VecDeque<u32>,
    pub(super) output: Output,
    /// Counters since the connection's task last took them.
    pub(super) counts: Counts,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "connections exchange the boxes themselves")]
    static SPARE: RefCell<Vec<Box<Traffic>>> = const { RefCell::new(Vec::new()) };
}

impl Traffic {
    /// Whether it contains nothing.
    fn is_over(&self) -> bool {
        self.halves.is_empty() && self.output.is_empty() && self.counts == Counts::default()
    }
}

/// The traffic of a connection, if it has any.
#[derive(Default)]
pub(super) struct TrafficSlot(Option<Box<Traffic>>);

impl TrafficSlot {
    #[inline]
    pub(super) fn get(&self) -> Option<&Traffic> {
        self.0.as_deref()
    }

    /// The traffic, if there is some.
    #[inline]
    pub(super) fn get_mut(&mut self) -> Option<&mut Traffic> {
        self.0.as_deref_mut()
    }

    /// The traffic, which begins if there was none.
    #[inline]
    pub(super) fn lend(&mut self) -> &mut Traffic {
        self.0.get_or_insert_with(|| SPARE.with_borrow_mut(Vec::pop).unwrap_or_default())
    }

    /// Returns the memory to the thread as far as nothing is left in it.
    #[inline]
    pub(super) fn rest(&mut self) {
        if let Some(traffic) = &mut self.0
            && traffic.halves.is_empty()
        {
            traffic.output.rest();
            if traffic.is_over() {
                self.end();
            }
        }
    }

    /// Bytes of memory that it holds, without streams.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        let Some(traffic) = self.get() else { return 0 };
        16 * traffic.halves.capacity() + 4 * traffic.queued.capacity() + traffic.output.capacity()
    }

    /// Keeps memory without contents for another connection, unless a limit is reached.
    fn end(&mut self) {
        let Some(mut traffic) = self.0.take() else { return };
        traffic.queued.clear();
        if traffic.halves.capacity() <= LONGEST && traffic.queued.capacity() <= LONGEST {
            SPARE.with_borrow_mut(|spare| {
                if spare.len() < KEPT {
                    spare.push(traffic);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    use super::super::cell::StreamCell;

    /// The address of a connection's traffic.
    fn address(slot: &TrafficSlot) -> Option<*const Traffic> {
        slot.get().map(std::ptr::from_ref)
    }

    #[test]
    fn traffic_is_lent_until_nothing_of_it_is_left() {
        let (mut first, mut second) = (TrafficSlot::default(), TrafficSlot::default());
        first.lend().halves.push(1, Rc::new(StreamCell::new()));
        first.lend().counts.streams = 1;
        first.lend().output.push_bytes(b"frame");
        let lent = address(&first);
        first.rest();
        assert_eq!(address(&first), lent, "a stream is open");
        first.lend().halves.remove(1);
        first.rest();
        assert_eq!(address(&first), lent, "bytes wait");
        first.lend().output.note_sent(5);
        first.rest();
        assert_eq!(address(&first), lent, "an event is not counted yet");
        first.lend().counts = Counts::default();
        first.rest();
        assert_eq!(address(&first), None);
        second.lend();
        assert_eq!(address(&second), lent, "the next connection gets the memory");
    }

    #[test]
    fn a_thread_keeps_few_and_small_ones() {
        let mut slots: Vec<TrafficSlot> = (0..2 * KEPT).map(|_| TrafficSlot::default()).collect();
        slots.iter_mut().for_each(|slot| slot.lend().drained = 0);
        slots.iter_mut().for_each(TrafficSlot::rest);
        assert_eq!(SPARE.with_borrow(Vec::len), KEPT);
        SPARE.with_borrow_mut(Vec::clear);
        let large = &mut slots[0];
        (0..2 * LONGEST as u32).for_each(|number| large.lend().queued.push_back(number));
        large.rest();
        assert!(large.get().is_none() && SPARE.with_borrow(Vec::is_empty));
    }
}
