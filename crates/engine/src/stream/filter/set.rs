//! The filters of one stream, and the order in which they process its messages. Must never know what a filter does.

use std::sync::Arc;

use expression::sample::Direction;
use policy::program::Proxy;
use wire::http::Head;

use super::{Event, Filter, Scene, bandwidth, cache, compression, grpc_web, shared, trace};
use crate::session::Session;
use crate::stream::spoe::StreamAgents;
use crate::worker::SharedStreamState;

/// Placeholder for filters that act elsewhere: of a FastCGI application; of SPOE, which is run by rules; and of a cache that a
/// rule implies.
struct Marker;

impl Filter for Marker {
    fn wants(&self, _: Direction) -> bool {
        false
    }
}

/// A filter with its origin.
pub(super) struct Attached {
    /// Index of the proxy.
    pub(super) proxy: usize,
    /// Index among the proxy's filters.
    pub(super) index: usize,
    /// It belongs to the backend, which differs from the frontend.
    pub(super) of_backend: bool,
    pub(super) filter: Box<dyn Filter>,
}

/// The filters of a stream.
#[derive(Default)]
pub struct Set {
    pub(super) scene: Scene,
    pub(super) attached: Vec<Attached>,
    /// Indices of filters on the way to the server, in order.
    pub(super) request: Vec<usize>,
    /// Indices of filters on the way to the client, in order.
    pub(super) response: Vec<usize>,
    /// State of SPOE processing.
    pub(crate) agents: StreamAgents,
    /// Number of filters at the end of `request` that copy it.
    pub(super) copying: usize,
    /// One of them is a script.
    pub(super) scripted: bool,
    /// Number of filters that have processed the head of a direction; 0: not started.
    pub(super) seen: usize,
}

impl Set {
    pub(super) fn order(&self, direction: Direction) -> &[usize] {
        match direction {
            Direction::Request => &self.request,
            Direction::Response => &self.response,
        }
    }

    pub(super) fn attach(&mut self, session: &Session, state: &SharedStreamState, proxy: &Proxy, of_backend: bool) {
        let first = self.attached.len();
        for (index, plan) in proxy.filters.list.iter().enumerate() {
            let filter: Box<dyn Filter> = match plan {
                policy::program::Filter::Bandwidth(limit) => Box::new(bandwidth::Limiter::new(*limit)),
                policy::program::Filter::SharedBandwidth(limit) => Box::new(shared::Limiter::new(Arc::clone(limit))),
                // It is attached when it stores.
                policy::program::Filter::Cache(plan) if plan.first => Box::new(Marker),
                policy::program::Filter::Cache(plan) => Box::new(cache::Keeper::new(*plan)),
                policy::program::Filter::Compression(plan) => {
                    let limits = session.generation().program.global.compression;
                    Box::new(compression::Compressor::new(*plan, &session.worker, session.frontend, limits))
                }
                policy::program::Filter::FcgiApp | policy::program::Filter::Spoe | policy::program::Filter::Otel => {
                    Box::new(Marker)
                }
                policy::program::Filter::Script(plan) => {
                    let services = &session.worker.process.services;
                    let made = services.start_filter(plan.number, session, state, (proxy.index, index));
                    self.scripted |= made.is_some();
                    made.unwrap_or_else(|| Box::new(Marker))
                }
                policy::program::Filter::GrpcWeb => Box::new(grpc_web::Translator::default()),
                policy::program::Filter::Trace(trace) => Box::new(trace::Tracer::new(trace, of_backend)),
            };
            self.attached.push(Attached { proxy: proxy.index, index, of_backend, filter });
            let scene = self.scene;
            self.attached.last_mut().into_iter().for_each(|own| own.filter.note(&scene, Event::Attached));
        }
        let last = self.request.len() - self.copying;
        self.request.splice(last..last, proxy.filters.request.iter().map(|index| first + index));
        self.response.extend(proxy.filters.response.iter().map(|index| first + index));
    }

    /// Attaches a filter as the first on the way to the client.
    pub(super) fn attach_first(&mut self, (proxy, index): (usize, usize), of_backend: bool, filter: Box<dyn Filter>) {
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

    pub(super) fn tell(&mut self, event: Event<'_>) {
        let scene = self.scene;
        self.attached.iter_mut().for_each(|own| own.filter.note(&scene, event));
    }

    /// Reports an event to the filters of the backend, or to the others.
    pub(super) fn tell_those(&mut self, of_backend: bool, event: Event<'_>) {
        let scene = self.scene;
        let own = self.attached.iter_mut().filter(|own| own.of_backend == of_backend);
        own.for_each(|own| own.filter.note(&scene, event));
    }

    /// Reports an event to the filters of a direction.
    pub(super) fn tell_of(&mut self, direction: Direction, event: Event<'_>, only: impl Fn(bool) -> bool) {
        let scene = self.scene;
        for place in 0..self.order(direction).len() {
            let index = self.order(direction)[place];
            if only(self.attached[index].of_backend) {
                self.attached[index].filter.note(&scene, event);
            }
        }
    }

    pub(super) fn head(&mut self, direction: Direction, head: &mut Head) {
        let scene = self.scene;
        for place in 0..self.order(direction).len() {
            let index = self.order(direction)[place];
            self.attached[index].filter.head(&scene, direction, head);
        }
    }

    pub(super) fn wants(&self, direction: Direction) -> bool {
        self.order(direction).iter().any(|index| self.attached[*index].filter.wants(direction))
    }
}
