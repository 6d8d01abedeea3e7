//! Access to the traffic of a connection's state: what only reads it finds nothing on an idle connection, and what changes it
//! lends the memory. Must never return the memory while something is in it.

use std::rc::Rc;

use super::cell::StreamCell;
use super::counts::Counts;
use super::output::Output;
use super::state::State;
use super::traffic::Traffic;

impl State {
    /// Whether it carries no stream, not even one that was released.
    pub(super) fn is_unused(&self) -> bool {
        self.traffic.get().is_none_or(|traffic| traffic.halves.is_empty())
    }

    /// Streams, output and counters.
    #[inline]
    pub(super) fn traffic(&mut self) -> &mut Traffic {
        self.traffic.lend()
    }

    /// Whether streams wait for free space.
    #[inline]
    pub(super) fn has_queued(&self) -> bool {
        self.traffic.get().is_some_and(|traffic| !traffic.queued.is_empty())
    }

    /// Counters since the connection's task last took them.
    #[inline]
    pub(super) fn counts(&mut self) -> &mut Counts {
        &mut self.traffic.lend().counts
    }

    /// Takes those counters.
    pub(super) fn take_counts(&mut self) -> Counts {
        let Some(traffic) = self.traffic.get_mut() else { return Counts::default() };
        let counts = std::mem::take(&mut traffic.counts);
        self.traffic.rest();
        counts
    }

    /// The bytes that wait to be written.
    #[inline]
    pub(super) fn output(&mut self) -> &mut Output {
        &mut self.traffic.lend().output
    }

    /// All streams, the smallest number first.
    pub(super) fn streams(&self) -> impl Iterator<Item = (u32, &Rc<StreamCell>)> {
        self.traffic.get().into_iter().flat_map(|traffic| traffic.halves.iter())
    }

    /// Finds a stream.
    #[inline]
    pub(super) fn find(&self, stream: u32) -> Option<&Rc<StreamCell>> {
        self.traffic.get()?.halves.get(stream)
    }
}
