//! Persistence of a stream to a server: rules, cookies, tokens; and the cookie that a client gets. Must never wait, nor take a
//! server's slot.

use std::net::SocketAddr;

use expression::sample::Bytes;
use live::ProxyState;
use live::persistence::{
    Answering, Cookie, CookieServer, Lookup, Persistence, PersistencePlan, RequestCookieState, rdp_server,
};
use policy::program::{Backend, Proxy};
use policy::rule::{PersistOrder, SelectedServer};
use wire::http::Head;

use crate::session::Session;
use crate::stream::context::RequestContext;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::cost;
use crate::stream::server::sticking;
use crate::stream_state::StreamState;
use crate::worker::SharedStreamState;

/// Returns the server that a request is bound to. Cookies that are meant for the proxy only are removed.
pub fn bind_request(context: &RequestContext<'_>, proxy: &Proxy, backend: &Backend) -> Option<SelectedServer> {
    let (choice, plan) = (&backend.choice, &backend.persistence);
    if choice.rules.is_empty() && choice.stick.is_empty() && plan.cookie.is_none() {
        return None;
    }
    let order = match choice.persistence.is_empty() {
        true => None,
        false => EvalContext::request(context.session, &context.state.borrow())
            .behind(context.client.conn.behind())
            .lend(|context| choice.order(context)),
    };
    let mut kept = Persistence::default();
    if let Some(cookie) = &plan.cookie {
        let forced = choice.persists || order == Some(PersistOrder::Force);
        kept = read_cookies(context.session, &context.state, proxy, cookie, plan, order, forced);
    }
    let known = context.state.borrow();
    let view = EvalContext::request(context.session, &known).behind(context.client.conn.behind());
    let named = name(view, proxy, backend, order);
    if let Some(bound) = named {
        kept.overrule(bound.server);
    }
    let mut bound = named.or_else(|| kept.server.map(|server| choice.bound(server, order)));
    let mut stores = Vec::new();
    if !choice.stick.is_empty() {
        bound = sticking::request(view, proxy, backend, order, bound, &mut stores);
        kept.recall(bound.map(|bound| bound.server));
    }
    drop(known);
    let state = &mut *context.state.borrow_mut();
    (state.route.persistence, state.route.stores) = (kept, stores);
    bound
}

/// Records the cookie of a request that a rule of the backend denies, and its server, for the log line, as in HAProxy.
pub fn note_cookie(context: &RequestContext<'_>) {
    let proxy = context.session.proxy_at(context.state.borrow().route.backend.unwrap_or(context.session.frontend));
    let Some(backend) = &proxy.backend else { return };
    let (choice, plan) = (&backend.choice, &backend.persistence);
    let Some(cookie) = &plan.cookie else { return };
    let order = EvalContext::request(context.session, &context.state.borrow())
        .behind(context.client.conn.behind())
        .lend(|context| choice.order(context));
    let forced = choice.persists || order == Some(PersistOrder::Force);
    let mut kept = read_cookies(context.session, &context.state, proxy, cookie, plan, order, forced);
    let proxy_state = context.session.worker.proxy_state(proxy.index);
    if kept.server.is_some_and(|server| !forced && !proxy_state.is_usable(server)) {
        kept.meet(None);
    } else if kept.server.is_some_and(|server| !proxy_state.is_usable(server)) {
        kept.presented = RequestCookieState::Down;
    }
    context.state.borrow_mut().route.persistence = kept;
}

/// Returns the server that a session in TCP mode is bound to.
pub fn bind_session(
    session: &Session,
    state: &SharedStreamState,
    proxy: &Proxy,
    early: &[u8],
) -> Option<SelectedServer> {
    let backend = proxy.backend.as_ref()?;
    let (choice, plan) = (&backend.choice, &backend.persistence);
    if choice.rules.is_empty() && choice.stick.is_empty() && plan.rdp_cookie.is_none() {
        return None;
    }
    let known = state.borrow();
    let bytes = Bytes::new(early, true);
    let view = EvalContext { bytes, ..EvalContext::request(session, &known) };
    let order = if choice.persistence.is_empty() { None } else { view.lend(|context| choice.order(context)) };
    let bound = name(view, proxy, backend, order).or_else(|| {
        let token = wire::rdp::cookie(early, plan.rdp_cookie.as_deref()?)?;
        let bound = choice.bound(find_address(session, backend, rdp_server(token)?)?, order);
        (bound.forced || session.worker.proxy_state(proxy.index).is_usable(bound.server)).then_some(bound)
    });
    if choice.stick.is_empty() {
        return bound;
    }
    let mut stores = Vec::new();
    let bound = sticking::request(view, proxy, backend, order, bound, &mut stores);
    drop(known);
    state.borrow_mut().route.stores = stores;
    bound
}

/// Returns the server that `use-server` names.
fn name(
    view: EvalContext<'_>,
    proxy: &Proxy,
    backend: &Backend,
    order: Option<PersistOrder>,
) -> Option<SelectedServer> {
    if backend.choice.rules.is_empty() {
        return None;
    }
    let proxy_state = view.session.worker.proxy_state(proxy.index);
    cost::choose(&view, &backend.choice, order, |server| proxy_state.is_usable(server))
}

/// Returns the server with that address.
fn find_address(session: &Session, backend: &Backend, wanted: SocketAddr) -> Option<usize> {
    let outgoing = &session.worker.process.outgoing;
    let found = backend.servers.iter().find(|server| outgoing.address(server).inet() == Some(wanted))?;
    Some(found.index)
}

fn read_cookies(
    session: &Session,
    state: &SharedStreamState,
    proxy: &Proxy,
    cookie: &Cookie,
    plan: &PersistencePlan,
    order: Option<PersistOrder>,
    forced: bool,
) -> Persistence {
    let ignored = order == Some(PersistOrder::Ignore);
    let servers = Servers { proxy_state: session.worker.proxy_state(proxy.index), plan, forced };
    cookie.read(&mut state.borrow_mut().request, seconds(), ignored, &servers)
}

/// Lookup of a backend's servers by cookie values.
struct Servers<'a> {
    proxy_state: &'a ProxyState,
    plan: &'a PersistencePlan,
    forced: bool,
}

impl Lookup for Servers<'_> {
    fn find(&self, value: &[u8]) -> CookieServer {
        self.proxy_state.cookies.with_values(self.plan, |values| match values.servers(value) {
            [] => CookieServer::Unknown,
            // Whether it is down is checked when its slot is requested.
            [only] if !self.forced => CookieServer::Server(*only),
            several => match several.iter().find(|server| self.proxy_state.is_usable(**server)) {
                Some(server) => CookieServer::Server(*server),
                None if self.forced => CookieServer::Forced(several[0]),
                None => CookieServer::Down,
            },
        })
    }

    fn is_usable(&self, server: usize) -> bool {
        self.forced || self.proxy_state.is_usable(server)
    }
}

/// Applies the backend's cookie to the response head in `state`.
#[inline]
pub fn answer_in_place(session: &Session, state: &mut StreamState) {
    if plan_of(session, state).is_some_and(|(_, plan)| plan.cookie.is_some()) {
        let mut head = std::mem::take(&mut state.response);
        answer(session, state, &mut head);
        state.response = head;
    }
}

fn plan_of<'s>(session: &'s Session, state: &StreamState) -> Option<(&'s Proxy, &'s PersistencePlan)> {
    let proxy = session.proxy_at(state.route.backend?);
    proxy.backend.as_ref().map(|backend| (proxy, &backend.persistence))
}

/// Applies the backend's cookie to a response head.
pub fn answer(session: &Session, state: &mut StreamState, head: &mut Head) {
    let Some((proxy, plan)) = plan_of(session, state) else { return };
    let (Some(cookie), Some(server)) = (&plan.cookie, state.route.server) else { return };
    let (kept, method) = (&mut state.route.persistence, state.request.known_method());
    session.worker.proxy_state(proxy.index).cookies.with_values(plan, |values| {
        let answering = Answering { value: values.of(server), method, now: seconds() };
        cookie.answer(head, kept, &answering);
    });
}

/// Returns the current time in seconds since 1970.
fn seconds() -> u64 {
    u64::try_from(rt::wall().seconds).unwrap_or_default()
}
