//! The end of a stream: its facts become a log line, and are given back. Must never wait.

use base::moment::WallTime;
use config::spec::Mode;
use policy::log_format::{Endpoint, Record};
use policy::program::{LogMoment, Server, ServerAddress};
use rt::net::Stream;

use crate::facts::{Cause, Facts};
use crate::service::log::Verdict;
use crate::session::Session;
use crate::stream::tally;
use crate::worker::SharedFacts;

/// Ends a stream.
pub fn conclude(session: &Session, facts: SharedFacts) {
    if let Ok(mut known) = facts.try_borrow_mut() {
        tally::stream(session, &mut known);
    }
    if session.worker.logger.is_wanted(session.frontend)
        && let Ok(known) = facts.try_borrow()
        && !known.logged
        && !(session.proxy().options.dontlognull && is_null(&known))
    {
        log(session, &known);
    }
    session.end(facts);
}

/// Writes the line now if its format is the default one: called once the request is known.
pub fn log_request(session: &Session, facts: &SharedFacts, client: &Stream) {
    if session.worker.logger.tells_destination(session.frontend) {
        session.destination(client);
    }
    log_at(LogMoment::Request, session, facts);
}

/// Writes the line now where its format tells nothing of the stream's end, or `option logasap` wants it: called once the
/// connection to the server stands (TCP) or the answer's head is there (HTTP).
pub fn log_answer(session: &Session, facts: &SharedFacts) {
    log_at(LogMoment::Answer, session, facts);
}

fn log_at(moment: LogMoment, session: &Session, facts: &SharedFacts) {
    let logger = &session.worker.logger;
    if logger.moment(session.frontend) == moment && logger.is_wanted(session.frontend) {
        let mut facts = facts.borrow_mut();
        if !facts.logged {
            log(session, &facts);
            facts.logged = true;
        }
    }
}

/// Whether something went wrong (`option dontlog-normal`, `option log-separate-errors`).
fn verdict(session: &Session, facts: &Facts) -> Verdict {
    let http = session.proxy().mode == Mode::Http;
    if http && !facts.has_request {
        return Verdict::Invalid;
    }
    let ended_well = matches!(facts.outcome.cause, Cause::Normal | Cause::Local);
    if ended_well && facts.retries == 0 && !facts.redispatched && !(http && facts.status >= 500) {
        Verdict::Normal
    } else {
        Verdict::Failed
    }
}

/// A connection on which nothing was transferred (`option dontlognull`).
fn is_null(facts: &Facts) -> bool {
    facts.bytes_in == 0 && facts.bytes_out == 0 && facts.timings.first_byte.is_none()
}

fn log(session: &Session, facts: &Facts) {
    with_record(session, facts, |record| {
        session.worker.logger.traffic(session.frontend, verdict(session, facts), record);
    });
}

/// What a log format would tell of the stream at this moment.
pub fn with_record(session: &Session, facts: &Facts, use_record: impl FnOnce(&Record<'_>)) {
    let worker = &session.worker;
    let proxy = session.proxy();
    let backend = facts.backend.map(|index| worker.proxy(index));
    let server = backend.and_then(|proxy| proxy.backend.as_ref()).zip(facts.server);
    let server = server.and_then(|(backend, index)| backend.servers.get(index));
    let live = &worker.shared.live;
    let counts = facts.counts.or_else(|| backend.map(|proxy| live.proxies[proxy.index].counts(facts.server)));
    let counts = counts.unwrap_or_default();
    let client =
        session.client().map_or_else(|| Endpoint::Unix(session.bind().map_or(0, |bind| bind.id)), Endpoint::Inet);
    let record = Record {
        client,
        destination: session.known_destination().map_or(Endpoint::Absent, Endpoint::Inet),
        frontend: &proxy.name,
        backend_source: facts.backend_source,
        server_address: server.map_or(Endpoint::Absent, |server| server_address(session, server)),
        backend: backend.map_or(&proxy.name, |backend| &backend.name),
        server: server.map_or("<NOSRV>", |server| &server.name),
        accept_date: session.accept_date,
        request_date: request_date(facts),
        timers: facts.timings.timers(rt::now()),
        status: facts.status,
        bytes_to_client: facts.bytes_out,
        bytes_from_client: facts.bytes_in,
        termination: facts.outcome.letters(),
        method: if facts.has_request { facts.request.method() } else { b"" },
        target: if facts.has_request { facts.request.target() } else { b"" },
        version: facts.request.version_text(),
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
    use_record(&record);
}

/// Where the server is.
fn server_address(session: &Session, server: &Server) -> Endpoint {
    match &*session.worker.shared.outgoing.address(server) {
        ServerAddress::Inet { ip, port } => {
            let destination = session.known_destination().map_or(0, |address| address.port());
            Endpoint::Inet((*ip, port.resolve(destination)).into())
        }
        ServerAddress::Unix(_) | ServerAddress::Abstract(_) | ServerAddress::Descriptor(_) => Endpoint::Unix(0),
    }
}

/// When the request's first byte came; the start where none did.
fn request_date(facts: &Facts) -> WallTime {
    match facts.timings.first_byte {
        Some(first) => facts.start_date.saturating_add(first.saturating_since(facts.timings.start)),
        None => facts.start_date,
    }
}
