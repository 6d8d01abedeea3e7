//! An HTTP/3 connection with several concurrent requests, to its end. Must never decide about the overall rate.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use base::Moment;
use quic::stream::{ReadError, WriteError};
use quic::{Bytes, Direction, Event, StreamId};
use wire::h3::{Error, ErrorCode, MessagePart, MessageReader, Role, Scope};

use super::client::{Client, Times};
use super::failure::{Failure, failure_of};
use super::h3_control::Control;
use super::load_run::Lane;
use super::quic_link::{QuicLink, code_name, loss};
use super::worker::Phase;
use crate::load::plan::Pace;

/// Maximum size of a field section, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;
/// Maximum number of interim responses before a final one.
const MOST_INTERIM: u8 = 100;

/// A request in progress.
struct OpenRequest {
    id: StreamId,
    reader: MessageReader,
    status: u16,
    interim: u8,
    /// It was the first one of its connection.
    first: bool,
    times: Times,
    /// The bytes that were not sent; `None`: all were sent, or the server has stopped the stream.
    unsent: Option<Bytes>,
}

/// Reason why a connection has ended.
enum End {
    /// No more requests are sent over it.
    InOrder,
    /// It ended before its requests were answered.
    Lost(Failure),
    /// The server violates HTTP/3.
    Invalid(ErrorCode),
}

/// State of a response after a part of it was received.
enum Progress {
    Incomplete,
    Complete,
    /// The server has reset the stream, with that code.
    Reset(u64),
    /// The connection has ended, which an event reports.
    Closed,
}

/// A connection with its requests.
struct Session<'a> {
    lane: &'a Lane,
    link: QuicLink,
    control: Control,
    /// Requests in progress, by stream number.
    streams: HashMap<u64, OpenRequest>,
    /// A stream that was opened and is not used yet.
    spare: Option<StreamId>,
    /// Maximum number of concurrent streams.
    most: usize,
    /// Requests taken from the budget and not started.
    credit: u32,
    /// The budget is exhausted.
    spent: bool,
    /// The server accepts no more streams.
    closing: bool,
    /// Ends of the pauses that follow responses.
    thinking: VecDeque<Moment>,
    /// Deadline for the next event, while there are requests.
    deadline: Option<Moment>,
    /// Time of the last received datagram.
    now: Moment,
}

impl Client {
    /// Runs one connection after the other, with up to `most` concurrent requests.
    pub(super) async fn run_h3(&mut self, lane: &Lane, most: u32) {
        while self.worker.phase() == Phase::Running {
            if !self.is_reference() && !self.worker.take_request() {
                return;
            }
            let Some(link) = self.open_quic(lane).await else {
                self.return_request();
                continue;
            };
            let mut session = Session {
                lane,
                link,
                control: Control::new(),
                streams: HashMap::new(),
                spare: None,
                most: most as usize,
                credit: 1,
                spent: false,
                closing: false,
                thinking: VecDeque::new(),
                deadline: None,
                now: rt::read_clock(),
            };
            let end = poll_fn(|context| self.poll_h3(context, &mut session)).await;
            let spent = session.spent;
            self.conclude_h3(session, end).await;
            if spent {
                return;
            }
        }
    }

    fn poll_h3(&mut self, context: &mut Context<'_>, session: &mut Session<'_>) -> Poll<End> {
        loop {
            match session.link.receive(context, self.worker.quic()) {
                Err(error) => return Poll::Ready(End::Lost(failure_of(error, false))),
                Ok(true) => session.now = rt::read_clock(),
                Ok(false) => {}
            }
            if let Err(end) = self.take_h3_events(session) {
                return Poll::Ready(end);
            }
            session.control.send(&mut session.link.connection);
            self.begin_requests(context, session);
            let goes_on = self.worker.phase() == Phase::Running
                && !session.spent
                && session.link.asked < self.most_requests_of_connection();
            if session.streams.is_empty() && (!goes_on || session.closing) {
                return Poll::Ready(End::InOrder);
            }
            if let Err(error) = session.link.send(context, self.worker.quic()) {
                return Poll::Ready(End::Lost(failure_of(error, false)));
            }
            if let Some(end) = ready!(self.poll_h3_patience(context, session)) {
                return Poll::Ready(end);
            }
        }
    }

    /// Starts requests as permitted by the stream limit and the pace.
    fn begin_requests(&mut self, context: &Context<'_>, session: &mut Session<'_>) {
        while session.thinking.front().is_some_and(|end| *end <= session.now.max(rt::now())) {
            session.thinking.pop_front();
        }
        while session.streams.len() + session.thinking.len() < session.most
            && self.worker.phase() == Phase::Running
            && !session.closing
            && session.link.asked < self.most_requests_of_connection()
        {
            let opened = session.spare.take().or_else(|| session.link.connection.open(Direction::Bidirectional));
            // Without one, the server permits no more streams now.
            let Some(id) = opened else { return };
            session.spare = Some(id);
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
            session.spare = None;
            self.begin_request(session, id, since);
        }
    }

    fn begin_request(&mut self, session: &mut Session<'_>, id: StreamId, since: Moment) {
        let number = self.worker.next_request(self.lane);
        let Some(request) = session.lane.requests.get(number) else { return };
        session.credit -= 1;
        let mut asked = OpenRequest {
            id,
            reader: MessageReader::new(Role::Client, LARGEST_HEAD),
            status: 0,
            interim: 0,
            first: session.link.asked == 0,
            times: Times { begun: Some(since), sent: true, ..Times::default() },
            unsent: Some(request.stream.clone()),
        };
        asked.send(&mut session.link);
        if session.streams.is_empty() {
            session.deadline = self.course.plan.timeout.map(|timeout| session.now.max(rt::now()) + timeout);
        }
        session.streams.insert(id.number(), asked);
        session.link.asked += 1;
        if !self.is_reference() {
            self.worker.counters.borrow_mut().requests += 1;
        }
    }

    fn take_h3_events(&mut self, session: &mut Session<'_>) -> Result<(), End> {
        while let Some(event) = session.link.connection.poll_event() {
            session.deadline = self.course.plan.timeout.map(|timeout| session.now + timeout);
            match event {
                Event::StreamsOpened(Direction::Unidirectional) => {
                    let result = session.control.accept(&mut session.link.connection);
                    result.map_err(|error| End::Invalid(error.code))?;
                }
                Event::Readable(id) if id.direction() == Direction::Unidirectional => {
                    let result = session.control.read(id, &mut session.link.connection);
                    result.map_err(|error| End::Invalid(error.code))?;
                }
                Event::Readable(id) => self.take_response(session, id)?,
                Event::Writable(id) => {
                    if let Some(asked) = session.streams.get_mut(&id.number()) {
                        asked.send(&mut session.link);
                    }
                }
                Event::Stopped(id, code) => self.take_stop(session, id, code),
                Event::Closed(closed) => return Err(End::Lost(loss(&closed))),
                // Streams of the server with requests are not permitted by the transport parameters.
                Event::StreamsOpened(Direction::Bidirectional)
                | Event::Hello
                | Event::Connected
                | Event::Finished(_)
                | Event::Messages
                | Event::StreamsAvailable(_) => {}
            }
        }
        if let Some(limit) = session.control.limit.take() {
            session.closing = true;
            let refused: Vec<u64> = session.streams.keys().copied().filter(|number| *number >= limit).collect();
            for asked in refused.iter().filter_map(|number| session.streams.remove(number)) {
                session.link.connection.stop(asked.id, ErrorCode::RequestCancelled.number());
                self.return_request();
            }
        }
        Ok(())
    }

    /// Receives what has arrived of a response.
    fn take_response(&mut self, session: &mut Session<'_>, id: StreamId) -> Result<(), End> {
        let now = session.now;
        let Some(asked) = session.streams.get_mut(&id.number()) else { return Ok(()) };
        let before = asked.times.received;
        let progress = asked.receive(&mut session.link, &mut session.control, now);
        let received = asked.times.received - before;
        self.count_received(received);
        match progress {
            Ok(Progress::Incomplete | Progress::Closed) => Ok(()),
            Ok(Progress::Complete) => {
                self.complete_request(session, id);
                Ok(())
            }
            Ok(Progress::Reset(code)) => {
                self.lose_request(session, id, code);
                Ok(())
            }
            Err(Error { code, scope: Scope::Connection }) => Err(End::Invalid(code)),
            Err(Error { code, scope: Scope::Stream }) => {
                let Some(asked) = session.streams.remove(&id.number()) else { return Ok(()) };
                asked.cancel(&mut session.link, code);
                self.count_failure(&violation(code), session.lane, &asked.times);
                Ok(())
            }
        }
    }

    /// Completes a response. The rest of a request that is still being sent is cancelled.
    fn complete_request(&mut self, session: &mut Session<'_>, id: StreamId) {
        let Some(mut asked) = session.streams.remove(&id.number()) else { return };
        if asked.unsent.is_some() {
            session.link.connection.reset(id, ErrorCode::NoError.number());
        }
        // These bytes are counted already.
        asked.times.received = 0;
        asked.times.last_byte = Some(session.now);
        self.count_answer(asked.status, &asked.times, !(asked.first && self.course.plan.first_untimed));
        let think = self.course.plan.think;
        if !think.is_zero() && !self.is_reference() {
            session.thinking.push_back(session.now + think);
        }
    }

    /// Records a request whose stream was reset. One that the server has not processed is retried.
    fn lose_request(&self, session: &mut Session<'_>, id: StreamId, code: u64) {
        let Some(asked) = session.streams.remove(&id.number()) else { return };
        asked.cancel(&mut session.link, ErrorCode::RequestCancelled);
        if code == ErrorCode::RequestRejected.number() {
            return self.return_request();
        }
        let error = io::Error::other(format!("the server has reset the request: {}", code_name(code)));
        self.count_failure(&Failure::Reset(Some(error)), session.lane, &asked.times);
    }

    /// Handles STOP_SENDING: the server does not want the rest of a request, which it may answer.
    fn take_stop(&self, session: &mut Session<'_>, id: StreamId, code: u64) {
        let Some(asked) = session.streams.get_mut(&id.number()) else { return };
        if asked.unsent.take().is_some() {
            session.link.connection.reset(id, ErrorCode::NoError.number());
        }
        if code == ErrorCode::RequestRejected.number() {
            self.lose_request(session, id, code);
        }
    }

    /// Ready without an end when a pause has ended. Deadlines of the connection are later, and are processed in a later call.
    fn poll_h3_patience(&mut self, context: &mut Context<'_>, session: &mut Session<'_>) -> Poll<Option<End>> {
        if self.worker.phase() == Phase::Over {
            return Poll::Ready(Some(End::Lost(Failure::Over)));
        }
        let deadline = session.deadline.filter(|_| !session.streams.is_empty());
        let thinks = session.thinking.front().copied();
        self.timer.arm([deadline, thinks, session.link.deadline()].into_iter().flatten().min());
        ready!(self.timer.poll_expired(context));
        if deadline.is_some_and(|deadline| deadline <= rt::now()) {
            return Poll::Ready(Some(End::Lost(Failure::Timeout)));
        }
        Poll::Ready(None)
    }

    /// Counts requests without a response, and closes the connection.
    async fn conclude_h3(&mut self, mut session: Session<'_>, end: End) {
        for _ in 0..session.credit {
            self.return_request();
        }
        let (code, failure) = match end {
            End::InOrder => (ErrorCode::NoError, None),
            End::Lost(failure) => (ErrorCode::NoError, Some(failure)),
            End::Invalid(code) => (code, Some(violation(code))),
        };
        poll_fn(|context| {
            session.link.close(context, self.worker.quic(), code);
            Poll::Ready(())
        })
        .await;
        self.count_packets(&session.link);
        if let Some(failure) = failure {
            for asked in session.streams.values() {
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
        self.timer.arm(None);
    }

    fn most_requests_of_connection(&self) -> u64 {
        self.course.plan.requests_per_connection.unwrap_or(u64::MAX).max(1)
    }
}

/// Returns the failure of requests to a server that violates HTTP/3.
fn violation(code: ErrorCode) -> Failure {
    Failure::InvalidH3(format!("the answer violates HTTP/3: {}", code.name()))
}

impl OpenRequest {
    /// Sends as much of the request as the connection accepts.
    fn send(&mut self, link: &mut QuicLink) {
        let Some(bytes) = &mut self.unsent else { return };
        while !bytes.is_empty() {
            match link.connection.write_pieces(self.id, std::slice::from_mut(bytes)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                // An event reports the reason.
                Err(WriteError::Stopped(_) | WriteError::Closed) => break,
            }
        }
        if bytes.is_empty() {
            // A stream that the server has stopped needs no end.
            let _ = link.connection.finish(self.id);
            self.unsent = None;
        }
    }

    /// Ends both directions of the stream.
    fn cancel(&self, link: &mut QuicLink, code: ErrorCode) {
        link.connection.stop(self.id, code.number());
        if self.unsent.is_some() {
            link.connection.reset(self.id, code.number());
        }
    }

    /// Receives what has arrived of the response.
    fn receive(&mut self, link: &mut QuicLink, control: &mut Control, now: Moment) -> Result<Progress, Error> {
        let mut result = Ok(());
        let id = self.id;
        let ended = link.connection.read_all(id, |bytes| {
            self.times.received += bytes.len() as u64;
            self.times.first_byte.get_or_insert(now);
            result = self.take(&bytes, control);
            result.is_ok()
        });
        result?;
        match ended {
            Ok(false) => Ok(Progress::Incomplete),
            Ok(true) => {
                self.reader.finish()?;
                Ok(Progress::Complete)
            }
            Err(ReadError::Reset(code)) => Ok(Progress::Reset(code)),
            Err(ReadError::Blocked) => Ok(Progress::Incomplete),
            Err(ReadError::Closed) => Ok(Progress::Closed),
        }
    }

    /// Processes bytes of the response.
    fn take(&mut self, bytes: &[u8], control: &mut Control) -> Result<(), Error> {
        let mut input = bytes;
        while let Some(part) = self.reader.next(&mut input)? {
            match part {
                MessagePart::Head(section) => {
                    let status = control.status(self.id, section)?;
                    self.take_status(status)?;
                }
                MessagePart::Trailers(section) => control.trailers(self.id, section)?,
                MessagePart::TooLarge { .. } => return Err(Error::stream(ErrorCode::ExcessiveLoad)),
                MessagePart::Data(_) | MessagePart::Skipped { .. } | MessagePart::StreamOf { .. } => {}
            }
        }
        Ok(())
    }

    fn take_status(&mut self, status: u16) -> Result<(), Error> {
        match status {
            // No upgrade exists in HTTP/3 (RFC 9114, section 4.5).
            100 | 102..200 if self.interim < MOST_INTERIM => {
                self.interim += 1;
                self.reader.note_interim();
            }
            200..=999 => self.status = status,
            _ => return Err(Error::stream(ErrorCode::MessageError)),
        }
        Ok(())
    }
}
