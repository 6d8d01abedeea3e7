//! What the task of a FastCGI connection and its requests share (`option mpxs-conns`): a place for each request, its output
//! that was not read yet, and records that wait to be written. Must never hold more of one request than [`BUFFERS`] buffers.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use base::buffer::Buffer;
use wire::fcgi::{self, ProtocolStatus, Values};

use super::note_error;
use crate::progress::FrameProgress;

/// Buffers of output that wait for the reader of one request.
const BUFFERS: usize = 4;

/// Bytes that wait to be written up to which requests may add some.
const OUTPUT: usize = 65_536;

/// Requests at a time, whatever the application permits.
const MAX_REQUESTS: usize = 1_000;

/// What holds for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// It begins with `FCGI_GET_VALUES` (`option get-values`): one request at a time until that is answered.
    pub asks_values: bool,
    /// Standard error is kept to be logged (`log-stderr`).
    pub keeps_errors: bool,
    /// It carries several requests, unless the application says otherwise (`option mpxs-conns`).
    pub shares: bool,
    /// Requests at a time, unless the application says another number (`option max-reqs`).
    pub max_requests: usize,
    /// Requests in all after which no other one begins (`max-reuse`). 0: no limit.
    pub max_total: u32,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing of it was written.
    Idle,
    /// No output has come.
    Asked,
    /// Output has come.
    Answering,
    /// All of it has; `FCGI_END_REQUEST` has not.
    Answered,
    /// That has come.
    Ended,
    /// Its owner has let go of it, and `FCGI_END_REQUEST` has not come.
    Abandoned,
    /// The same by this side, while somebody still has it.
    Cut,
    /// The connection has failed, or the request has.
    Failed,
}

/// One request.
pub(super) struct Half {
    pub(super) stage: Stage,
    /// Output that was not read.
    input: VecDeque<Buffer>,
    /// Whether records of it are whole.
    pub(super) progress: FrameProgress,
    /// The application has not begun with it.
    pub(super) refused: bool,
    error: Vec<u8>,
    pub(super) errors: Vec<Vec<u8>>,
    /// Who waits for output.
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

    /// Bytes of output that have room.
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

    /// Whether somebody has it.
    fn is_live(&self) -> bool {
        self.stage != Stage::Abandoned
    }

    fn fail(&mut self) {
        // All that is missing of an answer that was received is the word that nothing is.
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
    /// By their numbers, of which the first is 1.
    halves: Vec<Option<Half>>,
    limit: usize,
    begun: u32,
    values: Option<Values>,
    /// What is to be written.
    pub(super) output: Vec<u8>,
    /// Who waits for room there.
    writers: Vec<Waker>,
    pub(super) mover: Option<Waker>,
    /// No request begins any more.
    pub(super) closing: bool,
    pub(super) failed: bool,
    /// Reads that have brought something.
    pub(super) heard: u64,
    /// Answers that were received whole.
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

    /// Requests that have a place, those included that were given up.
    pub(super) fn open(&self) -> usize {
        self.halves.iter().flatten().count()
    }

    /// Requests that somebody has.
    pub(super) fn live(&self) -> usize {
        self.halves.iter().flatten().filter(|half| half.is_live()).count()
    }

    /// Requests that may be under way at a time.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing || self.failed || self.terms.max_total > 0 && self.begun >= self.terms.max_total
    }

    /// The number of a new request, the smallest that is free. `None`: no other one may begin.
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

    /// A request is let go. One that is under way keeps its number until the application has ended it, which is told so where it
    /// `aborts`.
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
            // Nothing but the ends of requests that were given up is to come: that is not worth waiting for.
            self.closing = true;
        }
        self.wake_mover();
    }

    fn free(&mut self, request: u16) {
        if let Some(place) = usize::from(request).checked_sub(1).and_then(|place| self.halves.get_mut(place)) {
            *place = None;
        }
    }

    /// Whether there is room for something to write; else it is waited for.
    pub(super) fn has_room(&mut self, cx: &Context<'_>) -> bool {
        let has_room = self.output.len() < OUTPUT;
        if !has_room && !self.writers.iter().any(|writer| writer.will_wake(cx.waker())) {
            self.writers.push(cx.waker().clone());
        }
        has_room
    }

    /// So many bytes of the output were written.
    pub(super) fn note_written(&mut self, bytes: usize) {
        self.output.drain(..bytes.min(self.output.len()));
        if self.output.len() < OUTPUT {
            self.writers.drain(..).for_each(Waker::wake);
        }
    }

    /// Bytes of output of a request that can be taken. What has no reader is dropped, however much it is.
    pub(super) fn room(&mut self, request: u16) -> usize {
        match self.half(request) {
            Some(half) if half.is_live() && half.stage != Stage::Cut => half.room(),
            _ => usize::MAX,
        }
    }

    /// Takes output; `is_whole`: its record has no more. False: the application breaks the protocol.
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

    /// No more output comes of a request.
    pub(super) fn end_output(&mut self, request: u16) -> bool {
        let Some(half) = self.half(request) else { return false };
        if matches!(half.stage, Stage::Asked | Stage::Answering) {
            half.stage = Stage::Answered;
        }
        half.stage != Stage::Idle
    }

    /// Takes a part of a message of standard error.
    pub(super) fn take_error(&mut self, request: u16, data: &[u8], whole: bool) -> bool {
        let keeps = self.terms.keeps_errors;
        let Some(half) = self.half(request) else { return false };
        let is_live = half.is_live();
        note_error((&mut half.error, &mut half.errors), keeps && is_live, data, whole);
        half.stage != Stage::Idle
    }

    /// A request has ended.
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
        // What it has answered counts, whatever it says of itself at the end.
        let has_answered = status == ProtocolStatus::Complete || half.stage != Stage::Asked;
        half.refused = status == ProtocolStatus::Refused && !has_answered;
        half.stage = if has_answered { Stage::Ended } else { Stage::Failed };
        half.wake();
        if has_answered {
            self.answers = self.answers.saturating_add(1);
        }
        if status == ProtocolStatus::Refused {
            // So many are too many.
            self.limit = self.limit.min(others.max(1));
        }
        true
    }

    /// Takes a part of what the application says of its limits.
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

    /// Gives up a request that has an owner, who learns it.
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

    /// The application has seen none of the requests.
    pub(super) fn refuse(&mut self) {
        self.halves.iter_mut().flatten().for_each(|half| half.refused = half.stage == Stage::Asked);
    }

    /// The connection is over.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.halves.iter_mut().flatten().for_each(Half::fail);
        self.writers.drain(..).for_each(Waker::wake);
    }

    /// Moves output of a request into `buffer`, and returns whether a record of it has become whole since the last read.
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
