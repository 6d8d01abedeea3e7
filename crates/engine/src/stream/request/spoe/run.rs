//! Processing of one event or group of a stream: builds its messages, sends them to an agent, and applies the answering actions.
//! Must never change anything of the stream but variables.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use balance::Subject;
use base::Moment;
use config::spec::{LogLevel, SpoeEvent};
use expression::sample::{self, Value};
use expression::variable::Variable;
use policy::program::{SpoeAgent, SpoeCall, SpoeMessage, SpoeTrigger};
use wire::spop::{Action as AgentAction, Actions, Data, Notify, Scope, Status};

use super::Failure;
use super::agent_request::{Question, ask};
use crate::script::{Action, StreamAccess, Verdict};
use crate::session::Session;

/// Future of the payload of an answer.
type AnswerFuture = Pin<Box<dyn Future<Output = Result<Vec<u8>, Failure>>>>;

/// A running event or group.
pub(crate) struct Run {
    call: Arc<SpoeCall>,
    began: Moment,
    timer: rt::Timer,
    asking: Option<AnswerFuture>,
}

impl Run {
    pub(crate) fn new(call: &Arc<SpoeCall>) -> Self {
        Self { call: Arc::clone(call), began: rt::now(), timer: rt::Timer::new(), asking: None }
    }

    /// Builds and sends the messages. Returns false if there are none.
    fn begin(&mut self, stream: &StreamAccess<'_>) -> bool {
        let agent = &self.call.agent;
        let event = match &self.call.trigger {
            SpoeTrigger::Event(event) => Some(*event),
            SpoeTrigger::Group(_) => None,
        };
        let of_http = matches!(
            event,
            Some(SpoeEvent::FrontendHttpRequest | SpoeEvent::BackendHttpRequest | SpoeEvent::HttpResponse)
        );
        if of_http && !stream.has_request() {
            return false;
        }
        let is_first = stream.with_agents(|agents| {
            let progress = agents.of(agent.index);
            let bit = event.map_or(0, |event| 1 << event as u8);
            let again = progress.done & bit != 0;
            progress.done |= bit;
            !progress.disabled && !again
        });
        if is_first != Some(true) {
            return false;
        }
        let session = stream.session();
        let generation = session.shared_generation();
        let made = stream.lend_beside_head(|context| {
            let notify = notify(&self.call.messages, context);
            let recogniser = generation.proxy(agent.backend).backend.as_ref().and_then(|own| own.recogniser.as_ref());
            let hash = recogniser.and_then(|recogniser| {
                let source = context.probes.source().map(|source| source.ip());
                recogniser.hash(&Subject { source, request: None, bytes: &[] })
            });
            (notify, hash)
        });
        let Some((notify, hash)) = made else { return false };
        if notify.is_empty() {
            // It counts as processed: no condition of its messages holds.
            if let Some(counters) = session.worker.process.agents.get(agent.index) {
                counters.count(false);
            }
            return false;
        }
        self.timer.arm(agent.processing.map(|limit| self.began + limit));
        let (worker, agent) = (std::rc::Rc::clone(&session.worker), Arc::clone(agent));
        self.asking = Some(Box::pin(ask(Question { worker, generation, agent, notify, hash })));
        true
    }

    /// Applies the answer or the error.
    fn finish(&self, stream: &StreamAccess<'_>, outcome: Result<Vec<u8>, Failure>) {
        let agent = &self.call.agent;
        let outcome = outcome.and_then(|payload| {
            let session = stream.session();
            let done = stream.lend(|context| perform(session, agent, &payload, context));
            if done == Some(true) { Ok(()) } else { Err(Failure::Protocol(Status::INVALID)) }
        });
        let took = i64::try_from(rt::now().saturating_since(self.began).as_millis()).unwrap_or(i64::MAX);
        let code = outcome.err().map_or(0, Failure::code);
        let total = stream.with_agents(|agents| {
            let progress = agents.of(agent.index);
            progress.total = progress.total.saturating_add(took);
            progress.disabled |= code != 0 && !agent.continues_on_error;
            progress.total
        });
        let set = [
            (&agent.on_error, (code != 0).then_some(code)),
            (&agent.process_time, Some(took)),
            (&agent.total_time, total),
        ];
        stream.lend(|context| {
            for (variable, value) in set {
                if let (Some(variable), Some(value)) = (variable, value) {
                    context.variables.set(variable, Value::Int(value));
                }
            }
        });
        self.log(stream, code, took);
    }

    fn log(&self, stream: &StreamAccess<'_>, code: i64, took: i64) {
        let agent = &self.call.agent;
        let worker = &stream.session().worker;
        let counters = worker.process.agents.get(agent.index);
        let (errors, processed) = counters.map_or((0, 0), |counters| counters.count(code != 0));
        if !agent.logs || agent.dontlog_normal && code == 0 {
            return;
        }
        let (kind, name) = match &self.call.trigger {
            SpoeTrigger::Event(event) => ("EVENT", event.name()),
            SpoeTrigger::Group(name) => ("GROUP", &**name),
        };
        let level = if code == 0 { LogLevel::Notice } else { LogLevel::Warning };
        let (number, name_of_agent) = (stream.number(), &agent.name);
        let text =
            format!("SPOE: [{name_of_agent}] <{kind}:{name}> sid={number} st={code} {took} {errors}/{processed}");
        if let Some(route) = stream.session().generation().logs.agent(agent.index) {
            worker.logger.say(route, level, &text);
        }
    }
}

impl Action for Run {
    fn poll(&mut self, cx: &mut Context<'_>, stream: &StreamAccess<'_>) -> Poll<Verdict> {
        if self.asking.is_none() && !self.begin(stream) {
            return Poll::Ready(Verdict::Continue);
        }
        let Some(asking) = &mut self.asking else { return Poll::Ready(Verdict::Continue) };
        let outcome = match asking.as_mut().poll(cx) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending if self.timer.poll_expired(cx).is_ready() => Err(Failure::Timeout),
            Poll::Pending => return Poll::Pending,
        };
        // The exchange is abandoned before the line is written.
        self.asking = None;
        self.finish(stream, outcome);
        Poll::Ready(Verdict::Continue)
    }
}

/// Encodes the messages whose conditions hold.
fn notify(messages: &[SpoeMessage], context: &sample::Context<'_>) -> Notify {
    let mut notify = Notify::default();
    for message in messages {
        if message.condition.as_ref().is_some_and(|condition| !condition.holds(context)) {
            continue;
        }
        notify.message(&message.name);
        for (name, expression) in &message.arguments {
            let data = expression.evaluate(context).map_or(Data::Null, data);
            if !notify.argument(name, data) {
                break;
            }
        }
    }
    notify
}

fn data(value: Value<'_>) -> Data<'_> {
    match value {
        Value::Bool(flag) => Data::Bool(flag),
        Value::Int(number) => Data::Int64(number),
        Value::Ipv4(address) => Data::Ipv4(address),
        Value::Ipv6(address) => Data::Ipv6(address),
        Value::Str(text) | Value::Method(text) => Data::Str(text),
        Value::Bin(bytes) => Data::Bin(bytes),
    }
}

/// Converts a value for a variable; `None`: it is null.
fn value(data: Data<'_>) -> Option<Value<'_>> {
    Some(match data {
        Data::Null => return None,
        Data::Bool(flag) => Value::Bool(flag),
        Data::Int32(number) => Value::Int(number.into()),
        Data::Uint32(number) => Value::Int(number.into()),
        Data::Int64(number) => Value::Int(number),
        Data::Uint64(number) => Value::Int(number as i64),
        Data::Ipv4(address) => Value::Ipv4(address),
        Data::Ipv6(address) => Value::Ipv6(address),
        Data::Str(text) => Value::Str(text),
        Data::Bin(bytes) => Value::Bin(bytes),
    })
}

/// Applies the actions of an answer. Returns false if they are malformed.
fn perform(session: &Session, agent: &SpoeAgent, payload: &[u8], context: &sample::Context<'_>) -> bool {
    let variable = |scope: Scope, name: &[u8]| {
        let scope = match scope {
            Scope::Process => "proc",
            Scope::Session => "sess",
            Scope::Transaction => "txn",
            Scope::Request => "req",
            Scope::Response => "res",
        };
        let name = std::str::from_utf8(name).ok()?;
        let variable = Variable::parse(&format!("{scope}.{}.{name}", agent.prefix)).ok()?;
        // Variables of the process outlive streams: their number is that of the names in the configuration.
        let is_free = agent.sets_any_variable || agent.serves_scripts && scope != "proc";
        let is_known = is_free || session.generation().program.names.text(variable.name).is_some();
        is_known.then_some(variable)
    };
    for action in Actions::new(payload) {
        match action {
            Ok(AgentAction::Set(scope, name, data)) => {
                let Some(variable) = variable(scope, name) else { continue };
                match value(data) {
                    Some(value) => {
                        context.variables.set(&variable, value);
                    }
                    None => context.variables.unset(&variable),
                }
            }
            Ok(AgentAction::Unset(scope, name)) => {
                if let Some(variable) = variable(scope, name) {
                    context.variables.unset(&variable);
                }
            }
            Err(_) => return false,
        }
    }
    true
}
