//! Routing of a request to its backend: the rules of frontend and backend, and the choice of the backend. Must never request a
//! server.

use config::spec::Mode;
use conn::h1::UnreadBody;
use policy::program::{Features, Proxy};

use crate::orders::Orders;
use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::client::client_abort::LEFT;
use crate::stream::client::content::{self, Stopped};
use crate::stream::context::{RequestContext, Route};
use crate::stream::reply::{cut, finish, reply_error_unread, stats_page};
use crate::stream::request::header_validation::{awaits_body, screen};
use crate::stream::request::rules::request as request_rules;
use crate::stream::request::rules::request::RequestEnd;
use crate::stream::request::switching::{self, switch};
use crate::stream::request::{buffering, password_check};
use crate::stream::{conclude, stages};
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Features by which a proxy checks a request before it is forwarded.
const SCREENED: Features = Features::SCREENING.with(Features::NAMES);

/// A request that continues, and its body.
type RoutedRequest<'s> = (RequestContext<'s>, UnreadBody);

/// Chooses the backend of a request for which nothing else has to be done: no rule, check or filter of frontend and backend sees
/// requests, but for the names of fields. `None`: [`route`] has to; what was done here may be repeated.
#[inline]
pub fn at_once<'s>(context: &RequestContext<'s>) -> Option<Route<'s>> {
    const SEEN: Features = Features::SCREENING.with(Features::SPANS).with(Features::FILTERS);
    let proxy = context.session.proxy();
    if proxy.features.have(SEEN) {
        return None;
    }
    let chosen = {
        let state = context.state.borrow();
        if state.rules.exhausted.get() {
            return None;
        }
        state.route.backend
    };
    if !names_pass(context, proxy) {
        return None;
    }
    let own = context.session.proxy_at(chosen.or_else(|| switching::at_once(context))?);
    let is_seen = own.features.have(SEEN) || !own.rules.request_content.is_empty();
    let backend = own.backend.as_ref().filter(|_| own.mode == Mode::Http && !is_seen)?;
    if own.index != proxy.index && !names_pass(context, own) {
        return None;
    }
    let features = context.state.borrow_mut().choose_backend(own);
    if own.index != proxy.index {
        context.state.borrow().order(Orders::leave_backend);
    }
    stages::routed(context.session, &context.state, own, features);
    Some(Route { proxy: own, backend, features })
}

/// Whether the names of a request's fields are accepted by a proxy, which may remove fields.
#[inline]
fn names_pass(context: &RequestContext<'_>, proxy: &Proxy) -> bool {
    !proxy.features.have(Features::NAMES) || screen(&context.state, proxy, None).is_ok()
}

/// Calls [`route`] in a future of its own, so that its callers are laid out for requests that need none.
pub fn boxed<'s>(
    context: RequestContext<'s>,
    body: UnreadBody,
) -> impl Future<Output = Option<(Route<'s>, RequestContext<'s>, UnreadBody)>> {
    rt::boxed_with((context, body), |(context, body)| route(context, body))
}

/// Chooses the backend of a request, and runs the rules of frontend and backend. `None`: the request has ended.
async fn route<'s>(
    mut context: RequestContext<'s>,
    body: UnreadBody,
) -> Option<(Route<'s>, RequestContext<'s>, UnreadBody)> {
    let proxy = context.session.proxy();
    stages::request_rules_begin(context.session, &context.state);
    let mut body = body;
    if proxy.features.have(SCREENED) {
        (context, body) = pass(context, body, proxy, None).await?;
    }
    let chosen = context.state.borrow().route.backend;
    // A session in TCP mode that was upgraded may have its backend already.
    let target = chosen.or_else(|| switch(&context));
    if context.state.borrow().rules.exhausted.get() {
        rt::boxed(request_rules::exhausted(context, body)).await;
        return None;
    }
    let target = target.map(|index| context.session.proxy_at(index));
    let Some((own, backend)) = target.and_then(|proxy| proxy.backend.as_ref().map(|own| (proxy, own))) else {
        context.state.borrow_mut().timings.request = None;
        let failure = Failure { outcome: Outcome::new(Cause::Server, Phase::Connect), status: 503, page: true };
        rt::boxed(reply_error_unread(context, failure, body)).await;
        return None;
    };
    let features = context.state.borrow_mut().choose_backend(own);
    if own.mode != Mode::Http {
        // Its servers do not accept HTTP requests.
        refuse_mode(context.session, context.state);
        return None;
    }
    if own.index != proxy.index {
        context.state.borrow().order(Orders::leave_backend);
    }
    let asks_agents = stages::routed(context.session, &context.state, own, features);
    if own.index != proxy.index && (asks_agents || !own.rules.request_content.is_empty()) {
        let of_frontend = proxy.rules.spoe.as_ref().map_or(&[][..], |events| &events.backend_content);
        for (rules, delay) in [(of_frontend, None), own.rules.on_request_bytes()] {
            let Client { conn, timer, .. } = &mut *context.client;
            if rules.is_empty() {
                continue;
            }
            match rt::boxed(content::http_request(context.session, conn, timer, &context.state, rules, delay)).await {
                Ok(()) => {}
                Err(Stopped::Cut(outcome)) => {
                    cut(context.session, context.state, outcome);
                    return None;
                }
                Err(Stopped::Ended(ending)) => {
                    request_rules::end(context, RequestEnd::Ended(*ending), body).await;
                    return None;
                }
                Err(Stopped::Left) => {
                    request_rules::end(context, RequestEnd::Failed(LEFT), body).await;
                    return None;
                }
            }
        }
        if let Some(events) = proxy.rules.spoe.as_ref().filter(|events| !events.backend_request.is_empty())
            && let Err(over) = request_rules::rule(&mut context, &events.backend_request).await
        {
            request_rules::end(context, over, body).await;
            return None;
        }
    }
    if own.index != proxy.index && own.features.have(SCREENED) {
        (context, body) = pass(context, body, own, Some(proxy)).await?;
    }
    Some((Route { proxy: own, backend, features }, context, body))
}

/// Validates a request for `proxy`, and runs its rules. `before`: the frontend whose rules have run, if `proxy` is the backend.
/// `None`: the request has ended.
async fn pass<'s>(
    mut context: RequestContext<'s>,
    body: UnreadBody,
    proxy: &Proxy,
    before: Option<&Proxy>,
) -> Option<RoutedRequest<'s>> {
    let mut screened = screen(&context.state, proxy, before);
    if screened.is_ok() && awaits_body(&context.state, proxy, before) {
        screened = rt::boxed(buffering::wait(&mut context, proxy)).await;
    }
    if let Err(failure) = screened {
        rt::boxed(reply_error_unread(context, failure, body)).await;
        return None;
    }
    if password_check::may_wait(&context.state, proxy)
        && let Err(failure) =
            rt::boxed(password_check::check(context.session, &mut context.client.conn, &context.state, proxy)).await
    {
        rt::boxed(reply_error_unread(context, failure, body)).await;
        return None;
    }
    if !proxy.rules.http_request.is_empty()
        && let Err(over) = request_rules::rule(&mut context, &proxy.rules.http_request).await
    {
        request_rules::end(context, over, body).await;
        return None;
    }
    if let Some(page) = &proxy.stats
        && stats_page::is_asked(page, &context.state.borrow().request)
    {
        rt::boxed(stats_page::answer(context, proxy, page, body)).await;
        return None;
    }
    if !proxy.rules.redirects.is_empty()
        && let Err(over) = request_rules::rule(&mut context, &proxy.rules.redirects).await
    {
        request_rules::end(context, over, body).await;
        return None;
    }
    Some((context, body))
}

/// Ends a request for a backend in TCP mode; only upgraded connections can get one.
fn refuse_mode(session: &Session, state: SharedStreamState) {
    finish(&state, Outcome::new(Cause::Internal, Phase::Request), 500);
    state.borrow_mut().timings.request = None;
    conclude::conclude(session, state);
}
