//! The order of the streams that wait for free space in the output or for the connection's window, and the choice of the
//! next one: the one that has waited longest, or the most urgent one if the client has set priorities (RFC 9218). Must
//! never hold more streams than there are.

use std::collections::VecDeque;

use wire::http::priority::Priority;

use super::rare_list::RareList;

/// The most priorities kept for streams that have not begun; if there are more, the oldest are dropped.
const MOST_ANNOUNCED: usize = 16;

/// Every `FAIR`th stream is the one that has waited longest, even if others are more urgent, so that none starves.
const FAIR: u8 = 16;

/// How waiting streams are chosen. The streams themselves are part of the connection's traffic.
#[derive(Default)]
pub(super) struct Queue {
    /// Whether the client has set a priority of a request.
    ranked: bool,
    /// The number of streams taken by urgency since the last one taken by its waiting time.
    picks: u8,
    announced: RareList<(u32, Priority)>,
}

impl Queue {
    /// Whether urgency counts.
    pub(super) fn is_ranked(&self) -> bool {
        self.ranked
    }

    /// Records the priority of a request: from now on urgency counts, unless all have the default.
    pub(super) fn note(&mut self, priority: Priority) {
        self.ranked |= priority != Priority::default();
    }

    /// Stores the priority of a stream that has not begun.
    pub(super) fn announce(&mut self, stream: u32, priority: Priority) {
        self.take_announced(stream);
        self.announced.push((stream, priority), MOST_ANNOUNCED);
    }

    /// Whether priorities of streams that have not begun are kept.
    #[inline]
    pub(super) fn has_announced(&self) -> bool {
        !self.announced.is_empty()
    }

    /// Takes the priority announced for a stream that begins, which takes precedence over its field (RFC 9218, section
    /// 7).
    pub(super) fn take_announced(&mut self, stream: u32) -> Option<Priority> {
        self.announced.take(|(known, _)| *known == stream).map(|(_, priority)| priority)
    }

    /// Takes the next of the waiting streams: of the most urgent ones the one that has waited longest. If it is not incremental, the
    /// streams of its priority are sent one after the other, in the order of their requests.
    pub(super) fn pop(&mut self, streams: &mut VecDeque<u32>, priority_of: impl Fn(u32) -> Priority) -> Option<u32> {
        if !self.ranked {
            return streams.pop_front();
        }
        self.picks += 1;
        if self.picks >= FAIR {
            self.picks = 0;
            return streams.pop_front();
        }
        let known = |(at, stream): (usize, &u32)| (at, *stream, priority_of(*stream));
        let (at, _, best) = streams.iter().enumerate().map(known).min_by_key(|(_, _, own)| own.urgency)?;
        if best.incremental {
            return streams.remove(at);
        }
        let alike = streams.iter().enumerate().map(known).filter(|(_, _, own)| *own == best);
        let (at, ..) = alike.min_by_key(|(_, stream, _)| *stream)?;
        streams.remove(at)
    }

    /// Whether another of the waiting streams has to be sent before this one.
    pub(super) fn precedes(
        &self,
        streams: &VecDeque<u32>,
        stream: u32,
        own: Priority,
        priority_of: impl Fn(u32) -> Priority,
    ) -> bool {
        self.ranked
            && streams.iter().filter(|other| **other != stream).any(|other| {
                let theirs = priority_of(*other);
                theirs.urgency < own.urgency || theirs == own && !own.incremental && *other < stream
            })
    }

    /// Bytes of memory that it holds.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        self.announced.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    fn drain(queue: &mut Queue, streams: &[u32], priority_of: impl Fn(u32) -> Priority) -> Vec<u32> {
        let mut streams = streams.iter().copied().collect();
        std::iter::from_fn(|| queue.pop(&mut streams, &priority_of)).collect()
    }

    #[test]
    fn without_priorities_the_first_is_next() {
        let mut queue = Queue::default();
        queue.note(Priority::default());
        let streams = [5, 1, 3];
        assert!(!queue.is_ranked());
        assert!(!queue.precedes(&streams.into(), 9, Priority::default(), |_| Priority::default()));
        assert_eq!(drain(&mut queue, &streams, |_| Priority::default()), [5, 1, 3]);
    }

    #[test]
    fn the_most_urgent_is_next() {
        let mut queue = Queue::default();
        queue.note(of(0, false));
        let priority_of = |stream: u32| match stream {
            1 | 5 => of(3, false),
            3 => of(0, true),
            7 | 9 => of(2, true),
            _ => of(7, false),
        };
        let streams = [11, 5, 9, 1, 7, 3];
        assert!(queue.precedes(&streams.into(), 5, of(3, false), priority_of));
        assert!(!queue.precedes(&streams.into(), 3, of(0, true), priority_of));
        assert_eq!(drain(&mut queue, &streams, priority_of), [3, 9, 7, 1, 5, 11]);
    }

    /// A stream that is never the most urgent one is taken nevertheless.
    #[test]
    fn none_starves() {
        let mut queue = Queue::default();
        queue.note(of(0, false));
        let mut streams = VecDeque::from([9]);
        let mut picks = 0;
        loop {
            streams.push_back(1);
            picks += 1;
            match queue.pop(&mut streams, |stream| of(if stream == 9 { 7 } else { 0 }, false)) {
                Some(9) => break,
                _ => assert!(picks < usize::from(FAIR)),
            }
        }
    }

    #[test]
    fn few_priorities_are_kept_ahead() {
        let mut queue = Queue::default();
        (1..100).for_each(|stream| queue.announce(stream, of(1, false)));
        queue.announce(99, of(2, true));
        assert_eq!(queue.announced.iter().count(), MOST_ANNOUNCED);
        assert_eq!((queue.take_announced(1), queue.take_announced(99)), (None, Some(of(2, true))));
        assert_eq!(queue.take_announced(99), None);
    }
}
