//! Operating system signals, converted to events of one worker.
//!
//! A handler must never do more than count and write to a descriptor. Handlers are used, not blocked signals: programs
//! that the process executes later inherit a blocked signal, but not a handler.

use std::fmt;
use std::future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::task::{Context, Poll};

use base::Key;

use crate::net::Socket;
use crate::sim::{self, SimSocket};
use crate::source::{Readiness, Source, Watch};
use crate::sys::signal::Signal;
use crate::{current, sys};

/// Number of pending signals, by signal number. Standard signals have numbers below 32.
static PENDING: [AtomicU32; 32] = [const { AtomicU32::new(0) }; 32];
/// The event descriptor that the handler writes to.
static EVENT: AtomicI32 = AtomicI32::new(-1);
static OWNER: OnceLock<OwnedFd> = OnceLock::new();

extern "C" fn handle(number: libc::c_int) {
    if let Some(pending) = usize::try_from(number).ok().and_then(|number| PENDING.get(number)) {
        pending.fetch_add(1, Ordering::SeqCst);
        sys::event::signal_raw(EVENT.load(Ordering::SeqCst));
    }
}

fn event() -> io::Result<RawFd> {
    if let Some(event) = OWNER.get() {
        return Ok(event.as_raw_fd());
    }
    let fresh = sys::event::create()?;
    let event = OWNER.get_or_init(|| fresh).as_raw_fd();
    EVENT.store(event, Ordering::SeqCst);
    Ok(event)
}

/// Installs handlers: from now on signals are counted for a [`SignalStream`] of the same process, on any worker. May be
/// called before the workers start, so that no signal is missed.
///
/// # Errors
/// From the kernel: `InvalidInput` for [`Signal::Kill`].
pub fn handle_signals(signals: &[Signal]) -> io::Result<()> {
    event()?;
    signals.iter().try_for_each(|signal| sys::signal::set_handler(signal.number(), handle))
}

/// Takes a pending signal that is handled ([`handle_signals`]), if there is one, without waiting and on any thread.
pub fn take(signals: &[Signal]) -> Option<Signal> {
    signals.iter().copied().find(|signal| take_one(signal.number()))
}

/// Decrements the count of a signal, if it is not zero.
fn take_one(number: i32) -> bool {
    let less = |count: u32| count.checked_sub(1);
    let pending = usize::try_from(number).ok().and_then(|number| PENDING.get(number));
    pending.is_some_and(|pending| pending.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok())
}

/// Removes what a starting program may have inherited: every signal is unblocked in this thread, and SIGINT, which a
/// shell ignores in its background commands, has its effect again. Call it before other threads start. The other
/// dispositions stay: SIGTERM is ignored on purpose only. SIGXFSZ is ignored: a write beyond the limit on the size of files is
/// an error for the writer, and not the end of the process. SIGSEGV and SIGBUS end the process also where they were sent.
pub fn discard_inherited() {
    sys::signal::end_by_sent_faults();
    sys::signal::set_ignored(libc::SIGXFSZ);
    sys::signal::set_default(Signal::Interrupt.number());
    sys::signal::unblock_all();
}

/// Ignores a signal.
pub fn ignore(signal: Signal) {
    sys::signal::set_ignored(signal.number());
}

/// Handles `signals` and delivers them to the current worker. There should be one stream per process at a time: each
/// signal is delivered once, to the first stream that takes it.
///
/// # Errors
/// As for [`handle_signals`].
pub fn signals(signals: &[Signal]) -> io::Result<SignalStream> {
    let socket = match sim::current_world() {
        Some(world) => Socket::Sim(Box::new(SimSocket::signals(&world))),
        None => {
            handle_signals(signals)?;
            // A second descriptor of the same event, so that dropping the stream only ends its watch.
            Socket::Os(OWNER.get().ok_or(io::ErrorKind::NotFound)?.try_clone()?.into())
        }
    };
    let key = current::with(|worker| worker.sources.borrow_mut().insert(Source::new()));
    Ok(SignalStream { socket, key, signals: signals.to_vec() })
}

/// A stream of received signals; see [`signals`].
pub struct SignalStream {
    socket: Socket,
    key: Key,
    signals: Vec<Signal>,
}

impl SignalStream {
    /// Waits for the next signal and returns its number. Several signals of one kind are counted, not merged.
    pub async fn next(&mut self) -> i32 {
        future::poll_fn(|context| self.poll_next(context)).await
    }

    /// The poll form of [`SignalStream::next`].
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<i32> {
        current::with(|worker| {
            let mut sources = worker.sources.borrow_mut();
            let Some(source) = sources.get_mut(self.key) else { return Poll::Pending };
            // The waker is stored before the counts are read: an event between the two is recorded for the next
            // iteration.
            if !source.watched && worker.driver.watch(&self.socket, Watch::Edges, self.key).is_ok() {
                source.note_watched(self.socket.number());
            }
            source.read = Readiness::Drained;
            source.wait_to_read(context);
            self.take().map_or(Poll::Pending, Poll::Ready)
        })
    }

    fn take(&self) -> Option<i32> {
        if let Socket::Sim(socket) = &self.socket {
            return socket.take_signal(|number| self.signals.iter().any(|signal| signal.number() == number));
        }
        take(&self.signals).map(Signal::number)
    }
}

impl Drop for SignalStream {
    fn drop(&mut self) {
        current::try_with(|worker| {
            // Other descriptors of the same event stay open, so closing this one does not end the watch.
            worker.driver.unwatch(&self.socket);
            worker.sources.borrow_mut().remove(self.key)
        });
    }
}

impl fmt::Debug for SignalStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalStream").field("signals", &self.signals).finish()
    }
}
