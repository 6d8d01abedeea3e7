//! Makes the filters of one proxy for a stream. Must never run one.

use std::sync::Arc;

use expression::sample::Direction;
use policy::program::Proxy;

use super::{bandwidth, cache, compression, grpc_web, shared, trace};
use crate::filter::set::Attached;
use crate::filter::{Event, Filter, Set};
use crate::session::Session;
use crate::worker::SharedStreamState;

/// Placeholder for filters that act elsewhere: of a FastCGI application; of SPOE, which is run by rules; and of a cache that a
/// rule implies.
struct Marker;

impl Filter for Marker {
    fn wants(&self, _: Direction) -> bool {
        false
    }
}

impl Set {
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
                    let made = services.start_filter(plan.number, session, state, proxy.index, index);
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
}
