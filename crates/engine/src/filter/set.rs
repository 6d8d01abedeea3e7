//! The filters of one stream, and the order in which they process its messages. Must never know what a filter does.

use expression::sample::Direction;
use wire::http::Head;

use super::agents::StreamAgents;
use super::{Event, Filter, Scene};

/// A filter with its origin.
pub(crate) struct Attached {
    /// Index of the proxy.
    pub(crate) proxy: usize,
    /// Index among the proxy's filters.
    pub(crate) index: usize,
    /// It belongs to the backend, which differs from the frontend.
    pub(crate) of_backend: bool,
    pub(crate) filter: Box<dyn Filter>,
}

/// The filters of a stream.
#[derive(Default)]
pub struct Set {
    pub(crate) scene: Scene,
    pub(crate) attached: Vec<Attached>,
    /// Indices of filters on the way to the server, in order.
    pub(crate) request: Vec<usize>,
    /// Indices of filters on the way to the client, in order.
    pub(crate) response: Vec<usize>,
    /// State of SPOE processing.
    pub(crate) agents: StreamAgents,
    /// Number of filters at the end of `request` that copy it.
    pub(crate) copying: usize,
    /// One of them is a script.
    pub(crate) scripted: bool,
    /// Number of filters that have processed the head of a direction; 0: not started.
    pub(crate) seen: usize,
}

impl Set {
    pub(crate) fn order(&self, direction: Direction) -> &[usize] {
        match direction {
            Direction::Request => &self.request,
            Direction::Response => &self.response,
        }
    }

    /// Attaches a filter as the first on the way to the client.
    pub(crate) fn attach_first(&mut self, proxy: usize, index: usize, of_backend: bool, filter: Box<dyn Filter>) {
        self.response.insert(0, self.attached.len());
        self.attached.push(Attached { proxy, index, of_backend, filter });
    }

    /// Removes all filters, keeping the capacity of the lists.
    pub fn clear(&mut self) {
        let Self { attached, request, response, .. } = std::mem::take(self);
        (self.attached, self.request, self.response) = (attached, request, response);
        self.attached.clear();
        self.request.clear();
        self.response.clear();
    }

    pub(crate) fn tell(&mut self, event: Event<'_>) {
        let scene = self.scene;
        self.attached.iter_mut().for_each(|own| own.filter.note(&scene, event));
    }

    /// Reports an event to the filters of the backend, or to the others.
    pub(crate) fn tell_those(&mut self, of_backend: bool, event: Event<'_>) {
        let scene = self.scene;
        let own = self.attached.iter_mut().filter(|own| own.of_backend == of_backend);
        own.for_each(|own| own.filter.note(&scene, event));
    }

    /// Reports an event to the filters of a direction.
    pub(crate) fn tell_of(&mut self, direction: Direction, event: Event<'_>, only: impl Fn(bool) -> bool) {
        let scene = self.scene;
        for place in 0..self.order(direction).len() {
            let index = self.order(direction)[place];
            if only(self.attached[index].of_backend) {
                self.attached[index].filter.note(&scene, event);
            }
        }
    }

    pub(crate) fn head(&mut self, direction: Direction, head: &mut Head) {
        let scene = self.scene;
        for place in 0..self.order(direction).len() {
            let index = self.order(direction)[place];
            self.attached[index].filter.head(&scene, direction, head);
        }
    }

    pub(crate) fn wants(&self, direction: Direction) -> bool {
        self.order(direction).iter().any(|index| self.attached[*index].filter.wants(direction))
    }
}
