//! A connection to a router: transfers messages both ways until the session ends. Must never hold more than one buffer for each
//! direction.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::transport::Transport;
use live::bgp::{End, LONGEST, OUTPUT, Output, State};

use super::error_text::error_text;
use super::speakers::SpeakerTasks;

/// Number of reads and writes until other tasks run.
const ROUNDS: u32 = 16;
/// Maximum time for the last messages to be written, and for the router to close the connection.
const FAREWELL: Duration = Duration::from_secs(1);

/// Exchanges messages until the session ends. `established` is called when it is established.
pub(super) async fn converse(
    tasks: &SpeakerTasks,
    neighbor: usize,
    stream: Transport,
    established: impl FnMut(),
) -> End {
    let mut connection = BgpConnection {
        tasks,
        neighbor,
        stream,
        input: Buffer::with_capacity(4 * LONGEST),
        output: Vec::new(),
        written: 0,
        blocked: None,
        stop_until: None,
        timer: rt::Timer::new(),
        established,
        was_established: false,
    };
    let end = poll_fn(|cx| connection.poll_end(cx)).await;
    if let End::Sent(message) = &end {
        message.encode(&mut connection.output);
    }
    if matches!(end, End::Sent(_) | End::Stopped) {
        connection.leave().await;
    }
    end
}

struct BgpConnection<'a, E> {
    tasks: &'a SpeakerTasks,
    neighbor: usize,
    stream: Transport,
    input: Buffer,
    output: Vec<u8>,
    /// Number of octets of the output that were written.
    written: usize,
    /// Since when the router accepts no data.
    blocked: Option<Moment>,
    /// The end of a stop.
    stop_until: Option<Moment>,
    timer: rt::Timer,
    established: E,
    was_established: bool,
}

impl<E: FnMut()> BgpConnection<'_, E> {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.tasks.wait(self.neighbor, cx);
        if self.stop_until.is_none() && self.tasks.is_over() {
            self.stop_until = Some(rt::now() + FAREWELL);
            self.tasks.with_session(self.neighbor, |session| session.stop());
        }
        for _ in 0..ROUNDS {
            let is_idle = match self.transfer(cx) {
                Ok(is_idle) => is_idle,
                Err(end) => return Poll::Ready(end),
            };
            let (blocked, now) = (self.blocked, rt::now());
            let state = self.tasks.with_session(self.neighbor, |session| {
                (session.expire(blocked, now), session.deadline(blocked), session.is_finished())
            });
            let Some((expired, deadline, is_finished)) = state else { return Poll::Ready(End::Stopped) };
            if let Some(end) = expired {
                return Poll::Ready(end);
            }
            let is_late = self.stop_until.is_some_and(|until| until <= now);
            if is_late || (is_finished && self.output.is_empty()) {
                return Poll::Ready(End::Stopped);
            }
            if is_idle {
                self.timer.arm(deadline.into_iter().chain(self.stop_until).min());
                if self.timer.poll_expired(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads and writes once. Returns whether neither was possible.
    fn transfer(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let mut is_idle = true;
        match self.stream.poll_read(cx, &mut self.input) {
            Poll::Ready(Ok(0)) => return Err(End::Closed),
            Poll::Ready(Ok(_)) => {
                is_idle = false;
                self.hear()?;
            }
            Poll::Ready(Err(error)) => return Err(End::Failed(error_text(&error))),
            Poll::Pending => {}
        }
        is_idle &= !self.say(cx)?;
        Ok(is_idle)
    }

    /// Processes complete messages.
    fn hear(&mut self) -> Result<(), End> {
        let (input, now) = (&self.input, rt::now());
        let heard = self.tasks.with_session(self.neighbor, |session| {
            let taken = session.receive(input.data(), now)?;
            Ok((taken, session.state()))
        });
        let (taken, state) = heard.unwrap_or(Err(End::Stopped))?;
        self.input.consume(taken);
        self.input.compact();
        if state == State::Established && !std::mem::replace(&mut self.was_established, true) {
            (self.established)();
        }
        Ok(())
    }

    /// Adds the messages that are due and writes. Returns whether anything was written.
    fn say(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.output.is_empty() {
            let mut output = Output { bytes: &mut self.output, most: OUTPUT, now: rt::now(), random: rt::random() };
            let neighbor = self.neighbor;
            self.tasks.with(|state| {
                let routes = &state.routes;
                state.sessions.get_mut(neighbor).map(|session| session.send(routes, &mut output))
            });
        }
        if self.output.is_empty() {
            return Ok(false);
        }
        let before = self.written;
        let is_blocked = match self.poll_write(cx) {
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(error)) => return Err(End::Failed(error_text(&error))),
            Poll::Pending => true,
        };
        let has_written = !is_blocked || self.written > before;
        self.blocked = match (is_blocked, self.blocked) {
            (false, _) => None,
            (true, Some(since)) if !has_written => Some(since),
            (true, _) => Some(rt::now()),
        };
        Ok(has_written)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.output.len() {
            let rest = [IoSlice::new(&self.output[self.written..])];
            match self.stream.poll_write_slices(cx, &rest, false) {
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.output.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Writes the rest of the output and waits for the router to close the connection: a reset could discard the last message.
    async fn leave(&mut self) {
        self.timer.arm(Some(rt::now() + FAREWELL));
        let mut is_closed = false;
        poll_fn(|cx| {
            if self.timer.poll_expired(cx).is_ready() {
                return Poll::Ready(());
            }
            match self.poll_write(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
            if !std::mem::replace(&mut is_closed, true) && self.stream.shutdown_write().is_err() {
                return Poll::Ready(());
            }
            for _ in 0..ROUNDS {
                self.input.consume(self.input.data().len());
                self.input.compact();
                match self.stream.poll_read(cx, &mut self.input) {
                    Poll::Ready(Ok(count)) if count > 0 => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}
