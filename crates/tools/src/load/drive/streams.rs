//! An HTTP/2 connection with several concurrent requests, to its end. Must never decide about the overall rate.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use base::{Buffer, Moment};
use wire::h2::{ErrorCode, MAX_FRAME_SIZE};

use super::client::{Client, Times};
use super::failure::{Failure, failure_of};
use super::link::Link;
use super::load_run::Lane;
use super::worker::Phase;
use crate::frames::{Announced, Event, Frames, poll_read};
use crate::load::plan::Pace;

/// Receive windows, similar to those of browsers.
const ANNOUNCED: Announced = Announced { window: 6 << 20, shared: 15 << 20, streams: None };
/// Maximum number of streams before the server's settings are received (RFC 9113, section 6.5.2, recommends no less).
const UNTOLD: usize = 100;
/// Number of queued bytes above which no more payload is added.
const ENOUGH: usize = 128 * 1024;
/// Number of consecutive reads before yielding.
const READS: usize = 16;
/// Maximum stream number.
const LAST: u32 = 0x7fff_fffe;

/// A request in progress.
struct OpenRequest {
    stream: u32,
    /// Index among the lane's requests.
    request: usize,
    status: u16,
    /// It was the first one of its connection.
    first: bool,
    times: Times,
    /// Send window of the stream, and number of sent bytes of payload.
    window: i64,
    sent: usize,
    /// Received payload for which no WINDOW_UPDATE was sent, in bytes.
    owed: u32,
}

/// Requests in progress by stream number: each number maps to a slot, and numbers whose slot is occupied are skipped.
struct Streams {
    places: Vec<Option<OpenRequest>>,
    open: usize,
}

impl Streams {
    fn new(most: usize) -> Self {
        Self { places: (0..(2 * most).next_power_of_two()).map(|_| None).collect(), open: 0 }
    }

    fn place(&mut self, stream: u32) -> Option<&mut Option<OpenRequest>> {
        let mask = self.places.len() - 1;
        self.places.get_mut((stream >> 1) as usize & mask)
    }

    fn find(&mut self, stream: u32) -> Option<&mut OpenRequest> {
        self.place(stream)?.as_mut().filter(|asked| asked.stream == stream)
    }

    fn take(&mut self, stream: u32) -> Option<OpenRequest> {
        let taken = self.place(stream)?.take_if(|asked| asked.stream == stream)?;
        self.open -= 1;
        Some(taken)
    }

    fn insert(&mut self, asked: OpenRequest) {
        let stream = asked.stream;
        if let Some(place) = self.place(stream) {
            *place = Some(asked);
            self.open += 1;
        }
    }

    fn iter(&mut self) -> impl Iterator<Item = &mut OpenRequest> {
        self.places.iter_mut().flatten()
    }
}

/// Reason why a connection has ended.
enum End {
    /// No more requests are sent over it.
    InOrder,
    /// It ended before its requests were answered.
    Lost(Failure),
}

/// A connection with its requests.
struct Session<'a> {
    lane: &'a Lane,
    link: Link,
    frames: Frames,
    input: Buffer,
    streams: Streams,
    /// Maximum number of concurrent streams.
    most: usize,
    /// Number of the next stream.
    next: u32,
    /// Requests taken from the budget and not started.
    credit: u32,
    /// The budget is exhausted.
    spent: bool,
    /// The server accepts no more streams.
    closing: bool,
    /// Streams with payload to send.
    sending: VecDeque<u32>,
    /// Ends of the pauses that follow responses.
    thinking: VecDeque<Moment>,
    /// Deadline for the next received bytes, while there are requests.
    deadline: Option<Moment>,
    /// Time of the last received bytes.
    now: Moment,
}

impl Client {
    /// Runs one connection after the other, with up to `most` concurrent requests.
    pub(super) async fn run_streams(&mut self, lane: &Lane, most: u32) {
        while self.worker.phase() == Phase::Running {
            if !self.is_reference() && !self.worker.take_request() {
                return;
            }
            let Some(link) = self.open_early(lane).await else {
                self.return_request();
                continue;
            };
            let mut session = Session {
                lane,
                link,
                frames: Frames::of_client(ANNOUNCED),
                input: Buffer::empty(),
                streams: Streams::new(most as usize),
                most: most as usize,
                next: 1,
                credit: 1,
                spent: false,
                closing: false,
                sending: VecDeque::new(),
                thinking: VecDeque::new(),
                deadline: None,
                now: rt::read_clock(),
            };
            let end = poll_fn(|context| self.poll_session(context, &mut session)).await;
            let spent = session.spent;
            self.conclude_session(session, end).await;
            if spent {
                return;
            }
        }
    }

    fn poll_session(&mut self, context: &mut Context<'_>, session: &mut Session<'_>) -> Poll<End> {
        for _ in 0..READS {
            self.begin_streams(context, session);
            send_payload(session);
            let waited = session.frames.waiting();
            match session.frames.poll_flush(context, &mut session.link.transport) {
                Poll::Ready(Err(error)) => return Poll::Ready(End::Lost(failure_of(error, false))),
                // There is space for more payload.
                Poll::Ready(Ok(())) if waited >= ENOUGH => continue,
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
            let goes_on =
                self.worker.phase() == Phase::Running && !session.spent && !session.is_full(self.most_requests());
            if session.streams.open == 0 && (!goes_on || session.closing) {
                return Poll::Ready(End::InOrder);
            }
            match poll_read(context, &mut session.link.transport, &mut session.input) {
                Poll::Pending => return self.poll_session_patience(context, session),
                Poll::Ready(Err(error)) => return Poll::Ready(End::Lost(failure_of(error, false))),
                Poll::Ready(Ok(0)) => return Poll::Ready(End::Lost(Failure::Reset(None))),
                Poll::Ready(Ok(count)) => {
                    self.count_received(count as u64);
                    session.now = rt::read_clock();
                    session.deadline = self.course.plan.timeout.map(|timeout| session.now + timeout);
                }
            }
            if self.take_events(session).is_err() {
                return Poll::Ready(End::Lost(Failure::NoHttp));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Starts requests as permitted by the stream limit and the pace.
    fn begin_streams(&mut self, context: &Context<'_>, session: &mut Session<'_>) {
        while session.thinking.front().is_some_and(|end| *end <= session.now.max(rt::now())) {
            session.thinking.pop_front();
        }
        let told = if session.frames.has_begun() { session.frames.peer_streams() as usize } else { UNTOLD };
        let most = session.most.min(told);
        while session.streams.open + session.thinking.len() < most
            && self.worker.phase() == Phase::Running
            && !session.closing
            && !session.is_full(self.most_requests())
        {
            if session.credit == 0 {
                if !self.is_reference() && !self.worker.take_request() {
                    session.spent = true;
                    return;
                }
                session.credit = 1;
            }
            let mut since = session.now;
            if let Some(pacer) = self.worker.pacer(self.lane) {
                let Poll::Ready(due) = pacer.poll_turn(context, self.number) else { return };
                since = if matches!(session.lane.pace, Pace::Constant(_)) { due } else { rt::read_clock() };
            } else if !self.course.plan.think.is_zero() {
                since = rt::read_clock();
            }
            self.begin_stream(session, since);
        }
    }

    fn begin_stream(&mut self, session: &mut Session<'_>, since: Moment) {
        let number = self.worker.next_request(self.lane);
        let Some(framed) = session.lane.requests.get(number).and_then(|request| request.framed.as_ref()) else {
            return;
        };
        while session.streams.place(session.next).is_some_and(|place| place.is_some()) {
            session.next += 2;
        }
        let stream = session.next;
        session.next += 2;
        session.credit -= 1;
        session.frames.push_head(stream, &framed.head);
        if !framed.body.is_empty() {
            session.sending.push_back(stream);
        }
        if session.streams.open == 0 {
            session.deadline = self.course.plan.timeout.map(|timeout| session.now.max(rt::now()) + timeout);
        }
        session.streams.insert(OpenRequest {
            stream,
            request: number,
            status: 0,
            first: session.link.asked == 0,
            times: Times { begun: Some(since), sent: true, ..Times::default() },
            window: session.frames.stream_window(),
            sent: 0,
            owed: 0,
        });
        session.link.asked += 1;
        if !self.is_reference() {
            self.worker.counters.borrow_mut().requests += 1;
        }
    }

    fn take_events(&mut self, session: &mut Session<'_>) -> Result<(), ErrorCode> {
        while let Some(event) = session.frames.next(&mut session.input)? {
            match event {
                Event::Head { stream, ends } => self.take_head(session, stream, ends)?,
                Event::Payload { stream, length, ends } => {
                    let now = session.now;
                    let Some(asked) = session.streams.find(stream) else { continue };
                    asked.times.first_byte.get_or_insert(now);
                    if ends {
                        self.complete(session, stream);
                    } else {
                        session.frames.note_taken(stream, length, &mut asked.owed);
                    }
                }
                Event::Reset { stream, refused } => {
                    let Some(asked) = session.streams.take(stream) else { continue };
                    self.lose(session.lane, &asked, refused, &Failure::Reset(None));
                }
                Event::Window { stream, by } => {
                    if let Some(asked) = session.streams.find(stream) {
                        let waits = asked.window <= 0;
                        asked.window += i64::from(by);
                        if waits && session.lane.body(asked.request).len() > asked.sent {
                            session.sending.push_back(stream);
                        }
                    }
                }
                Event::Settings { more } => {
                    session.sending.clear();
                    for asked in session.streams.places.iter_mut().flatten() {
                        asked.window += more;
                        if session.lane.body(asked.request).len() > asked.sent {
                            session.sending.push_back(asked.stream);
                        }
                    }
                }
                Event::GoAway { last } => {
                    session.closing = true;
                    let gone: Vec<u32> =
                        session.streams.iter().map(|asked| asked.stream).filter(|stream| *stream > last).collect();
                    for stream in gone {
                        let Some(asked) = session.streams.take(stream) else { continue };
                        self.lose(session.lane, &asked, true, &Failure::Reset(None));
                    }
                }
            }
        }
        Ok(())
    }

    fn take_head(&mut self, session: &mut Session<'_>, stream: u32, ends: bool) -> Result<(), ErrorCode> {
        let mut status = 0;
        session.frames.decode(|name, value| {
            if name == b":status" {
                status = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            }
        })?;
        let now = session.now;
        let Some(asked) = session.streams.find(stream) else { return Ok(()) };
        if asked.status == 0 {
            match status {
                100..200 if !ends => return Ok(()),
                200..=999 => asked.status = status,
                _ => return Err(ErrorCode::ProtocolError),
            }
            asked.times.first_byte.get_or_insert(now);
        }
        if ends {
            self.complete(session, stream);
        }
        Ok(())
    }

    /// Completes a response. The rest of a request that is still being sent is cancelled.
    fn complete(&mut self, session: &mut Session<'_>, stream: u32) {
        let Some(mut asked) = session.streams.take(stream) else { return };
        if asked.sent < session.lane.body(asked.request).len() {
            session.frames.reset(stream, ErrorCode::NoError);
        }
        asked.times.last_byte = Some(session.now);
        self.count_answer(asked.status, &asked.times, !(asked.first && self.course.plan.first_untimed));
        let think = self.course.plan.think;
        if !think.is_zero() && !self.is_reference() {
            session.thinking.push_back(session.now + think);
        }
    }

    /// Records a request without a response. One that the server has not processed is retried.
    fn lose(&self, lane: &Lane, asked: &OpenRequest, refused: bool, failure: &Failure) {
        if refused {
            self.return_request();
        } else {
            self.count_failure(failure, lane, &asked.times);
        }
    }

    /// Ready when waiting ends, by the timeout or the end of the run.
    fn poll_session_patience(&mut self, context: &mut Context<'_>, session: &Session<'_>) -> Poll<End> {
        if self.worker.phase() == Phase::Over {
            return Poll::Ready(End::Lost(Failure::Over));
        }
        let deadline = session.deadline.filter(|_| session.streams.open > 0);
        let thinks = session.thinking.front().copied();
        self.timer.arm([deadline, thinks].into_iter().flatten().min());
        if self.timer.poll_expired(context).is_pending() {
            return Poll::Pending;
        }
        if deadline.is_some_and(|deadline| deadline <= rt::now()) {
            return Poll::Ready(End::Lost(Failure::Timeout));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Counts requests without a response, and closes the connection.
    async fn conclude_session(&mut self, mut session: Session<'_>, end: End) {
        for _ in 0..session.credit {
            self.return_request();
        }
        match end {
            End::InOrder => {
                session.frames.go_away(0, ErrorCode::NoError);
                // A server that does not accept this now detects the close of the connection.
                poll_fn(|context| {
                    let _ = session.frames.poll_flush(context, &mut session.link.transport);
                    Poll::Ready(())
                })
                .await;
            }
            End::Lost(failure) => {
                for asked in session.streams.iter() {
                    self.count_failure(&failure, session.lane, &asked.times);
                }
                let unused = session.link.asked == 0;
                if unused {
                    self.count_failure(&failure, session.lane, &Times::default());
                }
                drop(session);
                if unused && self.worker.phase() == Phase::Running {
                    self.pause_after_failure().await;
                }
            }
        }
        self.timer.arm(None);
    }

    fn most_requests(&self) -> u64 {
        self.course.plan.requests_per_connection.unwrap_or(u64::MAX).max(1)
    }
}

impl Session<'_> {
    /// Whether it carries no more requests.
    fn is_full(&self, most: u64) -> bool {
        self.link.asked >= most || self.next > LAST - 4 * self.most as u32
    }
}

impl Lane {
    /// Returns the payload of a request.
    fn body(&self, request: usize) -> &[u8] {
        self.requests.get(request).and_then(|request| request.framed.as_ref()).map_or(&[], |framed| &framed.body)
    }
}

/// Queues payload, one frame of each stream in turn, as far as the windows permit.
fn send_payload(session: &mut Session<'_>) {
    while session.frames.waiting() < ENOUGH && session.frames.window() > 0 {
        let Some(stream) = session.sending.pop_front() else { return };
        let lane = session.lane;
        let Some(asked) = session.streams.find(stream) else { continue };
        let rest = lane.body(asked.request).get(asked.sent..).unwrap_or_default();
        let window = usize::try_from(asked.window.min(session.frames.window())).unwrap_or(0);
        let count = rest.len().min(window).min(MAX_FRAME_SIZE);
        if count == 0 {
            // It continues when its window grows.
            continue;
        }
        asked.sent += count;
        asked.window -= count as i64;
        let ends = count == rest.len();
        session.frames.push_payload(stream, &rest[..count], ends);
        if !ends {
            session.sending.push_back(stream);
        }
    }
}
