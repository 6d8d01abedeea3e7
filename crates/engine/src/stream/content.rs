//! Rules on the bytes of a session before it goes on (`tcp-request content`, `tcp-response content`): waits until they can
//! be decided, at most for the `inspect-delay`. Must never consume a byte.

use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::downstream::Downstream;
use conn::duplex::Duplex;
use conn::flow::{Flow, FlowStep, Moved};
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
use crate::stream::actions;
use crate::stream::ending::Ending;
use crate::stream::evaluate::EvalContext;
use crate::stream::leaving::{LEFT, unless_left};
use crate::stream::rules::{Content, Progress, run_content};
use crate::stream::script;
use crate::stream::sticking;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// What a rule did to a session that it ended.
fn cut(stream: &mut Transport, ended: &Final) {
    if let Final::SilentDrop(hops) = ended {
        // If the system does not permit a silent drop, the connection is closed anyway.
        let _ = stream.forget(*hops);
    }
}

/// How a session is logged that a rule ended.
pub fn outcome(state: &SharedStreamState, ended: &Final, phase: Phase) -> Outcome {
    let failed = matches!(ended, Final::Exhausted);
    let state = &mut *state.borrow_mut();
    // What makes no sense is an error of who has sent it.
    (state.denied, state.failed) = (!failed && !matches!(ended, Final::Fault(_)), failed);
    Outcome::new(if failed { Cause::Internal } else { Cause::Proxy }, phase)
}

/// Rules on bytes, and how long they wait for these.
pub type OnBytes<'a> = (&'a [Rule], Option<Duration>);

/// Where a session goes whose rules have ended.
pub enum Passed {
    /// On.
    Goes,
    /// On in HTTP mode.
    Upgraded,
    /// To a service.
    Served(Box<ServiceRow>),
}

/// Runs rules on a session in TCP mode: `input` gets what the client sends meanwhile.
///
/// # Errors
/// How the session has ended.
pub fn request<'a>(
    session: &'a Session,
    client: &'a mut Transport,
    input: &'a mut Buffer,
    timer: &'a mut rt::Timer,
    state: &'a SharedStreamState,
    (rules, delay): OnBytes<'a>,
) -> impl Future<Output = Result<Passed, Outcome>> + 'a {
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
                    // A client that has closed its direction alone waits for what the server sends.
                    Ok(Poll::Pending) => match client.poll_hangup(cx) {
                        Poll::Ready(Hangup::Error) => break Err(LEFT.outcome),
                        _ => return Poll::Pending,
                    },
                    Err(outcome) => break Err(outcome),
                }
            }
        };
        if input.is_empty() {
            // Who has sent nothing holds no buffer.
            *input = Buffer::empty();
        }
        Poll::Ready(match ended? {
            None => Ok(Passed::Goes),
            Some(Final::SwitchMode(protocol)) => {
                session.upgrade(*protocol);
                Ok(Passed::Upgraded)
            }
            Some(Final::Service(service)) => Ok(Passed::Served(Box::new(service.clone()))),
            Some(ended) => {
                cut(client, ended);
                Err(outcome(state, ended, Phase::Request))
            }
        })
    })
}

/// How a request of HTTP ends that rules on its bytes do not let pass.
pub enum Stopped {
    /// Its connection ends.
    Cut(Outcome),
    /// A script has ended it, with an answer or without.
    Ended(Box<Ending<'static>>),
    /// The client has left.
    Left,
}

impl From<Outcome> for Stopped {
    fn from(outcome: Outcome) -> Self {
        Self::Cut(outcome)
    }
}

/// The same on a request of HTTP, whose head is there.
///
/// # Errors
/// How the request has ended.
pub async fn http_request(
    session: &Session,
    client: &mut Downstream,
    timer: &mut rt::Timer,
    state: &SharedStreamState,
    (rules, delay): OnBytes<'_>,
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
    // What would go over to HTTP is there already.
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

/// The rules on a request on their way.
struct Inspection<'s> {
    session: &'s Session,
    state: &'s SharedStreamState,
    rules: &'s [Rule],
    progress: Progress,
    /// What is looked up at the moment.
    asked: Option<Asked<'s>>,
    /// The action of a script that runs.
    script: Option<Box<dyn Action>>,
    /// What that of a script has ended the message with, where the script says how.
    said: Option<Verdict>,
}

/// What rules make of what is there.
enum Decision<'s> {
    /// What ends the session, unless it passes.
    Made(Option<&'s Final>),
    /// Something may still come.
    Open,
    /// The other tasks come first; the task is queued.
    Later,
}

/// A name that is looked up.
struct Asked<'s> {
    lookup: &'s NameLookup,
    found: Pin<Box<dyn Future<Output = Option<IpAddr>> + 's>>,
    /// Only what is known already counts: that comes at once.
    known: bool,
}

impl<'s> Inspection<'s> {
    fn new(session: &'s Session, state: &'s SharedStreamState, rules: &'s [Rule]) -> Self {
        Self { session, state, rules, progress: Progress::default(), asked: None, script: None, said: None }
    }

    /// Goes on with what is there.
    fn decide(&mut self, cx: &mut Context<'_>, data: &[u8], complete: bool) -> Decision<'s> {
        loop {
            let bytes = Bytes::new(data, complete);
            if let Some(action) = &mut self.script {
                let access = StreamAccess::of_bytes(self.session, self.state, Direction::Request, bytes);
                let Poll::Ready(verdict) = action.poll(cx, &access) else { return Decision::Open };
                self.script = None;
                match script::judge(&verdict, Direction::Request) {
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
                    // After that time the address is done without.
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
                        Asked { lookup, found: Box::pin(found), known: complete }
                    });
                }
            }
        }
    }

    /// Ready when the delay is over.
    fn poll_time(&self, cx: &mut Context<'_>, timer: &mut rt::Timer, wait: &Wait) -> Result<Poll<()>, Outcome> {
        match &self.asked {
            _ if self.script.is_some() => Ok(Poll::Pending),
            Some(asked) if asked.known => Ok(Poll::Pending),
            _ => wait.poll_time(cx, timer, None),
        }
    }
}

/// Both ends of a session in TCP mode while an answer is looked at.
pub struct Ends<'a> {
    /// Source address.
    pub client: &'a mut Transport,
    /// The server.
    pub server: &'a mut Transport,
    /// The session's one timer.
    pub timer: &'a mut rt::Timer,
}

/// Runs the rules of `proxy` on what the server answers, and before them what `before` has agents asked. What the client
/// sends goes on meanwhile. The tunnel goes on with what has come; `false`: nothing more is to come from the server.
///
/// # Errors
/// How the session has ended.
pub async fn response(
    session: &Session,
    ends: Ends<'_>,
    duplex: &mut Duplex,
    state: &SharedStreamState,
    (before, proxy): (&[&[Rule]], &Proxy),
) -> Result<bool, Outcome> {
    let mut lists = before.iter().copied().chain([&*proxy.rules.response_content]);
    let mut rules = lists.next().unwrap_or_default();
    let begun = rt::now();
    let most = proxy.timeouts.server.map(|limit| begun + limit);
    let delay = proxy.rules.response_delay.unwrap_or_default();
    let mut wait = Wait { deadline: begun + delay, most, ended: false, failed: false };
    let (mut input, mut progress) = (Buffer::empty(), Progress::default());
    let mut running: Option<Box<dyn Action>> = None;
    let Ends { client, server, timer } = ends;
    let ended = std::future::poll_fn(|cx| {
        loop {
            let mut moved = Moved::default();
            let step = duplex.poll_up(cx, client, server, &mut moved);
            state.borrow_mut().bytes.bytes_in += moved.read as u64;
            match step {
                Ok(FlowStep::Exhausted) => cx.waker().wake_by_ref(),
                Ok(_) => {}
                Err(_) => return Poll::Ready(Err(Outcome::new(Cause::Client, Phase::Data))),
            }
            let more = wait.receive(cx, server, &mut input);
            let bytes = Bytes::new(input.data(), wait.is_over());
            if let Some(action) = &mut running {
                let access = StreamAccess::of_bytes(session, state, Direction::Response, bytes);
                let Poll::Ready(verdict) = action.poll(cx, &access) else { return Poll::Pending };
                running = None;
                match script::judge(&verdict, Direction::Response) {
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
                // Names are asked for on behalf of requests alone.
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
        Some(ended) => {
            cut(client, ended);
            let phase = if matches!(ended, Final::SilentDrop(_)) { Phase::Request } else { Phase::Data };
            return Err(outcome(state, ended, phase));
        }
    }
    duplex.down = Flow::idle();
    let started = duplex.down.start(input, Framing::UntilClose, false);
    started.map(|_| true).map_err(|_| Outcome::new(Cause::Internal, Phase::Data))
}

/// A wait for bytes to look at.
struct Wait {
    /// From then on what is missing stays missing.
    deadline: Moment,
    /// A client that is silent until then is given up.
    most: Option<Moment>,
    /// No more bytes come, or there is no room for them.
    ended: bool,
    /// The connection has failed.
    failed: bool,
}

impl Wait {
    /// Whether nothing is waited for any more.
    fn is_over(&self) -> bool {
        self.ended || rt::now() >= self.deadline
    }

    /// Reads what has come. True: something has changed.
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
                // An end or an error shows again at the next read.
                Poll::Ready(read) => self.failed = read.is_err(),
            }
        }
        self.ended = true;
        true
    }

    /// Ready when the delay is over, and at that other moment.
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
