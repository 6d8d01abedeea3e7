//! Rules on the first bytes of a session (`tcp-request content`, `tcp-response content`): waits until they can be
//! decided, for the `inspect-delay` at most. Must never consume a byte.

use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::downstream::Downstream;
use conn::duplex::Duplex;
use conn::flow::{Flow, FlowProgress, FlowStep};
use conn::transport::Transport;
use expression::sample::{Bytes, Direction};
use policy::program::Proxy;
use policy::rule::{Final, NameLookup, Rule};
use policy::services::ServiceRow;
use rt::net::Hangup;
use wire::http::Framing;

use crate::resolve;
use crate::script::{Action, StreamAccess, Verdict};
use crate::session::Session;
use crate::stream::client::client_abort::{LEFT, unless_left};
use crate::stream::reply::ending::Ending;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::{Content, Progress, run_content};
use crate::stream::request::{actions, script};
use crate::stream::server::sticking;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Applies the rule that ended a session to the client's connection.
fn cut(stream: &mut Transport, ended: &Final) {
    if let Final::SilentDrop(hops) = ended {
        // If the system does not permit a silent drop, the connection is closed anyway.
        let _ = stream.forget(*hops);
    }
}

/// Returns the outcome of a session that was ended by a rule.
pub fn outcome(state: &SharedStreamState, ended: &Final, phase: Phase) -> Outcome {
    let failed = matches!(ended, Final::Exhausted);
    let state = &mut *state.borrow_mut();
    // Malformed input is an error of its sender, not a denial.
    (state.rules.denied, state.rules.failed) = (!failed && !matches!(ended, Final::Fault(_)), failed);
    Outcome::new(if failed { Cause::Internal } else { Cause::Proxy }, phase)
}

/// How a session continues after its rules have passed.
pub enum Continuation {
    /// In the same mode.
    Goes,
    /// In HTTP mode.
    Upgraded,
    /// By a service.
    Served(Box<ServiceRow>),
}

/// Runs the rules on a session in TCP mode. `input` receives the bytes that the client sends during the wait.
///
/// # Errors
/// The outcome of the ended session.
pub fn request<'a>(
    session: &'a Session,
    client: &'a mut Transport,
    input: &'a mut Buffer,
    timer: &'a mut rt::Timer,
    state: &'a SharedStreamState,
    rules: &'a [Rule],
    delay: Option<Duration>,
) -> impl Future<Output = Result<Continuation, Outcome>> + 'a {
    let begun = rt::now();
    let deadline = begun + delay.unwrap_or_default();
    let most = session.proxy().timeouts.client.map(|limit| begun + limit);
    let mut inspection = Inspection::new(session, state, rules);
    let mut wait = Wait { deadline, most, ended: false, failed: false };
    std::future::poll_fn(move |cx| {
        wait.receive(cx, client, input);
        let ended = loop {
            if wait.failed {
                break Err(LEFT.outcome);
            }
            match inspection.decide(cx, input.data(), wait.is_over()) {
                Decision::Made(ended) => break Ok(ended),
                Decision::Later => return Poll::Pending,
                Decision::Open => {}
            }
            if !wait.receive(cx, client, input) {
                match inspection.poll_time(cx, timer, &wait) {
                    Ok(Poll::Ready(())) => {}
                    // A client that has closed only its sending direction waits for the server's data.
                    Ok(Poll::Pending) => match client.poll_hangup(cx) {
                        Poll::Ready(Hangup::Error) => break Err(LEFT.outcome),
                        _ => return Poll::Pending,
                    },
                    Err(outcome) => break Err(outcome),
                }
            }
        };
        if input.is_empty() {
            // A client that has sent nothing holds no buffer.
            *input = Buffer::empty();
        }
        Poll::Ready(match ended? {
            None => Ok(Continuation::Goes),
            Some(Final::SwitchMode(protocol)) => {
                session.upgrade(*protocol);
                Ok(Continuation::Upgraded)
            }
            Some(Final::Service(service)) => Ok(Continuation::Served(Box::new(service.clone()))),
            Some(ended) => {
                cut(client, ended);
                Err(outcome(state, ended, Phase::Request))
            }
        })
    })
}

/// How an HTTP request ends that `tcp-request content` rules do not let pass.
pub enum Stopped {
    /// Its connection is closed.
    Cut(Outcome),
    /// A script has ended it, with or without an answer.
    Ended(Box<Ending<'static>>),
    /// The client has disconnected.
    Left,
}

impl From<Outcome> for Stopped {
    fn from(outcome: Outcome) -> Self {
        Self::Cut(outcome)
    }
}

/// Runs the rules on an HTTP request whose head has been received.
///
/// # Errors
/// How the request has ended.
pub async fn http_request(
    session: &Session,
    client: &mut Downstream,
    timer: &mut rt::Timer,
    state: &SharedStreamState,
    rules: &[Rule],
    delay: Option<Duration>,
) -> Result<(), Stopped> {
    let deadline = rt::now() + delay.unwrap_or_default();
    let mut inspection = Inspection::new(session, state, rules);
    let wait = Wait { deadline, most: None, ended: false, failed: false };
    let inspected = unless_left(session, client, state, |cx, _| {
        loop {
            match inspection.decide(cx, &[], wait.is_over()) {
                Decision::Made(ended) => return Poll::Ready(Ok::<_, Outcome>(ended)),
                Decision::Later => return Poll::Pending,
                Decision::Open => {}
            }
            if inspection.poll_time(cx, timer, &wait)?.is_pending() {
                return Poll::Pending;
            }
        }
    });
    let Ok(ended) = inspected.await else { return Err(Stopped::Left) };
    // The session is in HTTP mode already: a switch of modes has no effect.
    if let Some(ended) = ended?.filter(|ended| !matches!(ended, Final::SwitchMode(_))) {
        if let Some(verdict) = inspection.said.take() {
            let ending = script::end(EvalContext::request(session, &state.borrow()), verdict, ended);
            return Err(Stopped::Ended(Box::new(ending)));
        }
        match ended {
            Final::SilentDrop(hops) => client.forget(*hops),
            _ => client.end_connection(),
        }
        return Err(outcome(state, ended, Phase::Request).into());
    }
    // The head counts as received once the rules have let it pass.
    state.borrow_mut().timings.request = Some(rt::now());
    Ok(())
}

/// State of the rules on a request.
struct Inspection<'s> {
    session: &'s Session,
    state: &'s SharedStreamState,
    rules: &'s [Rule],
    progress: Progress,
    /// The name resolution in progress.
    asked: Option<Resolution<'s>>,
    /// The script action that is running.
    script: Option<Box<dyn Action>>,
    /// The verdict of a script action that ended the message with an answer of its own.
    said: Option<Verdict>,
}

/// Result of the rules on the available bytes.
enum Decision<'s> {
    /// The rules are decided: the session ends with this, or passes.
    Made(Option<&'s Final>),
    /// The rules wait for more bytes, or for an asynchronous operation.
    Open,
    /// The rules have yielded to other tasks; the task is queued.
    Later,
}

/// A name resolution.
struct Resolution<'s> {
    lookup: &'s NameLookup,
    found: Pin<Box<dyn Future<Output = Option<IpAddr>> + 's>>,
    /// Only cached addresses are used: the result is available immediately.
    known: bool,
}

impl<'s> Inspection<'s> {
    fn new(session: &'s Session, state: &'s SharedStreamState, rules: &'s [Rule]) -> Self {
        Self { session, state, rules, progress: Progress::default(), asked: None, script: None, said: None }
    }

    /// Continues the rules with the available bytes.
    fn decide(&mut self, cx: &mut Context<'_>, data: &[u8], complete: bool) -> Decision<'s> {
        loop {
            let bytes = Bytes::new(data, complete);
            if let Some(action) = &mut self.script {
                let access = StreamAccess::of_bytes(self.session, self.state, Direction::Request, bytes);
                let Poll::Ready(verdict) = action.poll(cx, &access) else { return Decision::Open };
                self.script = None;
                match script::effect_of(&verdict, Direction::Request) {
                    Ok(true) => {}
                    Ok(false) => return Decision::Made(None),
                    Err(ended) => {
                        self.said = Some(verdict).filter(Verdict::says_how);
                        return Decision::Made(Some(ended));
                    }
                }
            }
            let known = self.state.borrow();
            let view = EvalContext { bytes, ..EvalContext::request(self.session, &known) };
            if let Some(asked) = &mut self.asked {
                match asked.found.as_mut().poll(cx) {
                    Poll::Ready(Some(ip)) => view.lend(|context| asked.lookup.store(context, ip)),
                    // After the delay, the rules continue without the address.
                    Poll::Pending if complete && !asked.known => {}
                    Poll::Pending => return Decision::Open,
                    Poll::Ready(None) => {}
                }
                self.asked = None;
            }
            match run_content(&view, self.rules, &mut self.progress) {
                Content::Passes => return Decision::Made(None),
                Content::Ended(ended) => return Decision::Made(Some(ended)),
                Content::Undecided => return Decision::Open,
                Content::Yields => {
                    cx.waker().wake_by_ref();
                    return Decision::Later;
                }
                Content::Runs(wait) => self.script = actions::begin(self.session, wait),
                Content::Asks(lookup) => {
                    let name = view.lend(|context| lookup.name(context));
                    let worker = &self.session.worker;
                    self.asked = name.zip(lookup.section).map(|(name, section)| {
                        let found = resolve::lookup(worker, section, name, lookup.prefers_ipv4, !complete);
                        Resolution { lookup, found: Box::pin(found), known: complete }
                    });
                }
            }
        }
    }

    /// Ready when the delay has expired.
    fn poll_time(&self, cx: &mut Context<'_>, timer: &mut rt::Timer, wait: &Wait) -> Result<Poll<()>, Outcome> {
        match &self.asked {
            _ if self.script.is_some() => Ok(Poll::Pending),
            Some(asked) if asked.known => Ok(Poll::Pending),
            _ => wait.poll_time(cx, timer, None),
        }
    }
}

/// Both ends of a session in TCP mode while the server's answer is inspected.
pub struct Ends<'a> {
    /// The client's connection.
    pub client: &'a mut Transport,
    /// The connection to the server.
    pub server: &'a mut Transport,
    /// The session's timer.
    pub timer: &'a mut rt::Timer,
}

/// Runs the rules of `proxy` on the server's answer, preceded by the lists in `before`, which ask agents. Data of the
/// client is forwarded during the wait. The tunnel continues with the received bytes; `false`: nothing more is to be
/// received from the server.
///
/// # Errors
/// The outcome of the ended session.
pub async fn response(
    session: &Session,
    ends: Ends<'_>,
    duplex: &mut Duplex,
    state: &SharedStreamState,
    before: &[&[Rule]],
    proxy: &Proxy,
) -> Result<bool, Outcome> {
    let mut lists = before.iter().copied().chain([&*proxy.rules.response_content]);
    let mut rules = lists.next().unwrap_or_default();
    let (begun, delay) = (rt::now(), proxy.rules.response_delay.unwrap_or_default());
    let most = proxy.timeouts.server.map(|limit| begun + limit);
    let mut wait = Wait { deadline: begun + delay, most, ended: false, failed: false };
    let (mut input, mut progress) = (Buffer::empty(), Progress::default());
    let mut running: Option<Box<dyn Action>> = None;
    let Ends { client, server, timer } = ends;
    let ended = std::future::poll_fn(|cx| {
        loop {
            forward_up(cx, duplex, client, server, state)?;
            let more = wait.receive(cx, server, &mut input);
            let bytes = Bytes::new(input.data(), wait.is_over());
            if let Some(action) = &mut running {
                let access = StreamAccess::of_bytes(session, state, Direction::Response, bytes);
                let Poll::Ready(verdict) = action.poll(cx, &access) else { return Poll::Pending };
                running = None;
                match script::effect_of(&verdict, Direction::Response) {
                    Ok(true) => {}
                    Ok(false) => return Poll::Ready(Ok(None)),
                    Err(ended) => return Poll::Ready(Ok(Some(ended))),
                }
            }
            let known = state.borrow();
            let view = EvalContext { bytes, direction: Direction::Response, ..EvalContext::request(session, &known) };
            match run_content(&view, rules, &mut progress) {
                Content::Passes => {
                    let Some(next) = lists.next() else { return Poll::Ready(Ok(None)) };
                    (rules, progress) = (next, Progress::default());
                    continue;
                }
                Content::Ended(ended) => return Poll::Ready(Ok(Some(ended))),
                Content::Yields => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Content::Runs(wait) => {
                    running = actions::begin(session, wait);
                    continue;
                }
                // Names are resolved only for requests.
                Content::Undecided | Content::Asks(_) => {}
            }
            drop(known);
            if !more && wait.poll_time(cx, timer, duplex.held_until())?.is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
    match ended? {
        None => sticking::answer_bytes(session, &state.borrow(), input.data()),
        Some(Final::Close) => return Ok(false),
        Some(ended) => return Err(cut_response(client, state, ended)),
    }
    duplex.down = Flow::idle();
    let started = duplex.down.start(input, Framing::UntilClose, false);
    started.map(|_| true).map_err(|_| Outcome::new(Cause::Internal, Phase::Data))
}

/// Forwards data of the client to the server.
fn forward_up(
    cx: &mut Context<'_>,
    duplex: &mut Duplex,
    client: &mut Transport,
    server: &mut Transport,
    state: &SharedStreamState,
) -> Result<(), Outcome> {
    let mut moved = FlowProgress::default();
    let step = duplex.poll_up(cx, client, server, &mut moved);
    state.borrow_mut().accounting.bytes.bytes_in += moved.read as u64;
    match step {
        Ok(FlowStep::Exhausted) => cx.waker().wake_by_ref(),
        Ok(_) => {}
        Err(_) => return Err(Outcome::new(Cause::Client, Phase::Data)),
    }
    Ok(())
}

/// Cuts the client's connection, as a rule on the server's answer demands; returns the outcome.
fn cut_response(client: &mut Transport, state: &SharedStreamState, ended: &Final) -> Outcome {
    cut(client, ended);
    let phase = if matches!(ended, Final::SilentDrop(_)) { Phase::Request } else { Phase::Data };
    outcome(state, ended, phase)
}

/// State of a wait for bytes to inspect.
struct Wait {
    /// The end of the delay: the rules then decide with the bytes received.
    deadline: Moment,
    /// Deadline after which an inactive client is disconnected.
    most: Option<Moment>,
    /// No more bytes can be received, or the buffer is full.
    ended: bool,
    /// The connection has failed.
    failed: bool,
}

impl Wait {
    /// Whether no more bytes are waited for.
    fn is_over(&self) -> bool {
        self.ended || rt::now() >= self.deadline
    }

    /// Reads available bytes. True: something has changed.
    fn receive(&mut self, cx: &mut Context<'_>, stream: &mut Transport, input: &mut Buffer) -> bool {
        if self.ended {
            return false;
        }
        if input.capacity() == 0 {
            if stream.poll_readable(cx).is_pending() {
                return false;
            }
            *input = rt::buffer();
        }
        if input.room() == 0 {
            input.compact();
        }
        if input.room() > 0 {
            match stream.poll_read(cx, input) {
                Poll::Ready(Ok(read)) if read > 0 => return true,
                Poll::Pending => return false,
                // The next read reports the end or the error again.
                Poll::Ready(read) => self.failed = read.is_err(),
            }
        }
        self.ended = true;
        true
    }

    /// Ready when the delay has expired, or at the time `other`.
    fn poll_time(
        &self,
        cx: &mut Context<'_>,
        timer: &mut rt::Timer,
        other: Option<Moment>,
    ) -> Result<Poll<()>, Outcome> {
        loop {
            let now = rt::now();
            if now >= self.deadline || other.is_some_and(|other| now >= other) {
                return Ok(Poll::Ready(()));
            }
            if self.most.is_some_and(|most| now >= most) {
                return Err(Outcome::new(Cause::ClientTimeout, Phase::Request));
            }
            timer.arm([Some(self.deadline), self.most, other].into_iter().flatten().min());
            if timer.poll_expired(cx).is_pending() {
                return Ok(Poll::Pending);
            }
        }
    }
}
