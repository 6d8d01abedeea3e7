//! Fetches of a frontend or a backend: name, timeouts, load (section 7.3.2). Must never change a counter.

use super::current::configured;
use crate::program::{Backend, FcgiApp, ProgramContext, Proxy, Timeouts};
use expression::fetch::{Fetch, plain};
use expression::sample::{Context, Places, Type, Value};
use expression::{Argument, Arguments, Checking, Kind, Signature};
use live::counters::{Rate, WorkerCounters};
use live::{ProxyState, ServerStatus};
use std::time::Duration;

/// The fetches of this family.
pub const TABLE: &[Fetch] = &[
    of_backend("avg_queue", "Queued requests of a backend, divided by the number of its usable servers.", avg_queue),
    of_backend("be_conn", "Current requests of a backend, queued ones included.", be_conn),
    of_backend("be_conn_free", "Free connection slots of the usable servers of a backend; -1: no limit.", be_conn_free),
    of_back("be_connect_timeout", "The backend's `timeout connect`, in milliseconds.", |context, _| {
        of_back_side(context, |timeouts| timeouts.connect)
    }),
    of_back("be_id", "The backend's number.", |context, _| Some(Value::Int(of_stream(context)?.id.into()))),
    of_back("be_max_retries", "The backend's `retries`.", |context, _| {
        let backend = of_stream(context)?.backend.as_ref();
        Some(Value::Int(backend.map_or(3, |backend| backend.retries).into()))
    }),
    plain("be_name", Type::Str, Places::BACKEND, "The backend's name.", |context, _| {
        Some(Value::Str(of_stream(context)?.name.as_bytes()))
    }),
    of_back("be_queue_timeout", "The backend's `timeout queue`, in milliseconds.", |context, _| {
        of_back_side(context, Timeouts::queued)
    }),
    of_back("be_server_timeout", "The backend's `timeout server`, in milliseconds.", |context, _| {
        of_back_side(context, |timeouts| timeouts.server)
    }),
    of_backend("be_sess_rate", "Session rate of a backend: sessions in the last second.", be_sess_rate),
    of_back("be_tarpit_timeout", "The backend's `timeout tarpit`, in milliseconds.", |context, _| {
        of_back_side(context, |timeouts| timeouts.tarpit.or(timeouts.connect))
    }),
    of_back("be_tunnel_timeout", "The backend's `timeout tunnel`, in milliseconds.", |context, _| {
        of_back_side(context, |timeouts| timeouts.tunnel)
    }),
    of_backend("connslots", "Free connection and queue slots of a backend; -1: no limit.", connslots),
    plain(
        "fcgi.docroot",
        Type::Str,
        Places::REQUEST,
        "The `docroot` of the backend's FastCGI application.",
        |context, _| Some(Value::Str(&application(context)?.docroot)),
    ),
    plain(
        "fcgi.index",
        Type::Str,
        Places::REQUEST,
        "The `index` of the backend's FastCGI application.",
        |context, _| Some(Value::Str(application(context)?.script.as_deref()?)),
    ),
    of_front("fe_client_timeout", "The frontend's `timeout client`, in milliseconds.", |context, _| {
        timeout(context.frontend(), |timeouts| timeouts.client)
    }),
    of_frontend("fe_conn", "Current connections of a frontend.", fe_conn),
    plain("fe_defbe", Type::Str, Places::CLIENT_SESSION, "Name of the frontend's default backend.", fe_defbe),
    of_front("fe_id", "The frontend's number.", |context, _| Some(Value::Int(context.frontend()?.id.into()))),
    plain("fe_name", Type::Str, Places::CLIENT_SESSION, "The frontend's name.", |context, _| {
        Some(Value::Str(context.frontend()?.name.as_bytes()))
    }),
    of_frontend("fe_req_rate", "Request rate of a frontend: requests in the last second.", fe_req_rate),
    of_frontend("fe_sess_rate", "Session rate of a frontend: sessions in the last second.", fe_sess_rate),
    of_front("fe_tarpit_timeout", "The frontend's `timeout tarpit`, in milliseconds.", |context, _| {
        timeout(context.frontend(), |timeouts| timeouts.tarpit)
    }),
    of_backend("nbsrv", "Number of usable servers of a backend.", nbsrv),
    of_backend("queue", "Queued requests of a backend and its servers.", queue),
];

const FRONTEND: Signature = Signature::new(0, &[Kind::Frontend]);
const BACKEND: Signature = Signature::new(0, &[Kind::Backend]);

const fn of_backend(name: &'static str, doc: &'static str, eval: expression::fetch::SampleOf) -> Fetch {
    Fetch::new(name, BACKEND, Type::Int, Places::RUNNING, doc, eval).checked(check_backend)
}

const fn of_frontend(name: &'static str, doc: &'static str, eval: expression::fetch::SampleOf) -> Fetch {
    Fetch::new(name, FRONTEND, Type::Int, Places::RUNNING, doc, eval).checked(check_frontend)
}

const fn of_back(name: &'static str, doc: &'static str, eval: expression::fetch::SampleOf) -> Fetch {
    plain(name, Type::Int, Places::BACKEND, doc, eval)
}

const fn of_front(name: &'static str, doc: &'static str, eval: expression::fetch::SampleOf) -> Fetch {
    plain(name, Type::Int, Places::CLIENT_SESSION, doc, eval)
}

fn check_backend(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    fill_in(arguments, checking, "backend", |names, own| names.backend(own))
}

fn check_frontend(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    fill_in(arguments, checking, "frontend", |names, own| names.frontend(own))
}

/// Sets a missing argument to the proxy of the rule.
fn fill_in(
    arguments: &mut Arguments,
    checking: &Checking<'_>,
    side: &str,
    find: impl Fn(&dyn expression::Names, &str) -> Option<usize>,
) -> Result<(), String> {
    if arguments.has(0) {
        return Ok(());
    }
    // Without a known proxy, it is determined by the evaluation.
    let Some(own) = checking.names.current_name() else { return Ok(()) };
    let found = find(checking.names, own);
    let found = found.ok_or_else(|| format!("proxy '{own}', referenced in arg 1, has not {side} capability"))?;
    arguments.set(0, Argument::Proxy(found));
    Ok(())
}

fn timeout<'a>(proxy: Option<&Proxy>, which: impl Fn(&Timeouts) -> Option<Duration>) -> Option<Value<'a>> {
    let timeout = proxy.and_then(|proxy| which(&proxy.timeouts)).unwrap_or_default();
    Some(Value::Int(i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX)))
}

/// The backend of a check, or of a stream, for which a frontend may be in its place; before there is a stream there is none.
fn of_stream<'a>(context: &Context<'a>) -> Option<&'a Proxy> {
    let is_known = context.backend.is_some() || context.probes.stream().is_some();
    context.backend().filter(|_| is_known)
}

/// A timeout towards servers: that of a frontend is 0, and without a stream there is none.
fn of_back_side<'a>(context: &Context<'a>, which: impl Fn(&Timeouts) -> Option<Duration>) -> Option<Value<'a>> {
    of_stream(context)?;
    timeout(configured(context), which)
}

/// The backend that is meant, and its state.
fn meant<'a>(context: &Context<'a>, arguments: &Arguments) -> Option<(&'a Backend, &'a ProxyState)> {
    let index = arguments.proxy(0).or(context.backend).or(context.frontend)?;
    Some((context.proxy(index)?.backend.as_ref()?, context.live()?.proxies.get(index)?))
}

/// Returns the servers that are available for load balancing.
fn usable<'a>(backend: &'a Backend, state: &'a ProxyState) -> impl Iterator<Item = ServerStatus> + 'a {
    backend.servers.iter().filter_map(|server| state.status(server.index)).filter(|status| status.takes_part)
}

fn waiting(backend: &Backend, state: &ProxyState) -> i64 {
    let own = state.queued(None).0;
    let servers = backend.servers.iter().map(|server| i64::from(state.queued(Some(server.index)).1));
    i64::from(own) + servers.sum::<i64>()
}

fn nbsrv<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (backend, state) = meant(context, arguments)?;
    Some(Value::Int(usable(backend, state).count() as i64))
}

fn queue<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (backend, state) = meant(context, arguments)?;
    Some(Value::Int(waiting(backend, state)))
}

fn avg_queue<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (backend, state) = meant(context, arguments)?;
    let waiting = waiting(backend, state);
    Some(Value::Int(match usable(backend, state).count() as i64 {
        0 => waiting * 2,
        servers => (waiting + servers - 1) / servers,
    }))
}

fn be_conn<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (_, state) = meant(context, arguments)?;
    Some(Value::Int(state.counts(None).beconn.into()))
}

fn be_conn_free<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (backend, state) = meant(context, arguments)?;
    let free = usable(backend, state).map(|status| {
        let load = status.load;
        (load.limit != u32::MAX).then(|| i64::from(load.limit.saturating_sub(load.served)))
    });
    Some(Value::Int(free.sum::<Option<i64>>().unwrap_or(-1)))
}

fn connslots<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (backend, state) = meant(context, arguments)?;
    let usable = backend.servers.iter().filter_map(|server| state.status(server.index));
    let usable = usable.filter(|status| status.up && status.admin == live::Admin::Ready);
    let free = usable.map(|status| {
        let load = status.load;
        let bounded = load.limit != u32::MAX && load.maxqueue != u32::MAX;
        let free = load.limit.saturating_sub(load.served).saturating_add(load.maxqueue.saturating_sub(load.queued));
        bounded.then_some(i64::from(free))
    });
    Some(Value::Int(free.sum::<Option<i64>>().unwrap_or(-1)))
}

fn rate<'a>(context: &Context<'a>, of: impl Fn(&WorkerCounters) -> Option<&Rate>) -> Option<Value<'a>> {
    let counters = context.counters()?;
    Some(Value::Int(Rate::read(context.now, counters.workers.iter().filter_map(|worker| of(worker))) as i64))
}

pub(super) fn server_rate<'a>(context: &Context<'a>, serial: usize) -> Option<Value<'a>> {
    rate(context, |worker| worker.known_server(serial).map(|counters| &counters.session_rate))
}

fn be_sess_rate<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let index = arguments.proxy(0).or(context.backend).or(context.frontend)?;
    rate(context, |worker| worker.proxies.get(index)?.known_back().map(|counters| &counters.session_rate))
}

fn fe_sess_rate<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let index = arguments.proxy(0).or(context.frontend)?;
    rate(context, |worker| worker.proxies.get(index).map(|proxy| &proxy.front.session_rate))
}

fn fe_req_rate<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let index = arguments.proxy(0).or(context.frontend)?;
    rate(context, |worker| worker.proxies.get(index).map(|proxy| &proxy.front.request_rate))
}

/// Returns the FastCGI application of the backend.
fn application<'a>(context: &Context<'a>) -> Option<&'a FcgiApp> {
    context.backend()?.backend.as_ref()?.fcgi.as_deref()
}

fn fe_conn<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let index = arguments.proxy(0).or(context.frontend)?;
    Some(Value::Int(context.live()?.proxies.get(index)?.feconn().into()))
}

fn fe_defbe<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let target = context.frontend()?.frontend.as_ref()?.target?;
    Some(Value::Str(context.proxy(target)?.name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use crate::running::tests::{Scene, check_rows};

    #[test]
    fn an_idle_proxy() {
        let rows = [
            ("nbsrv(be)", "1"),
            ("queue(be)", "0"),
            ("avg_queue(be)", "0"),
            ("be_conn(be)", "0"),
            ("be_conn_free(be)", "-1"),
            ("connslots(be)", "-1"),
            ("be_sess_rate(be)", "0"),
            ("be_id", "2"),
            ("be_name", "be"),
            ("be_max_retries", "3"),
            ("be_connect_timeout", "0"),
            ("be_queue_timeout", "0"),
            ("be_server_timeout", "0"),
            ("be_tarpit_timeout", "0"),
            ("be_tunnel_timeout", "0"),
            ("fe_id", "2"),
            ("fe_name", "fe"),
            ("fe_conn", "0"),
            ("fe_conn(fe)", "0"),
            ("fe_req_rate(fe)", "0"),
            ("fe_sess_rate(fe)", "0"),
            ("fe_client_timeout", "0"),
            ("fe_tarpit_timeout", "0"),
            ("fe_defbe", "be"),
            ("fe_conn(be)", "!fetch method 'fe_conn' : unable to find frontend 'be' at position 1"),
        ];
        check_rows(&Scene::running(), &rows);
        check_rows(&Scene::default(), &[("nbsrv(be)", "<none>"), ("fe_conn", "<none>"), ("fe_defbe", "<none>")]);
    }
}
