//! State shared by the task of a multiplexed FastCGI connection and its requests (`option mpxs-conns`): a slot for each
//! request, its output that was not read yet, and records that wait to be written. Must never hold more of one request
//! than [`BUFFERS`] buffers.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use base::buffer::Buffer;
use wire::fcgi::{self, ProtocolStatus, Values};

use super::note_error;
use crate::progress::FrameProgress;

/// The most buffers of output that wait for the reader of one request.
const BUFFERS: usize = 4;

/// The number of bytes waiting to be written from which on requests may add no more.
const OUTPUT: usize = 65_536;

/// The maximum number of requests at a time, even if the application permits more.
const MAX_REQUESTS: usize = 1_000;

/// Parameters of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Whether it begins with `FCGI_GET_VALUES` (`option get-values`): one request at a time until the application
    /// answers.
    pub asks_values: bool,
    /// Whether standard error is kept to be logged (`log-stderr`).
    pub keeps_errors: bool,
    /// Whether it is multiplexed, unless the application announces otherwise (`option mpxs-conns`).
    pub shares: bool,
    /// The maximum number of requests at a time, unless the application announces another (`option max-reqs`).
    pub max_requests: usize,
    /// The total number of requests after which no other one begins (`max-reuse`). 0: no limit.
    pub max_total: u32,
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing of it was written.
    Idle,
    /// No output was received.
    Asked,
    /// Some output was received.
    Answering,
    /// All output was received, `FCGI_END_REQUEST` was not.
    Answered,
    /// `FCGI_END_REQUEST` was received.
    Ended,
    /// Its owner has released it, and `FCGI_END_REQUEST` was not received.
    Abandoned,
    /// Aborted by this side while it has an owner; `FCGI_END_REQUEST` was not received.
    Cut,
    /// The connection or the request has failed.
    Failed,
}

pub(super) struct Half {
    pub(super) stage: Stage,
    /// Output that was not read.
    input: VecDeque<Buffer>,
    /// Progress of records of output.
    pub(super) progress: FrameProgress,
    /// Whether the application has not begun it.
    pub(super) refused: bool,
    error: Vec<u8>,
    pub(super) errors: Vec<Vec<u8>>,
    /// The task that waits for output.
    reader: Option<Waker>,
}

impl Half {
    fn new() -> Self {
        Self {
            stage: Stage::Idle,
            input: VecDeque::new(),
            progress: FrameProgress::default(),
            refused: false,
            error: Vec::new(),
            errors: Vec::new(),
            reader: None,
        }
    }

    /// Free space for output, in bytes.
    fn room(&self) -> usize {
        let more = BUFFERS.saturating_sub(self.input.len()) * rt::buffer_size();
        more + self.input.back().map_or(0, Buffer::room)
    }

    fn push(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.input.back().is_none_or(|last| last.room() == 0) {
                self.input.push_back(rt::buffer());
            }
            let Some(last) = self.input.back_mut() else { return };
            let (part, rest) = data.split_at(data.len().min(last.room()));
            if part.is_empty() || !last.push(part) {
                return;
            }
            data = rest;
        }
    }

    pub(super) fn has_output(&self) -> bool {
        !self.input.is_empty()
    }

    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        self.reader = Some(cx.waker().clone());
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Whether it has an owner.
    fn is_live(&self) -> bool {
        self.stage != Stage::Abandoned
    }

    fn fail(&mut self) {
        // If all output of an answer was received, only `FCGI_END_REQUEST` is missing.
        self.stage = match self.stage {
            Stage::Answered | Stage::Ended => Stage::Ended,
            Stage::Abandoned => Stage::Abandoned,
            _ => Stage::Failed,
        };
        self.wake();
    }
}

pub(super) struct State {
    terms: Terms,
    /// Indexed by request identifier minus one.
    halves: Vec<Option<Half>>,
    limit: usize,
    begun: u32,
    values: Option<Values>,
    /// Bytes to be written.
    pub(super) output: Vec<u8>,
    /// Tasks that wait for free space in `output`.
    writers: Vec<Waker>,
    pub(super) mover: Option<Waker>,
    /// Whether no more requests can begin.
    pub(super) closing: bool,
    pub(super) failed: bool,
    /// The number of reads that returned bytes.
    pub(super) heard: u64,
    /// The number of answers received whole.
    pub(super) answers: u32,
}

impl State {
    pub(super) fn new(terms: Terms) -> Self {
        let limit = if terms.asks_values { 1 } else { terms.max_requests.clamp(1, MAX_REQUESTS) };
        Self {
            terms,
            halves: Vec::new(),
            limit,
            begun: 0,
            values: terms.asks_values.then(Values::default),
            output: if terms.asks_values { fcgi::get_values() } else { Vec::new() },
            writers: Vec::new(),
            mover: None,
            closing: false,
            failed: false,
            heard: 0,
            answers: 0,
        }
    }

    pub(super) fn wake_mover(&mut self) {
        if let Some(mover) = self.mover.take() {
            mover.wake();
        }
    }

    pub(super) fn half(&mut self, request: u16) -> Option<&mut Half> {
        self.halves.get_mut(usize::from(request).checked_sub(1)?)?.as_mut()
    }

    /// The number of slots in use, including those of abandoned requests.
    pub(super) fn open(&self) -> usize {
        self.halves.iter().flatten().count()
    }

    /// The number of requests that have an owner.
    pub(super) fn live(&self) -> usize {
        self.halves.iter().flatten().filter(|half| half.is_live()).count()
    }

    /// The number of requests that may be in progress at a time.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing || self.failed || self.terms.max_total > 0 && self.begun >= self.terms.max_total
    }

    /// Allocates the identifier of a new request, the smallest that is free. `None`: no other one may begin.
    pub(super) fn begin(&mut self) -> Option<u16> {
        if self.is_closing() || self.open() >= self.limit {
            return None;
        }
        let place = self.halves.iter().position(Option::is_none).unwrap_or(self.halves.len());
        if place == self.halves.len() {
            self.halves.push(None);
        }
        self.halves[place] = Some(Half::new());
        self.begun = self.begun.saturating_add(1);
        u16::try_from(place + 1).ok()
    }

    /// Releases a request. A request in progress keeps its identifier until the application has ended it; with `aborts`
    /// the application receives `FCGI_ABORT_REQUEST`.
    pub(super) fn leave(&mut self, request: u16, aborts: bool) {
        let failed = self.failed;
        let Some(half) = self.half(request) else { return };
        let is_under_way = matches!(half.stage, Stage::Asked | Stage::Answering | Stage::Answered);
        half.input.clear();
        half.reader = None;
        if is_under_way && !failed {
            half.stage = Stage::Abandoned;
            if aborts {
                self.output.extend_from_slice(&fcgi::abort_request(request));
            }
        } else if half.stage == Stage::Cut && !failed {
            half.stage = Stage::Abandoned;
        } else if half.stage != Stage::Abandoned {
            self.free(request);
        }
        if aborts && self.live() == 0 && self.open() > 0 {
            // Only the ends of abandoned requests can follow: the connection is not kept open for these.
            self.closing = true;
        }
        self.wake_mover();
    }

    fn free(&mut self, request: u16) {
        if let Some(place) = usize::from(request).checked_sub(1).and_then(|place| self.halves.get_mut(place)) {
            *place = None;
        }
    }

    /// Whether there is free space in `output`; if not, the task is woken when there is.
    pub(super) fn has_room(&mut self, cx: &Context<'_>) -> bool {
        let has_room = self.output.len() < OUTPUT;
        if !has_room && !self.writers.iter().any(|writer| writer.will_wake(cx.waker())) {
            self.writers.push(cx.waker().clone());
        }
        has_room
    }

    /// Removes `bytes` of the output, which were written.
    pub(super) fn note_written(&mut self, bytes: usize) {
        self.output.drain(..bytes.min(self.output.len()));
        if self.output.len() < OUTPUT {
            self.writers.drain(..).for_each(Waker::wake);
        }
    }

    /// The number of bytes of a request's output that can be accepted. Output without a reader is dropped, so it has no
    /// limit.
    pub(super) fn room(&mut self, request: u16) -> usize {
        match self.half(request) {
            Some(half) if half.is_live() && half.stage != Stage::Cut => half.room(),
            _ => usize::MAX,
        }
    }

    /// Accepts output; `is_whole`: its record is complete. Returns false if the application violates the protocol.
    pub(super) fn take_output(&mut self, request: u16, data: &[u8], is_whole: bool) -> bool {
        let Some(half) = self.half(request) else { return false };
        match half.stage {
            Stage::Abandoned | Stage::Cut => return true,
            Stage::Asked | Stage::Answering => {}
            Stage::Idle | Stage::Answered | Stage::Ended | Stage::Failed => return false,
        }
        half.push(data);
        half.progress.note(data.len(), is_whole);
        half.stage = Stage::Answering;
        half.wake();
        true
    }

    /// Handles the end of a request's output.
    pub(super) fn end_output(&mut self, request: u16) -> bool {
        let Some(half) = self.half(request) else { return false };
        if matches!(half.stage, Stage::Asked | Stage::Answering) {
            half.stage = Stage::Answered;
        }
        half.stage != Stage::Idle
    }

    /// Appends a part of a message of standard error.
    pub(super) fn take_error(&mut self, request: u16, data: &[u8], whole: bool) -> bool {
        let keeps = self.terms.keeps_errors;
        let Some(half) = self.half(request) else { return false };
        let is_live = half.is_live();
        note_error(&mut half.error, &mut half.errors, keeps && is_live, data, whole);
        half.stage != Stage::Idle
    }

    /// Handles `FCGI_END_REQUEST`.
    pub(super) fn end(&mut self, request: u16, status: ProtocolStatus) -> bool {
        let others = self.open().saturating_sub(1);
        let Some(half) = self.half(request) else { return false };
        match half.stage {
            Stage::Idle | Stage::Ended | Stage::Failed => return false,
            Stage::Abandoned => {
                self.free(request);
                return true;
            }
            Stage::Cut => {
                half.stage = Stage::Failed;
                return true;
            }
            Stage::Asked | Stage::Answering | Stage::Answered => {}
        }
        // The output received is valid, even if the application reports an error at the end.
        let has_answered = status == ProtocolStatus::Complete || half.stage != Stage::Asked;
        half.refused = status == ProtocolStatus::Refused && !has_answered;
        half.stage = if has_answered { Stage::Ended } else { Stage::Failed };
        half.wake();
        if has_answered {
            self.answers = self.answers.saturating_add(1);
        }
        if status == ProtocolStatus::Refused {
            // The number of requests in progress is more than the application accepts.
            self.limit = self.limit.min(others.max(1));
        }
        true
    }

    /// Accepts a part of the application's `FCGI_GET_VALUES_RESULT`.
    pub(super) fn take_values(&mut self, data: &[u8], whole: bool) {
        let Some(values) = &mut self.values else { return };
        values.take(data, whole);
        if !values.is_whole() {
            return;
        }
        let most = values.max_requests().map_or(self.terms.max_requests, |most| most as usize);
        let shares = values.shares_connections().unwrap_or(self.terms.shares);
        self.limit = if shares { most.clamp(1, MAX_REQUESTS) } else { 1 };
        self.values = None;
    }

    /// Aborts a request that has an owner, which gets an error.
    pub(super) fn give_up(&mut self, request: u16) {
        let Some(half) = self.half(request) else { return };
        if !matches!(half.stage, Stage::Asked | Stage::Answering | Stage::Answered) {
            return;
        }
        half.input.clear();
        half.stage = Stage::Cut;
        half.wake();
        self.output.extend_from_slice(&fcgi::abort_request(request));
    }

    /// Marks the requests as refused: the application has not received any of them.
    pub(super) fn refuse(&mut self) {
        self.halves.iter_mut().flatten().for_each(|half| half.refused = half.stage == Stage::Asked);
    }

    /// Handles the end of the connection.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.halves.iter_mut().flatten().for_each(Half::fail);
        self.writers.drain(..).for_each(Waker::wake);
    }

    /// Moves output of a request into `buffer`, and returns whether a record was completed since the last read.
    pub(super) fn read(&mut self, request: u16, buffer: &mut Buffer) -> bool {
        let Some(half) = self.half(request) else { return false };
        let completes = half.progress.take();
        let was_full = half.room() == 0;
        while let Some(first) = half.input.front_mut() {
            let length = first.len().min(buffer.room());
            if length == 0 || !buffer.push(&first.data()[..length]) {
                break;
            }
            first.consume(length);
            if first.is_empty() {
                half.input.pop_front();
            }
        }
        if was_full && half.room() > 0 {
            self.wake_mover();
        }
        completes
    }
}
