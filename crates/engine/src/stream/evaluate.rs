//! What expressions may see of a stream, lent for one evaluation. Must never change a fact.

use std::any::Any;
use std::cell::{Cell, Ref};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::moment::{WallTime, ZoneName};
use bumpalo::Bump;
use config::spec::Mode;
use conn::behind::{self, Behind};
use expression::record::{Endpoint, Record};
use expression::sample::{
    Bytes, Context, Cost, Counted, Direction, Extract, Probes, ProcessFacts, SessionFacts, Sink, StreamFacts,
    TrackedEntry, Transaction, Transport, Unread, UsageOf, Value,
};
use expression::variable::{Phase, Variables};
use policy::program::ServerAddress;
use wire::http::{Framing, Head};

use crate::probes::usage;
use crate::session::Session;
use crate::stream::kernel;
use crate::stream::record::{is_normal, with_record};
use crate::stream::tracked;
use crate::stream_state::StreamState;
use crate::stream_state::spent::Spent;

/// Bytes that a unique identifier has at most, as in HAProxy.
const LONGEST_IDENTIFIER: usize = 127;

/// The payload in what came behind a head on a connection of HTTP/1.
fn payload_in<'a>(arena: &'a Bump, framing: Framing, data: &'a [u8]) -> &'a [u8] {
    behind::payload(framing, data, |data| arena.alloc_slice_copy(data))
}

/// A stream as one evaluation sees it.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    pub session: &'a Session,
    /// What is known of it.
    pub state: &'a StreamState,
    /// The answer's head; that of the state, or one that is about to be sent in its place.
    pub response: Option<&'a Head>,
    /// Which way the message goes.
    pub direction: Direction,
    /// The bytes that are there of what is inspected.
    pub bytes: Bytes<'a>,
    /// There is a stream already: its variables are in reach.
    pub has_stream: bool,
    /// What is evaluated is a log line: it has a budget of its own.
    pub is_log: bool,
}

impl<'a> EvalContext<'a> {
    /// Of a request.
    pub fn request(session: &'a Session, state: &'a StreamState) -> Self {
        let bytes = Bytes::new(&[], true);
        Self { session, state, response: None, direction: Direction::Request, bytes, has_stream: true, is_log: false }
    }

    /// Of a connection whose stream has not begun.
    pub fn connection(session: &'a Session, state: &'a StreamState) -> Self {
        Self { has_stream: false, ..Self::request(session, state) }
    }

    /// With what has come behind the head.
    pub fn behind(mut self, behind: Behind<'a>) -> Self {
        self.bytes.data = behind.data;
        self.bytes.extract = behind.coded.then_some(payload_in as Extract);
        self
    }

    /// Of an answer.
    pub fn response(session: &'a Session, state: &'a StreamState, response: &'a Head) -> Self {
        let bytes = Bytes::new(&[], true);
        Self {
            session,
            state,
            response: Some(response),
            direction: Direction::Response,
            bytes,
            has_stream: true,
            is_log: false,
        }
    }

    /// Of a stream whose line is written.
    pub fn log(session: &'a Session, state: &'a StreamState) -> Self {
        let bytes = Bytes::new(&[], true);
        let answered = state.timings.response.is_some() && state.response.status() > 0;
        let response = answered.then_some(&state.response);
        Self { session, state, response, direction: Direction::Response, bytes, has_stream: true, is_log: true }
    }

    /// What `unique-id-format` names the request, made now if it is asked for the first time. `None`: the frontend names
    /// none, or this is asked while it is being made.
    pub fn unique_id(self) -> Option<&'a [u8]> {
        let state = self.state;
        if state.unique_id.get().is_none() {
            let wanted = self.session.proxy().frontend.as_ref()?.unique_id.as_ref()?;
            // What was no request has no name.
            if !state.has_request && self.session.proxy().mode == Mode::Http {
                return None;
            }
            if state.identifying.replace(true) {
                return None;
            }
            let mut made = Vec::new();
            // It is made of the request, at the first request for it.
            let of_request = EvalContext { direction: Direction::Request, response: None, is_log: false, ..self };
            of_request.lend(|context| wanted.format.render_in(context, &mut made));
            state.identifying.set(false);
            made.truncate(LONGEST_IDENTIFIER);
            let _ = state.unique_id.set(made.into());
        }
        state.unique_id.get().map(|made| &**made)
    }

    /// What its evaluations have cost.
    pub fn spent(&self) -> &'a Spent {
        if self.is_log { &self.state.costs.log } else { &self.state.costs.rules }
    }

    /// Lends it to an evaluation. One that costs more than it may is noted in the state; a log line is written all the same.
    #[inline]
    pub fn lend<T>(&self, with: impl FnOnce(&Context<'_>) -> T) -> T {
        let worker = &self.session.worker;
        let (shared, state) = (&worker.process, self.state);
        state.costs.evaluated.set(true);
        let generation = self.session.generation();
        let program = &generation.program;
        worker.with_arena(|arena| {
            let (probes, unread) = (StreamProbes(self), Unread::default());
            let context = Context {
                program: Some(&**program),
                live: Some(&*shared.live),
                lists: Some(&generation.lists),
                arena,
                limit: program.global.bufsize,
                now: rt::now(),
                probes: &probes,
                direction: self.direction,
                frontend: Some(self.session.frontend),
                backend: state.backend.filter(|_| self.has_stream),
                server: state.server,
                request: state.has_request.then_some(&state.request),
                unread: (!state.has_request && self.has_stream).then_some(&unread),
                response: self.response,
                bytes: self.bytes,
                transaction: Transaction {
                    first: state.first,
                    server_status: state.server_status,
                    status: u16::try_from(state.status).ok().filter(|status| *status > 0),
                    compression: state.compression,
                    cache: state.cache_hit,
                },
                variables: Variables {
                    process: Some(&shared.live.variables),
                    session: Some(self.session.variables()),
                    stream: self.has_stream.then_some(&state.variables),
                    phase: match self.direction {
                        Direction::Request => Phase::Request,
                        Direction::Response => Phase::Response,
                    },
                    limits: shared.live.variable_limits.as_ref(),
                },
                captures: Some(&state.captures),
                incomplete: Cell::new(false),
                exhausted: Cell::new(false),
                meter: &worker.meter,
            };
            let made = with(&context);
            context.settle();
            if context.exhausted.get() && !self.is_log {
                state.exhausted.set(true);
            }
            made
        })
    }
}

/// What is asked of a stream only when an expression wants it.
struct StreamProbes<'v, 'a>(&'v EvalContext<'a>);

impl Probes for StreamProbes<'_, '_> {
    fn source(&self) -> Option<SocketAddr> {
        self.0.state.client(self.0.session)
    }

    fn destination(&self) -> Option<SocketAddr> {
        self.0.state.destination(self.0.session)
    }

    fn wall(&self) -> WallTime {
        rt::wall()
    }

    fn random(&self) -> u64 {
        rt::random()
    }

    fn transport(&self, fact: Transport) -> Option<Value<'static>> {
        match fact {
            Transport::ClientAddress => address(self.0.session.original_client()),
            Transport::ClientPort => port(self.0.session.original_client()),
            Transport::ClientDestination => address(self.original_destination()),
            Transport::ClientDestinationPort => port(self.original_destination()),
            Transport::ServerSource => address(self.server_source()),
            Transport::ServerSourcePort => port(self.server_source()),
            Transport::ServerAddress => address(self.server_address()),
            Transport::ServerPort => port(self.server_address()),
            of_kernel => kernel::ask(self.0.session, self.0.state, of_kernel),
        }
    }

    fn local_offset(&self, seconds: i64) -> i32 {
        self.0.session.worker.logger.local_offset(seconds)
    }

    fn zone_name(&self, seconds: i64) -> ZoneName {
        rt::zone_name(seconds)
    }

    fn lend_record(&self, take: &mut dyn FnMut(&Record<'_>)) {
        // The record tells what is known of the destination.
        let _ = self.destination();
        let state = self.0.state;
        with_record(self.0.session, state, |record| {
            // What the server has said counts until the client is told something.
            let status = state.server_status.filter(|_| state.status < 0).map_or(record.status, i32::from);
            let mut record = Record { status, ..*record };
            if self.0.direction == Direction::Request {
                // What is looked at has not been received as far as times and sizes go.
                (record.timers.request, record.bytes_from_client) = (-1, 0);
            }
            if !state.inspected {
                record.method = b"";
            }
            if !self.0.has_stream {
                (record.status, record.timers.handshake, record.timers.idle) = (0, -1, 0);
            }
            take(&record);
        });
    }

    fn unique_id(&self) -> Option<&[u8]> {
        self.0.unique_id()
    }

    fn lend_saved_syn(&self, take: &mut dyn FnMut(&[u8])) {
        // Headers of Ethernet, IP and TCP, the latter two with all their options, fit.
        let mut place = [0; 256];
        // A connection that has none, or none any more, has an empty one.
        if let Ok(length) = self.0.session.socket().take_saved_syn(&mut place)
            && let Some(packet) = place.get(..length)
        {
            take(packet);
        }
    }

    fn cost(&self) -> Option<Cost> {
        if !self.0.has_stream {
            return None;
        }
        let (now, before) = (rt::task_cost(), self.0.state.costs.before);
        Some(Cost {
            calls: now.calls.wrapping_sub(before.calls).saturating_add(1),
            busy: now.busy.saturating_sub(before.busy),
            late: now.late.saturating_sub(before.late),
        })
    }

    fn usage(&self, of: UsageOf) -> Option<u32> {
        Some(usage(of))
    }

    fn tell(&self, sink: Sink, line: &[u8]) {
        self.0.session.worker.process.log_targets.tell(sink, line);
    }

    fn kept_by_scripts(&self) -> Option<&Cell<Option<Box<dyn Any>>>> {
        self.0.has_stream.then_some(&self.0.state.kept_by_scripts)
    }

    fn is_local(&self, address: IpAddr) -> Option<bool> {
        Some(rt::net::is_local(address))
    }

    fn account(&self, long: bool) -> bool {
        let session = self.0.session;
        self.0.spent().charge(&session.worker, session.generation().program.global.evaluation_time, long)
    }

    fn process(&self) -> ProcessFacts<'_> {
        self.0.session.worker.process_facts()
    }

    fn environment(&self, name: &[u8]) -> Option<&[u8]> {
        self.0.session.worker.process.host.variable(name)
    }

    fn counters(&self) -> Option<&dyn Counted> {
        Some(&self.0.session.worker.process.counters)
    }

    fn session(&self) -> Option<SessionFacts<'_>> {
        let session = self.0.session;
        let bind = session.bind_index();
        let (accept_date, header) = (session.accept_date(), session.proxy_header());
        let (error, tls, is_secure) = (session.error.get(), session.tls(), session.is_secure());
        let protocol = session.protocol_facts();
        Some(SessionFacts { bind, accept_date, header, error, tls, is_secure, protocol })
    }

    fn server_tls(&self) -> Option<Arc<tls::HandshakeInfo>> {
        self.0.state.attempts.server_tls.clone()
    }

    fn tracked(&self, number: u8) -> Option<Ref<'_, dyn TrackedEntry>> {
        let found = tracked::find(self.0.session, self.0.state, number)?;
        Some(Ref::map(found, |tracked| tracked as _))
    }

    fn stream(&self) -> Option<StreamFacts> {
        if !self.0.has_stream {
            return None;
        }
        let state = self.0.state;
        Some(StreamFacts {
            timings: state.timings,
            start_date: state.start_date,
            termination: state.termination(),
            retries: state.attempts.retries,
            redispatched: state.attempts.redispatched,
            priority: (state.orders.get().class, state.orders.get().offset),
            server_queue: state.attempts.server_queue,
            backend_queue: state.attempts.backend_queue,
            is_normal: is_normal(self.0.session, state),
            bytes_in: state.bytes.bytes_in,
            bytes_out: state.bytes.bytes_out,
            sent: state.bytes.sent,
            received: state.bytes.received,
            number: state.number,
            client_streams: state.client_streams,
            link: state.attempts.link,
            own: state.orders.get().limits(),
            last_rule: state.last_rule.get(),
            waiting_rule: state.waiting_rule.get(),
        })
    }
}

impl StreamProbes<'_, '_> {
    /// Where the client really connected to.
    fn original_destination(&self) -> Option<SocketAddr> {
        self.0.session.original_destination()
    }

    fn server_source(&self) -> Option<SocketAddr> {
        match self.0.state.attempts.backend_source {
            Endpoint::Inet(address) => Some(address),
            _ => None,
        }
    }

    fn server_address(&self) -> Option<SocketAddr> {
        let (session, state) = (self.0.session, self.0.state);
        state.timings.connected?;
        let backend = session.proxy_at(state.backend?).backend.as_ref()?;
        match &*session.worker.process.outgoing.address(backend.servers.get(state.server?)?) {
            ServerAddress::Inet { ip, port } => {
                let offered = self.destination().map_or(0, |address| address.port());
                Some((*ip, port.resolve(offered)).into())
            }
            _ => None,
        }
    }
}

fn address(of: Option<SocketAddr>) -> Option<Value<'static>> {
    of.map(|address| address.ip().into())
}

fn port(of: Option<SocketAddr>) -> Option<Value<'static>> {
    of.map(|address| Value::Int(address.port().into()))
}
