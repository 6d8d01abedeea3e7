//! Built-in services. Must never start one.

use std::sync::Arc;

use engine::service::registry::Services;

use crate::{dashboard, haterm, page, prometheus};

/// Returns the services for `http-request use-service`. Register a new one here, under its name and with its
/// constructor.
pub fn built_in() -> Services {
    let mut services = Services::default();
    let scrape = Arc::new(|session: &_, _: &_| prometheus::start(session));
    services.register_shown(prometheus::NAME, prometheus::SHOWN, true, scrape);
    services.register(haterm::NAME, true, Arc::new(haterm::start));
    services.set_page(Arc::new(|session, request, target| {
        dashboard::start(session, request, target).unwrap_or_else(|| page::start(session, request))
    }));
    services.set_metrics(Arc::new(|worker, channel| Box::pin(prometheus::send_metrics(worker, channel))));
    services
}
