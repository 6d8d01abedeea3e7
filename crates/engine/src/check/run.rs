//! Runs one check of one server: its connections, what it sends, what it waits for (configuration manual, "option
//! tcp-check", "option httpchk"). Must never decide what the result means for the server.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::fcgi;
use conn::h2::Solo;
use conn::transport::Transport;
use expression::sample::{Bytes, Context, Direction, Meter, Value};
use expression::variable::{Phase, SessionStore, Store, Variables};
use live::counters::{Count, ProtocolCounts};
use live::health::{CheckStatus, Report};
use policy::check::{Answer, Check, CheckStep, Connect, Expect, Finding, Judgement, Payload, ServerCheck, Wanted};
use policy::program::{Proxy, Server};
use policy::rule::Action;
use rt::Timer;
use wire::http::Head;

use super::opening::Unproven;
use super::outcome::Outcome;
use super::pooling::Pooling;
use super::words;
use crate::generation::Generation;
use crate::probes::{Names, ProcessProbes};
use crate::worker::Worker;

/// One check under way.
pub(super) struct Course<'a> {
    pub(super) worker: &'a Worker,
    /// The configuration that it began with.
    pub(super) generation: &'a Generation,
    pub(super) proxy: &'a Proxy,
    pub(super) server: &'a Server,
    pub(super) check: &'a Check,
    pub(super) own: &'a ServerCheck,
    begun: Moment,
    /// When it has failed, or the part of it that is under way.
    deadline: Moment,
    timer: Timer,
    pub(super) stream: Option<Transport>,
    /// The same where it speaks HTTP/2.
    pub(super) solo: Option<Box<Solo>>,
    /// The same where it speaks FastCGI.
    pub(super) application: Option<Box<fcgi::Connection>>,
    /// What the connection is to others.
    pub(super) pooling: Pooling,
    /// What was received and not used up yet.
    pub(super) input: Buffer,
    /// No more will come.
    pub(super) ended: bool,
    /// Whether the stream was connected is told by the first write to it.
    pub(super) unproven: Option<Unproven<'a>>,
    /// Something was just sent, and nothing watches the stream: others run before an answer is looked for.
    yields: bool,
    /// The connection is closed in order.
    pub(super) linger: bool,
    /// Its socket may serve again once it was reset; the family: whether that is IPv6.
    pub(super) spare: Option<bool>,
    /// The last request was a HEAD: its answer has no body.
    pub(super) asked_head: bool,
    /// The answer's head, once it is complete.
    pub(super) head: Option<Head>,
    variables: RefCell<Store>,
    /// Variables of the scope `sess`: a check is a session of its own.
    session: SessionStore,
    /// The comment in front of the step under way: a step that fails is told with it.
    pub(super) comment: Option<&'a str>,
    /// The number of the step under way, from 1; 0 is the connection that no step opened.
    pub(super) step: usize,
    /// The last thing that was waited for has come.
    pub(super) fulfilled: Option<&'a Expect>,
    /// What an answer of a known protocol said: the application's code, and words.
    pub(super) said: Option<(i64, String)>,
    /// How the check is named (`unique-id-format`), once that was asked for.
    identity: OnceCell<Box<[u8]>>,
    /// It is being named.
    identifying: Cell<bool>,
}

/// The connection that no step asks for.
pub(super) static IMPLICIT: Connect = Connect {
    port: None,
    address: None,
    send_proxy: false,
    via_socks4: false,
    linger: false,
    default: true,
    comment: None,
    ssl: false,
    sni: None,
    protocol: None,
    alpn: None,
};

/// What waiting came to.
pub(super) enum Waited<T> {
    Done(T),
    Expired,
}

/// A check that begins now; `interval` bounds it where `timeout check` does not. `None`: the server is not checked. What a
/// check needs while it runs is several times what its server needs between two of them, and few run at a time: it has a
/// place of its own, and leaves it to the next one.
pub(super) fn check<'a>(
    (worker, generation): (&'a Worker, &'a Generation),
    proxy: &'a Proxy,
    server: &'a Server,
    interval: Duration,
) -> Option<Pin<Box<impl Future<Output = Report>>>> {
    let course = Course::new((worker, generation), proxy, server, interval)?;
    // A check is a session of its own, as in HAProxy.
    worker.counters().process.connections.increment();
    Some(Box::pin(course.run()))
}

impl<'a> Course<'a> {
    fn new(
        (worker, generation): (&'a Worker, &'a Generation),
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
            stream: None,
            solo: None,
            application: None,
            pooling: Pooling::default(),
            input: Buffer::empty(),
            ended: false,
            unproven: None,
            yields: false,
            linger: false,
            spare: None,
            asked_head: false,
            head: None,
            variables: RefCell::default(),
            session: SessionStore::default(),
            comment: None,
            step: 0,
            fulfilled: None,
            said: None,
            identity: OnceCell::new(),
            identifying: Cell::new(false),
        })
    }

    /// Runs it to its end.
    async fn run(mut self) -> Report {
        let mut done = self.steps().await;
        if done.as_ref().is_err_and(|outcome| self.begins_again(outcome)) {
            (self.comment, self.step) = (None, 0);
            done = self.steps().await;
        }
        let Outcome { status, code, info } = match done {
            Ok(()) => self.success(),
            Err(outcome) => outcome,
        };
        self.close();
        Report { status, code, took: rt::now().saturating_since(self.begun), info }
    }

    /// Counts for the protocol of the backend, which is HTTP/1 where the check speaks it.
    pub(super) fn count(&self, of: fn(&ProtocolCounts) -> &Count, events: usize) {
        if self.check.is_http {
            of(&self.worker.counters().proxies[self.proxy.index].back.protocol).add(events as u64);
        }
    }

    async fn steps(&mut self) -> Result<(), Outcome> {
        let check = self.check;
        if !check.connects_by_itself() {
            self.connect(&IMPLICIT).await?;
        }
        for (index, step) in check.steps.iter().enumerate() {
            self.step = index + 1;
            match step {
                CheckStep::Comment(comment) => {
                    self.comment = Some(comment);
                    continue;
                }
                CheckStep::Variable(action) => self.set_variable(action),
                CheckStep::Connect(connect) => self.connect(connect).await?,
                CheckStep::Send(payload) => self.send(payload).await?,
                CheckStep::Request(request) => self.send_request(request).await?,
                CheckStep::Expect(expect) => {
                    match &expect.wanted {
                        Wanted::Protocol(answer) => self.expect_protocol(expect, *answer).await?,
                        Wanted::Grpc => self.expect_grpc(expect).await?,
                        _ if check.is_http => self.expect_answer(expect).await?,
                        _ => self.expect(expect).await?,
                    }
                    self.fulfilled = Some(expect);
                }
            }
            // It is about what stands right behind it.
            self.comment = None;
        }
        Ok(())
    }

    async fn send(&mut self, payload: &Payload) -> Result<(), Outcome> {
        let comment = payload.comment.as_deref();
        match self.lend(&[], |context| payload.content.try_render(context)) {
            Some(bytes) => self.write(&bytes, comment).await,
            None => Err(words::unsendable(self, comment)),
        }
    }

    /// Sends all of it. What was received before is done with.
    pub(super) async fn write(&mut self, bytes: &[u8], comment: Option<&str>) -> Result<(), Outcome> {
        self.input.clear();
        let Some(mut stream) = self.stream.take() else {
            return Err(Outcome::new(CheckStatus::SocketError, String::new()));
        };
        let mut sent = 0;
        let mut result = Ok(());
        let mut unproven = self.unproven.take();
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
                    let info = words::of_system(&error) + &words::at_send(self, comment);
                    result = Err(Outcome::new(CheckStatus::SocketError, info));
                    break;
                }
                Waited::Expired => {
                    result = Err(Outcome::new(CheckStatus::L7Timeout, words::at_send(self, comment)));
                    break;
                }
            }
        }
        // A server that is near has answered once the other checks that are due were sent; then epoll is not needed.
        self.yields = !stream.is_registered();
        self.stream = Some(stream);
        result
    }

    /// Waits for bytes of a `tcp-check expect`.
    async fn expect(&mut self, expect: &'a Expect) -> Result<(), Outcome> {
        self.restart_timeout();
        loop {
            let full = self.input.len() >= self.generation.program.global.bufsize;
            if !self.input.is_empty() {
                if matches!(&expect.wanted, Wanted::Format(wanted) if self.lend(&[], |cx| wanted.try_render(cx)).is_none())
                {
                    return Err(words::unreadable());
                }
                let complete = self.ended || full;
                let finding = self.lend(self.input.data(), |cx| expect.look(self.input.data(), complete, cx));
                match finding {
                    Finding::Fulfilled => return Ok(()),
                    Finding::Failed => return Err(self.refuse(expect, words::mismatch(self, expect))),
                    Finding::Wait => {}
                }
            } else if self.ended {
                return Err(self.refuse(expect, words::nothing(self, expect)));
            }
            match self.receive().await {
                Waited::Done(Ok(())) => {}
                Waited::Done(Err(error)) => {
                    let info = words::of_system(&error) + &words::at_expect(self, expect);
                    return Err(Outcome::new(CheckStatus::SocketError, info));
                }
                Waited::Expired => {
                    return Err(Outcome::new(expect.timeout, words::at_expect(self, expect)));
                }
            }
        }
    }

    /// Waits for an answer of a known protocol.
    async fn expect_protocol(&mut self, expect: &'a Expect, answer: Answer) -> Result<(), Outcome> {
        self.restart_timeout();
        loop {
            let complete = self.ended || self.input.len() >= self.generation.program.global.bufsize;
            match answer.judge(self.input.data(), complete) {
                Judgement::Wait => {}
                Judgement::Passed { code, info } => {
                    let before = self.said.take().map(|said| said.1);
                    self.said = Some((code, info.or(before).unwrap_or_default()));
                    return Ok(());
                }
                Judgement::Failed { status, code, info } => return Err(Outcome::failed(status, code, &info)),
                Judgement::Nothing => {
                    let status =
                        if expect.ok == CheckStatus::L6Ok { CheckStatus::L6Response } else { expect.error_status() };
                    return Err(Outcome::new(status, words::nothing(self, expect)));
                }
            }
            match self.receive().await {
                Waited::Done(Ok(())) => {}
                Waited::Done(Err(error)) => {
                    return Err(Outcome::new(CheckStatus::SocketError, words::of_system(&error)));
                }
                Waited::Expired => return Err(Outcome::new(expect.timeout, String::new())),
            }
        }
    }

    /// Receives some more. The first byte ends nothing; no byte is the end.
    pub(super) async fn receive(&mut self) -> Waited<io::Result<()>> {
        if std::mem::take(&mut self.yields) {
            rt::yield_now().await;
        }
        if self.input.room() == 0 {
            self.input.compact();
        }
        if let Some(solo) = self.solo.take() {
            return self.receive_from(solo).await;
        }
        if let Some(application) = self.application.take() {
            return self.receive_from_fcgi(application).await;
        }
        let Some(mut stream) = self.stream.take() else { return Waited::Done(Err(io::ErrorKind::NotConnected.into())) };
        let mut input = std::mem::replace(&mut self.input, Buffer::empty());
        let read = self.within(|cx| {
            // While the first bytes are waited for, no buffer is held.
            let mut place = if input.capacity() == 0 { rt::buffer() } else { std::mem::take(&mut input) };
            let polled = stream.poll_read(cx, &mut place);
            if polled.is_ready() || !place.is_empty() {
                input = place;
            }
            polled
        });
        let read = read.await;
        self.input = input;
        self.stream = Some(stream);
        self.note_received(read)
    }

    /// Counts what was received; no byte is the end.
    pub(super) fn note_received(&mut self, read: Waited<io::Result<usize>>) -> Waited<io::Result<()>> {
        match read {
            Waited::Done(Ok(count)) => {
                self.ended |= count == 0;
                self.count(|protocol| &protocol.received, count);
                Waited::Done(Ok(()))
            }
            Waited::Done(Err(error)) => Waited::Done(Err(error)),
            Waited::Expired => Waited::Expired,
        }
    }

    /// Counts a request of so many bytes that was sent. The error: why it was not.
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
                let info = words::of_system(&error) + &words::at_send(self, comment);
                Err(Outcome::new(CheckStatus::SocketError, info))
            }
            Waited::Expired => Err(Outcome::new(CheckStatus::L7Timeout, words::at_send(self, comment))),
        }
    }

    /// What an attempt gives before the deadline.
    pub(super) async fn within<T>(&mut self, mut attempt: impl FnMut(&mut TaskContext<'_>) -> Poll<T>) -> Waited<T> {
        let (timer, deadline) = (&mut self.timer, self.deadline);
        let mut armed = false;
        poll_fn(|cx| match attempt(cx) {
            Poll::Ready(done) => Poll::Ready(Waited::Done(done)),
            Poll::Pending => {
                // Most of what is tried succeeds at once.
                if !std::mem::replace(&mut armed, true) {
                    timer.arm(Some(deadline));
                }
                timer.poll_expired(cx).map(|()| Waited::Expired)
            }
        })
        .await
    }

    /// Lays the connection down for others, or closes it: by a reset, which spares both sides the memory of it, unless told
    /// otherwise.
    pub(super) fn close(&mut self) {
        (self.solo, self.application) = (None, None);
        let stream = self.stream.take().and_then(|stream| self.lay_down(stream));
        match (stream.filter(|_| !self.linger), self.spare) {
            (Some(stream), Some(v6)) => stream.reset(v6),
            (Some(mut stream), None) => drop(stream.set_linger_zero()),
            (None, _) => {}
        }
        self.input.clear();
        self.ended = false;
        self.head = None;
        self.unproven = None;
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

    /// The comment that is told when the step fails.
    pub(super) fn comment_of<'c>(&'c self, own: Option<&'c str>) -> Option<&'c str> {
        own.or(self.comment)
    }

    /// Sets when the part that begins now has failed.
    pub(super) fn restart_timeout(&mut self) {
        if let Some(timeout) = self.check.timeout {
            self.deadline = rt::now() + timeout;
        }
    }

    /// What `unique-id-format` names the check, made now if it is asked for the first time. `None`: nothing names it, or
    /// this is asked while it is being named.
    fn unique_id(&self) -> Option<&[u8]> {
        if self.identity.get().is_none() {
            let format = self.proxy.check_id()?;
            if self.identifying.replace(true) {
                return None;
            }
            let mut made = Vec::new();
            self.lend(&[], |context| format.render_in(context, &mut made));
            self.identifying.set(false);
            let _ = self.identity.set(made.into());
        }
        self.identity.get().map(|made| &**made)
    }

    /// Lends what the expressions of a check may see.
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
                response: self.head.as_ref(),
                bytes: Bytes::new(data, true),
                variables: Variables {
                    process: Some(&shared.live.variables),
                    session: Some(&self.session),
                    stream: Some(&self.variables),
                    phase: Phase::Check,
                    limits: shared.live.variable_limits.as_ref(),
                },
                ..Context::blank(arena, program.global.bufsize, rt::now(), &probes, &Meter::default())
            })
        })
    }
}
