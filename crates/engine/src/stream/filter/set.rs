//! Makes the filters of one proxy for a stream. Must never run one.

use std::sync::Arc;

use expression::sample::Direction;
use policy::program::{self, Proxy};

use super::bandwidth::BandwidthFilter;
use super::cache::CacheFilter;
use super::compression::CompressionFilter;
use super::grpc_web::GrpcWebFilter;
use super::shared::SharedBandwidthFilter;
use super::trace::TraceFilter;
use crate::filter::set::{AttachedFilter, FilterEntry};
use crate::filter::{Event, Filter, RulePosition, Set};
use crate::session::Session;
use crate::worker::SharedStreamState;

/// Position of a filter that acts elsewhere: of a FastCGI application; of SPOE, which is run by rules; and of a cache that a
/// rule implies.
struct PlaceholderFilter;

impl Filter for PlaceholderFilter {
    fn wants(&self, _: Direction) -> bool {
        false
    }
}

/// Makes the filter of a plan; `None`: it is that of a script, which does not apply to the stream.
fn filter_of(
    plan: &program::Filter,
    session: &Session,
    state: &SharedStreamState,
    position: RulePosition,
    of_backend: bool,
) -> Option<AttachedFilter> {
    let filter: Box<dyn Filter> = match plan {
        program::Filter::Bandwidth(limit) => Box::new(BandwidthFilter::new(*limit)),
        program::Filter::SharedBandwidth(limit) => Box::new(SharedBandwidthFilter::new(Arc::clone(limit))),
        // It is attached when it stores.
        program::Filter::Cache(plan) if plan.first => Box::new(PlaceholderFilter),
        program::Filter::Cache(plan) => Box::new(CacheFilter::new(*plan)),
        program::Filter::Compression(plan) => {
            let limits = session.generation().program.global.compression;
            Box::new(CompressionFilter::new(*plan, &session.worker, session.frontend, limits))
        }
        program::Filter::FcgiApp | program::Filter::Spoe | program::Filter::Otel => Box::new(PlaceholderFilter),
        program::Filter::Script(plan) => {
            let services = &session.worker.process.services;
            return services.start_filter(plan.number, session, state, position).map(AttachedFilter::Script);
        }
        program::Filter::GrpcWeb => Box::new(GrpcWebFilter::default()),
        program::Filter::Trace(trace) => Box::new(TraceFilter::new(trace, of_backend)),
    };
    Some(AttachedFilter::BuiltIn(filter))
}

impl Set {
    pub(super) fn attach(&mut self, session: &Session, state: &SharedStreamState, proxy: &Proxy, of_backend: bool) {
        let first = self.attached.len();
        for (index, plan) in proxy.filters.list.iter().enumerate() {
            let position = RulePosition { proxy: proxy.index, index };
            let filter = filter_of(plan, session, state, position, of_backend);
            let filter = filter.unwrap_or_else(|| AttachedFilter::BuiltIn(Box::new(PlaceholderFilter)));
            self.scripted |= filter.is_script();
            self.attached.push(FilterEntry { position, of_backend, filter });
            let context = self.context;
            self.attached.last_mut().into_iter().for_each(|own| own.filter.note(&context, Event::Attached));
        }
        let last = self.request.len() - self.last;
        self.request.splice(last..last, proxy.filters.request.iter().map(|index| first + index));
        self.response.extend(proxy.filters.response.iter().map(|index| first + index));
    }
}
