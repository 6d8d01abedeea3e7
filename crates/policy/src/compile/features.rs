//! The optional features of a proxy, derived once the rest of it is compiled. Must never miss a setting: a feature that is not
//! derived is disabled.

use config::spec::RestrictNames;

use super::names::Shared;
use super::userlist;
use crate::program::{Backend, Features, Proxy, Userlist};

/// Derives the features of all proxies, after their slow `userlist`s were recorded.
pub(super) fn derive(shared: &Shared, userlists: &[Userlist], proxies: &mut [Proxy]) {
    userlist::note_slow(shared, userlists, proxies);
    proxies.iter_mut().for_each(|proxy| proxy.features = features(proxy));
}

/// Derives the features of a proxy, in either role.
pub(super) fn features(proxy: &Proxy) -> Features {
    let (http, filters) = (&proxy.http, &proxy.filters);
    let frontend = proxy.frontend.as_ref();
    let traced = frontend.is_some_and(|own| own.trace.is_some());
    let screened = http.buffer_request
        || proxy.backend.as_ref().is_some_and(Backend::checks_post)
        || !proxy.slow_userlists.is_empty()
        || proxy.stats.is_some()
        || proxy.rules.see_requests();
    let identified = frontend.and_then(|own| own.unique_id.as_ref()).is_some_and(|own| own.header.is_some());
    let fields = http.forwardfor.is_some()
        || http.originalto.is_some()
        || http.forwarded.is_some()
        || http.send_name_header.is_some()
        || identified;
    let splice = &proxy.options.splice;
    // Conditions of switching are evaluated like those of rules.
    let switches = frontend.is_some_and(|own| !own.switching.is_empty() || !own.force_switching.is_empty());
    Features::default()
        .with_if(!proxy.rules.are_absent() || switches, Features::RULES)
        .with_if(filters.are_wanted || !filters.list.is_empty(), Features::FILTERS)
        .with_if(traced || !filters.otel.is_empty(), Features::SPANS)
        .with_if(screened, Features::SCREENING)
        .with_if(http.restrict_names != RestrictNames::Preserve, Features::NAMES)
        .with_if(fields, Features::FIELDS)
        .with_if(frontend.is_some_and(|own| own.captures.is_some()), Features::CAPTURES)
        .with_if(proxy.monitor_uri.is_some(), Features::MONITORING)
        .with_if(proxy.rules.see_answers() || http.check_cache, Features::RESPONSE_RULES)
        .with_if(splice.auto || splice.request || splice.response, Features::SPLICING)
        .with_if(proxy.timeouts.stream.is_some(), Features::STREAM_TIMEOUT)
        .with(proxy.backend.as_ref().map(of_backend).unwrap_or_default())
}

fn of_backend(backend: &Backend) -> Features {
    let choice = &backend.choice;
    let persists = !choice.rules.is_empty()
        || !choice.stick.is_empty()
        || !choice.persistence.is_empty()
        || backend.persistence.cookie.is_some();
    let repeats = backend.limits.retry_on.keeps_request() || backend.limits.hedge.is_some();
    let logs_errors = backend.fcgi.as_ref().is_some_and(|app| app.logs_errors);
    Features::default()
        .with_if(repeats || logs_errors, Features::ATTEMPTS)
        .with_if(persists, Features::PERSISTENCE)
        .with_if(backend.fcgi.is_some(), Features::FCGI)
        .with_if(backend.heeds_answers() || backend.limits.hedge.is_some(), Features::WATCHED_RESPONSES)
}
