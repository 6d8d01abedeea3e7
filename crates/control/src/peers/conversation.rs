//! A connection with an identified peer: transfers bytes both ways until either side ends it. Must never hold more than
//! one buffer per direction.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use conn::transport::Transport;
use live::peers::{End, ReceiveResult, Ticket};
use live::trace::{Level, Subject, events};

use super::tasks::PeerTasks;

/// Approximate number of bytes that are encoded at a time.
const AHEAD: usize = 16 * 1024;

/// Writes the rest of `bytes`.
pub(super) fn send(
    stream: &mut Transport,
    cx: &mut Context<'_>,
    bytes: &[u8],
    sent: &mut usize,
) -> Poll<io::Result<()>> {
    while *sent < bytes.len() {
        match stream.poll_write_slices(cx, &[IoSlice::new(&bytes[*sent..])], false) {
            Poll::Ready(Ok(count)) => *sent += count,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
    }
    Poll::Ready(Ok(()))
}

/// Exchanges messages until either side ends the connection. True: a newer process was taught everything.
pub(super) async fn converse(circle: &Rc<PeerTasks>, stream: Transport, input: Buffer, ticket: Ticket) -> bool {
    let mut conversation = Conversation {
        circle,
        stream,
        input,
        ticket,
        output: Vec::new(),
        sent: 0,
        timer: rt::Timer::new(),
        more: false,
    };
    let told = |event, what: &str| {
        let text = || (what.to_owned(), String::new());
        circle.worker.trace(event, Level::User, Subject::default, text);
    };
    told(&events::PEER_NEW, "peer session begins");
    let end = poll_fn(|cx| conversation.poll_end(cx)).await;
    told(&events::PEER_END, "peer session terminated");
    if let End::Malformed(why) = end
        && conversation.output.is_empty()
    {
        let mut last = Vec::new();
        why.encode(&mut last);
        // The last message is sent once; a short write is ignored.
        let _ = conversation.stream.try_write(&last, false);
    }
    end == End::Taught
}

struct Conversation<'a> {
    circle: &'a Rc<PeerTasks>,
    stream: Transport,
    input: Buffer,
    ticket: Ticket,
    output: Vec<u8>,
    sent: usize,
    timer: rt::Timer,
    /// More messages are pending than were encoded.
    more: bool,
}

impl Conversation<'_> {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.circle.wait(self.ticket.peer, cx);
        // Bytes received with the hello.
        if let Some(end) = self.hear() {
            return Poll::Ready(end);
        }
        loop {
            let mut idle = true;
            match self.stream.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    idle = false;
                    if let Some(end) = self.hear() {
                        return Poll::Ready(end);
                    }
                }
                Poll::Ready(_) => return Poll::Ready(End::Closed),
                Poll::Pending => {}
            }
            match self.poll_say(cx) {
                Poll::Ready(Ok(said)) => idle &= !said,
                Poll::Ready(Err(end)) => return Poll::Ready(end),
                Poll::Pending => {}
            }
            if !idle {
                continue;
            }
            if self.more && self.output.is_empty() {
                // A long table without updates: yields to other tasks.
                cx.waker().wake_by_ref();
            }
            let until = self.circle.with(|section| section.say_at(self.ticket, !self.output.is_empty()));
            self.timer.arm(until.flatten());
            if self.timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
            if !self.output.is_empty() {
                // The peer was silent for too long, and the output is blocked.
                return Poll::Ready(End::Silent);
            }
        }
    }

    /// Processes complete messages.
    fn hear(&mut self) -> Option<End> {
        if self.input.is_empty() {
            return None;
        }
        let heard = self.circle.with(|section| section.hear(self.ticket, self.input.data(), rt::now()));
        match heard {
            Some(ReceiveResult::Taken(taken)) => {
                let completes = taken > 0;
                self.input.consume(taken);
                self.input.compact();
                if completes {
                    self.circle.wake_keeper();
                }
                None
            }
            Some(ReceiveResult::End(end)) => Some(end),
            None => Some(End::Replaced),
        }
    }

    /// Encodes and writes pending messages. True: some bytes were written.
    fn poll_say(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, End>> {
        if self.output.is_empty() {
            let (ticket, output) = (self.ticket, &mut self.output);
            match self.circle.with(|section| section.say(ticket, output, rt::now(), AHEAD)) {
                Some(Ok(more)) => self.more = more,
                Some(Err(end)) => return Poll::Ready(Err(end)),
                None => return Poll::Ready(Err(End::Replaced)),
            }
            if self.output.is_empty() {
                return Poll::Ready(Ok(false));
            }
        }
        if self.circle.with(|section| section.stands(self.ticket)) != Some(true) {
            return Poll::Ready(Err(End::Replaced));
        }
        match send(&mut self.stream, cx, &self.output, &mut self.sent) {
            Poll::Ready(Ok(())) => {
                self.output.clear();
                self.output.shrink_to(4 * AHEAD);
                self.sent = 0;
                Poll::Ready(Ok(true))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(End::Closed)),
            Poll::Pending => Poll::Pending,
        }
    }
}
