//! Copies the payload of a request for `http-request mirror`. It is the last filter, so that it sees what the server receives.
//! Must never hold anything back.

use std::cell::RefCell;
use std::rc::Rc;

use base::buffer::Buffer;
use conn::copy::{Feed, SharedFeed};
use conn::flow::{FilterOutput, forward};
use expression::sample::Direction;
use wire::http::Framing;

use crate::filter::{Filter, FilterContext, Set};
use crate::session::Session;
use crate::stream::exchange::mirror;
use crate::stream_state::StreamState;

/// Copies one request to a backend.
struct MirrorFilter {
    /// Index of the backend; `None`: the copy was started or cancelled.
    backend: Option<usize>,
    feed: Option<SharedFeed>,
}

impl MirrorFilter {
    fn new(backend: usize) -> Self {
        Self { backend: Some(backend), feed: None }
    }

    /// Sends the copy of a request that is ready for its server.
    fn begin_copy(&mut self, session: &Session, state: &StreamState) {
        let Some(backend) = self.backend.take() else { return };
        let framing = state.request.framing;
        let feed = framing.has_body().then(|| Rc::new(RefCell::new(Feed::new(framing == Framing::Chunked))));
        if mirror::send(session, state, backend, feed.clone()) {
            self.feed = feed;
        }
    }
}

/// Adds a copy of the request to a backend, after all other filters.
pub fn mirror(session: &Session, state: &mut StreamState, backend: usize) {
    let filters = state.filters.get_or_insert_with(|| super::new(session));
    filters.borrow_mut().attach_last(Box::new(MirrorFilter::new(backend)));
}

/// Begins to copy a request that is ready for its server, after all filters have processed its head.
pub(super) fn begin_copies(set: &mut Set, session: &Session, state: &StreamState) {
    for place in set.request.len() - set.last..set.request.len() {
        let index = set.request[place];
        if let Some(own) = set.attached[index].filter.as_kind_mut::<MirrorFilter>() {
            own.begin_copy(session, state);
        }
    }
}

impl Drop for MirrorFilter {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.borrow_mut().abort();
        }
    }
}

impl Filter for MirrorFilter {
    fn wants(&self, direction: Direction) -> bool {
        direction == Direction::Request && self.feed.is_some()
    }

    fn body(
        &mut self,
        _: &FilterContext,
        _: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> FilterOutput {
        // The copy can end before its request; its payload is not kept then.
        if self.feed.as_ref().is_some_and(|feed| Rc::strong_count(feed) == 1) {
            self.feed = None;
        }
        if let Some(feed) = &self.feed {
            let feed = &mut *feed.borrow_mut();
            feed.push(input.data());
            if ended {
                feed.end();
            }
        }
        forward(input, output, usize::MAX);
        FilterOutput::Through
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_held_for_a_copy_that_has_ended() {
        let context = FilterContext { stream: 1, worker: 0, http: true, has_backend: true, print: None };
        let feed = Rc::new(RefCell::new(Feed::new(false)));
        let mut copying = MirrorFilter { backend: None, feed: Some(Rc::clone(&feed)) };
        let pass = |copying: &mut MirrorFilter| {
            let (mut input, mut output) = (Buffer::with_capacity(16), Buffer::with_capacity(16));
            assert!(input.push(b"payload"));
            copying.body(&context, Direction::Request, &mut input, &mut output, false);
            assert_eq!(output.data(), b"payload");
        };
        pass(&mut copying);
        assert!(copying.wants(Direction::Request));
        drop(feed);
        pass(&mut copying);
        assert!(!copying.wants(Direction::Request) && copying.feed.is_none());
    }
}
