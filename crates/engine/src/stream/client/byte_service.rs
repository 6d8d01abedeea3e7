//! A session in TCP mode that is served by a service of the process (`tcp-request content use-service`): transfers
//! bytes between the client and the service. Must never interpret them.

use std::future::poll_fn;
use std::io::IoSlice;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::service::ByteService;
use conn::transport::Transport;
use expression::record::Origin;
use policy::services::ServiceRow;
use rt::net::Hangup;

use crate::stream::conclude;
use crate::stream::context::RequestContext;
use crate::stream_state::{Cause, Outcome, Phase, ServiceName};
use crate::worker::SharedStreamState;

/// The client's connection has failed.
const LEFT: Outcome = Outcome::new(Cause::Client, Phase::Data);

/// The client has sent or read nothing within its timeout.
const LATE: Outcome = Outcome::new(Cause::ClientTimeout, Phase::Data);

/// Maximum number of bytes that are buffered for the service.
const MOST_INPUT: usize = 64 * 1024;

/// State of the transfer between a client and a service.
struct ServiceTransfer<'a> {
    state: &'a SharedStreamState,
    service: Box<dyn ByteService>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Number of output bytes that were sent to the client.
    sent: usize,
    /// The client has closed its sending side, or its timeout has expired.
    ended: bool,
    /// Outcome of the session after the service has ended.
    outcome: Outcome,
    /// The service has ended.
    over: bool,
    limit: Option<Duration>,
    /// Time of the last transfer.
    moved: Moment,
}

/// Serves the session with that service to its end, and returns the outcome.
pub async fn serve(context: &mut RequestContext<'_>, row: &ServiceRow) -> Outcome {
    let service = context.session.worker.process.services.start_of_bytes(row.number, context.session, &context.state);
    let (Some(service), Some((stream, early))) = (service, context.client.conn.bytes()) else {
        return Outcome::new(Cause::Internal, Phase::Request);
    };
    {
        let state = &mut *context.state.borrow_mut();
        state.route.service = Some(ServiceName::Shared(row.shown.clone()));
        (state.timings.queued, state.timings.connected) = (Some(rt::now()), Some(rt::now()));
    }
    conclude::log_step(context.session, &context.state, Origin::Connect);
    let mut between = ServiceTransfer {
        state: &context.state,
        service,
        input: early.data().to_vec(),
        output: Vec::new(),
        sent: 0,
        ended: false,
        outcome: Outcome::default(),
        over: false,
        limit: context.session.proxy().timeouts.client,
        moved: rt::now(),
    };
    between.state.borrow_mut().accounting.bytes.bytes_in += early.len() as u64;
    *early = Buffer::empty();
    let mut buffer = rt::buffer();
    let timer = &mut context.client.timer;
    poll_fn(|cx| between.poll(cx, stream, &mut buffer, timer)).await
}

impl ServiceTransfer<'_> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Transport,
        buffer: &mut Buffer,
        timer: &mut rt::Timer,
    ) -> Poll<Outcome> {
        loop {
            let Ok(mut progress) = self.read(cx, stream, buffer) else { return Poll::Ready(LEFT) };
            if !self.over && self.service.poll(cx, &mut self.input, self.ended, &mut self.output).is_ready() {
                (self.over, progress) = (true, true);
            }
            match self.write(cx, stream) {
                Ok(wrote) => progress |= wrote,
                Err(outcome) => return Poll::Ready(outcome),
            }
            if self.over && self.output.is_empty() {
                return Poll::Ready(self.outcome);
            }
            if progress {
                self.moved = rt::now();
                if rt::has_used_slice() {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                continue;
            }
            // After the client's end, its timeout applies only to pending output.
            let limit = self.limit.filter(|_| !self.ended || !self.output.is_empty());
            let Some(deadline) = limit.map(|limit| self.moved + limit) else { return Poll::Pending };
            if rt::now() >= deadline {
                self.outcome = LATE;
                if !self.output.is_empty() {
                    return Poll::Ready(LATE);
                }
                // The service continues: it may still send something.
                (self.ended, self.moved) = (true, rt::now());
                continue;
            }
            timer.arm(Some(deadline));
            if timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Reads bytes from the client. Returns whether something changed. The error: the connection has failed.
    fn read(&mut self, cx: &mut Context<'_>, stream: &mut Transport, buffer: &mut Buffer) -> Result<bool, ()> {
        if self.ended || self.input.len() >= MOST_INPUT {
            // The service may wait for something else.
            return match stream.poll_hangup(cx) {
                Poll::Ready(Hangup::Error) => Err(()),
                _ => Ok(false),
            };
        }
        match stream.poll_read(cx, buffer) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(1..)) => {
                self.input.extend_from_slice(buffer.data());
                self.state.borrow_mut().accounting.bytes.bytes_in += buffer.len() as u64;
                buffer.clear();
            }
            Poll::Ready(Ok(0)) => self.ended = true,
            Poll::Ready(Err(_)) => return Err(()),
        }
        Ok(true)
    }

    /// Writes the output of the service. Returns whether something changed.
    fn write(&mut self, cx: &mut Context<'_>, stream: &mut Transport) -> Result<bool, Outcome> {
        let mut wrote = false;
        while self.sent < self.output.len() {
            match stream.poll_write_slices(cx, &[IoSlice::new(&self.output[self.sent..])], false) {
                Poll::Pending => return Ok(wrote),
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    // A service is counted like a server.
                    let bytes = &mut self.state.borrow_mut().accounting.bytes;
                    bytes.bytes_out += count as u64;
                    bytes.received += count as u64;
                    wrote = true;
                }
                Poll::Ready(Err(_)) => return Err(LEFT),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(wrote)
    }
}
