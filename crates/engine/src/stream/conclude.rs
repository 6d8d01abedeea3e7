//! The end of a stream: logs it and releases its state. Must never wait.

use config::spec::{LogStep, Mode};
use expression::record::{Origin, Record};
use policy::program::LogMoment;

use crate::service::log::{LineSettings, Verdict};
use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::context::RequestContext;
use crate::stream::record::log_values::{is_normal, with_record};
use crate::stream::record::otel;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::stages;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::SharedStreamState;

/// Logs a stream if that is due, and releases its state.
pub fn conclude(session: &Session, state: SharedStreamState) {
    if let Ok(mut known) = state.try_borrow_mut() {
        stages::ended(session, &mut known);
    }
    if session.is_logged()
        && let Ok(known) = state.try_borrow()
        && !known.accounting.logged
        && !(session.proxy().options.dontlognull && is_null(&known))
        && session
            .log()
            .steps()
            .is_none_or(|steps| steps.has(LogStep::Close) || verdict(session, &known) == Verdict::Invalid)
    {
        log(session, &known, Origin::Close);
    }
    session.end(state);
}

impl<'s> RequestContext<'s> {
    /// Concludes the stream, see [`conclude`]. Returns the client's side, which continues or ends.
    #[inline]
    pub fn conclude(self) -> &'s mut Client {
        conclude(self.session, self.state);
        self.client
    }
}

/// Logs a request on a multiplexed connection that did not become a stream (`tune.h2.log-errors`).
#[cold]
pub fn log_malformed(session: &Session) {
    // The default log format requires a known request.
    if !session.is_logged() || session.log().moment() == LogMoment::Request {
        return;
    }
    learn_destination(session);
    let state = session.worker.take_stream_state();
    if let Ok(mut known) = state.try_borrow_mut() {
        let (now, date) = (rt::now(), rt::wall());
        (known.timings.start, known.info.start_date) = (now, date);
        (known.outcome, known.answer.status) = (Outcome::new(Cause::Proxy, Phase::Request), 0);
        log(session, &known, Origin::SessionError);
    }
    session.worker.keep_stream_state(state);
}

/// Determines the client's destination address if log lines contain it.
pub fn learn_destination(session: &Session) {
    if session.log().tells_destination() {
        session.destination();
    }
}

/// Logs a step of a stream if `log-steps` contains it, or if the line of the format is due: that of the default format
/// once the request is known; with `option logasap`, or if the format contains nothing about the end of the stream,
/// once the connection to the server is established (TCP) or the answer's head has been received (HTTP).
pub fn log_step(session: &Session, state: &SharedStreamState, origin: Origin) {
    if !session.is_logged() {
        return;
    }
    let route = session.log();
    // The connection may be closed when a later line is written.
    learn_destination(session);
    let steps = route.steps();
    match steps {
        Some(steps) if !steps.has(origin.step()) => return,
        None if due(session.proxy().mode, origin) != Some(route.moment()) => return,
        _ => {}
    }
    let mut state = state.borrow_mut();
    if !state.accounting.logged {
        log(session, &state, origin);
        state.accounting.logged = steps.is_none();
    }
}

/// Logs before the answer's head is sent to the client: a line that is due at this step counts the head's bytes as
/// sent.
pub fn log_answer(session: &Session, state: &SharedStreamState, head: usize) {
    if !session.is_logged() {
        return;
    }
    state.borrow_mut().accounting.bytes.bytes_out += head as u64;
    log_step(session, state, Origin::Response);
    state.borrow_mut().accounting.bytes.bytes_out -= head as u64;
}

/// Returns the line that is due at a step without `log-steps`.
fn due(mode: Mode, origin: Origin) -> Option<LogMoment> {
    match (origin, mode) {
        (Origin::Request, Mode::Http) | (Origin::Accept, Mode::Tcp) => Some(LogMoment::Request),
        (Origin::Response, Mode::Http) | (Origin::Connect, Mode::Tcp) => Some(LogMoment::Answer),
        _ => None,
    }
}

/// Logs for the rule `do-log`, with its own profile if it has one.
pub fn log_now(view: EvalContext<'_>, step: LogStep, profile: Option<usize>) {
    let EvalContext { session, state, .. } = view;
    if !session.is_logged() {
        return;
    }
    let (logger, route) = (&session.worker.logger, session.log());
    let level = match state.rules.orders.get().log_level {
        Some(None) => return,
        Some(level) => level,
        None => None,
    };
    if route.tells_identifier() {
        let _ = view.unique_id();
    }
    learn_destination(session);
    let before_stream =
        matches!(step, LogStep::QuicInitial | LogStep::TcpRequestConnection | LogStep::TcpRequestSession);
    with_record(session, state, |record| {
        let mut record = Record { origin: Origin::Rule(step), ..*record };
        if before_stream {
            (record.status, record.termination) = (0, *b"PR--");
        } else if state.answer.status < 0 {
            record.status = state.answer.server_status.map_or(record.status, i32::from);
        }
        if step == LogStep::TcpRequestContent {
            record.method = b"";
        }
        view.lend(|context| {
            logger.traffic(
                route,
                Verdict::Normal,
                &record,
                LineSettings { level, context: Some(context), profile, span: otel::span(state) },
            );
        });
    });
}

/// Returns whether something went wrong (`option dontlog-normal`, `option log-separate-errors`).
fn verdict(session: &Session, state: &StreamState) -> Verdict {
    let http = session.proxy().mode == Mode::Http;
    // A request that a rule has denied before it was parsed is not invalid.
    if http && !state.info.has_request && !state.rules.denied {
        return Verdict::Invalid;
    }
    if is_normal(session, state) { Verdict::Normal } else { Verdict::Failed }
}

/// Whether nothing was transferred on the connection (`option dontlognull`).
fn is_null(state: &StreamState) -> bool {
    state.accounting.bytes.bytes_in == 0 && state.accounting.bytes.bytes_out == 0 && state.timings.first_byte.is_none()
}

fn log(session: &Session, state: &StreamState, origin: Origin) {
    let level = match state.rules.orders.get().log_level {
        Some(None) => return,
        Some(level) => level,
        None => None,
    };
    let (logger, route, verdict) = (&session.worker.logger, session.log(), verdict(session, state));
    if verdict != Verdict::Invalid && route.tells_identifier() {
        let _ = EvalContext::log(session, state).unique_id();
    }
    let origin = if verdict == Verdict::Invalid { Origin::SessionError } else { origin };
    with_record(session, state, |record| {
        let mut record = Record { origin, ..*record };
        match origin {
            // Nothing is known of the request at this step.
            Origin::Accept => {
                (record.method, record.status, record.timers.request) = (b"", 0, -1);
                record.bytes_from_client = 0;
            }
            // The rules have not been evaluated yet.
            Origin::Request => (record.timers.request, record.bytes_from_client) = (-1, 0),
            // There is no stream that could have captured anything.
            Origin::SessionError => {
                (record.request_captures, record.response_captures) = (&[], &[]);
                record.timers.idle = record.timers.idle.max(0);
            }
            _ => {}
        }
        let shown = LineSettings { level, span: otel::span(state), ..LineSettings::default() };
        if route.has_expressions() {
            EvalContext::log(session, state).lend(|context| {
                logger.traffic(route, verdict, &record, LineSettings { context: Some(context), ..shown });
            });
        } else {
            logger.traffic(route, verdict, &record, shown);
        }
    });
}
