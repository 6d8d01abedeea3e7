//! Copies the payload of a request for `http-request mirror`. It is the last filter, so that it sees what the server receives.
//! Must never hold anything back.

use std::cell::RefCell;
use std::rc::Rc;

use base::buffer::Buffer;
use conn::copy::{Feed, SharedFeed};
use conn::flow::{Passed, forward};
use expression::sample::Direction;
use wire::http::Framing;

use crate::filter::{Filter, Scene};
use crate::session::Session;
use crate::stream::mirror;
use crate::stream_state::StreamState;

/// Copies one request to a backend.
pub(super) struct Tap {
    /// Index of the backend; `None`: the copy was started or cancelled.
    backend: Option<usize>,
    feed: Option<SharedFeed>,
}

impl Tap {
    pub(super) fn new(backend: usize) -> Self {
        Self { backend: Some(backend), feed: None }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.borrow_mut().abort();
        }
    }
}

impl Filter for Tap {
    fn begin_copy(&mut self, session: &Session, state: &StreamState) {
        let Some(backend) = self.backend.take() else { return };
        let framing = state.request.framing;
        let feed = framing.has_body().then(|| Rc::new(RefCell::new(Feed::new(framing == Framing::Chunked))));
        if mirror::send(session, state, backend, feed.clone()) {
            self.feed = feed;
        }
    }

    fn wants(&self, direction: Direction) -> bool {
        direction == Direction::Request && self.feed.is_some()
    }

    fn body(&mut self, _: &Scene, _: Direction, input: &mut Buffer, output: &mut Buffer, ended: bool) -> Passed {
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
        Passed::Through
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_held_for_a_copy_that_has_ended() {
        let scene = Scene { stream: 1, worker: 0, http: true, has_backend: true, tell: None };
        let feed = Rc::new(RefCell::new(Feed::new(false)));
        let mut tap = Tap { backend: None, feed: Some(Rc::clone(&feed)) };
        let pass = |tap: &mut Tap| {
            let (mut input, mut output) = (Buffer::with_capacity(16), Buffer::with_capacity(16));
            assert!(input.push(b"payload"));
            tap.body(&scene, Direction::Request, &mut input, &mut output, false);
            assert_eq!(output.data(), b"payload");
        };
        pass(&mut tap);
        assert!(tap.wants(Direction::Request));
        drop(feed);
        pass(&mut tap);
        assert!(!tap.wants(Direction::Request) && tap.feed.is_none());
    }
}
