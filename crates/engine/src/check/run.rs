//! Runs one check of one server: connects, sends, and waits for responses (configuration manual, "option tcp-check", "option
//! httpchk"). Must never decide the effect of the result on the server.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use expression::sample::{Bytes, Context, Direction, Meter, Value};
use expression::variable::{Phase, Variables};
use live::counters::{Count, ProtocolCounts};
use live::health::{CheckStatus, Report};
use policy::check::{Answer, CheckStep, Expect, ExpectMatch, Finding, Judgement, Payload};
use policy::program::{Proxy, Server};
use policy::rule::Action;
use rt::Timer;

use super::messages;
use super::running::{CheckAnswer, CheckConnection, IMPLICIT, Outcome, Progress, RunningCheck, Scopes, Waited};
use crate::generation::Generation;
use crate::probes::{Names, ProcessProbes};
use crate::worker::Worker;

/// Starts a check; `interval` bounds it without `timeout check`. `None`: the server is not checked. Boxed: a running check takes
/// several times the memory that its server needs between two checks, few run at a time, and the memory is reused by the next
/// one.
pub(super) fn check<'a>(
    worker: &'a Worker,
    generation: &'a Generation,
    proxy: &'a Proxy,
    server: &'a Server,
    interval: Duration,
) -> Option<Pin<Box<impl Future<Output = Report>>>> {
    let running = RunningCheck::new(worker, generation, proxy, server, interval)?;
    // Each check counts as a session, as in HAProxy.
    worker.counters().process.connections.increment();
    Some(Box::pin(running.run()))
}

impl<'a> RunningCheck<'a> {
    fn new(
        worker: &'a Worker,
        generation: &'a Generation,
        proxy: &'a Proxy,
        server: &'a Server,
        interval: Duration,
    ) -> Option<Self> {
        let own = server.check.as_ref()?;
        let check = super::script(proxy, server)?;
        let begun = rt::now();
        let bound = check.connect.map_or(interval, |connect| connect.min(interval));
        let bound = if check.timeout.is_some() { bound } else { interval };
        Some(Self {
            worker,
            generation,
            proxy,
            server,
            check,
            own,
            begun,
            deadline: begun + bound,
            timer: Timer::new(),
            progress: Progress::default(),
            connection: CheckConnection::default(),
            answer: CheckAnswer::default(),
            scopes: Scopes::default(),
        })
    }

    /// Runs the check to its end.
    async fn run(mut self) -> Report {
        let mut done = self.steps().await;
        if done.as_ref().is_err_and(|outcome| self.begins_again(outcome)) {
            (self.progress.comment, self.progress.step) = (None, 0);
            done = self.steps().await;
        }
        let Outcome { status, code, info } = match done {
            Ok(()) => self.success(),
            Err(outcome) => outcome,
        };
        self.close();
        Report { status, code, took: rt::now().saturating_since(self.begun), info }
    }

    /// Adds to a protocol counter of the backend, if the check speaks HTTP.
    pub(super) fn count(&self, of: fn(&ProtocolCounts) -> &Count, events: usize) {
        if self.check.is_http {
            of(&self.worker.counters().proxies[self.proxy.index].back().protocol).add(events as u64);
        }
    }

    async fn steps(&mut self) -> Result<(), Outcome> {
        let check = self.check;
        if !check.connects_by_itself() {
            self.connect(&IMPLICIT).await?;
        }
        for (index, step) in check.steps.iter().enumerate() {
            self.progress.step = index + 1;
            match step {
                CheckStep::Comment(comment) => {
                    self.progress.comment = Some(comment);
                    continue;
                }
                CheckStep::Variable(action) => self.set_variable(action),
                CheckStep::Connect(connect) => self.connect(connect).await?,
                CheckStep::Send(payload) => self.send(payload).await?,
                CheckStep::Request(request) => self.send_request(request).await?,
                CheckStep::Expect(expect) => {
                    match &expect.wanted {
                        ExpectMatch::Protocol(answer) => self.expect_protocol(expect, *answer).await?,
                        ExpectMatch::Grpc => self.expect_grpc(expect).await?,
                        _ if check.is_http => self.expect_answer(expect).await?,
                        _ => self.expect(expect).await?,
                    }
                    self.progress.fulfilled = Some(expect);
                }
            }
            // A comment applies to the step right after it.
            self.progress.comment = None;
        }
        Ok(())
    }

    async fn send(&mut self, payload: &Payload) -> Result<(), Outcome> {
        let comment = payload.comment.as_deref();
        match self.lend(&[], |context| payload.content.try_render(context)) {
            Some(bytes) => self.write(&bytes, comment).await,
            None => Err(messages::unsendable(self, comment)),
        }
    }

    /// Sends all bytes. Input received before is discarded.
    pub(super) async fn write(&mut self, bytes: &[u8], comment: Option<&str>) -> Result<(), Outcome> {
        self.connection.input.clear();
        let Some(mut stream) = self.connection.stream.take() else {
            return Err(Outcome::new(CheckStatus::SocketError, String::new()));
        };
        let mut sent = 0;
        let mut result = Ok(());
        let mut unproven = self.connection.unproven.take();
        while sent < bytes.len() {
            let rest = [IoSlice::new(&bytes[sent..])];
            let waited = self.within(|cx| stream.poll_write_slices(cx, &rest, false)).await;
            if let Some(opening) = unproven.take() {
                match self.judge_opening(&opening, &waited) {
                    None => self.restart_timeout(),
                    Some(failure) => {
                        result = Err(failure);
                        break;
                    }
                }
            }
            match waited {
                Waited::Done(Ok(written)) => {
                    sent += written;
                    self.count(|protocol| &protocol.sent, written);
                }
                Waited::Done(Err(error)) => {
                    let info = messages::of_system(&error) + &messages::at_send(self, comment);
                    result = Err(Outcome::new(CheckStatus::SocketError, info));
                    break;
                }
                Waited::Expired => {
                    result = Err(Outcome::new(CheckStatus::L7Timeout, messages::at_send(self, comment)));
                    break;
                }
            }
        }
        // A server on the same machine has answered once the other due checks were sent; epoll is then not needed.
        self.connection.yields = !stream.is_registered();
        self.connection.stream = Some(stream);
        result
    }

    /// Waits for the bytes of a `tcp-check expect`.
    async fn expect(&mut self, expect: &'a Expect) -> Result<(), Outcome> {
        self.restart_timeout();
        loop {
            let full = self.connection.input.len() >= self.generation.program.global.bufsize;
            if !self.connection.input.is_empty() {
                if matches!(&expect.wanted, ExpectMatch::Format(wanted) if self.lend(&[], |cx| wanted.try_render(cx)).is_none())
                {
                    return Err(messages::unreadable());
                }
                let complete = self.connection.ended || full;
                let finding = self
                    .lend(self.connection.input.data(), |cx| expect.look(self.connection.input.data(), complete, cx));
                match finding {
                    Finding::Fulfilled => return Ok(()),
                    Finding::Failed => return Err(self.refuse(expect, messages::mismatch(self, expect))),
                    Finding::Wait => {}
                }
            } else if self.connection.ended {
                return Err(self.refuse(expect, messages::nothing(self, expect)));
            }
            match self.receive().await {
                Waited::Done(Ok(())) => {}
                Waited::Done(Err(error)) => {
                    let info = messages::of_system(&error) + &messages::at_expect(self, expect);
                    return Err(Outcome::new(CheckStatus::SocketError, info));
                }
                Waited::Expired => {
                    return Err(Outcome::new(expect.timeout, messages::at_expect(self, expect)));
                }
            }
        }
    }

    /// Waits for a response of a known protocol.
    async fn expect_protocol(&mut self, expect: &'a Expect, answer: Answer) -> Result<(), Outcome> {
        self.restart_timeout();
        loop {
            let complete =
                self.connection.ended || self.connection.input.len() >= self.generation.program.global.bufsize;
            match answer.judge(self.connection.input.data(), complete) {
                Judgement::Wait => {}
                Judgement::Passed { code, info } => {
                    let before = self.answer.said.take().map(|said| said.1);
                    self.answer.said = Some((code, info.or(before).unwrap_or_default()));
                    return Ok(());
                }
                Judgement::Failed { status, code, info } => return Err(Outcome::failed(status, code, &info)),
                Judgement::Nothing => {
                    let status =
                        if expect.ok == CheckStatus::L6Ok { CheckStatus::L6Response } else { expect.error_status() };
                    return Err(Outcome::new(status, messages::nothing(self, expect)));
                }
            }
            match self.receive().await {
                Waited::Done(Ok(())) => {}
                Waited::Done(Err(error)) => {
                    return Err(Outcome::new(CheckStatus::SocketError, messages::of_system(&error)));
                }
                Waited::Expired => return Err(Outcome::new(expect.timeout, String::new())),
            }
        }
    }

    /// Receives more bytes. Sets `ended` at the end of the stream.
    pub(super) async fn receive(&mut self) -> Waited<io::Result<()>> {
        if std::mem::take(&mut self.connection.yields) {
            rt::yield_now().await;
        }
        if self.connection.input.room() == 0 {
            self.connection.input.compact();
        }
        if let Some(solo) = self.connection.solo.take() {
            return self.receive_from(solo).await;
        }
        if let Some(application) = self.connection.application.take() {
            return self.receive_from_fcgi(application).await;
        }
        let Some(mut stream) = self.connection.stream.take() else {
            return Waited::Done(Err(io::ErrorKind::NotConnected.into()));
        };
        let mut input = std::mem::replace(&mut self.connection.input, Buffer::empty());
        let read = self.within(|cx| {
            // No buffer is held while waiting for the first bytes.
            let mut place = if input.capacity() == 0 { rt::buffer() } else { std::mem::take(&mut input) };
            let polled = stream.poll_read(cx, &mut place);
            if polled.is_ready() || !place.is_empty() {
                input = place;
            }
            polled
        });
        let read = read.await;
        self.connection.input = input;
        self.connection.stream = Some(stream);
        self.note_received(read)
    }

    /// Counts received bytes; zero is the end of the stream.
    pub(super) fn note_received(&mut self, read: Waited<io::Result<usize>>) -> Waited<io::Result<()>> {
        match read {
            Waited::Done(Ok(count)) => {
                self.connection.ended |= count == 0;
                self.count(|protocol| &protocol.received, count);
                Waited::Done(Ok(()))
            }
            Waited::Done(Err(error)) => Waited::Done(Err(error)),
            Waited::Expired => Waited::Expired,
        }
    }

    /// Counts a request of `length` bytes that was sent, or returns the outcome of its failure.
    pub(super) fn note_sent(
        &self,
        sent: Waited<io::Result<()>>,
        length: usize,
        comment: Option<&str>,
    ) -> Result<(), Outcome> {
        match sent {
            Waited::Done(Ok(())) => {
                self.count(|protocol| &protocol.sent, length);
                Ok(())
            }
            Waited::Done(Err(error)) => {
                let info = messages::of_system(&error) + &messages::at_send(self, comment);
                Err(Outcome::new(CheckStatus::SocketError, info))
            }
            Waited::Expired => Err(Outcome::new(CheckStatus::L7Timeout, messages::at_send(self, comment))),
        }
    }

    /// Polls an attempt until the deadline.
    pub(super) async fn within<T>(&mut self, mut attempt: impl FnMut(&mut TaskContext<'_>) -> Poll<T>) -> Waited<T> {
        let (timer, deadline) = (&mut self.timer, self.deadline);
        let mut armed = false;
        poll_fn(|cx| match attempt(cx) {
            Poll::Ready(done) => Poll::Ready(Waited::Done(done)),
            Poll::Pending => {
                // Most attempts succeed at once and need no timer.
                if !std::mem::replace(&mut armed, true) {
                    timer.arm(Some(deadline));
                }
                timer.poll_expired(cx).map(|()| Waited::Expired)
            }
        })
        .await
    }

    /// Puts the connection in the pool, or closes it: by RST, which leaves no TIME_WAIT state on either side, unless `linger` is
    /// set.
    pub(super) fn close(&mut self) {
        (self.connection.solo, self.connection.application) = (None, None);
        let stream = self.connection.stream.take().and_then(|stream| self.lay_down(stream));
        match (stream.filter(|_| !self.connection.linger), self.connection.spare) {
            (Some(stream), Some(v6)) => stream.reset(v6),
            (Some(mut stream), None) => drop(stream.set_linger_zero()),
            (None, _) => {}
        }
        self.connection.input.clear();
        self.connection.ended = false;
        self.answer.head = None;
        self.connection.unproven = None;
    }

    fn set_variable(&self, action: &Action) {
        self.lend(&[], |context| match action {
            Action::SetVariable(variable, condition, expression) => {
                condition.set(context, variable, expression.evaluate(context));
            }
            Action::FormatVariable(variable, condition, format) => {
                let mut text = Vec::new();
                format.render_in(context, &mut text);
                condition.set(context, variable, Some(Value::Str(context.fitting(&text))));
            }
            Action::UnsetVariable(variable) => context.variables.unset(variable),
            _ => {}
        });
    }

    /// Returns the comment for the message of a failed step.
    pub(super) fn comment_of<'c>(&'c self, own: Option<&'c str>) -> Option<&'c str> {
        own.or(self.progress.comment)
    }

    /// Restarts `timeout check` for the next part.
    pub(super) fn restart_timeout(&mut self) {
        if let Some(timeout) = self.check.timeout {
            self.deadline = rt::now() + timeout;
        }
    }

    /// Returns the unique ID of the check, evaluated on first use. `None`: there is no `unique-id-format`, or it is being
    /// evaluated.
    fn unique_id(&self) -> Option<&[u8]> {
        if self.scopes.identity.get().is_none() {
            let format = self.proxy.check_id()?;
            if self.scopes.identifying.replace(true) {
                return None;
            }
            let mut made = Vec::new();
            self.lend(&[], |context| format.render_in(context, &mut made));
            self.scopes.identifying.set(false);
            let _ = self.scopes.identity.set(made.into());
        }
        self.scopes.identity.get().map(|made| &**made)
    }

    /// Calls `with` with the evaluation context of the check.
    pub(super) fn lend<T>(&self, data: &[u8], with: impl FnOnce(&Context<'_>) -> T) -> T {
        let (shared, program) = (&self.worker.process, &self.generation.program);
        let names = Names { backend: &self.proxy.name, server: &self.server.name, ..Names::default() };
        self.worker.with_arena(|arena| {
            let probes = ProcessProbes { worker: self.worker, names, identify: Some(&|| self.unique_id()) };
            with(&Context {
                program: Some(&**program),
                live: Some(&*shared.live),
                lists: Some(&self.generation.lists),
                direction: Direction::Response,
                backend: Some(self.proxy.index),
                server: Some(self.server.index),
                response: self.answer.head.as_ref(),
                bytes: Bytes::new(data, true),
                variables: Variables {
                    process: Some(&shared.live.variables),
                    session: Some(&self.scopes.session),
                    stream: Some(&self.scopes.variables),
                    phase: Phase::Check,
                    limits: shared.live.variable_limits.as_ref(),
                },
                ..Context::blank(arena, program.global.bufsize, rt::now(), &probes, &Meter::default())
            })
        })
    }
}
