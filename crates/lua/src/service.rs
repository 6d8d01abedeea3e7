//! HTTP services of scripts: a function creates the response while its applet reads the request and writes. Must never
//! hold more than a buffer of either.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use base::slab::Key;
use conn::service::{ByteService, Failed, Service, respond};
use engine::script::StreamAccess;
use engine::service::registry::Services;
use engine::session::Session;
use engine::worker::SharedStreamState;
use mlua::{Table, Value};
use std::sync::Arc;
use wire::http::Head;

use crate::jobs::milliseconds;
use crate::prelude::native;
use crate::reply::is_name;
use crate::run::{Answer, Run, RunTerms};
use crate::stream_handle::request_parts;
use crate::value::Plain;
use crate::{StateLocation, script_messages};

/// Maximum number of buffered bytes per direction, before the other end has to read.
const BUFFER: usize = 16_384;

/// Registers a service for HTTP.
pub(crate) fn add(services: &mut Services, name: &str, home: StateLocation) -> bool {
    let shown = format!("lua.{name}");
    if services.names().find(&shown).is_some() {
        return false;
    }
    let short = name.to_owned();
    services.register(
        &shown,
        true,
        Arc::new(move |session: &Session, state: &SharedStreamState| {
            let task = state.try_borrow().ok().and_then(|state| state.info.task);
            let frontend = session.frontend;
            let flow = Flow::default();
            Box::new(Serving {
                home: home.clone(),
                name: short.clone(),
                state: state.clone(),
                task,
                frontend,
                run: None,
                flow,
            })
        }),
    );
    true
}

/// The head of a response: status, reason, fields.
type AnswerHead = (u16, Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>);

/// The buffers and the state of an applet.
#[derive(Default)]
pub(crate) struct Flow {
    /// Unread payload of the request.
    pub(crate) input: Vec<u8>,
    /// The request is complete.
    pub(crate) ended: bool,
    /// Unsent payload of the response.
    pub(crate) output: Vec<u8>,
    /// Remaining bytes announced by the head of the response.
    left: Option<u64>,
    /// The head of the response, once the function has started it.
    head: Option<AnswerHead>,
    /// Wakes the task that waits for input.
    waker: Option<Waker>,
    /// The function has ended; whether successfully.
    over: Option<bool>,
    /// Timeout of waiting for input.
    timer: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Flow {
    /// Handles a request of the applet's function.
    pub(crate) fn ask(&mut self, cx: &Context<'_>, name: &str, values: &[Value]) -> Answer {
        let answer = match name {
            "applet.start" => self.start(values.first()),
            "applet.send" => self.send(values.first()),
            "applet.receive" => self.receive_within(cx, values),
            "applet.getline" => self.line(),
            "applet.try_receive" => match (self.input.is_empty(), self.ended) {
                (true, false) => Answer::Ready(vec![Plain::Nil]),
                _ => Answer::Ready(vec![Plain::Text(std::mem::take(&mut self.input))]),
            },
            _ => return Answer::Unknown,
        };
        if matches!(answer, Answer::Pending) {
            self.waker = Some(cx.waker().clone());
        }
        answer
    }

    fn start(&mut self, response: Option<&Value>) -> Answer {
        let Some(Value::Table(response)) = response else { return Answer::Ready(Vec::new()) };
        match read_head(response) {
            Ok((status, reason, fields)) => {
                let length = fields.iter().find(|(name, _)| name == b"content-length");
                self.left = length.and_then(|(_, value)| std::str::from_utf8(value).ok()?.trim().parse().ok());
                self.head = Some((status, reason, fields));
                Answer::Ready(Vec::new())
            }
            Err(why) => Answer::Ready(vec![Plain::from(why)]),
        }
    }

    fn send(&mut self, data: Option<&Value>) -> Answer {
        if self.output.len() >= BUFFER {
            return Answer::Pending;
        }
        let Some(Value::String(data)) = data else { return Answer::Ready(Vec::new()) };
        let data = data.as_bytes();
        let mut fits = &data[..];
        if let Some(left) = &mut self.left {
            // Bytes beyond the announced length would be parsed as another response.
            fits = &fits[..fits.len().min(usize::try_from(*left).unwrap_or(usize::MAX))];
            *left -= fits.len() as u64;
        }
        self.output.extend_from_slice(fits);
        Answer::Ready(vec![Plain::Int(i64::try_from(data.len()).unwrap_or(i64::MAX))])
    }

    /// Like [`Flow::receive`], with the timeout in the second value.
    fn receive_within(&mut self, cx: &Context<'_>, values: &[Value]) -> Answer {
        let answer = self.receive(values.first().and_then(Value::as_usize));
        if !matches!(answer, Answer::Pending) {
            self.timer = None;
            return answer;
        }
        if values.get(1).is_none_or(Value::is_nil) {
            return answer;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(rt::sleep(milliseconds(values.get(1)))));
        if timer.as_mut().poll(&mut Context::from_waker(cx.waker())).is_pending() {
            return answer;
        }
        self.timer = None;
        let there = std::mem::take(&mut self.input);
        Answer::Ready(vec![if there.is_empty() { Plain::Nil } else { Plain::Text(there) }])
    }

    fn receive(&mut self, wanted: Option<usize>) -> Answer {
        let enough = wanted.map_or(self.ended, |wanted| self.input.len() >= wanted || self.ended);
        // A request for more than the maximum returns what is available.
        if !enough && self.input.len() < MOST_BODY {
            return Answer::Pending;
        }
        let rest = self.input.split_off(wanted.unwrap_or(usize::MAX).min(self.input.len()));
        Answer::Ready(vec![Plain::Text(std::mem::replace(&mut self.input, rest))])
    }

    fn line(&mut self) -> Answer {
        let end = self.input.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let end = match end {
            None if self.ended || self.input.len() >= MOST_BODY => self.input.len(),
            None => return Answer::Pending,
            Some(end) => end,
        };
        let rest = self.input.split_off(end);
        Answer::Ready(vec![Plain::Text(std::mem::replace(&mut self.input, rest))])
    }

    /// Takes input from the client, as far as there is space.
    pub(crate) fn take(&mut self, data: &mut Buffer) {
        let room = MOST_BODY.saturating_sub(self.input.len()).min(data.len());
        self.input.extend_from_slice(&data.data()[..room]);
        data.consume(room);
        self.wake();
    }

    pub(crate) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Maximum number of body bytes that a function may read at once.
const MOST_BODY: usize = 1 << 20;

fn read_head(response: &Table) -> Result<AnswerHead, &'static str> {
    let status: i64 = response.get("status").map_err(|_| "has no status.")?;
    let status =
        u16::try_from(status).ok().filter(|status| (200..600).contains(status)).ok_or("has no valid status.")?;
    let reason: Option<mlua::LuaString> = response.get("reason").unwrap_or(None);
    let reason = reason.map_or(wire::http::reason(status).as_bytes().to_vec(), |reason| reason.as_bytes().to_vec());
    let mut fields = Vec::new();
    let rows: Table = response.get("fields").map_err(|_| "has no headers.")?;
    let is_line = |text: &[u8]| !text.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
    for row in rows.sequence_values::<Table>() {
        let row = row.map_err(|_| "has malformed headers.")?;
        let name: mlua::LuaString = row.get(1).map_err(|_| "has malformed headers.")?;
        let value: mlua::LuaString = row.get(2).map_err(|_| "has malformed headers.")?;
        let (name, value) = (name.as_bytes().to_ascii_lowercase(), value.as_bytes().to_vec());
        if !is_name(&name) || !is_line(&value) {
            return Err("has malformed headers.");
        }
        fields.push((name, value));
    }
    if is_line(&reason) { Ok((status, reason, fields)) } else { Err("has a malformed reason.") }
}

/// A request that a function answers.
struct Serving {
    home: StateLocation,
    name: String,
    state: SharedStreamState,
    task: Option<Key>,
    frontend: usize,
    run: Option<Run>,
    flow: Flow,
}

impl Serving {
    fn begin(&self, request: &Head) -> Result<Run, String> {
        let what = format!("applet http '<lua.{}>'", self.name);
        let missing = || format!("Lua {what}: not registered in this thread.");
        let machine = self.home.machine().ok_or_else(missing)?;
        let function = machine.function(&format!("service.{}", self.name)).ok_or_else(missing)?;
        let applet = machine.with(|lua| native(lua, "applet_http")?.call::<Value>(request_parts(request)));
        let applet = applet.map_err(|error| format!("Lua {what}: {error}"))?;
        let terms = RunTerms { what: what.into(), limit: machine.limits.service, yields: true };
        Run::new(&machine, function, vec![applet], terms)
    }

    /// Resumes the function.
    fn drive(&mut self, cx: &mut Context<'_>) {
        let Some(run) = &mut self.run else { return };
        let flow = &mut self.flow;
        let worker = crate::here();
        let task = worker.as_ref().zip(self.task).and_then(|(worker, key)| worker.task(key));
        let access = task.as_ref().map(|task| StreamAccess::of_service(task, &self.state));
        let lent = access.as_ref().map(|access| access as &dyn crate::stream_handle::StreamHandle);
        let outcome = run.poll(cx, lent, &mut |cx, name, values| flow.ask(cx, name, values));
        let Poll::Ready(outcome) = outcome else { return };
        self.run = None;
        flow.over = Some(outcome.is_ok());
        if let Err(why) = outcome {
            script_messages::failed(Some(self.frontend), &why);
        }
    }
}

impl Serving {
    /// Answers for a function that ended without a response: an error page.
    fn fail(&mut self, answer: &mut Head) -> Result<(), Failed> {
        let page = wire::http::error_pages::page(500).ok_or(Failed)?;
        let body = page.body();
        respond(answer, 500, page.reason.as_bytes(), Some(body.len() as u64));
        answer.append(b"cache-control", b"no-cache");
        answer.append(b"content-type", b"text/html");
        (self.flow.output, self.flow.left, self.flow.over) = (body, None, Some(true));
        Ok(())
    }
}

impl Service for Serving {
    fn poll_head(&mut self, cx: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>> {
        if self.run.is_none() && self.flow.over.is_none() {
            match self.begin(request) {
                Ok(run) => self.run = Some(run),
                Err(why) => {
                    script_messages::failed(Some(self.frontend), &why);
                    self.flow.over = Some(false);
                }
            }
        }
        self.drive(cx);
        if self.flow.over.is_some() && self.flow.head.is_none() {
            return Poll::Ready(self.fail(answer));
        }
        let Some((status, reason, fields)) = self.flow.head.take() else { return Poll::Pending };
        respond(answer, status, &reason, self.flow.left.map(|left| left + self.flow.output.len() as u64));
        for (name, value) in fields {
            if !matches!(&name[..], b"content-length" | b"transfer-encoding") {
                answer.append(&name, &value);
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_data(&mut self, cx: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>> {
        if self.flow.output.is_empty() {
            self.drive(cx);
        }
        if self.flow.output.is_empty() {
            return match self.flow.over {
                None => Poll::Pending,
                Some(true) if self.flow.left.unwrap_or(0) == 0 => Poll::Ready(Ok(0)),
                // The response is shorter than announced, or the function failed: the client must see an error.
                Some(_) => Poll::Ready(Err(Failed)),
            };
        }
        let taken = self.flow.output.len().min(out.room());
        if !out.push(&self.flow.output[..taken]) {
            return Poll::Ready(Err(Failed));
        }
        self.flow.output.drain(..taken);
        Poll::Ready(Ok(taken))
    }

    fn poll_take(&mut self, cx: &mut Context<'_>, payload: &mut Buffer) -> Poll<Result<(), Failed>> {
        if self.flow.over.is_some() {
            payload.clear();
            return Poll::Ready(Ok(()));
        }
        let before = payload.len();
        self.flow.take(payload);
        if before > 0 && payload.len() == before {
            self.flow.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn end_request(&mut self) {
        self.flow.ended = true;
        self.flow.wake();
    }
}

/// Registers a service for TCP.
pub(crate) fn add_of_bytes(services: &mut Services, name: &str, home: StateLocation) -> bool {
    let shown = format!("lua.{name}");
    if services.names().find(&shown).is_some() {
        return false;
    }
    let short = name.to_owned();
    services.register_of_bytes(
        &shown,
        Arc::new(move |session: &Session, state: &SharedStreamState| {
            let task = state.try_borrow().ok().and_then(|state| state.info.task);
            let frontend = session.frontend;
            let (home, name, state, flow) = (home.clone(), short.clone(), state.clone(), Flow::default());
            Box::new(Bytes(Serving { home, name, state, task, frontend, run: None, flow }))
        }),
    );
    true
}

/// A session that a function serves.
struct Bytes(Serving);

impl ByteService for Bytes {
    fn poll(&mut self, cx: &mut Context<'_>, input: &mut Vec<u8>, ended: bool, output: &mut Vec<u8>) -> Poll<()> {
        let serving = &mut self.0;
        if serving.run.is_none() && serving.flow.over.is_none() {
            match serving.begin_of_bytes() {
                Ok(run) => serving.run = Some(run),
                Err(why) => {
                    script_messages::failed(Some(serving.frontend), &why);
                    serving.flow.over = Some(false);
                }
            }
        }
        serving.flow.ended = ended;
        std::mem::swap(&mut serving.flow.input, input);
        std::mem::swap(&mut serving.flow.output, output);
        serving.drive(cx);
        std::mem::swap(&mut serving.flow.input, input);
        std::mem::swap(&mut serving.flow.output, output);
        if serving.flow.over.is_some() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Serving {
    fn begin_of_bytes(&self) -> Result<Run, String> {
        let what = format!("applet tcp '<lua.{}>'", self.name);
        let missing = || format!("Lua {what}: not registered in this thread.");
        let machine = self.home.machine().ok_or_else(missing)?;
        let function = machine.function(&format!("service.{}", self.name)).ok_or_else(missing)?;
        let applet = machine.with(|lua| native(lua, "applet_tcp")?.call::<Value>(()));
        let applet = applet.map_err(|error| format!("Lua {what}: {error}"))?;
        let terms = RunTerms { what: what.into(), limit: machine.limits.service, yields: true };
        Run::new(&machine, function, vec![applet], terms)
    }
}
