//! The way of commands from the master's command line to a worker: one command, or a whole session (management guide, section
//! 9.4.1: `@` and `@@`). Must never interpret what passes.

use super::life::Office;
use config::spec::RuntimeLevel;
use control::runtime::{Answer, Conversation, Gone, Prompt, Rest, Typed};
use rt::net::{OwnedSocket, Stream};
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a worker may be silent before it has answered a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// Has a worker answer one command. What the connection may do and has switched on goes before it.
pub(super) async fn command(
    office: &Rc<Office>,
    pid: u32,
    typed: Typed<'_>,
    conversation: &mut Conversation,
    answer: &mut Answer,
) -> Result<(), Gone> {
    let Some(worker) = reach(office, pid, answer) else { return Ok(()) };
    let before = settings(conversation);
    let mut rest = Rest { typed: Vec::new(), ended: true };
    let line = line(&before, typed);
    Session { worker, outgoing: line, silent: before.len(), patience: Some(PATIENCE) }.relay(answer, &mut rest).await
}

/// Hands the connection over to a worker, until it closes its side: the commands, and whatever is typed behind them. Without commands it
/// is asked for the same prompt as here.
pub(super) async fn session(
    office: &Rc<Office>,
    pid: u32,
    typed: Typed<'_>,
    conversation: &mut Conversation,
    (answer, rest): (&mut Answer, &mut Rest),
) -> Result<(), Gone> {
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

fn reach(office: &Rc<Office>, pid: u32, answer: &mut Answer) -> Option<Stream> {
    let connected = office.connect(pid).and_then(OwnedSocket::try_from);
    if connected.is_err() {
        answer.push(format!("Can't reach the process {pid}\n"));
    }
    connected.ok().map(Stream::adopt)
}

/// Commands that give the worker's side of a conversation the rights of this one. Each answers an empty line.
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

fn line(settings: &[&'static str], typed: Typed<'_>) -> Vec<u8> {
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

/// A worker that answers in the place of the master.
struct Session {
    worker: Stream,
    /// What it has not read yet. More is read from the client only once this is empty.
    outgoing: Vec<u8>,
    /// Empty lines at the beginning of its answer that are not for the client.
    silent: usize,
    /// How long it may be silent.
    patience: Option<Duration>,
}

/// What a session waited for.
enum Event {
    /// Bytes were sent to the worker, or read from the client.
    Moved,
    /// The worker has answered something.
    Answered,
    /// It has closed its side.
    Closed,
    /// It was silent for too long.
    Late,
}

impl Session {
    /// Moves bytes both ways until the worker closes.
    async fn relay(mut self, answer: &mut Answer, rest: &mut Rest) -> Result<(), Gone> {
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
                self.poll(cx, (&mut *answer, &mut *rest), &mut said)
            });
            match event.await {
                Event::Moved => {}
                Event::Answered => {
                    answer.push(self.heard(said.data()));
                    answer.flush().await?;
                }
                Event::Closed => return Ok(()),
                Event::Late => return Err(Gone),
            }
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        (answer, rest): (&mut Answer, &mut Rest),
        said: &mut base::Buffer,
    ) -> Poll<Event> {
        // Before the client is asked: what it types behind the end of the session is for the master.
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

    /// What is for the client of what the worker said.
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
