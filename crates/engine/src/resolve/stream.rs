//! Queries over TCP (RFC 7766): one at a time per connection, which is kept open for the next one for a while. Must never wait
//! longer than its round does.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::dial::dial;
use conn::transport::Transport;
use policy::resolve::Failure;
use rt::Timer;
use rt::net::{Address, ConnectOptions};
use wire::dns::{Fault, LONGEST, find, read};

use crate::outgoing::security;

use super::round::Round;
use super::state::{Idle, Line};

/// Maximum number of idle connections.
const KEPT: usize = 4;
/// Lifetime of an idle connection.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// Maximum number of connections of one name server.
const MOST: usize = 64;

impl Idle {
    fn take(&self) -> Option<Transport> {
        let now = rt::now();
        let mut streams = self.streams.borrow_mut();
        streams.retain_mut(|(stream, since)| now.saturating_since(*since) < KEPT_FOR && stream.is_quiet());
        streams.pop().map(|(stream, _)| stream)
    }

    fn keep(line: &Rc<Line>, stream: Transport) {
        let mut streams = line.idle.streams.borrow_mut();
        if streams.len() < KEPT {
            streams.push((stream, rt::now()));
        }
        if !line.idle.is_watched.replace(true) {
            rt::spawn(rt::Class::Normal, rt::NO_TAG, close_idle(Rc::clone(line)));
        }
    }
}

/// Closes idle connections as they expire, until none is left.
async fn close_idle(line: Rc<Line>) {
    loop {
        let oldest = line.idle.streams.borrow().iter().map(|(_, since)| *since).min();
        let Some(oldest) = oldest else { break };
        rt::sleep_until(oldest + KEPT_FOR).await;
        let now = rt::now();
        line.idle.streams.borrow_mut().retain(|(_, since)| now.saturating_since(*since) < KEPT_FOR);
    }
    line.idle.is_watched.set(false);
}

/// Sends a query from a task of its own.
pub(super) fn ask(line: Rc<Line>, round: Rc<Round>) {
    if line.idle.used.get() >= MOST {
        line.counts().send_error.add();
        return round.fail(Failure::Other);
    }
    line.idle.used.set(line.idle.used.get() + 1);
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        run(&line, &round).await;
        line.idle.used.set(line.idle.used.get() - 1);
    });
}

async fn run(line: &Rc<Line>, round: &Round) {
    let deadline = rt::now() + line.section().retry;
    let kept = line.idle.take();
    let was_kept = kept.is_some();
    let mut outcome = exchange(line, round, kept, deadline).await;
    // The name server may have closed an idle connection.
    if was_kept && matches!(outcome, Err(Failure::Other)) {
        outcome = exchange(line, round, None, deadline).await;
    }
    match outcome {
        Ok((stream, message, id)) => {
            Idle::keep(line, stream);
            match read(&message) {
                Ok(answer) if answer.id == id => match find(answer, &round.name, round.kind) {
                    Err(Fault::OtherQuestion) => invalid(line, round),
                    found => line.conclude(round, found),
                },
                _ => invalid(line, round),
            }
        }
        Err(failure) => {
            match failure {
                Failure::Timeout => line.counts().timeout.add(),
                _ => line.counts().send_error.add(),
            }
            round.fail(failure);
        }
    }
}

fn invalid(line: &Line, round: &Round) {
    line.counts().invalid.add();
    round.fail(Failure::Other);
}

/// Polls an attempt until the deadline.
async fn within<T>(timer: &mut Timer, mut attempt: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Result<T, Failure> {
    poll_fn(|cx| match attempt(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => timer.poll_expired(cx).map(|()| Err(Failure::Timeout)),
    })
    .await
}

async fn exchange(
    line: &Line,
    round: &Round,
    kept: Option<Transport>,
    deadline: Moment,
) -> Result<(Transport, Vec<u8>, u16), Failure> {
    let broken = |_: io::Error| Failure::Other;
    let mut timer = Timer::new();
    timer.arm(Some(deadline));
    let mut stream = match kept {
        Some(stream) => stream,
        None => {
            let nameserver = line.nameserver();
            let (address, options) = (Address::Inet(nameserver.address), ConnectOptions::default());
            let mut dialing = pin!(dial(&address, &options, security(nameserver.tls.as_ref())));
            within(&mut timer, |cx| dialing.as_mut().poll(cx)).await?.map_err(|_| Failure::Other)?
        }
    };
    let id = rt::random() as u16;
    let question = line.question(round, id);
    // Length-prefixed message (RFC 7766, section 8).
    let mut bytes = (question.len() as u16).to_be_bytes().to_vec();
    bytes.extend(question);
    let mut sent = 0;
    while sent < bytes.len() {
        let rest = [IoSlice::new(&bytes[sent..])];
        sent += within(&mut timer, |cx| stream.poll_write_slices(cx, &rest, false)).await?.map_err(broken)?;
    }
    let mut input = Buffer::with_capacity(LONGEST + 2);
    loop {
        let data = input.data();
        if let Some(length) = data.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length)))
            && let Some(message) = data.get(2..2 + length)
        {
            // Bytes after it do not belong to a query.
            return if data.len() == 2 + length { Ok((stream, message.to_vec(), id)) } else { Err(Failure::Other) };
        }
        if within(&mut timer, |cx| stream.poll_read(cx, &mut input)).await?.map_err(broken)? == 0 {
            return Err(Failure::Other);
        }
    }
}
