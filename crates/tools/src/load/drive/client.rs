//! One connection slot of the load: connects, sends, receives responses, closes, and counts each step. Must never
//! decide about the overall rate.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::Moment;
use conn::transport::{Opening, Transport};
use rt::net::Hangup;

use super::answer::{Answer, NextRead};
use super::failure::{Failure, failure_of};
use super::link::{Link, Open, Opener};
use super::load_run::{Lane, LaneStart, LoadRun};
use super::pacer::Pacer;
use super::worker::{Alive, Phase, Reading, Worker};
use crate::load::counters::Counters;
use crate::load::plan::{Pace, Protocol};

/// Maximum number of bytes dropped by one read.
const MOST_DROPPED: u64 = 1 << 30;
/// Low-water mark for long bodies in bytes, and the number of bytes that the last wake-up must have found to set it:
/// a sender of that speed need not be polled closely.
const WORTH_WAKING: u64 = 256 * 1024;
const FAST: u64 = 32 * 1024;
/// Pause after the first failure to connect; it is doubled by each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Timeout of the peer's close after this side's, before the connection is reset.
const CLOSING_AT_MOST: Duration = Duration::from_secs(1);

/// Times and progress of one request.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    /// Start of its times: when it was sent, or due.
    pub(super) begun: Option<Moment>,
    pub(super) first_byte: Option<Moment>,
    pub(super) last_byte: Option<Moment>,
    pub(super) received: u64,
    /// A part of it was sent.
    pub(super) sent: bool,
}

/// A request in progress.
struct Exchange<'a> {
    bytes: &'a [u8],
    /// Number of sent bytes.
    sent: usize,
    /// Sending has ended: everything was sent, or the peer responded before that.
    asked: bool,
    /// It contains `Connection: close`.
    closing: bool,
    step: NextRead,
    /// Low-water mark of the socket in bytes; 1 unless a long body is received.
    mark: u64,
    /// Number of bytes that the last read found.
    last: u64,
    times: Times,
}

/// Use of a connection after a response or a failure.
enum ConnectionUse {
    UseOn,
    /// The peer closes it.
    AwaitClose,
    Drop,
    /// Connecting failed: the next attempt is delayed.
    Pause,
}

impl Exchange<'_> {
    /// Sets the socket's low-water mark, so that the kernel wakes the task only for a large part of a long body, or its
    /// rest. `patient`: there is no I/O timeout.
    fn wait_for_much(&mut self, stream: &mut Transport, patient: bool) {
        let left = match self.step {
            NextRead::Drop(left) => left,
            // For a chunk header or a head every byte matters.
            NextRead::Read | NextRead::End => 1,
        };
        let begins = patient && self.last >= FAST && (2 * WORTH_WAKING..u64::MAX).contains(&left);
        let mark = if left < 2 * WORTH_WAKING { left } else { WORTH_WAKING };
        // Never more than the missing bytes: the end of the body must wake the task.
        if (begins && self.mark == 1) || (self.mark > 1 && mark != self.mark) {
            self.mark = if stream.set_receive_low_water(mark as usize).is_ok() { mark } else { 1 };
        }
    }
}

/// One connection slot of the run, with one connection at a time.
pub(super) struct Client {
    pub(super) worker: Rc<Worker>,
    pub(super) course: Arc<LoadRun>,
    pub(super) lane: usize,
    reference: bool,
    /// Its number at the lane's pacer.
    pub(super) number: usize,
    pub(super) opener: Opener,
    answer: Answer,
    /// Time of the last complete response.
    answered: Option<Moment>,
    pub(super) timer: rt::Timer,
    pause: Duration,
}

/// Runs one slot, to the end of the run.
pub(super) async fn fill(worker: Rc<Worker>, alive: Alive, place: LaneStart) {
    worker.enlist().await;
    let course = Arc::clone(&worker.course);
    let begins = course.start() + place.begins;
    if let Some(lane) = course.lanes.get(place.lane)
        && (place.begins.is_zero() || worker.idle_until(begins).await)
    {
        let number = worker.pacer(place.lane).map_or(0, Pacer::join);
        let secure = worker.secure(place.lane);
        let mut client = Client {
            opener: Opener::new(&course, lane, secure),
            course: Arc::clone(&course),
            worker,
            lane: place.lane,
            reference: lane.reference,
            number,
            answer: Answer::new(),
            answered: None,
            timer: rt::Timer::new(),
            pause: FIRST_PAUSE,
        };
        match (lane.protocol, course.plan.tls.handshakes) {
            (Protocol::Http3 { .. }, true) => rt::boxed(client.shake_quic_hands(lane)).await,
            (_, true) => client.shake_hands(lane).await,
            (Protocol::Http1, _) => client.run(lane).await,
            (Protocol::Http2 { streams }, _) => rt::boxed(client.run_streams(lane, streams)).await,
            (Protocol::Http3 { streams }, _) => rt::boxed(client.run_h3(lane, streams)).await,
        }
    }
    drop(alive);
}

impl Client {
    async fn run(&mut self, lane: &Lane) {
        let limit = self.course.plan.requests_per_connection.unwrap_or(u64::MAX).max(1);
        let think = self.course.plan.think;
        let paced = self.worker.pacer(self.lane).is_some();
        // Connections that wait for their turns are opened beforehand, unless they are for one request only.
        let mut link = if paced && limit > 1 { self.open_early(lane).await } else { None };
        while self.worker.phase() == Phase::Running && (self.reference || self.worker.take_request()) {
            let due = if paced { self.await_turn().await } else { Some(Moment::ZERO) };
            let Some(due) = due else { return };
            let waited = paced || !think.is_zero();
            if waited && link.as_mut().is_some_and(Link::is_spent) {
                link = None;
            }
            let fresh = link.is_none();
            if fresh {
                link = self.open(lane).await;
            }
            // A request that directly follows a response uses the time of that response's completion.
            let since = match lane.pace {
                Pace::Constant(_) => Some(due),
                _ if waited || fresh => None,
                _ => self.answered.take(),
            };
            if let Some(open) = &mut link {
                let Some(mut exchange) = self.begin(lane, open.asked + 1 >= limit, since) else { return };
                let result = poll_fn(|context| self.poll_exchange(context, lane, open, &mut exchange)).await;
                let then = self.conclude(lane, open, &exchange, result);
                if !matches!(then, ConnectionUse::UseOn) {
                    self.part_from(link.take(), &then).await;
                }
            } else {
                self.return_request();
            }
            if !think.is_zero() && !self.reference && self.worker.phase() == Phase::Running {
                self.worker.idle_until(rt::now() + think).await;
            }
        }
    }

    /// Makes connections that only complete a handshake.
    async fn shake_hands(&mut self, lane: &Lane) {
        let think = self.course.plan.think;
        let paced = self.worker.pacer(self.lane).is_some();
        while self.worker.phase() == Phase::Running && (self.reference || self.worker.take_request()) {
            let due = if paced { self.await_turn().await } else { Some(Moment::ZERO) };
            let Some(due) = due else { return };
            let begun = if matches!(lane.pace, Pace::Constant(_)) { due } else { rt::read_clock() };
            let Some(mut link) = self.open(lane).await else {
                self.return_request();
                continue;
            };
            let mut times = Times { begun: Some(begun), ..Times::default() };
            match self.shake(lane, &mut link).await {
                Ok(()) => {
                    self.connected();
                    times.last_byte = Some(rt::read_clock());
                    self.count_answer(0, &times, true);
                    self.end_in_order(link).await;
                }
                Err(failure) => {
                    self.count_failure(&failure, lane, &times);
                    self.return_request();
                    if matches!(failure, Failure::Connect(_)) {
                        drop(link);
                        self.pause_after_failure().await;
                    }
                }
            }
            if !think.is_zero() && !self.reference && self.worker.phase() == Phase::Running {
                self.worker.idle_until(rt::now() + think).await;
            }
        }
    }

    /// Closes the sending side, and reads until the peer closes: session tickets, if it sends any.
    async fn end_in_order(&mut self, mut link: Link) {
        if link.transport.shutdown_write().is_err() {
            return;
        }
        self.timer.arm(Some(rt::now() + CLOSING_AT_MOST));
        poll_fn(|context| {
            loop {
                match link.transport.poll_discard(context, MOST_DROPPED as usize) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return self.poll_patience(context, true).map(drop),
                }
            }
        })
        .await;
        self.timer.arm(None);
    }

    async fn part_from(&mut self, link: Option<Link>, then: &ConnectionUse) {
        match (then, link) {
            (ConnectionUse::AwaitClose, Some(link)) => self.await_close(link).await,
            (ConnectionUse::Pause, link) => {
                drop(link);
                self.pause_after_failure().await;
            }
            _ => {}
        }
    }

    /// Waits until the lane's pace permits this connection to send; `None` if the run ends before.
    pub(super) async fn await_turn(&self) -> Option<Moment> {
        let pacer = self.worker.pacer(self.lane)?;
        poll_fn(|context| match pacer.poll_turn(context, self.number) {
            Poll::Ready(due) => Poll::Ready(Some(due)),
            Poll::Pending if self.worker.phase() != Phase::Running => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Starts the lane's next request.
    fn begin<'a>(&mut self, lane: &'a Lane, closing: bool, since: Option<Moment>) -> Option<Exchange<'a>> {
        let request = lane.requests.get(self.worker.next_request(self.lane))?;
        self.answer.begin(request.target, request.head_only);
        self.arm();
        let times = Times { begun: Some(since.unwrap_or_else(rt::read_clock)), ..Times::default() };
        let bytes = if closing { &request.closing } else { &request.bytes };
        Some(Exchange { bytes, sent: 0, asked: false, closing, step: NextRead::Read, mark: 1, last: 0, times })
    }

    /// Sends a request and receives its response. Returns whether the connection can be reused.
    fn poll_exchange(
        &mut self,
        context: &mut Context<'_>,
        lane: &Lane,
        link: &mut Link,
        exchange: &mut Exchange<'_>,
    ) -> Poll<Result<bool, Failure>> {
        if !exchange.asked {
            ready!(self.poll_send(context, lane, link, exchange))?;
            exchange.asked = true;
            link.asked += 1;
            self.arm();
        }
        ready!(self.poll_receive(context, &mut link.transport, exchange))?;
        let whole = exchange.sent == exchange.bytes.len();
        Poll::Ready(Ok(whole && (exchange.closing || self.answer.keeps_alive())))
    }

    /// Counts the result of a request, and returns the further use of its connection.
    fn conclude(
        &mut self,
        lane: &Lane,
        link: &Link,
        exchange: &Exchange<'_>,
        result: Result<bool, Failure>,
    ) -> ConnectionUse {
        let times = &exchange.times;
        match result {
            Ok(usable) => {
                self.count_answer(self.answer.status(), times, link.asked > 1 || !self.course.plan.first_untimed);
                self.answered = times.last_byte;
                match (usable, exchange.closing) {
                    (true, false) => ConnectionUse::UseOn,
                    (true, true) => ConnectionUse::AwaitClose,
                    (false, _) => ConnectionUse::Drop,
                }
            }
            Err(failure) => {
                self.count_received(times.received);
                self.count_failure(&failure, lane, times);
                if !times.sent {
                    self.return_request();
                }
                if matches!(failure, Failure::Connect(_)) { ConnectionUse::Pause } else { ConnectionUse::Drop }
            }
        }
    }

    /// Starts a connection; returns `None`, and counts a failure, if that fails immediately.
    pub(super) async fn open(&mut self, lane: &Lane) -> Option<Link> {
        let begun = self.begin_connection(lane).and_then(Opening::into_transport);
        match begun.and_then(|transport| self.opener.link(lane, transport, true, Open::new(&self.worker))) {
            Ok(link) => Some(link),
            Err(error) => {
                self.count_failure(&Failure::Connect(error), lane, &Times::default());
                self.pause_after_failure().await;
                None
            }
        }
    }

    /// Opens a connection before there is anything to send.
    pub(super) async fn open_early(&mut self, lane: &Lane) -> Option<Link> {
        let open = Open::new(&self.worker);
        self.arm();
        let connected = match self.begin_connection(lane) {
            Ok(mut connecting) => {
                poll_fn(|context| match Pin::new(&mut connecting).poll(context) {
                    Poll::Ready(result) => Poll::Ready(result.map_err(Failure::Connect)),
                    Poll::Pending => self.poll_patience(context, false).map(Err),
                })
                .await
            }
            Err(error) => Err(Failure::Connect(error)),
        };
        let connected = match connected {
            Ok(mut transport) => {
                transport.register();
                match self.opener.link(lane, transport, false, open) {
                    Ok(mut link) => self.shake(lane, &mut link).await.map(|()| link),
                    Err(error) => Err(Failure::Connect(error)),
                }
            }
            Err(failure) => Err(failure),
        };
        match connected {
            Ok(link) => {
                self.connected();
                Some(link)
            }
            Err(failure) => {
                self.count_failure(&failure, lane, &Times::default());
                self.pause_after_failure().await;
                None
            }
        }
    }

    /// Completes the TLS handshake of a connection, if it uses TLS.
    async fn shake(&mut self, lane: &Lane, link: &mut Link) -> Result<(), Failure> {
        self.arm();
        poll_fn(|context| match link.poll_shaken(context, &self.worker, lane) {
            Poll::Ready(shaken) => Poll::Ready(shaken),
            Poll::Pending => self.poll_patience(context, false).map(Err),
        })
        .await
    }

    fn begin_connection(&self, lane: &Lane) -> io::Result<Opening> {
        if !self.reference {
            self.worker.counters.borrow_mut().connections += 1;
        }
        self.opener.connect(lane)
    }

    /// Counts a complete response.
    pub(super) fn count_answer(&self, status: u16, times: &Times, timed: bool) {
        let ended = times.last_byte.unwrap_or_else(rt::read_clock);
        let since = |moment: Moment| nanos_since(moment, times.begun);
        let counters = &mut *self.worker.counters.borrow_mut();
        counters.errors.status += u64::from(status >= 400);
        if self.reference {
            return counters.reference.record(since(ended));
        }
        counters.received += times.received;
        counters.answers += 1;
        counters.count_status(status);
        if timed {
            counters.record_times(since(times.first_byte.unwrap_or(ended)), since(ended));
        }
    }

    pub(super) fn count_received(&self, bytes: u64) {
        if !self.reference {
            self.worker.counters.borrow_mut().received += bytes;
        }
    }

    /// Sends a request, or as much of it as the peer accepts before it responds.
    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        lane: &Lane,
        link: &mut Link,
        exchange: &mut Exchange<'_>,
    ) -> Poll<Result<(), Failure>> {
        match link.poll_shaken(context, &self.worker, lane) {
            Poll::Ready(shaken) => shaken?,
            Poll::Pending => return self.poll_patience(context, false).map(Err),
        }
        while let rest @ [_, ..] = exchange.bytes.get(exchange.sent..).unwrap_or_default() {
            let count = match link.transport.poll_write_slices(context, &[IoSlice::new(rest)], false) {
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(failure_of(error, link.fresh))),
                Poll::Pending if self.is_answered_early(context, link) => return Poll::Ready(Ok(())),
                Poll::Pending => return self.poll_patience(context, exchange.sent > 0).map(Err),
            };
            if std::mem::take(&mut link.fresh) {
                self.connected();
            }
            if !std::mem::replace(&mut exchange.times.sent, true) && !self.reference {
                self.worker.counters.borrow_mut().requests += 1;
            }
            exchange.sent += count;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether a peer that accepts no more of a request has sent a response.
    #[cold]
    fn is_answered_early(&self, context: &mut Context<'_>, link: &mut Link) -> bool {
        !link.fresh && link.transport.poll_readable(context).is_ready() && link.transport.has_input()
    }

    pub(super) fn is_reference(&self) -> bool {
        self.reference
    }

    pub(super) fn connected(&mut self) {
        self.pause = FIRST_PAUSE;
        self.course.note_connected();
    }

    /// Receives a response.
    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut Transport,
        exchange: &mut Exchange<'_>,
    ) -> Poll<Result<(), Failure>> {
        loop {
            let Poll::Ready(taken) = self.poll_take(context, stream, exchange) else {
                return self.poll_patience(context, true).map(Err);
            };
            exchange.step = taken?;
            if exchange.step == NextRead::End {
                return Poll::Ready(Ok(()));
            }
            self.arm();
        }
    }

    /// Processes received bytes of a response.
    fn poll_take(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut Transport,
        exchange: &mut Exchange<'_>,
    ) -> Poll<Result<NextRead, Failure>> {
        let Reading { buffer, scratch } = &mut *self.worker.reading.borrow_mut();
        let polled = match exchange.step {
            NextRead::Read | NextRead::End => {
                buffer.clear();
                stream.poll_read(context, buffer)
            }
            NextRead::Drop(count) => stream.poll_discard(context, count.min(MOST_DROPPED) as usize),
        };
        if polled.is_pending() {
            exchange.wait_for_much(stream, self.course.plan.timeout.is_none());
        }
        let count = match ready!(polled) {
            Err(error) => return Poll::Ready(Err(failure_of(error, false))),
            Ok(0) => {
                return Poll::Ready(if self.answer.closed() { Ok(NextRead::End) } else { Err(Failure::Reset(None)) });
            }
            Ok(count) => count as u64,
        };
        let times = &mut exchange.times;
        times.received += count;
        exchange.last = count;
        let first = *times.first_byte.get_or_insert_with(rt::read_clock);
        let step = match exchange.step {
            NextRead::Drop(_) => self.answer.dropped(count),
            _ => match self.answer.feed(buffer.data_mut(), scratch) {
                Ok(step) => step,
                Err(_) => return Poll::Ready(Err(Failure::NoHttp)),
            },
        };
        if step == NextRead::End {
            times.last_byte = Some(if times.received == count { first } else { rt::read_clock() });
            if exchange.mark > 1 {
                let _ = stream.set_receive_low_water(1);
            }
        }
        Poll::Ready(Ok(step))
    }

    /// Starts the I/O timeout.
    pub(super) fn arm(&mut self) {
        if let Some(timeout) = self.course.plan.timeout {
            self.timer.arm(Some(rt::now() + timeout));
        }
    }

    /// Ready when waiting ends: by the timeout, by the end of the run, or, if the request was not sent, by the end of
    /// the running phase.
    pub(super) fn poll_patience(&mut self, context: &mut Context<'_>, sent: bool) -> Poll<Failure> {
        let phase = self.worker.phase();
        if phase == Phase::Over || (!sent && phase != Phase::Running) {
            return Poll::Ready(Failure::Over);
        }
        self.timer.poll_expired(context).map(|()| Failure::Timeout)
    }

    /// Waits until a peer that received `Connection: close` closes, so that TIME_WAIT uses no local ports.
    async fn await_close(&mut self, mut link: Link) {
        self.timer.arm(Some(rt::now() + CLOSING_AT_MOST));
        let closed = poll_fn(|context| {
            if let Poll::Ready(hangup) = link.transport.poll_hangup(context) {
                return Poll::Ready(hangup == Hangup::PeerClosed);
            }
            self.poll_patience(context, true).map(|_| false)
        });
        if !closed.await {
            // The peer keeps the connection: an orderly close would occupy a local port for a minute.
            let _ = link.transport.set_linger_zero();
        }
        self.timer.arm(None);
    }

    pub(super) async fn pause_after_failure(&mut self) {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        self.worker.idle_until(rt::now() + pause).await;
    }

    pub(super) fn return_request(&self) {
        if !self.reference {
            self.worker.return_request();
        }
    }

    pub(super) fn count_failure(&self, failure: &Failure, lane: &Lane, times: &Times) {
        let counters = &mut *self.worker.counters.borrow_mut();
        match failure {
            Failure::Connect(_) => counters.errors.connect += 1,
            Failure::Timeout => counters.errors.timeout += 1,
            Failure::Reset(_) => counters.errors.reset += 1,
            Failure::NoHttp | Failure::NoH2 | Failure::InvalidH3(_) => counters.errors.protocol += 1,
            Failure::Over if times.sent => return self.count_unanswered(counters, times),
            Failure::Over => return,
        }
        let stops = self.course.plan.stop_on_error;
        let unreached = match failure {
            Failure::Connect(_) | Failure::NoH2 => true,
            Failure::Timeout => !times.sent,
            _ => false,
        };
        if stops || unreached {
            self.course.report_trouble(|| format!("{}: {failure}", lane.address));
        }
        if stops {
            Worker::enter_everywhere(Phase::Ending);
        }
    }

    /// Counts a request without a response at the end of the run: its time is a lower bound.
    fn count_unanswered(&self, counters: &mut Counters, times: &Times) {
        let waited = nanos_since(rt::now(), times.begun);
        if self.reference {
            return counters.reference.record(waited);
        }
        counters.unanswered += 1;
        counters.first_byte.record(times.first_byte.map_or(waited, |moment| nanos_since(moment, times.begun)));
        counters.last_byte.record(waited);
    }
}

fn nanos_since(moment: Moment, begun: Option<Moment>) -> u64 {
    moment.as_nanos().saturating_sub(begun.unwrap_or(moment).as_nanos())
}
