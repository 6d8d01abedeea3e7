//! The end of a stream: its facts become a log line and counts, and are given back. Must never wait.

use std::io;

use base::moment::Moment;
use config::spec::Mode;
use policy::log_format::{Record, Timers};
use wire::http::Version;

use crate::facts::{Cause, Facts, Outcome, Phase};
use crate::session::Session;
use crate::worker::SharedFacts;

/// Ends a stream.
pub fn conclude(session: &Session, facts: SharedFacts) {
    let wanted = session.worker.logger.is_wanted(session.frontend);
    if wanted && let Ok(known) = facts.try_borrow() {
        let nothing = known.bytes_in == 0 && known.bytes_out == 0;
        if !(nothing && session.proxy().options.dontlognull && is_null(&known)) {
            log(session, &known);
        }
    }
    session.end(facts);
}

/// A connection on which nothing was transferred (`option dontlognull`).
fn is_null(facts: &Facts) -> bool {
    facts.timings.first_byte.is_none()
}

fn log(session: &Session, facts: &Facts) {
    let worker = &session.worker;
    let proxy = session.proxy();
    let backend = facts.backend.map(|index| worker.proxy(index));
    let server = backend.and_then(|proxy| proxy.backend.as_ref()).zip(facts.server);
    let server = server.and_then(|(backend, index)| backend.servers.get(index));
    let live = &worker.shared.live;
    let counts = backend.map(|proxy| live.proxies[proxy.index].counts(facts.server)).unwrap_or_default();
    let request = &facts.request;
    let record = Record {
        client: session.client,
        destination: session.known_destination(),
        frontend: &proxy.name,
        bind_name: session.bind().map_or("", |bind| &bind.name),
        backend: backend.map_or(&proxy.name, |backend| &backend.name),
        server: server.map_or("<NOSRV>", |server| &server.name),
        accept_date: session.accept_date,
        request_date: facts.start_date,
        end_date: rt::wall(),
        timers: timers(facts, proxy.mode),
        status: facts.status,
        bytes_to_client: facts.bytes_out,
        bytes_from_client: facts.bytes_in,
        termination: facts.outcome.letters(),
        method: if facts.has_request { request.method() } else { b"" },
        target: if facts.has_request { request.target() } else { b"" },
        actconn: live.process.actconn(),
        feconn: live.proxies[session.frontend].feconn(),
        beconn: counts.beconn,
        srv_conn: counts.srv_conn,
        retries: facts.retries,
        redispatched: facts.redispatched,
        server_queue: facts.server_queue,
        backend_queue: facts.backend_queue,
        ..Record::default()
    };
    worker.logger.traffic(session.frontend, &record);
}

/// The timers of section 8.4, in milliseconds; -1 for what did not happen.
fn timers(facts: &Facts, mode: Mode) -> Timers {
    let times = &facts.timings;
    let end = rt::now();
    let between = |from: Option<Moment>, to: Option<Moment>| match (from, to) {
        (Some(from), Some(to)) => to.millis_since(from) as i64,
        _ => -1,
    };
    let start = Some(times.start);
    let first = match mode {
        Mode::Http => times.first_byte,
        Mode::Tcp => start,
    };
    Timers {
        handshake: 0,
        idle: between(start, first),
        request: between(first, times.request),
        queue: between(times.request, times.queued),
        connect: between(times.queued, times.connected),
        response: between(times.connected, times.response),
        data: between(times.response, Some(end)),
        active: between(first.or(start), Some(end)),
        total: between(start, Some(end)),
        ..Timers::default()
    }
}
