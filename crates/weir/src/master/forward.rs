//! Forwards commands from the master CLI to a worker: one command, or a whole session (management guide, section 9.4.1:
//! `@` and `@@`). Must never interpret the forwarded data.

use super::life::Master;
use config::spec::RuntimeLevel;
use control::runtime::{Answer, Conversation, Disconnected, Prompt, ReceivedCommand, RemainingInput};
use rt::net::{OwnedSocket, Stream};
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Timeout of a worker that has not answered a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// Forwards one command to a worker, preceded by commands that set the connection's level and modes.
pub(super) async fn command(
    office: &Rc<Master>,
    pid: u32,
    typed: ReceivedCommand<'_>,
    conversation: &mut Conversation,
    answer: &mut Answer,
) -> Result<(), Disconnected> {
    let Some(worker) = reach(office, pid, answer) else { return Ok(()) };
    let before = settings(conversation);
    let mut rest = RemainingInput { typed: Vec::new(), ended: true };
    let line = line(&before, typed);
    Session { worker, outgoing: line, silent: before.len(), patience: Some(PATIENCE) }.relay(answer, &mut rest).await
}

/// Connects the client to a worker until the worker closes: forwards the commands and all further input. Without
/// commands, the worker gets the same prompt mode as here.
pub(super) async fn session(
    office: &Rc<Master>,
    pid: u32,
    typed: ReceivedCommand<'_>,
    conversation: &mut Conversation,
    answer: &mut Answer,
    rest: &mut RemainingInput,
) -> Result<(), Disconnected> {
    let Some(worker) = reach(office, pid, answer) else { return Ok(()) };
    let mut before = settings(conversation);
    let mut line = line(&before, typed);
    if typed.command.is_empty() {
        before.push(match (conversation.prompt, conversation.timed) {
            (Prompt::Shown, true) => "prompt timed",
            (Prompt::Shown, false) => "prompt p",
            _ => "prompt i",
        });
        line = before.concat().into_bytes();
        line.push(b'\n');
    }
    Session { worker, outgoing: line, silent: before.len(), patience: None }.relay(answer, rest).await
}

fn reach(office: &Rc<Master>, pid: u32, answer: &mut Answer) -> Option<Stream> {
    let connected = office.connect(pid).and_then(OwnedSocket::try_from);
    if connected.is_err() {
        answer.push(format!("Can't reach the process {pid}\n"));
    }
    connected.ok().map(Stream::adopt)
}

/// Returns commands that give the worker's connection the level and modes of this one. Each answers an empty line.
fn settings(conversation: &Conversation) -> Vec<&'static str> {
    let mut settings = Vec::new();
    settings.extend(conversation.expert.then_some("expert-mode on;"));
    settings.extend(conversation.experimental.then_some("experimental-mode on;"));
    match conversation.level {
        RuntimeLevel::Admin => {}
        RuntimeLevel::Operator => settings.push("operator;"),
        RuntimeLevel::User => settings.push("user;"),
    }
    settings
}

fn line(settings: &[&'static str], typed: ReceivedCommand<'_>) -> Vec<u8> {
    let mut line = settings.concat().into_bytes();
    line.extend_from_slice(typed.command);
    if let Some((payload, marker)) = typed.payload {
        line.extend_from_slice(b" <<");
        line.extend_from_slice(marker);
        line.push(b'\n');
        line.extend_from_slice(payload);
        line.extend_from_slice(marker);
    }
    line.push(b'\n');
    line
}

/// A session with a worker.
struct Session {
    worker: Stream,
    /// Bytes to send to the worker. More is read from the client only once this is empty.
    outgoing: Vec<u8>,
    /// Number of leading empty lines of its answer that are not forwarded.
    silent: usize,
    /// Inactivity timeout of the worker.
    patience: Option<Duration>,
}

/// Events of a session.
enum Event {
    /// Bytes were sent to the worker, or read from the client.
    Moved,
    /// The worker has sent bytes.
    Answered,
    /// The worker has closed.
    Closed,
    /// The worker timed out.
    Late,
}

impl Session {
    /// Relays bytes both ways until the worker closes.
    async fn relay(mut self, answer: &mut Answer, rest: &mut RemainingInput) -> Result<(), Disconnected> {
        let mut said = rt::buffer();
        self.outgoing.append(&mut rest.typed);
        loop {
            said.clear();
            let mut alarm = std::pin::pin!(self.patience.map(rt::sleep));
            let event = std::future::poll_fn(|cx| {
                if let Some(alarm) = alarm.as_mut().as_pin_mut()
                    && alarm.poll(cx).is_ready()
                {
                    return Poll::Ready(Event::Late);
                }
                self.poll(cx, answer, rest, &mut said)
            });
            match event.await {
                Event::Moved => {}
                Event::Answered => {
                    answer.push(self.heard(said.data()));
                    answer.flush().await?;
                }
                Event::Closed => return Ok(()),
                Event::Late => return Err(Disconnected),
            }
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        answer: &mut Answer,
        rest: &mut RemainingInput,
        said: &mut base::Buffer,
    ) -> Poll<Event> {
        // The worker is polled before the client: input after the end of the session is for the master.
        if let Poll::Ready(read) = self.worker.poll_read(cx, said) {
            return Poll::Ready(match read {
                Ok(count) if count > 0 => Event::Answered,
                _ => Event::Closed,
            });
        }
        if !self.outgoing.is_empty() {
            match self.worker.poll_write_slices(cx, &[IoSlice::new(&self.outgoing)], false) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.outgoing.drain(..count);
                    if self.outgoing.is_empty() && rest.ended {
                        let _ = self.worker.shutdown_write();
                    }
                    return Poll::Ready(Event::Moved);
                }
                Poll::Ready(_) => return Poll::Ready(Event::Closed),
                Poll::Pending => {}
            }
        } else if !rest.ended {
            let mut typed = rt::buffer();
            if let Poll::Ready(more) = answer.poll_typed(cx, &mut typed) {
                self.outgoing.extend_from_slice(typed.data());
                rest.ended = !more;
                if rest.ended {
                    let _ = self.worker.shutdown_write();
                }
                return Poll::Ready(Event::Moved);
            }
        }
        Poll::Pending
    }

    /// Returns the part of the worker's output to forward.
    fn heard<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while let (1.., Some(rest)) = (self.silent, bytes.strip_prefix(b"\n")) {
            (self.silent, bytes) = (self.silent - 1, rest);
        }
        if !bytes.is_empty() {
            self.silent = 0;
        }
        bytes
    }
}
