//! Alarms: timers with a precision of some microseconds, where a [`crate::Timer`] may be two milliseconds late.
//!
//! Setting one costs a system call. Must never be used where a timer would do.

use std::fmt;
use std::io;
use std::task::{Context, Poll};

use base::{Key, Moment};

use crate::net::Socket;
use crate::sim::{self, SimSocket};
use crate::source::{Source, Watch};
use crate::{current, sys};

/// A precise timer of the current worker, for one task. It owns a descriptor.
pub struct Alarm {
    socket: Socket,
    key: Key,
    /// The instant that it is set to.
    set: Moment,
}

impl Alarm {
    /// Creates an alarm that is not set.
    ///
    /// # Errors
    /// From the kernel: no descriptors.
    pub fn new() -> io::Result<Alarm> {
        let socket = match sim::current_world() {
            Some(world) => Socket::Sim(Box::new(SimSocket::alarm(&world))),
            None => Socket::Os(sys::alarm::create()?.into()),
        };
        let key = current::with(|worker| worker.sources.borrow_mut().insert(Source::new()));
        Ok(Alarm { socket, key, set: Moment::MAX })
    }

    /// Ready when `moment` has passed by the time of this iteration. Otherwise sets the alarm, which replaces any
    /// instant set before, and wakes the task then.
    ///
    /// # Errors
    /// From the kernel.
    pub fn poll_at(&mut self, context: &mut Context<'_>, moment: Moment) -> Poll<io::Result<()>> {
        current::with(|worker| {
            if worker.now.get() >= moment {
                return Poll::Ready(Ok(()));
            }
            let mut sources = worker.sources.borrow_mut();
            let Some(source) = sources.get_mut(self.key) else { return Poll::Pending };
            source.wait_to_read(context);
            if !source.watched {
                worker.driver.watch(&self.socket, Watch::Edges, self.key)?;
                source.note_watched(self.socket.number());
            }
            if self.set != moment {
                match &self.socket {
                    Socket::Os(timer) => sys::alarm::set(timer, moment)?,
                    Socket::Sim(socket) => socket.set_alarm(moment),
                }
                self.set = moment;
            }
            Poll::Pending
        })
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // The source is removed first; closing the descriptor then ends its watch.
        let _source = current::try_with(|worker| worker.sources.borrow_mut().remove(self.key));
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("set", &self.set).finish_non_exhaustive()
    }
}
